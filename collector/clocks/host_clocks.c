/* SPDX-License-Identifier: Apache-2.0 */
#include "clocks/host_clocks.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/memory.h"
#include "clocks/clock_fit.h"
#include "resolve/event_walk.h"

#define SOME_OPEN_BYTES_MAX (64ull << 20) /* of one process */
#define COLLECTIVES_MIN     4             /* fewer cannot be checked */
#define WEAKEST             4 /* a host with fewer than 1/4 of the largest count waits */

/* A part of a long recording is enough, unless it has too few collectives. */
#define WINDOWS   64
#define WINDOW_NS 2000000000ull
#define ENOUGH    (4 * WINDOWS) /* collectives of each host */

/* When a collective ended on a host: at the first end among its ranks, as an end may be late. */
struct collective_end {
    uint64_t communicator;
    uint64_t number; /* on it */
    uint64_t end_ns;
    uint64_t moment_ns; /* median over the aligned hosts; 0: none took part */
    uint32_t host;
};

struct aligned_host {
    bool is_aligned;
    bool is_moved;           /* `fit` corrects its clock */
    uint64_t from_ns, to_ns; /* time of its processes' records, by that clock */
    uint64_t at_ns;          /* origin of the fit's times ... */
    int64_t gap_ns;          /* ... and gaps */
    uint32_t shared;         /* its collectives with aligned hosts */
    struct clock_fit fit;
};

struct alignment {
    struct recording *rec;
    uint64_t from_ns, every_ns;  /* reads WINDOW_NS of each `every_ns`; 0: everything */
    struct collective_end *ends; /* owned; by communicator, number, host */
    uint32_t end_count;
    unsigned thinned;           /* after the first ones, one of 2^n collectives is stored */
    struct aligned_host *hosts; /* owned */
    uint32_t contradiction;     /* a host whose samples contradict each other; host_count: none */
    uint32_t root;              /* host to which others are being aligned */
};

/* Times of a hostile file may be anything, so the difference is modulo 2^64. */
static int64_t difference(uint64_t later_ns, uint64_t earlier_ns)
{
    return (int64_t)(later_ns - earlier_ns);
}

static int64_t gap_at(const struct aligned_host *h, uint64_t ns)
{
    double gap = clock_fit_gap(&h->fit, (double)difference(ns, h->at_ns));
    return (int64_t)((uint64_t)h->gap_ns + (uint64_t)llround(gap));
}

static uint64_t host_clocks_move(const void *context, uint64_t shared_ns)
{
    const struct aligned_host *h = context;
    if (!h->is_moved)
        return shared_ns;
    int64_t moved_ns = (int64_t)(shared_ns + (uint64_t)gap_at(h, shared_ns));
    return moved_ns < 0 ? 0 : (uint64_t)moved_ns;
}

static void move_process(const void *context, struct process *p)
{
    const struct aligned_host *h = &((const struct alignment *)context)->hosts[p->host];
    if (h->is_moved)
        clock_map_move(&p->clock, host_clocks_move, h);
}

/* ---- ends of collectives --------------------------------------------------------------------- */

/* Whether the collective is stored. The choice is the same on all ranks. */
static bool is_kept(const struct alignment *a, const struct collective_end *e)
{
    uint64_t hash = key_hash((struct key){e->number, e->communicator, 1});
    return e->number <= ENDS_FIRST || (hash & ((1ull << a->thinned) - 1)) == 0;
}

static bool are_of_one(const struct collective_end *a, const struct collective_end *b)
{
    return a->communicator == b->communicator && a->number == b->number;
}

static int compare_ends(const void *left, const void *right)
{
    const struct collective_end *a = left, *b = right;
    return ORDER(a->communicator, b->communicator) ?: ORDER(a->number, b->number) ?:
           ORDER(a->host, b->host) ?: ORDER(a->end_ns, b->end_ns);
}

/* Sorts the ends. Keeps the first end of each collective and host. */
static void sort_ends(struct alignment *a)
{
    uint32_t kept = 0;
    ARRAY_SORT(a->ends, a->end_count, compare_ends);
    for (uint32_t i = 0; i < a->end_count; i++) {
        const struct collective_end *last = kept ? &a->ends[kept - 1] : NULL;
        if (!last || last->host != a->ends[i].host || !are_of_one(last, &a->ends[i]))
            a->ends[kept++] = a->ends[i];
    }
    a->end_count = kept;
}

/* Drops collectives until half of the room is free. If the first ones of many communicators fill
 * it, drops the last of these. */
static void thin(struct alignment *a)
{
    sort_ends(a);
    while (a->end_count > ENDS_MAX / 2 && a->thinned < 63) {
        uint32_t kept = 0;
        a->thinned++;
        for (uint32_t i = 0; i < a->end_count; i++)
            if (is_kept(a, &a->ends[i]))
                a->ends[kept++] = a->ends[i];
        a->end_count = kept;
    }
    a->end_count = a->end_count < ENDS_MAX / 2 ? a->end_count : ENDS_MAX / 2;
}

/* Takes a kernel. Collectives with a root are skipped: a rank may end before all have arrived. */
static int take_kernel(void *context, const struct slice *s)
{
    struct alignment *a = context;
    struct collective what;
    if (s->event.record->type != RECORD_KERNEL)
        return 0;
    collective_of(s, &what);
    if (!what.communicator || !what.number || what.is_rooted)
        return 0;
    struct collective_end end = {.communicator = what.communicator,
                                 .number = what.number,
                                 .end_ns = s->event.end_ns,
                                 .host = s->event.process->host};
    if (!is_kept(a, &end))
        return 0;
    if (a->end_count >= ENDS_MAX)
        thin(a);
    ARRAY_PUSH(a->ends, a->end_count, &end);
    return 0;
}

/* Whether to read a block. Blocks of unknown types and communicators are always read. */
static bool wants_block(void *context, const struct process *p, const struct block_span *b)
{
    const struct alignment *a = context;
    const uint64_t used = block_type_bit(RECORD_LIBRARY_BEGIN) | block_type_bit(RECORD_KERNEL) |
                          block_type_bit(RECORD_LIBRARY_END);
    (void)p;
    if (b->types & block_type_bit(RECORD_COMMUNICATOR))
        return true;
    if (b->types && !(b->types & used))
        return false;
    if (!a->every_ns || b->begin_ns < a->from_ns)
        return true;
    uint64_t begin_ns = b->begin_ns - a->from_ns, end_ns = b->end_ns - a->from_ns;
    return end_ns >= a->every_ns * (begin_ns / a->every_ns + 1) ||
           begin_ns % a->every_ns < WINDOW_NS;
}

/* Reads one process at a time. Returns 0, or an error after one line on stderr. */
static int gather_ends(struct alignment *a)
{
    struct walk walk;
    const struct walk_filter filter = {.context = a, .wants = wants_block};
    const struct consumer kernels = {.context = a,
                                     .needs = WALK_WORK,
                                     .skips = WALK_SKIPS_CALLS | WALK_SKIPS_OTHERS,
                                     .sees_filtered = true,
                                     .take_work = take_kernel};
    int error = 0;
    walk_init(&walk, a->rec);
    walk.open_bytes_max = SOME_OPEN_BYTES_MAX;
    walk.is_surveyed = true; /* names and devices do not matter */
    walk.filter = &filter;
    for (uint32_t i = 0; error == 0 && i < a->rec->count; i++)
        error = walk_run(&walk, a->rec->processes[i], &kernels, 1);
    walk_release(&walk);
    sort_ends(a);
    return error;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static void find_times(struct alignment *a)
{
    for (uint32_t i = 0; i < a->rec->host_count; i++)
        a->hosts[i].from_ns = UINT64_MAX;
    for (uint32_t i = 0; i < a->rec->count; i++) {
        struct process *p = a->rec->processes[i];
        struct aligned_host *h = &a->hosts[p->host];
        if (p->min_ns <= p->max_ns) {
            h->from_ns = min_of(h->from_ns, clock_map_ns(&p->clock, p->min_ns));
            h->to_ns = max_of(h->to_ns, clock_map_ns(&p->clock, p->max_ns));
        }
    }
}

/* Sets the moments of collectives by the hosts that are aligned so far; `times` has room for one of
 * each host. Counts each host's collectives with a known moment. */
static void find_moments(struct alignment *a, uint64_t *times)
{
    for (uint32_t i = 0; i < a->rec->host_count; i++)
        a->hosts[i].shared = 0;
    for (uint32_t i = 0, end; i < a->end_count; i = end) {
        uint32_t known = 0;
        for (end = i; end < a->end_count && are_of_one(&a->ends[i], &a->ends[end]); end++) {
            const struct aligned_host *h = &a->hosts[a->ends[end].host];
            if (h->is_aligned)
                times[known++] = host_clocks_move(h, a->ends[end].end_ns);
        }
        array_sort_whole(times, known);
        uint64_t low = known ? times[(known - 1) / 2] : 0, high = known ? times[known / 2] : 0;
        for (uint32_t k = i; k < end; k++) {
            a->ends[k].moment_ns = low + (high - low) / 2;
            a->hosts[a->ends[k].host].shared += known > 0;
        }
    }
}

/* Collects the host's ends of collectives with aligned hosts; times and gaps count from the first.
 * `samples` has room for all. Returns their number. */
static uint32_t find_samples(struct alignment *a, uint32_t host, struct clock_sample *samples)
{
    struct aligned_host *h = &a->hosts[host];
    uint32_t count = 0;
    for (const struct collective_end *e = a->ends; e < a->ends + a->end_count; e++) {
        if (e->host != host || !e->moment_ns)
            continue;
        int64_t gap_ns = difference(e->moment_ns, e->end_ns);
        if (!count) {
            h->at_ns = e->end_ns;
            h->gap_ns = gap_ns;
        }
        samples[count++] =
            (struct clock_sample){(double)difference(e->end_ns, h->at_ns),
                                  (double)difference((uint64_t)gap_ns, (uint64_t)h->gap_ns)};
    }
    return count;
}

/* `others_ns`: how uncertain the hosts are that it is aligned to. */
static void fit_host(struct alignment *a, uint32_t index, uint64_t others_ns)
{
    struct host *host = &a->rec->hosts[index];
    struct aligned_host *h = &a->hosts[index];
    struct clock_fit *f = &h->fit;
    struct clock_sample *samples = memory_new(h->shared, sizeof *samples);
    uint32_t count = find_samples(a, index, samples);
    double from = h->from_ns < h->to_ns ? (double)difference(h->from_ns, h->at_ns) : 0;
    double to = h->from_ns < h->to_ns ? (double)difference(h->to_ns, h->at_ns) : 0;
    if (count)
        clock_fit_make(f, samples, count, from, to);
    free(samples);
    if (count && !clock_fit_is_sane(f))
        a->contradiction = index;
    if (!count || a->contradiction == index)
        return;
    h->is_moved = true;
    host->source = HOST_CLOCK_COLLECTIVES;
    host->reference = a->root;
    host->collectives = f->used;
    host->offset_ns = difference(0, (uint64_t)gap_at(h, h->from_ns / 2 + h->to_ns / 2));
    host->drift = from < to ? (clock_fit_gap(f, from) - clock_fit_gap(f, to)) / (to - from) : 0;
    host->uncertainty_ns = (uint64_t)llround(f->uncertainty_ns + (double)others_ns);
}

/* Aligns all hosts that can be aligned to the root, until one contradicts itself; each round takes
 * those with enough collectives with aligned hosts. */
static void align_with_root(struct alignment *a, uint64_t *times)
{
    uint32_t hosts = a->rec->host_count, aligned = 1;
    uint64_t others_ns = 0, worst_ns = 0;
    while (aligned && a->contradiction == hosts) {
        uint32_t most = 0;
        find_moments(a, times);
        for (uint32_t i = 0; i < hosts; i++)
            if (!a->hosts[i].is_aligned && a->hosts[i].shared > most)
                most = a->hosts[i].shared;
        aligned = 0;
        for (uint32_t i = 0; i < hosts && a->contradiction == hosts; i++) {
            struct aligned_host *h = &a->hosts[i];
            if (h->is_aligned || h->shared < COLLECTIVES_MIN || h->shared < most / WEAKEST)
                continue;
            fit_host(a, i, others_ns);
            h->is_aligned = true;
            aligned++;
            worst_ns = max_of(worst_ns, a->rec->hosts[i].uncertainty_ns);
        }
        others_ns = worst_ns;
    }
}

static void align_all(struct alignment *a)
{
    uint32_t hosts = a->rec->host_count;
    uint64_t *times = memory_new(hosts, sizeof *times);
    find_times(a);
    for (uint32_t i = 0; i < hosts && a->contradiction == hosts; i++)
        if (!a->hosts[i].is_aligned) {
            a->hosts[i].is_aligned = true;
            a->root = i;
            align_with_root(a, times);
        }
    free(times);
}

static void alignment_release(struct alignment *a)
{
    free(a->hosts);
    free(a->ends);
}

/* Reads the records and computes the corrections. Returns 0, or an error after one line on stderr;
 * alignment_release in both cases. */
static int find_clocks(struct alignment *a, struct recording *rec, uint64_t from_ns,
                       uint64_t every_ns)
{
    uint32_t hosts = rec->host_count;
    *a = (struct alignment){.rec = rec,
                            .from_ns = from_ns,
                            .every_ns = every_ns,
                            .hosts = memory_new(hosts, sizeof *a->hosts),
                            .contradiction = hosts};
    for (uint32_t i = 0; i < hosts; i++)
        rec->hosts[i] = (struct host){
            .first = rec->hosts[i].first, .processes = rec->hosts[i].processes, .reference = i};
    int error = gather_ends(a);
    if (error == 0)
        align_all(a);
    return error;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Whether a host has no connection to the reference, or so few collectives that the whole recording
 * must be read, or contradicts itself. */
static bool is_unsure(const struct alignment *a)
{
    for (uint32_t i = 0; i < a->rec->host_count; i++)
        if (a->rec->hosts[i].reference || (a->hosts[i].is_moved && a->hosts[i].fit.count < ENOUGH))
            return true;
    return a->contradiction < a->rec->host_count;
}

static enum exit_code host_clocks_refuse(const struct alignment *a, const char *verb)
{
    const struct host *h = &a->rec->hosts[a->contradiction];
    const struct clock_fit *f = &a->hosts[a->contradiction].fit;
    return usage_error(
        "%s: host %.64s cannot be aligned with host %.64s: its clock jumped, or only %u "
        "of %u collectives agree; --clock=wall uses the hosts' own clocks",
        verb, h->first->header.host, a->rec->hosts[a->root].first->header.host, f->used, f->count);
}

enum exit_code host_clocks_align(struct recording *rec, enum clock_choice choice, const char *verb)
{
    uint64_t from_ns = UINT64_MAX, to_ns = 0, every_ns = 0;
    struct alignment a;
    if (rec->host_count < 2 || choice == CLOCK_BY_WALL)
        return EXIT_OK;
    for (uint32_t i = 0; i < rec->index.count; i++) {
        from_ns = min_of(from_ns, rec->index.entries[i].time);
        to_ns = max_of(to_ns, rec->index.entries[i].end);
    }
    if (from_ns < to_ns && to_ns - from_ns > 2 * WINDOWS * WINDOW_NS)
        every_ns = (to_ns - from_ns - WINDOW_NS) / (WINDOWS - 1); /* the last one: the end */
    int error = find_clocks(&a, rec, from_ns, every_ns);
    if (error == 0 && every_ns && is_unsure(&a)) {
        alignment_release(&a);
        error = find_clocks(&a, rec, from_ns, 0);
    }
    enum exit_code code = error < 0 ? EXIT_ENVIRONMENT : EXIT_OK;
    if (code == EXIT_OK && a.contradiction < rec->host_count)
        code = host_clocks_refuse(&a, verb);
    if (code == EXIT_OK)
        recording_move_clocks(rec, move_process, &a);
    alignment_release(&a);
    return code;
}
