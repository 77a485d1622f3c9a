/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/host_rows.h"

#include "api/api.h"

/* enum cudaMemcpyKind, and what is none of it. */
static const char *const directions[] = {"Host-to-Host",         "Host-to-Device",
                                         "Device-to-Host",       "Device-to-Device",
                                         "as the addresses say", "not known"};
#define DIRECTION_UNKNOWN (sizeof directions / sizeof directions[0] - 1)

static uint64_t kind_of(const struct event *e)
{
    for (unsigned i = 0; i < e->record->arg_count && i < e->function->arg_count; i++)
        if (e->function->args[i].kind == ARG_KIND)
            return e->record->args[i];
    return DIRECTION_UNKNOWN;
}

static struct gpu_stat *row_of(struct gpu_stats *stats, const struct slice *s)
{
    const struct event *e = &s->event;
    if (e->function->does == API_DOES_LAUNCH) {
        const struct kernel_name *kernel = walk_launched(s);
        return gpu_stats_row(stats, TABLE_HOST_LAUNCHES, (struct key){(uintptr_t)kernel, 0, 0},
                             kernel ? kernel->shown : "(kernel of no known name)");
    }
    if (e->function->does == API_DOES_SET)
        return gpu_stats_row(stats, TABLE_HOST_COPIES, (struct key){1, 0, 0}, "set to a value");
    uint64_t kind = kind_of(e);
    kind = kind < DIRECTION_UNKNOWN ? kind : DIRECTION_UNKNOWN;
    return gpu_stats_row(stats, TABLE_HOST_COPIES, (struct key){0, kind, 0}, directions[kind]);
}

int host_rows_take(struct gpu_stats *stats, const struct slice *s)
{
    const struct event *e = &s->event;
    unsigned does = e->function->does;
    bool is_one = does == API_DOES_LAUNCH || api_is_copy(does) || does == API_DOES_SET;
    if (!is_one || e->record->flags & (RECORD_NESTED | RECORD_CAPTURED) ||
        api_has_failed(e->function->domain, e->record->result))
        return 0;
    uint64_t weight = e->record->weight > 1 ? e->record->weight : 1;
    return gpu_stats_count_several(stats, row_of(stats, s), e->end_ns - e->begin_ns,
                                   function_bytes(e->function, e->record), weight);
}
