/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_kinds.h"

#include <stdio.h>
#include <string.h>

#include "base/futex.h"
#include "cupti/gpu_scope.h"
#include "cupti/gpu_session.h"
#include "cupti/gpu_state.h"
#include "record/recorded.h"

/*
 * The activity kinds of each word of --kinds. KERNEL is never enabled, since it serializes kernels.
 */
static const struct {
    uint32_t kinds; /* KINDS_... of settings.def */
    uint32_t off;   /* enum off_bits: disabled while one of these is off */
    CUpti_ActivityKind kind;
    const char *what;
} wanted_kinds[] = {
    {KINDS_KERNEL, OFF_WORK, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kernels"},
    {KINDS_COPY, OFF_WORK, CUPTI_ACTIVITY_KIND_MEMCPY, "copies"},
    {KINDS_COPY, OFF_WORK, CUPTI_ACTIVITY_KIND_MEMCPY2, "peer copies"},
    {KINDS_SET, OFF_WORK, CUPTI_ACTIVITY_KIND_MEMSET, "fills"},
    {KINDS_SYNC, OFF_WORK, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "synchronisations"},
    {KINDS_OVERHEAD, OFF_WORK, CUPTI_ACTIVITY_KIND_OVERHEAD, "overheads"},
    {KINDS_MEMORY, OFF_LEDGER, CUPTI_ACTIVITY_KIND_MEMORY2, "allocations"},
    {KINDS_MEMORY, OFF_LEDGER, CUPTI_ACTIVITY_KIND_MEMORY_POOL, "memory pools"},
    {KINDS_INFO, OFF_LEDGER, CUPTI_ACTIVITY_KIND_STREAM, "streams"},
    /* only with --graphs=whole */
    {KINDS_GRAPH, OFF_WORK, CUPTI_ACTIVITY_KIND_GRAPH_TRACE, "graphs"},
};

static void add_missing(const char *what)
{
    size_t length = strlen(gpu.missing);
    snprintf(gpu.missing + length, sizeof gpu.missing - length, "%s%s", length ? ", " : "", what);
}

/* Held by the thread that changes the kinds. */
static struct lock lock;
static uint64_t refused; /* kinds that could not be enabled at the last try */
/* The bits of OFF_DEVICE at the last change, or at one that is under way. */
static _Atomic uint32_t followed;

/* Returns the kinds to be enabled, one bit each. */
static uint64_t wanted_now(void)
{
    uint32_t chosen = (uint32_t)gp.settings.numbers[SETTING_KINDS];
    bool whole = gp.settings.numbers[SETTING_GRAPHS] == GRAPHS_WHOLE || gpu.graphs_are_whole;
    uint64_t wanted = 0;
    for (size_t i = 0; i < sizeof wanted_kinds / sizeof wanted_kinds[0]; i++) {
        CUpti_ActivityKind kind = wanted_kinds[i].kind;
        /* With whole graphs, CUPTI does not report their nodes. */
        if (chosen & wanted_kinds[i].kinds && !(atomic_load(&followed) & wanted_kinds[i].off) &&
            (kind != CUPTI_ACTIVITY_KIND_GRAPH_TRACE || whole))
            wanted |= 1ull << kind;
    }
    return wanted;
}

static bool gpu_kinds_change(void)
{
    uint64_t wanted = wanted_now(), before = atomic_load(&gpu.kinds), tried = 0, done = 0;
    bool is_limited = gpu_session_changes(!(atomic_load(&followed) & OFF_WORK));
    gpu.missing[0] = '\0';
    for (size_t i = 0; i < sizeof wanted_kinds / sizeof wanted_kinds[0]; i++) {
        CUpti_ActivityKind kind = wanted_kinds[i].kind;
        uint64_t bit = 1ull << kind;
        if (before & ~wanted & bit) {
            gpu_scope_enable(kind, false);
            atomic_fetch_and(&gpu.kinds, ~bit);
        } else if (wanted & ~before & bit) {
            tried |= bit & ~refused;
            atomic_fetch_or(&gpu.kinds, bit); /* set before: threads that see it expect records */
            if (gpu_scope_enable(kind, true) == CUPTI_SUCCESS) {
                done |= bit;
                /* set again: the end of the recording may have cleared it meanwhile */
                atomic_fetch_or(&gpu.kinds, bit);
            } else {
                atomic_fetch_and(&gpu.kinds, ~bit);
                add_missing(wanted_kinds[i].what);
            }
        }
    }
    refused = (refused | (wanted & ~before)) & ~done;
    if (is_limited && done && atomic_load(&gpu.phase) != GPU_STARTING)
        gpu_report_source();
    return !tried || done;
}

bool gpu_kinds_are_due(void)
{
    return (recorded_asked() & OFF_DEVICE) != atomic_load(&followed);
}

bool gpu_kinds_follow(void)
{
    bool good = true;
    do {
        if (!lock_take(&lock, gp.settings.numbers[SETTING_EXIT_WAIT]))
            return good; /* the thread that holds the lock checks again */
        atomic_store(&followed, recorded_asked() & OFF_DEVICE);
        good = gpu_kinds_change();
        lock_drop(&lock);
    } while (gpu_kinds_are_due());
    if (atomic_load(&gpu.phase) == GPU_DEAD) /* turned off meanwhile */
        gpu_kinds_end();
    return good;
}

void gpu_kinds_end(void)
{
    uint64_t kinds = atomic_exchange(&gpu.kinds, 0);
    for (unsigned kind = 0; kind < CUPTI_KIND_MAX; kind++)
        if (kinds >> kind & 1)
            gpu_scope_enable((CUpti_ActivityKind)kind, false);
}

/* Says where the rows come from, and what CUPTI refuses: without a callback, GPU work is not
 * correlated with its call. */
void gpu_report_source(void)
{
    if (gpu.refused_callbacks)
        add_missing("some callbacks");
    gpu_set_status(
        "from CUPTI %u, %.500s%s%.400s%s%s%s%s%s%s%s", gpu.cupti.version, gpu.cupti.path,
        gpu.refused_library[0] ? ", since the driver refuses " : "", gpu.refused_library,
        gpu.shared ? ", beside other subscribers" : "",
        gpu.graphs_are_whole ? ", graphs as a whole (another subscriber chose this)" : "",
        gpu.on_realtime ? ", times by CLOCK_REALTIME" : "",
        gpu_session_is_limited() ? ", graph launches after the first session not correlated with "
                                   "their calls (CUPTI reports wrong ids)"
                                 : "",
        gpu.missing[0] ? ", without " : "", gpu.missing,
        gpu.missing[0] ? ": not supported here" : "");
}
