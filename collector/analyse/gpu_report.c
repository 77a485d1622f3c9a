/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/gpu_report.h"

#include "analyse/range_rows.h"
#include "base/array.h"
#include "resolve/nccl_call.h"

enum launch_row { LAUNCH_LATENCY, LAUNCH_QUEUE, LAUNCH_CALL, LAUNCH_ROWS };

/* From call to kernel: the time to the kernel's begin, and its wait after the call returned. */
static void take_launch(struct sums *launches, const struct rows *rows, uint32_t i)
{
    uint64_t begin_ns = rows->columns[ROW_BEGIN][i], call_ns = rows->columns[ROW_CALL_NS][i];
    uint64_t called_ns = rows->columns[ROW_CALL_BEGIN][i], end_ns = called_ns + call_ns;
    const uint64_t ns[LAUNCH_ROWS] = {[LAUNCH_LATENCY] =
                                          begin_ns > called_ns ? begin_ns - called_ns : 0,
                                      [LAUNCH_QUEUE] = begin_ns > end_ns ? begin_ns - end_ns : 0,
                                      [LAUNCH_CALL] = call_ns};
    /* A graph launch has many kernels but is one call. */
    unsigned count = rows->columns[ROW_FLAGS][i] & ROW_COUNTED ? LAUNCH_CALL : LAUNCH_ROWS;
    for (unsigned k = 0; k < count; k++)
        sums_count(launches, &launches->rows[k], ns[k], 0, 1);
}

int launches_take(void *context, const struct rows *rows)
{
    struct sums *launches = context;
    const unsigned is_one = ROW_IS_KERNEL | ROW_CALLED;
    if (launches->is_unseen && launches->count)
        return 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        if ((rows->columns[ROW_FLAGS][i] & is_one) != is_one)
            continue;
        while (launches->count < LAUNCH_ROWS) /* rows have fixed places; each kernel adds to all */
            sums_row(launches, launches->count, 0, 0);
        take_launch(launches, rows, i);
    }
    return 0;
}

/* ---- device use ------------------------------------------------------------------------------ */

/* The rows of a device, from GPU_USE_SPAN on; NULL: there are too many. Until the end, GPU_USE_OF
 * is the end of the last slice, and GPU_USE_NS of the span its begin. */
static struct sums_row *uses_of(struct sums *s, uint64_t process, uint64_t device)
{
    const struct key span = {process, device, GPU_USE_SPAN};
    if (!sums_find(s, span) && s->count + GPU_USES <= s->rows_max)
        for (unsigned what = 0; what < GPU_USES; what++)
            sums_row(s, process, device, what);
    return sums_find(s, span);
}

/* Adds the time that no slice covers so far: they come in the order of their begins. */
static void cover(struct sums_row *row, uint64_t begin_ns, uint64_t end_ns)
{
    begin_ns = max_of(begin_ns, row->values[GPU_USE_OF]);
    if (end_ns > begin_ns) {
        row->values[GPU_USE_NS] += end_ns - begin_ns;
        row->values[GPU_USE_OF] = end_ns;
    }
}

int uses_take(void *context, const struct rows *rows)
{
    struct sums *s = context;
    const uint64_t *processes = rows->columns[ROW_PROCESS], *devices = rows->columns[ROW_DEVICE];
    struct sums_row *use = NULL;
    if (s->is_unseen && s->count)
        return 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        uint64_t begin_ns = rows->columns[ROW_BEGIN][i];
        uint64_t end_ns = begin_ns + rows->columns[ROW_NS][i];
        bool is_copy = rows->columns[ROW_TYPE][i] == ROW_COPY;
        if (!i || processes[i] != processes[i - 1] || devices[i] != devices[i - 1])
            use = uses_of(s, processes[i], devices[i]);
        if (!use)
            continue;
        uint64_t *span = use[GPU_USE_SPAN].values;
        span[GPU_USE_NS] = span[GPU_USE_ROWS]++ ? min_of(span[GPU_USE_NS], begin_ns) : begin_ns;
        span[GPU_USE_OF] = max_of(span[GPU_USE_OF], end_ns);
        cover(&use[GPU_USE_BUSY], begin_ns, end_ns);
        cover(&use[is_copy ? GPU_USE_COPIES : GPU_USE_KERNELS], begin_ns, end_ns);
    }
    return 0;
}

int uses_end(void *context)
{
    struct sums *s = context;
    for (uint32_t i = 0; i + GPU_USES <= s->count; i += GPU_USES) {
        struct sums_row *use = &s->rows[i];
        uint64_t ns[GPU_USES];
        for (unsigned what = 0; what < GPU_USES; what++)
            ns[what] = use[what].values[GPU_USE_NS];
        ns[GPU_USE_SPAN] = use[GPU_USE_SPAN].values[GPU_USE_OF] - ns[GPU_USE_SPAN];
        ns[GPU_USE_IDLE] = ns[GPU_USE_SPAN] - ns[GPU_USE_BUSY];
        ns[GPU_USE_BOTH] = ns[GPU_USE_KERNELS] + ns[GPU_USE_COPIES] - ns[GPU_USE_BUSY];
        for (unsigned what = 0; what < GPU_USES; what++) {
            use[what].values[GPU_USE_ROWS] = 1;
            use[what].values[GPU_USE_NS] = ns[what];
            use[what].values[GPU_USE_OF] = what == GPU_USE_SPAN ? 0 : ns[GPU_USE_SPAN];
        }
    }
    return 0;
}

/* ---- ranges and their work ------------------------------------------------------------------- */

static struct sums_row *row_of(struct sums *s, const struct kernel_name *text,
                               const struct kernel_name *domain)
{
    return range_row(s, (struct key){sums_name_key(text), sums_name_key(domain), 0});
}

int ranges_take(void *context, const struct slice *s)
{
    const struct host_span *range = s->span;
    enum span_change change = slice_change(s, SPAN_RANGE);
    struct nccl_call call;
    if ((change != SPAN_CLOSED && change != SPAN_LEFT) || s->is_filtered)
        return 0;
    uint64_t bytes = nccl_call_of(range, &call) ? call.bytes : 0;
    sums_count(context, row_of(context, range->text, range->domain_text),
               range->end_ns - range->begin_ns, bytes, 1);
    return 0;
}

int projected_take(void *context, const struct slice *s)
{
    struct sums *sums = context;
    return s->is_called && s->call.span
               ? survey_project(&sums->walk->survey, &s->call, s->event.begin_ns, s->event.end_ns)
               : 0;
}

/* Counts each range once, from its first work to the end of its last, as nsys does. */
int projected_end(void *context)
{
    struct sums *s = context;
    for (uint64_t i = 0; i < s->walk->survey.nodes.count; i++) {
        const struct span_node *node = spool_at(&s->walk->survey.nodes, i, false);
        if (node->type == SPAN_RANGE && node->work_begin_ns <= node->work_end_ns)
            sums_count(s, row_of(s, node->text, node->domain_text),
                       node->work_end_ns - node->work_begin_ns, 0, 1);
    }
    return 0;
}
