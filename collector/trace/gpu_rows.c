/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/gpu_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "record/gpu_record.h"

#define STEP_TIDS_MAX 16       /* numbers tried for the steps' row */
#define PID_VIRTUAL   5000000u /* above Linux's largest pid */

#define STREAM_ORDERED_MAX                                                                         \
    (1u << 20) /* streams with larger numbers get rows in order of                                 \
                * appearance */

_Static_assert(STREAM_ORDERED_MAX * 5 * GPU_LANES_MAX < GPU_TID_VIRTUAL, "tids of rows overlap");

/* ---- a row ----------------------------------------------------------------------------------- */

struct row_ids row_ids_of(uint32_t pid, uint32_t tid)
{
    struct row_ids ids;
    ids.bytes = (uint32_t)snprintf(ids.text, sizeof ids.text, "%u,\"tid\":%u,\"ts\":", pid, tid);
    return ids;
}

/* Returns the latest end for a slice added to the row now. */
static uint64_t limit_of(const struct trace_row *row)
{
    return row->depth ? row->open[row->depth - 1].inner_ns : ROW_OPEN_END;
}

/* Returns 1 ns earlier, so that inner slices end before outer ones. */
static uint64_t gpu_rows_before(uint64_t ns)
{
    return ns && ns != ROW_OPEN_END ? ns - 1 : ns;
}

static void drop(struct trace_row *row, uint32_t index)
{
    memmove(row->open + index, row->open + index + 1, (--row->depth - index) * sizeof *row->open);
}

static void gpu_rows_push(struct trace_row *row, struct open_slice slice)
{
    if (row->depth == ROW_DEPTH_MAX)
        drop(row, 0);
    row->open[row->depth++] = slice;
}

/* Closes slices that ended by then. Returns a begin that differs from their ends. */
static uint64_t pop_until(struct trace_row *row, uint64_t begin_ns)
{
    if (begin_ns < row->begin_ns)
        begin_ns = row->begin_ns;
    for (; row->depth && row->open[row->depth - 1].end_ns <= begin_ns; row->depth--)
        begin_ns += row->open[row->depth - 1].end_ns == begin_ns;
    return begin_ns;
}

/* Real calls of a thread always fit; one left by longjmp closes only when the next one begins. */
void trace_row_fit(struct trace_row *row, uint64_t *begin_ns, uint64_t *end_ns)
{
    *begin_ns = pop_until(row, *begin_ns);
    for (; row->depth && *end_ns > row->open[row->depth - 1].end_ns; row->depth--)
        *begin_ns = row->open[row->depth - 1].end_ns + 1;
    if (*end_ns < *begin_ns)
        *end_ns = *begin_ns;
    /* The original end decides what is inside, even if an earlier one is shown. */
    uint64_t own_end_ns = *end_ns;
    if (*end_ns > limit_of(row))
        *end_ns = limit_of(row);
    if (*begin_ns > *end_ns)
        *begin_ns = *end_ns > row->begin_ns ? *end_ns : row->begin_ns;
    if (*end_ns < *begin_ns)
        *end_ns = *begin_ns;
    gpu_rows_push(row, (struct open_slice){own_end_ns, gpu_rows_before(*end_ns), 0, 0});
    row->begin_ns = *begin_ns;
}

bool trace_row_holds(const struct trace_row *row, uint64_t begin_ns, uint64_t end_ns)
{
    uint32_t at = row->depth;
    while (at && row->open[at - 1].end_ns <= begin_ns)
        at--;
    return begin_ns + 1 >= row->begin_ns && (!at || end_ns <= row->open[at - 1].end_ns);
}

void trace_row_open(struct trace_row *row, uint64_t begin_ns)
{
    uint64_t shown_ns = pop_until(row, begin_ns);
    gpu_rows_push(
        row, (struct open_slice){ROW_OPEN_END, gpu_rows_before(limit_of(row)), begin_ns, shown_ns});
    row->begin_ns = shown_ns + 1;
}

/* Returns the place + 1 of the open slice that began then; 0: none. */
static uint32_t find_open(const struct trace_row *row, uint64_t begin_ns)
{
    uint32_t at = row->depth;
    while (at > 0 &&
           (row->open[at - 1].end_ns != ROW_OPEN_END || row->open[at - 1].since_ns != begin_ns))
        at--;
    return at;
}

bool trace_row_close(struct trace_row *row, uint64_t *begin_ns, uint64_t *end_ns)
{
    uint32_t at = find_open(row, *begin_ns);
    uint64_t shown_ns = *end_ns;
    if (at == 0)
        return false;
    for (uint32_t i = at; i < row->depth; i++) {
        if (row->open[i].end_ns == ROW_OPEN_END) {
            drop(row, at - 1);
            return false;
        }
        if (row->open[i].inner_ns + 1 >= shown_ns)
            shown_ns = row->open[i].inner_ns + 2;
    }
    if (shown_ns < row->begin_ns)
        shown_ns = row->begin_ns;
    if (at > 1 && shown_ns > row->open[at - 2].inner_ns)
        shown_ns = row->open[at - 2].inner_ns;
    *begin_ns = row->open[at - 1].begin_ns;
    *end_ns = shown_ns > *begin_ns ? shown_ns : *begin_ns;
    row->open[at - 1] = (struct open_slice){shown_ns, gpu_rows_before(shown_ns), 0, 0};
    row->depth = at;
    return true;
}

void trace_row_forget(struct trace_row *row, uint64_t begin_ns)
{
    uint32_t at = find_open(row, begin_ns);
    if (at > 0)
        drop(row, at - 1);
}

/* ---- rows of devices and processes ----------------------------------------------------------- */

void device_pids_init(struct device_pids *d, struct process *const *processes,
                      uint32_t process_count)
{
    *d = (struct device_pids){
        .processes = processes, .process_count = process_count, .next = PID_VIRTUAL};
    d->known.count_max = GPU_ROWS_MAX;
}

void device_pids_release(struct device_pids *d)
{
    key_map_release(&d->known);
}

void gpu_rows_init(struct gpu_rows *g, struct device_pids *pids)
{
    *g = (struct gpu_rows){.pids = pids};
    g->places.count_max = GPU_ROWS_MAX;
}

void gpu_rows_release(struct gpu_rows *g)
{
    for (uint32_t i = 0; i < g->count; i++)
        free(g->rows[i]);
    free(g->rows);
    key_map_release(&g->places);
    *g = (struct gpu_rows){0};
}

static bool is_process(const struct device_pids *d, uint32_t pid)
{
    for (uint32_t i = 0; i < d->process_count; i++)
        if (d->processes[i]->shown_pid == pid)
            return true;
    return false;
}

int gpu_rows_pid(struct gpu_rows *g, const struct process *p, uint64_t device, uint32_t *pid)
{
    struct device_pids *d = g->pids;
    struct key key = {p->index, device, 0};
    uint64_t known = key_map_get(&d->known, key);
    if (known) {
        *pid = (uint32_t)(known - 1);
        return 0;
    }
    bool is_free = device < PID_ORDINALS && !(d->ordinals[device / 64] >> device % 64 & 1) &&
                   !is_process(d, (uint32_t)device);
    if (is_free) {
        *pid = (uint32_t)device;
        d->ordinals[device / 64] |= 1ull << device % 64;
    } else {
        while (is_process(d, d->next))
            d->next++;
        *pid = d->next++;
    }
    int error = key_map_set(&d->known, key, *pid + 1ull);
    return error == GPUPROF_NO_MEMORY ? error : 0;
}

/* Returns a small tid that no thread has, so that viewers that sort rows by tid show steps on top.
 * 0: none found. */
static uint32_t step_tid(const struct process *p)
{
    for (uint32_t tid = 1, i; tid <= STEP_TIDS_MAX; tid++) {
        for (i = 0; i < p->threads.count && p->threads.threads[i]->shown_tid != tid;)
            i++;
        if (i == p->threads.count)
            return tid;
    }
    return 0;
}

/* A stream's own row has its number. Some viewers (Perfetto) always sort a process's rows by tid:
 * so a stream's lanes and ranges get neighbouring tids, and other rows larger ones. */
static uint32_t row_tid(const struct gpu_rows *g, const struct process *p, enum row_kind kind,
                        uint64_t stream, uint32_t lane)
{
    uint32_t small = kind == ROW_STEP && lane == 0 ? step_tid(p) : 0;
    if (small)
        return small;
    if (kind == ROW_STREAM && lane == 0 && stream < GPU_TID_VIRTUAL)
        return (uint32_t)stream;
    if ((kind == ROW_STREAM || kind == ROW_ANNOTATION) && stream < STREAM_ORDERED_MAX)
        return GPU_TID_VIRTUAL + (uint32_t)stream * 2 * GPU_LANES_MAX +
               (kind == ROW_STREAM ? GPU_LANES_MAX : 0) + lane;
    if (stream == 0 || (kind == ROW_HOST && stream < STREAM_ORDERED_MAX))
        return GPU_TID_VIRTUAL + STREAM_ORDERED_MAX * 2 * GPU_LANES_MAX +
               (kind + 2 * (uint32_t)stream) * GPU_LANES_MAX + lane;
    return 2 * GPU_TID_VIRTUAL + g->count;
}

static struct gpu_row *row_make(struct gpu_rows *g, struct process *p, enum row_kind kind,
                                uint64_t device, uint64_t stream, uint32_t lane)
{
    bool of_process = kind >= ROW_OVERHEAD;
    uint32_t pid = p->shown_pid;
    if (!of_process && gpu_rows_pid(g, p, device, &pid) < 0)
        return NULL;
    struct gpu_row *row =
        ARRAY_ROOM(g->rows, g->count, g->capacity, 64) ? malloc(sizeof *row) : NULL;
    if (!row)
        return NULL;
    *row = (struct gpu_row){.process = p,
                            .device = device,
                            .stream = stream,
                            .kind = kind,
                            .lane = lane,
                            .pid = pid,
                            .tid = row_tid(g, p, kind, stream, lane)};
    row->row.ids = row_ids_of(row->pid, row->tid);
    g->rows[g->count++] = row;
    return row;
}

static struct gpu_row *row_of(struct gpu_rows *g, struct process *p, enum row_kind kind,
                              uint64_t device, uint64_t stream, uint32_t lane)
{
    struct key key = {(uint64_t)p->index << 32 | kind << 16 | lane, device, stream};
    uint64_t place = key_map_get(&g->places, key);
    if (!place && g->count == GPU_ROWS_MAX)
        place = g->count; /* beyond any realistic number of rows, slices share the last one */
    if (place)
        return g->rows[place - 1];
    struct gpu_row *row = row_make(g, p, kind, device, stream, lane);
    return row && key_map_set(&g->places, key, g->count) == GPUPROF_NO_MEMORY ? NULL : row;
}

struct gpu_row *gpu_rows_get(struct gpu_rows *g, struct process *p, enum row_kind kind,
                             uint64_t device, uint64_t stream, uint32_t lane, uint64_t begin_ns)
{
    /* The default stream must not be 0, since readers check for numbers above 0. */
    if (stream == 0 && (kind == ROW_STREAM || kind == ROW_ANNOTATION))
        stream = GPU_STREAM_DEFAULT;
    if (lane != FREE_LANE)
        return row_of(g, p, kind, device, stream, lane < GPU_LANES_MAX ? lane : GPU_LANES_MAX - 1);
    struct gpu_row *row = row_of(g, p, kind, device, stream, 0);
    while (row && row->end_ns > begin_ns && row->lane + 1 < GPU_LANES_MAX) {
        struct gpu_row *next = row_of(g, p, kind, device, stream, row->lane + 1);
        if (next == row)
            break;
        row = next;
    }
    return row;
}

void gpu_row_fit(struct gpu_row *row, uint64_t *begin_ns, uint64_t *end_ns)
{
    trace_row_fit(&row->row, begin_ns, end_ns);
    if (*end_ns > row->end_ns)
        row->end_ns = *end_ns;
}
