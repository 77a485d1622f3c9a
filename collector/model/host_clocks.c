/* SPDX-License-Identifier: Apache-2.0 */
#include "model/host_clocks.h"

#include <math.h>
#include <stdlib.h>

#include "base/message.h"
#include "base/unit_text.h"
#include "error.h"
#include "model/clock_fit.h"
#include "model/collective_ends.h"

#define COLLECTIVES_MIN 4 /* fewer say nothing that can be checked */
#define WEAKEST         4 /* who has fewer than 1/4 of the most waits for better company */

/* Of a long recording it is enough to read some of the time, unless clocks are further apart. */
#define WINDOWS   64
#define WINDOW_NS 2000000000ull
#define ENOUGH    (4 * WINDOWS) /* collectives of each host */

#define CLOCK_SET_NS 946684800000000000ull /* 2000: before that nobody has set it */

/* How a host's wall clock is moved. */
struct moved {
    const struct clock_fit *fit; /* NULL: not at all */
    uint64_t at_ns;              /* where the fit's times ... */
    int64_t gap_ns;              /* ... and gaps count from */
};

struct alignment {
    struct recording *rec;
    struct collective_ends ends;
    struct clock_fit *fits;       /* owned, and so are the others; by host */
    struct moved *moved;          /* likewise */
    bool *is_aligned;             /* likewise */
    uint32_t *first;              /* likewise: of its samples; one more is the end of all */
    struct clock_sample *samples; /* as many as ends */
    uint64_t *together;           /* of one collective: ends of hosts that are aligned */
    uint32_t contradiction;       /* the host; host_count: none */
    uint32_t root;                /* with which others are being aligned */
};

/* A file may say anything: differences are taken modulo 2^64. */
static int64_t difference(uint64_t later_ns, uint64_t earlier_ns)
{
    return (int64_t)(later_ns - earlier_ns);
}

static int64_t gap_at(const struct moved *m, uint64_t ns)
{
    double gap = clock_fit_gap(m->fit, (double)difference(ns, m->at_ns));
    return (int64_t)((uint64_t)m->gap_ns + (uint64_t)llround(gap));
}

static uint64_t move(const void *context, uint64_t shared_ns)
{
    const struct moved *m = context;
    if (!m->fit)
        return shared_ns;
    int64_t moved_ns = (int64_t)(shared_ns + (uint64_t)gap_at(m, shared_ns));
    return moved_ns < 0 ? 0 : (uint64_t)moved_ns;
}

static void move_process(const void *context, struct process *p)
{
    const struct moved *m = &((const struct alignment *)context)->moved[p->host];
    if (m->fit)
        clock_map_move(&p->clock, move, m);
}

/* ---- samples --------------------------------------------------------------------------------- */

static int compare_times(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* One collective is the ends from `first` on; where it ends. */
static uint32_t collective_end(const struct collective_ends *e, uint32_t first)
{
    uint32_t end = first + 1;
    while (end < e->count && e->list[end].communicator == e->list[first].communicator &&
           e->list[end].number == e->list[first].number)
        end++;
    return end;
}

/* When hosts that are aligned say that it was; 0: none took part. */
static uint64_t moment_of(const struct alignment *a, uint32_t first, uint32_t end)
{
    uint32_t count = 0;
    for (uint32_t i = first; i < end; i++) {
        const struct collective_end *one = &a->ends.list[i];
        if (a->is_aligned[one->host])
            a->together[count++] = move(&a->moved[one->host], one->end_ns);
    }
    if (!count)
        return 0;
    qsort(a->together, count, sizeof *a->together, compare_times);
    uint64_t low = a->together[(count - 1) / 2];
    return low + (a->together[count / 2] - low) / 2;
}

/* Puts the sample of a host where the next of its own goes, and counts from its first. */
static void add_sample(struct alignment *a, uint32_t *next, const struct collective_end *one,
                       uint64_t moment_ns)
{
    struct moved *m = &a->moved[one->host];
    int64_t gap_ns = difference(moment_ns, one->end_ns);
    if (*next == a->first[one->host]) {
        m->at_ns = one->end_ns;
        m->gap_ns = gap_ns;
    }
    a->samples[(*next)++] =
        (struct clock_sample){(double)difference(one->end_ns, m->at_ns),
                              (double)difference((uint64_t)gap_ns, (uint64_t)m->gap_ns)};
}

/* Those of hosts that are not aligned, in collectives with hosts that are. 0 or
 * GPUPROF_NO_MEMORY. */
static int find_samples(struct alignment *a)
{
    uint32_t hosts = a->rec->host_count, sum = 0, end;
    uint32_t *next = calloc(hosts, sizeof *next);
    if (!next)
        return GPUPROF_NO_MEMORY;
    for (unsigned pass = 0; pass < 2; pass++) { /* they are counted, then put */
        for (uint32_t i = 0; i < a->ends.count; i = end) {
            end = collective_end(&a->ends, i);
            uint64_t moment_ns = end - i > 1 ? moment_of(a, i, end) : 0;
            for (uint32_t k = i; moment_ns && k < end; k++) {
                uint32_t host = a->ends.list[k].host;
                if (!a->is_aligned[host] && pass)
                    add_sample(a, &next[host], &a->ends.list[k], moment_ns);
                else if (!a->is_aligned[host])
                    next[host]++;
            }
        }
        for (uint32_t i = 0; i < hosts && !pass; i++) {
            a->first[i] = sum;
            sum += next[i];
            next[i] = a->first[i];
        }
        a->first[hosts] = sum;
    }
    free(next);
    return 0;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

/* When its processes recorded, by its wall clock. */
static void time_of(const struct recording *rec, uint32_t host, uint64_t *from_ns, uint64_t *to_ns)
{
    *from_ns = UINT64_MAX;
    *to_ns = 0;
    for (uint32_t i = 0; i < rec->count; i++) {
        struct process *p = rec->processes[i];
        if (p->host != host || p->min_ns > p->max_ns)
            continue;
        uint64_t from = clock_map_ns(&p->clock, p->min_ns);
        uint64_t to = clock_map_ns(&p->clock, p->max_ns);
        *from_ns = from < *from_ns ? from : *from_ns;
        *to_ns = to > *to_ns ? to : *to_ns;
    }
}

/* How certain those are by whom it was aligned: as the least certain of them. */
static double uncertainty_of_others(const struct alignment *a)
{
    double most = 0;
    for (uint32_t i = 0; i < a->rec->host_count; i++)
        if (a->is_aligned[i] && a->rec->hosts[i].reference == a->root)
            most = fmax(most, (double)a->rec->hosts[i].uncertainty_ns);
    return most;
}

/* 0, or GPUPROF_NO_MEMORY. */
static int fit(struct alignment *a, uint32_t index, double others_ns)
{
    struct host *h = &a->rec->hosts[index];
    struct moved *m = &a->moved[index];
    struct clock_fit *f = &a->fits[index];
    uint64_t from_ns, to_ns;
    time_of(a->rec, index, &from_ns, &to_ns);
    double from = from_ns < to_ns ? (double)difference(from_ns, m->at_ns) : 0;
    double to = from_ns < to_ns ? (double)difference(to_ns, m->at_ns) : 0;
    int error = clock_fit_make(f, &a->samples[a->first[index]],
                               a->first[index + 1] - a->first[index], from, to);
    if (error < 0)
        return error;
    if (!clock_fit_is_sane(f)) {
        a->contradiction = index;
        return 0;
    }
    m->fit = f;
    h->source = HOST_CLOCK_COLLECTIVES;
    h->reference = a->root;
    h->collectives = f->used;
    h->offset_ns = difference(0, (uint64_t)gap_at(m, from_ns / 2 + to_ns / 2));
    h->drift = from < to ? (clock_fit_gap(f, from) - clock_fit_gap(f, to)) / (to - from) : 0;
    h->uncertainty_ns = (uint64_t)llround(f->uncertainty_ns + others_ns);
    return 0;
}

/* All hosts that have enough collectives with those that are aligned. False: none has; or an
 * error, or a contradiction, is there. */
static bool align_next(struct alignment *a, int *error)
{
    uint32_t most = 0, hosts = a->rec->host_count;
    if ((*error = find_samples(a)) < 0)
        return false;
    for (uint32_t i = 0; i < hosts; i++)
        most = a->first[i + 1] - a->first[i] > most ? a->first[i + 1] - a->first[i] : most;
    if (most < COLLECTIVES_MIN)
        return false;
    double others_ns = uncertainty_of_others(a);
    for (uint32_t i = 0; i < hosts; i++) {
        uint32_t count = a->first[i + 1] - a->first[i];
        if (count < COLLECTIVES_MIN || count < most / WEAKEST)
            continue;
        if ((*error = fit(a, i, others_ns)) < 0 || a->contradiction < hosts)
            return false;
    }
    for (uint32_t i = 0; i < hosts; i++)
        a->is_aligned[i] |= a->moved[i].fit != NULL;
    return true;
}

/* 0 or GPUPROF_NO_MEMORY. */
static int align(struct alignment *a)
{
    int error = 0;
    bool *has_ends = calloc(a->rec->host_count, sizeof *has_ends);
    if (!has_ends)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < a->ends.count; i++)
        has_ends[a->ends.list[i].host] = true;
    uint32_t hosts = a->rec->host_count;
    for (uint32_t i = 0; i < hosts && error == 0 && a->contradiction == hosts; i++) {
        if (a->is_aligned[i])
            continue;
        a->is_aligned[i] = true;
        a->root = i;
        while (has_ends[i] && align_next(a, &error))
            ;
    }
    free(has_ends);
    return error;
}

static void alignment_release(struct alignment *a)
{
    free(a->fits);
    free(a->moved);
    free(a->is_aligned);
    free(a->first);
    free(a->samples);
    free(a->together);
    collective_ends_release(&a->ends);
    *a = (struct alignment){0};
}

/* Reads what is in `windows`, and finds how clocks are to be moved. 0 or an error after one line on
 * stderr; alignment_release in both cases. */
static int find_clocks(struct alignment *a, struct recording *rec,
                       const struct ends_windows *windows)
{
    uint32_t hosts = rec->host_count;
    *a = (struct alignment){.rec = rec, .contradiction = hosts};
    for (uint32_t i = 0; i < hosts; i++)
        rec->hosts[i] = (struct host){
            .first = rec->hosts[i].first, .processes = rec->hosts[i].processes, .reference = i};
    int error = collective_ends_gather(&a->ends, rec, windows);
    if (error < 0)
        return error;
    a->fits = calloc(hosts, sizeof *a->fits);
    a->moved = calloc(hosts, sizeof *a->moved);
    a->is_aligned = calloc(hosts, sizeof *a->is_aligned);
    a->first = calloc(hosts + 1u, sizeof *a->first);
    a->samples = calloc(a->ends.count + 1u, sizeof *a->samples);
    a->together = calloc(hosts, sizeof *a->together);
    bool has_room = a->fits && a->moved && a->is_aligned && a->first && a->samples && a->together;
    error = has_room ? align(a) : GPUPROF_NO_MEMORY;
    if (error < 0)
        message("gpuprof-collector: %s", gpuprof_error_text(error));
    return error;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static struct ends_windows windows_of(const struct recording *rec)
{
    uint64_t from_ns = UINT64_MAX, to_ns = 0;
    for (uint32_t i = 0; i < rec->index.count; i++) {
        from_ns = rec->index.entries[i].time < from_ns ? rec->index.entries[i].time : from_ns;
        to_ns = rec->index.entries[i].end > to_ns ? rec->index.entries[i].end : to_ns;
    }
    struct ends_windows windows = {.from_ns = from_ns, .length_ns = WINDOW_NS};
    if (from_ns < to_ns && to_ns - from_ns > 2 * WINDOWS * WINDOW_NS)
        windows.every_ns = (to_ns - from_ns - WINDOW_NS) / (WINDOWS - 1); /* to its end */
    return windows;
}

/* Are there hosts that nothing ties to the reference? */
static bool are_apart(const struct recording *rec)
{
    for (uint32_t i = 0; i < rec->host_count; i++)
        if (rec->hosts[i].reference != 0)
            return true;
    return false;
}

/* Has a host so few that all of its time is to be read? */
static bool has_few(const struct alignment *a)
{
    for (uint32_t i = 0; i < a->rec->host_count; i++)
        if (a->moved[i].fit && a->fits[i].count < ENOUGH)
            return true;
    return false;
}

static enum exit_code refuse(const struct alignment *a, const char *verb)
{
    char apart[UNIT_TEXT_BYTES];
    const struct host *h = &a->rec->hosts[a->contradiction];
    const struct clock_fit *f = &a->fits[a->contradiction];
    if (clock_fit_jumps(f))
        return usage_error("%s: host %.64s: its collectives with host %.64s contradict one "
                           "another: between some its clock jumps by %s (it was set, or its "
                           "machine stood still); --clock=wall takes the hosts' own clocks",
                           verb, h->first->header.host, a->rec->hosts[a->root].first->header.host,
                           time_text(apart, (uint64_t)f->jump_ns));
    return usage_error("%s: host %.64s: its collectives with host %.64s contradict one another: "
                       "of %u, %u end together (within %s); --clock=wall takes the hosts' own "
                       "clocks",
                       verb, h->first->header.host, a->rec->hosts[a->root].first->header.host,
                       f->count, f->used, time_text(apart, (uint64_t)f->spread_ns));
}

/* A clock that nobody has set cannot be laid beside others by what it says. */
static enum exit_code check_walls(const struct recording *rec, const char *verb)
{
    if (!are_apart(rec))
        return EXIT_OK;
    for (uint32_t i = 0; i < rec->host_count; i++) {
        const struct host *h = &rec->hosts[i];
        if (h->source == HOST_CLOCK_WALL && h->first->header.realtime_zero_ns < CLOCK_SET_NS)
            return usage_error("%s: host %.64s: its clock was not set (it says 1970 or so), and no "
                               "collectives tie it to host %.64s; --clock=wall takes it all the "
                               "same",
                               verb, h->first->header.host,
                               rec->hosts[i ? 0 : rec->host_count - 1].first->header.host);
    }
    return EXIT_OK;
}

enum exit_code host_clocks_align(struct recording *rec, enum clock_choice choice, const char *verb)
{
    if (rec->host_count < 2 || choice == CLOCK_BY_WALL)
        return EXIT_OK;
    struct alignment a;
    struct ends_windows windows = windows_of(rec);
    int error = find_clocks(&a, rec, &windows);
    if (error == 0 && windows.every_ns &&
        (a.contradiction < rec->host_count || are_apart(rec) || has_few(&a))) {
        alignment_release(&a);
        error = find_clocks(&a, rec, &(struct ends_windows){0});
    }
    enum exit_code code = error < 0 ? EXIT_ENVIRONMENT : EXIT_OK;
    if (code == EXIT_OK)
        code = a.contradiction < rec->host_count ? refuse(&a, verb) : check_walls(rec, verb);
    if (code == EXIT_OK)
        recording_move_clocks(rec, move_process, &a);
    alignment_release(&a);
    return code;
}
