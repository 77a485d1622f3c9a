/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a Chrome trace: names of processes, devices, threads and other rows, the placement of
 * slices so that they nest, and arrows between slices. */
#include <stdlib.h>

#include "base/array.h"
#include "base/memory.h"
#include "rank.h"
#include "read/process.h"
#include "record/gpu_record.h"
#include "resolve/device_sources.h"
#include "trace/chrome.h"

#define SORT_PLACES (1 + DEVICES_NUMBERED) /* per process: its own, then its devices' */

#define STEP_TIDS_MAX 16       /* numbers tried for the steps' row */
#define PID_VIRTUAL   5000000u /* above Linux's largest pid */

/* Streams with larger numbers get rows in order of appearance. */
#define STREAM_ORDERED_MAX (1u << 20)

_Static_assert(STREAM_ORDERED_MAX * 5 * GPU_LANES_MAX < GPU_TID_VIRTUAL, "tids of rows overlap");

void chrome_rows_release(struct trace_writer *w)
{
    struct chrome_rows *rows = &w->rows;
    for (uint32_t i = 0; i < rows->count; i++)
        free(rows->list[i]);
    for (uint32_t i = 0; i < rows->place_count; i++) {
        free(rows->places[i]->counted);
        free(rows->places[i]);
    }
    free(rows->list);
    free(rows->places);
    key_map_release(&rows->numbers);
    key_map_release(&rows->place_numbers);
}

/* ---- processes and devices ------------------------------------------------------------------- */

static void put_process_names(struct trace_writer *w, uint32_t pid, const char *title,
                              const char *label, uint32_t sort_index)
{
    chrome_put_metadata(w, "process_name", pid, pid, title, 0);
    if (label)
        chrome_put_metadata(w, "process_labels", pid, pid, label, 0);
    chrome_put_metadata(w, "process_sort_index", pid, pid, NULL, sort_index);
}

/* Returns the ordinal of a device if nothing else has that number. */
static uint32_t device_pid(struct trace_writer *w, const struct process *p, uint64_t device)
{
    const struct recording *rec = w->walk->rec;
    bool in_archive = w->scope.owners;
    struct process *const *all = in_archive ? rec->processes : w->shown.list;
    uint32_t *owners = in_archive ? w->scope.owners : w->rows.owners;
    bool is_free = device < DEVICES_NUMBERED && (!owners[device] || owners[device] == p->index + 1);
    for (uint32_t i = 0; is_free && i < (in_archive ? rec->count : w->shown.count); i++)
        is_free = all[i]->shown_pid != device;
    if (!is_free)
        return PID_VIRTUAL + SORT_PLACES * p->index + (uint32_t)(device % DEVICES_NUMBERED);
    owners[device] = p->index + 1;
    return (uint32_t)device;
}

static void put_device_names(struct trace_writer *w, const struct trace_place *place)
{
    const struct process *p = place->process;
    char title[1024 + DEVICE_NAME_BYTES + 64], label[64];
    char rank[RANK_TITLE_BYTES], command[1024];
    const struct surveyed_device *d = survey_device(&w->walk->survey, p, place->device);
    snprintf(label, sizeof label, "GPU %llu", (unsigned long long)place->device);
    /* The distinctive part comes first, since viewers cut the end off. */
    snprintf(title, sizeof title, "%s%s%s%s: %s", process_rank_title(p, rank), label,
             d && d->name[0] ? " " : "", d ? d->name : "",
             process_command_title(p, true, command, sizeof command));
    put_process_names(w, place->pid, title, label,
                      SORT_PLACES * p->index + 1 + (uint32_t)(place->device % DEVICES_NUMBERED));
}

struct trace_place *chrome_place_of(struct trace_writer *w, struct process *p, uint64_t device)
{
    struct chrome_rows *rows = &w->rows;
    struct key key = {p->index, device, 0};
    uint32_t number = KEY_MAP_ITEM(&rows->place_numbers, key, rows->places, rows->place_count,
                                   GPU_ROWS_MAX, NULL);
    /* Beyond any realistic number, the last one is shared. */
    struct trace_place **there = &rows->places[(number ? number : GPU_ROWS_MAX) - 1];
    if (*there)
        return *there;
    struct trace_place *place = *there = memory_new(1, sizeof *place);
    *place = (struct trace_place){.process = p, .device = device, .pid = p->shown_pid};
    if (device != PROCESS_ITSELF) {
        place->pid = device_pid(w, p, device);
        put_device_names(w, place);
    }
    return place;
}

/* ---- rows ------------------------------------------------------------------------------------ */

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

/* A row's place in its process. Of a device: ranges above their stream, overlapping slices below,
 * synchronisations and throttling last. Of a process: steps above its threads, other rows below. */
static uint32_t row_order(enum row_kind kind, uint64_t stream, uint32_t lane)
{
    uint32_t number = (uint32_t)(stream % STREAM_ORDERED_MAX);
    if (kind == ROW_STEP)
        return lane;
    if (kind == ROW_STREAM || kind == ROW_ANNOTATION)
        return (2 * number + (kind == ROW_STREAM)) * GPU_LANES_MAX + lane;
    return (2 * STREAM_ORDERED_MAX + kind + number) * GPU_LANES_MAX + lane;
}

/* A stream's own row has its number. Some viewers (Perfetto) always sort a process's rows by tid,
 * so other rows have theirs in order. */
static uint32_t row_tid(const struct chrome_rows *rows, const struct process *p, enum row_kind kind,
                        uint64_t stream, uint32_t lane)
{
    uint32_t small = kind == ROW_STEP && lane == 0 ? step_tid(p) : 0;
    if (small)
        return small;
    if (kind == ROW_STREAM && lane == 0 && stream < GPU_TID_VIRTUAL)
        return (uint32_t)stream;
    return stream < STREAM_ORDERED_MAX ? GPU_TID_VIRTUAL + row_order(kind, stream, lane)
                                       : 2 * GPU_TID_VIRTUAL + rows->count - 1;
}

static void put_row_name(struct trace_writer *w, uint32_t pid, uint32_t tid, const char *name,
                         uint32_t sort_index)
{
    chrome_put_metadata(w, "thread_name", pid, tid, name, 0);
    chrome_put_metadata(w, "thread_sort_index", pid, tid, NULL, sort_index);
}

/* Writes the name of a row that is not a thread. */
static void put_name(struct trace_writer *w, const struct gpu_row *row, uint32_t thread)
{
    static const char *const kinds[] = {
        [ROW_STREAM] = "stream",           [ROW_SYNC] = "synchronisation",
        [ROW_ANNOTATION] = "ranges on",    [ROW_OVERHEAD] = "overhead of CUDA and CUPTI",
        [ROW_RANGE] = "ranges of threads", [ROW_STEP] = "steps",
        [ROW_THROTTLE] = "throttled",      [ROW_HOST] = "host",
        [ROW_GIL] = "GIL: who holds it",
    };
    char name[128], lane[32] = "";
    if ((row->lane && row->kind == ROW_ANNOTATION) || (row->kind == ROW_HOST && row->stream))
        snprintf(lane, sizeof lane, ", thread %u",
                 process_thread(row->place->process, thread)->shown_tid);
    else if (row->lane && row->kind == ROW_THROTTLE)
        snprintf(lane, sizeof lane, " (%s)", throttle_words[row->lane % THROTTLES]);
    else if (row->lane)
        snprintf(lane, sizeof lane, " (overlapping %u)", row->lane);
    if (row->kind == ROW_STREAM || row->kind == ROW_ANNOTATION)
        snprintf(name, sizeof name, "%sstream %llu%s", row->kind == ROW_STREAM ? "" : "ranges on ",
                 (unsigned long long)row->stream, lane);
    else
        snprintf(name, sizeof name, "%s%s", kinds[row->kind], lane);
    put_row_name(w, row->place->pid, row->tid, name, row_order(row->kind, row->stream, row->lane));
}

static struct gpu_row *row_of(struct trace_writer *w, struct trace_place *place, enum row_kind kind,
                              uint64_t stream, uint32_t lane, uint32_t thread)
{
    struct chrome_rows *rows = &w->rows;
    struct key key = {(uintptr_t)place, kind << 16 | lane, stream};
    uint32_t number =
        KEY_MAP_ITEM(&rows->numbers, key, rows->list, rows->count, GPU_ROWS_MAX, NULL);
    struct gpu_row **there = &rows->list[(number ? number : GPU_ROWS_MAX) - 1]; /* likewise */
    if (*there)
        return *there;
    struct gpu_row *row = *there = memory_new(1, sizeof *row);
    row->place = place;
    row->kind = kind;
    row->stream = stream;
    row->lane = lane;
    row->tid = row_tid(rows, place->process, kind, stream, lane);
    row->row.ids = row_ids_of(place->pid, row->tid);
    put_name(w, row, thread);
    return row;
}

struct gpu_row *chrome_lane(struct trace_writer *w, struct process *p, enum row_kind kind,
                            uint64_t device, uint64_t stream, uint32_t lane, uint32_t thread,
                            const struct shown *at)
{
    struct trace_place *place = chrome_place_of(w, p, kind < ROW_RANGE ? device : PROCESS_ITSELF);
    bool is_free = lane == FREE_LANE;
    /* The default stream must not be 0, since readers check for numbers above 0. */
    if (stream == 0 && (kind == ROW_STREAM || kind == ROW_ANNOTATION))
        stream = GPU_STREAM_DEFAULT;
    lane = is_free ? 0 : lane < GPU_LANES_MAX ? lane : GPU_LANES_MAX - 1;
    struct gpu_row *row = row_of(w, place, kind, stream, lane, thread);
    while (is_free && row->end_ns > at->begin_ns && row->lane + 1 < GPU_LANES_MAX) {
        struct gpu_row *next = row_of(w, place, kind, stream, row->lane + 1, thread);
        if (next == row)
            break;
        row = next;
    }
    return row;
}

struct gpu_row *chrome_place(struct trace_writer *w, struct process *p, enum row_kind kind,
                             uint64_t device, uint64_t stream, uint32_t lane, uint32_t thread,
                             struct shown *at)
{
    struct gpu_row *row = chrome_lane(w, p, kind, device, stream, lane, thread, at);
    trace_row_fit(&row->row, &at->begin_ns, &at->end_ns);
    row->end_ns = max_of(row->end_ns, at->end_ns);
    at->row = &row->row;
    return row;
}

void chrome_name_process(struct trace_writer *w, const struct process *p)
{
    char title[1024], name[THREAD_NAME_BYTES_MAX + 64];
    process_title(p, p->shown_pid != p->header.pid, title, sizeof title);
    put_process_names(w, p->shown_pid, title, w->scope.survey ? "CPU" : NULL,
                      SORT_PLACES * p->index);
    for (uint32_t i = 0; i < p->threads.count; i++) {
        const struct thread *t = p->threads.threads[i];
        const char *word = t->name[0] ? t->name : "thread";
        if (t->number == 0)
            continue;
        chrome_row(w, t->index)->ids = row_ids_of(p->shown_pid, t->shown_tid);
        if (t->tid == t->shown_tid || (t->tid && t->tid == p->header.pid))
            snprintf(name, sizeof name, "%s", word);
        else
            snprintf(name, sizeof name, "%s (%s %u)", word, t->tid ? "tid" : "number",
                     t->tid ? t->tid : t->number);
        if (!t->own)
            put_row_name(w, p->shown_pid, t->shown_tid, name, GPU_LANES_MAX + t->number);
    }
}

/* ---- arrows ---------------------------------------------------------------------------------- */

/* Writes one end of an arrow, after its phase. */
static inline char *chrome_rows_put_end(char *out, const char *what, size_t what_bytes,
                                        const struct row_ids *ids, uint64_t at_ns)
{
    out = mempcpy(out, what, what_bytes);
    return PUT(json_microseconds(chrome_put_ids(out, ids), at_ns), "}");
}

void chrome_put_arrow(struct trace_writer *w, const struct process *p, const char *category,
                      const struct row_ids *from, uint64_t from_ns, const struct shown *to)
{
    uint64_t number = ++w->totals.flows & ((1ull << FLOW_PROCESS_SHIFT) - 1);
    size_t bytes = strlen(category);
    char what[128], *end = what; /* name, category and an id that both ends share */
    end = mempcpy(PUT(end, "\"cat\":\""), category, bytes);
    end = mempcpy(PUT(end, "\",\"name\":\""), category, bytes);
    end = PUT(end, "\",\"id\":");
    end = json_decimal(end, (uint64_t)p->index << FLOW_PROCESS_SHIFT | number);
    bytes = (size_t)(PUT(end, ",\"pid\":") - what);
    char *out = PUT(output_room(w->out, CHROME_EVENT_BYTES), ",\n{\"ph\":\"s\",");
    out =
        PUT(chrome_rows_put_end(out, what, bytes, from, from_ns), ",\n{\"ph\":\"f\",\"bp\":\"e\",");
    output_advance(w->out, chrome_rows_put_end(out, what, bytes, &to->row->ids, to->begin_ns));
}

/* ---- slices of a row ------------------------------------------------------------------------- */

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
static uint64_t before_ns(uint64_t ns)
{
    return ns && ns != ROW_OPEN_END ? ns - 1 : ns;
}

static void drop(struct trace_row *row, uint32_t index)
{
    memmove(row->open + index, row->open + index + 1, (--row->depth - index) * sizeof *row->open);
}

static void push(struct trace_row *row, struct open_slice slice)
{
    if (row->depth == ROW_DEPTH_MAX)
        drop(row, 0);
    row->open[row->depth++] = slice;
}

/* Closes slices that ended by then. Returns a begin that differs from their ends. */
static uint64_t pop_until(struct trace_row *row, uint64_t begin_ns)
{
    begin_ns = max_of(begin_ns, row->begin_ns);
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
    /* The original end decides what is inside, even if an earlier one is shown. */
    uint64_t own_end_ns = max_of(*begin_ns, *end_ns);
    *end_ns = min_of(own_end_ns, limit_of(row));
    *begin_ns = min_of(*begin_ns, max_of(*end_ns, row->begin_ns));
    *end_ns = max_of(*end_ns, *begin_ns);
    push(row, (struct open_slice){own_end_ns, before_ns(*end_ns), 0, 0});
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
    push(row, (struct open_slice){ROW_OPEN_END, before_ns(limit_of(row)), begin_ns, shown_ns});
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
        shown_ns = max_of(shown_ns, row->open[i].inner_ns + 2);
    }
    shown_ns = max_of(shown_ns, row->begin_ns);
    if (at > 1)
        shown_ns = min_of(shown_ns, row->open[at - 2].inner_ns);
    *begin_ns = row->open[at - 1].begin_ns;
    *end_ns = max_of(shown_ns, *begin_ns);
    row->open[at - 1] = (struct open_slice){shown_ns, before_ns(shown_ns), 0, 0};
    row->depth = at;
    return true;
}

void trace_row_forget(struct trace_row *row, uint64_t begin_ns)
{
    uint32_t at = find_open(row, begin_ns);
    if (at > 0)
        drop(row, at - 1);
}
