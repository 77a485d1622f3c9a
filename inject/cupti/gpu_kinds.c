/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_kinds.h"

#include <stdio.h>
#include <string.h>

#include "base/say.h"
#include "cupti/gpu_scope.h"
#include "cupti/gpu_session.h"
#include "cupti/gpu_state.h"

/* Which kinds each word of --kinds stands for. KERNEL itself is never enabled: it serialises. */
static const struct {
    uint32_t kinds; /* enum setting_kinds */
    CUpti_ActivityKind kind;
    const char *what;
} wanted_kinds[] = {
    {KINDS_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kernels"},
    {KINDS_COPY, CUPTI_ACTIVITY_KIND_MEMCPY, "copies"},
    {KINDS_COPY, CUPTI_ACTIVITY_KIND_MEMCPY2, "peer copies"},
    {KINDS_SET, CUPTI_ACTIVITY_KIND_MEMSET, "fills"},
    {KINDS_SYNC, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "synchronisations"},
    {KINDS_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD, "overheads"},
    {KINDS_MEMORY, CUPTI_ACTIVITY_KIND_MEMORY2, "allocations"},
    {KINDS_MEMORY, CUPTI_ACTIVITY_KIND_MEMORY_POOL, "memory pools"},
    {KINDS_INFO, CUPTI_ACTIVITY_KIND_DEVICE, "devices"},
    {KINDS_INFO, CUPTI_ACTIVITY_KIND_CONTEXT, "contexts"},
    {KINDS_INFO, CUPTI_ACTIVITY_KIND_STREAM, "streams"},
    {KINDS_GRAPH, CUPTI_ACTIVITY_KIND_GRAPH_TRACE, "graphs"}, /* only --graphs=whole */
};

static void add_missing(const char *what)
{
    size_t length = strlen(gpu.missing);
    snprintf(gpu.missing + length, sizeof gpu.missing - length, "%s%s", length ? ", " : "", what);
}

bool gpu_enable_kinds(bool enable)
{
    uint32_t kinds = (uint32_t)gp.settings.numbers[SETTING_KINDS];
    bool whole = gp.settings.numbers[SETTING_GRAPHS] == GRAPHS_WHOLE || gpu.graphs_are_whole;
    unsigned done = 0;
    gpu.missing[0] = '\0';
    bool is_limited = gpu_session_changes(enable);
    for (size_t i = 0; i < sizeof wanted_kinds / sizeof wanted_kinds[0]; i++) {
        CUpti_ActivityKind kind = wanted_kinds[i].kind;
        /* With whole graphs, CUPTI leaves their nodes out. */
        if (!(kinds & wanted_kinds[i].kinds) || (kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE && !whole))
            continue;
        CUptiResult result = gpu_scope_enable(kind, enable);
        done += result == CUPTI_SUCCESS;
        if (result == CUPTI_SUCCESS && enable)
            gpu.kinds |= 1ull << kind;
        if (result != CUPTI_SUCCESS && enable)
            add_missing(wanted_kinds[i].what);
    }
    if (is_limited && done && atomic_load(&gpu.phase) != GPU_STARTING)
        gpu_tell_source();
    return done > 0;
}

/* Where the rows come from, and what of them CUPTI refuses: without a callback, a call's work is
 * not tied to it. */
void gpu_tell_source(void)
{
    if (gpu.refused_callbacks)
        add_missing("some callbacks");
    gpu_set_status("from CUPTI %u, %s%s%s%s%s%s%s%s", gpu.cupti.version, gpu.cupti.path,
                   gpu.shared ? ", beside other subscribers" : "",
                   gpu.graphs_are_whole ? ", graphs as a whole (another one's choice)" : "",
                   gpu.on_realtime ? ", times by CLOCK_REALTIME" : "",
                   gpu_session_is_limited()
                       ? ", graph launches after the first session not tied to their "
                         "calls (CUPTI has wrong ids there)"
                       : "",
                   gpu.missing[0] ? ", without " : "", gpu.missing,
                   gpu.missing[0] ? ": not supported here" : "");
    if (gpu.missing[0])
        say(SAY_GPU, "GPU rows without %s: not supported here", gpu.missing);
}
