/* SPDX-License-Identifier: Apache-2.0 */
#include "clocks/host_clocks.h"

#include <math.h>
#include <stdlib.h>

#include "base/message.h"
#include "clocks/clock_fit.h"
#include "error.h"
#include "resolve/collective_ends.h"

/* A part of a long recording is enough, unless it has too few collectives. */
#define WINDOWS   64
#define WINDOW_NS 2000000000ull
#define ENOUGH    (4 * WINDOWS) /* collectives of each host */

/* The correction of a host's wall clock. */
struct moved {
    const struct clock_fit *fit; /* NULL: unchanged */
    uint64_t at_ns;              /* origin of the fit's times ... */
    int64_t gap_ns;              /* ... and gaps */
    uint64_t from_ns, to_ns;     /* time of its processes' records, by that clock */
};

struct alignment {
    struct recording *rec;
    struct collective_ends ends;
    struct common_moments moments;
    struct clock_fit *fits; /* owned; by host */
    struct moved *moved;    /* likewise */
    uint32_t contradiction; /* a host whose samples contradict each other; host_count: none */
    uint32_t root;          /* host to which others are being aligned */
    uint64_t others_ns;     /* uncertainty of the least certain aligned host */
};

/* Times of a hostile file may be anything, so the difference is modulo 2^64. */
static int64_t difference(uint64_t later_ns, uint64_t earlier_ns)
{
    return (int64_t)(later_ns - earlier_ns);
}

static int64_t gap_at(const struct moved *m, uint64_t ns)
{
    double gap = clock_fit_gap(m->fit, (double)difference(ns, m->at_ns));
    return (int64_t)((uint64_t)m->gap_ns + (uint64_t)llround(gap));
}

static uint64_t host_clocks_move(const void *context, uint64_t shared_ns)
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
        clock_map_move(&p->clock, host_clocks_move, m);
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static void find_times(struct alignment *a)
{
    for (uint32_t i = 0; i < a->rec->host_count; i++)
        a->moved[i].from_ns = UINT64_MAX;
    for (uint32_t i = 0; i < a->rec->count; i++) {
        struct process *p = a->rec->processes[i];
        struct moved *m = &a->moved[p->host];
        if (p->min_ns > p->max_ns)
            continue;
        uint64_t from_ns = clock_map_ns(&p->clock, p->min_ns);
        uint64_t to_ns = clock_map_ns(&p->clock, p->max_ns);
        m->from_ns = from_ns < m->from_ns ? from_ns : m->from_ns;
        m->to_ns = to_ns > m->to_ns ? to_ns : m->to_ns;
    }
}

/* Collects the host's ends of collectives with aligned hosts; times and gaps count from the first.
 * `samples` has room for all ends. Returns the number of samples. */
static uint32_t find_samples(struct alignment *a, uint32_t host, struct clock_sample *samples)
{
    const struct common_moments *c = &a->moments;
    struct moved *m = &a->moved[host];
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->ends.count; i++) {
        uint64_t own_ns = a->ends.list[i].end_ns, moment_ns;
        if (a->ends.list[i].host != host || !common_moments_get(c, i, &moment_ns))
            continue;
        int64_t gap_ns = difference(moment_ns, own_ns);
        if (!count) {
            m->at_ns = own_ns;
            m->gap_ns = gap_ns;
        }
        samples[count++] =
            (struct clock_sample){(double)difference(own_ns, m->at_ns),
                                  (double)difference((uint64_t)gap_ns, (uint64_t)m->gap_ns)};
    }
    return count;
}

/* Returns 0 or GPUPROF_NO_MEMORY. */
static int host_clocks_fit(struct alignment *a, uint32_t index)
{
    struct host *h = &a->rec->hosts[index];
    struct moved *m = &a->moved[index];
    struct clock_fit *f = &a->fits[index];
    struct clock_sample *samples = malloc(a->ends.count * sizeof *samples);
    if (!samples)
        return GPUPROF_NO_MEMORY;
    uint32_t count = find_samples(a, index, samples);
    double from = m->from_ns < m->to_ns ? (double)difference(m->from_ns, m->at_ns) : 0;
    double to = m->from_ns < m->to_ns ? (double)difference(m->to_ns, m->at_ns) : 0;
    int error = clock_fit_make(f, samples, count, from, to);
    free(samples);
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
    h->offset_ns = difference(0, (uint64_t)gap_at(m, m->from_ns / 2 + m->to_ns / 2));
    h->drift = from < to ? (clock_fit_gap(f, from) - clock_fit_gap(f, to)) / (to - from) : 0;
    h->uncertainty_ns = (uint64_t)llround(f->uncertainty_ns + (double)a->others_ns);
    return 0;
}

/* Makes this host's corrected times available to align others. */
static void align_by(struct alignment *a, uint32_t host)
{
    struct common_moments *c = &a->moments;
    uint64_t own_ns = a->rec->hosts[host].uncertainty_ns;
    a->others_ns = own_ns > a->others_ns ? own_ns : a->others_ns;
    for (uint32_t i = 0; i < a->ends.count; i++)
        if (a->ends.list[i].host == host)
            common_moments_add(c, i, host_clocks_move(&a->moved[host], a->ends.list[i].end_ns));
}

/* Aligns all hosts that can be aligned to the root, until one contradicts itself. */
static int align_with_root(struct alignment *a)
{
    const uint32_t *hosts;
    uint32_t count;
    int error = 0;
    a->others_ns = 0;
    align_by(a, a->root);
    while ((count = common_moments_take(&a->moments, &hosts)) > 0) {
        for (uint32_t i = 0; i < count; i++)
            if ((error = host_clocks_fit(a, hosts[i])) < 0 || a->contradiction < a->rec->host_count)
                return error;
        for (uint32_t i = 0; i < count; i++)
            align_by(a, hosts[i]);
    }
    return 0;
}

/* Returns 0 or GPUPROF_NO_MEMORY. */
static int align(struct alignment *a)
{
    uint32_t hosts = a->rec->host_count;
    int error = common_moments_init(&a->moments, &a->ends, hosts);
    find_times(a);
    for (uint32_t i = 0; i < hosts && error == 0 && a->contradiction == hosts; i++)
        if (!a->moments.is_taken[i]) {
            a->moments.is_taken[i] = true;
            a->root = i;
            error = align_with_root(a);
        }
    return error;
}

static void alignment_release(struct alignment *a)
{
    free(a->fits);
    free(a->moved);
    common_moments_release(&a->moments);
    collective_ends_release(&a->ends);
    *a = (struct alignment){0};
}

/* Reads the records in `windows` and computes the corrections. Returns 0, or an error after one
 * line on stderr; call alignment_release in both cases. */
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
    error = a->fits && a->moved ? align(a) : GPUPROF_NO_MEMORY;
    say_error("gpuprof-collector", error);
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
        windows.every_ns =
            (to_ns - from_ns - WINDOW_NS) / (WINDOWS - 1); /* the last one: the end */
    return windows;
}

/* Returns true if some hosts have no connection to the reference. */
static bool are_apart(const struct recording *rec)
{
    for (uint32_t i = 0; i < rec->host_count; i++)
        if (rec->hosts[i].reference != 0)
            return true;
    return false;
}

/* Returns true if a host has so few collectives that the whole recording must be read. */
static bool has_few(const struct alignment *a)
{
    for (uint32_t i = 0; i < a->rec->host_count; i++)
        if (a->moved[i].fit && a->fits[i].count < ENOUGH)
            return true;
    return false;
}

static enum exit_code host_clocks_refuse(const struct alignment *a, const char *verb)
{
    const struct host *h = &a->rec->hosts[a->contradiction];
    const struct clock_fit *f = &a->fits[a->contradiction];
    return usage_error(
        "%s: host %.64s cannot be aligned with host %.64s: its clock jumped, or only %u "
        "of %u collectives agree; --clock=wall uses the hosts' own clocks",
        verb, h->first->header.host, a->rec->hosts[a->root].first->header.host, f->used, f->count);
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
    if (code == EXIT_OK && a.contradiction < rec->host_count)
        code = host_clocks_refuse(&a, verb);
    if (code == EXIT_OK)
        recording_move_clocks(rec, move_process, &a);
    alignment_release(&a);
    return code;
}
