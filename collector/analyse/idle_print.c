/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of devices' time and idle time. */
#include <stdlib.h>
#include <string.h>

#include "analyse/idle.h"
#include "analyse/report_make.h"
#include "base/memory.h"
#include "base/text.h"
#include "read/process.h"

enum { DEVICE, WINDOW = 5, RUN_IDLE = 11, IDLE_SHARE, ORDER = 15, CAUSES };
enum { DEVICE_COLUMNS = CAUSES + IDLE_CAUSES };

_Static_assert(DEVICE_COLUMNS <= TABLE_COLUMNS_MAX, "a row has all causes");

#define ROW struct idle_device

static const struct column device_columns[DEVICE_COLUMNS] = {
    [DEVICE] = {NULL, "device", .doc = "the GPU and its process"},
    COLUMN_RANK(ROW, process),
    COLUMN_HOST(ROW, process),
    COLUMN_PID(ROW, process),
    {"device", NULL, COLUMN_NUMBER, .ascending = true, MEMBER(ROW, device),
     .doc = "CUDA's number of the device"},
    [WINDOW] = {"window_ns", "time", COLUMN_NS, 12,
                .doc = "from the start of the process, or its first event, to its last event"},
    {NULL, "start-up", COLUMN_NS, 12, MEMBER(ROW, causes[IDLE_START_UP]),
     .doc = "idle until the first work, or until the steps ran"},
    {"compute_ns", "compute", COLUMN_NS, 12, MEMBER(ROW, parts[IDLE_COMPUTE]),
     .doc = "a kernel or graph ran, other than communication"},
    {"communication_ns", "communication", COLUMN_NS, 13, .spare = 1,
     MEMBER(ROW, parts[IDLE_COMMUNICATING]),
     .doc = "only kernels of NCCL ran, and waited for no rank"},
    {"copies_ns", "copies", COLUMN_NS, 12, .spare = 1, MEMBER(ROW, parts[IDLE_COPYING]),
     .doc = "only copies and sets ran"},
    {"idle_ns", NULL, COLUMN_NS, MEMBER(ROW, idle_ns), .doc = "nothing ran, including start-up"},
    [RUN_IDLE] = {NULL, "idle", COLUMN_NS, 12, .doc = "nothing ran, without start-up"},
    [IDLE_SHARE] = {"idle_share", "idle", COLUMN_SHARE, 7,
                    .doc = "nothing ran, as a share of the recorded time after start-up"},
    {"stopped_ns", "not recorded", COLUMN_NS, 12, .is_filled = true, .hides_zero = true,
     MEMBER(ROW, stopped_ns),
     .doc = "not recorded: recording was stopped, or the last work is lost"},
    {"other_ns", "other work", COLUMN_NS, 12, .is_filled = true, .hides_zero = true,
     MEMBER(ROW, parts[IDLE_OTHER]), .doc = "work outside of the selection ran"},
    [ORDER] = {NULL, NULL, COLUMN_NUMBER, .ascending = true},
#define CAUSE(NAME, word, key)                                                                     \
    [CAUSES + IDLE_##NAME] = {key, NULL, COLUMN_NS, MEMBER(ROW, causes[IDLE_##NAME]),              \
                              .doc = "the part of idle_ns with that cause (gpuprof help idle)"},
#include "analyse/idle_causes.def"
};
#undef ROW

static void fill_device(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct idle_device *device = &((const struct idle *)t->source)->devices[index];
    uint64_t window_ns = device->end_ns - device->begin_ns;
    uint64_t start_up_ns = device->causes[IDLE_START_UP];
    char who[RANK_TITLE_BYTES];
    cells[DEVICE] = cell_printf("%s, GPU %llu", process_who(device->process, who),
                                (unsigned long long)device->device);
    cells[WINDOW] = cell_number(window_ns);
    cells[RUN_IDLE] = cell_number(device->idle_ns - start_up_ns);
    cells[IDLE_SHARE] =
        cell_share(device->idle_ns - start_up_ns, window_ns - start_up_ns - device->stopped_ns);
    cells[ORDER] = cell_number((uint64_t)device->process->index << 32 | (uint32_t)device->device);
}

static int by_cause_and_place(const struct idle_total *a, const struct idle_total *b)
{
    return ORDER(a->cause, b->cause) ?: strcmp(a->place, b->place);
}

static int by_device(const void *left, const void *right)
{
    const struct idle_total *a = left, *b = right;
    return by_cause_and_place(a, b) ?: ORDER(a->of, b->of) ?: ORDER(a->longest, b->longest);
}

static int by_ns(const void *left, const void *right)
{
    const struct idle_total *a = left, *b = right;
    return ORDER(b->ns, a->ns) ?: by_cause_and_place(left, right);
}

/* Adds `more`, which has the same cause and place. */
static void add_total(struct idle_total *sum, const struct idle_total *more)
{
    const struct idle_row *a = sum->longest, *b = more->longest;
    sum->process = sum->process == more->process ? sum->process : NULL;
    sum->ns += more->ns;
    sum->count += more->count;
    if (b->longest_ns > a->longest_ns ||
        (b->longest_ns == a->longest_ns && b->longest_at_ns < a->longest_at_ns)) {
        sum->longest = b;
        sum->of = more->of;
        sum->longest_process = more->longest_process;
    }
}

void idle_add_totals(struct idle *d)
{
    struct idle_total *list = d->totals.list = memory_new(d->rows.count + 1u, sizeof *list);
    uint32_t count = 0, kept = 0;
    for (uint32_t i = 0; i < d->rows.count; i++) {
        const struct idle_row *row = &d->rows.list[i];
        const struct idle_device *device = &d->devices[row->device];
        if (!row->did)
            list[count++] = (struct idle_total){.cause = (enum idle_cause)row->cause,
                                                .place = row->text,
                                                .ns = row->ns,
                                                .count = row->count,
                                                .process = device->process,
                                                .longest = row,
                                                .of = device,
                                                .longest_process = device->process,
                                                .devices = 1};
    }
    qsort(list, count, sizeof *list, by_device);
    const struct idle_device *last = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct idle_total one = list[i];
        bool is_new = !kept || by_cause_and_place(&list[kept - 1], &one) != 0;
        struct idle_total *sum = is_new ? &list[kept++] : &list[kept - 1];
        if (is_new)
            *sum = one;
        else
            add_total(sum, &one);
        sum->devices += !is_new && one.of != last;
        last = one.of;
    }
    d->totals.count = kept;
    qsort(list, kept, sizeof *list, by_ns);
}

#define ROW struct idle_total

enum { PLACE, CAUSE, COUNT, TOTAL, SHARE, LONGEST, AT, PID = 9, GPU };

static const struct column place_columns[] = {
    {"place", "where", MEMBER(ROW, place),
     .doc = "where in the program: the line, or else the operator, range or call"},
    [CAUSE] = {"cause", "cause", COLUMN_TEXT, 13,
               .doc = "launch, host, waiting, preempted, loader, sync, copy, allocation, "
                      "communication, capture, start-up, nothing or unknown"},
    [COUNT] = {"count", "gaps", COLUMN_COUNT, 9, MEMBER(ROW, count),
               .doc = "the number of gaps that contain it"},
    [TOTAL] = {"total_ns", "total", COLUMN_NS, 12, MEMBER(ROW, ns), .doc = "total idle time"},
    [SHARE] = {"share", "share", COLUMN_SHARE, 7,
               .doc =
                   "that as a part of the GPUs' recorded time after start-up; of start-up, of all"},
    [LONGEST] = {"longest_ns", "longest", COLUMN_NS, 12, .spare = 1,
                 MEMBER_OF(ROW, longest, longest_ns), .doc = "the longest gap"},
    [AT] = {"at_ns", "began at", COLUMN_NS, 12, .spare = 2,
            .doc = "when that gap began, since the first event"},
    {"rank", .from = FROM_RANK, .at = offsetof(ROW, process),
     .doc = "the rank, if all is on one GPU"},
    {"host", .from = FROM_HOST, .at = offsetof(ROW, process),
     .doc = "the host, if all is on one GPU"},
    [PID] = {"pid", NULL, COLUMN_NUMBER, .ascending = true,
             .doc = "the process, if all is on one GPU"},
    [GPU] = {"device", NULL, COLUMN_NUMBER, .ascending = true,
             .doc = "the GPU, if all is on one GPU"},
    {"devices", NULL, COLUMN_COUNT, MEMBER(ROW, devices), .doc = "the number of GPUs in the row"},
    {"longest_rank", .from = FROM_RANK, .at = offsetof(ROW, longest_process),
     .doc = "the rank of the longest gap"},
    {"longest_pid", NULL, COLUMN_NUMBER, .ascending = true, .from = FROM_PID,
     .at = offsetof(ROW, longest_process), .doc = "the process of the longest gap"},
    {"longest_device", NULL, COLUMN_NUMBER, .ascending = true, MEMBER_OF(ROW, of, device),
     .doc = "the GPU of the longest gap"},
};
#undef ROW

static void idle_print_fill_place(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct idle *d = t->source;
    const struct idle_total *total = &d->totals.list[index];
    uint64_t at_ns = total->longest->longest_at_ns, origin_ns = d->walk->survey.origin_ns;
    cells[CAUSE] = cell_text(idle_cause_words[total->cause]);
    cells[SHARE] = cell_share(total->ns, idle_share_of(d, total->cause));
    /* A gap that begins with the process begins before the first event. */
    cells[AT] = at_ns < origin_ns && t->format == FORMAT_TEXT
                    ? cell_text("the start")
                    : cell_number(at_ns > origin_ns ? at_ns - origin_ns : 0);
    cells[PID] = cell_known(total->process, total->longest_process->header.pid);
    cells[GPU] = cell_known(total->devices == 1, total->of->device);
}

static void say_shares(const struct table *t, FILE *out)
{
    const struct idle *d = t->source;
    char run[UNIT_TEXT_BYTES], all[UNIT_TEXT_BYTES];
    if (d && (d->all.causes[IDLE_START_UP] || d->all.stopped_ns))
        fprintf(out, "  shares refer to the %s after start-up%s; for start-up, to all %s\n",
                time_text(run, idle_run_ns(d)), d->all.stopped_ns ? ", as far as recorded" : "",
                time_text(all, d->window_ns));
}

const struct table_info idle_tables[IDLE_TABLES] = {
    {.name = "gpu_time",
     .key = "gpu_time",
     .title = "GPU time by activity",
     TABLE_COLUMNS(device_columns),
     .rows = {ROWS_IN(struct idle, devices, device_count)},
     .order = ORDER,
     .row = fill_device},
    {.name = "idle",
     .place = PLACE_IDLE,
     .key = "idle",
     .title = "GPU idle time by cause",
     TABLE_COLUMNS(place_columns),
     .rows = {ROWS_IN(struct idle, totals.list, totals.count)},
     .text = {CAUSE, TOTAL, SHARE, COUNT, LONGEST, AT},
     .row = idle_print_fill_place,
     .text_behind = say_shares},
};

/* ---- what the feeding thread did: rows of idle_host.c, merged by cause, kind and place --------
 */

enum { KEY_CAUSE, KEY_DID, KEY_PLACE };
enum { SUM_GAPS, SUM_NS, SUM_LONGEST, SUM_AT };

static void add_did(struct sums *s, const struct idle_row *row)
{
    uint64_t values[SUMS_VALUES] = {row->count, row->ns, row->longest_ns, row->longest_at_ns};
    sums_row_add(s,
                 (struct key){sums_text(s, idle_cause_words[row->cause]),
                              sums_text(s, did_words[row->did]), sums_text(s, row->text)},
                 values);
}

/* Runs after the places of idle time are named, as the findings need them. */
static void end_host(struct report *r)
{
    struct sums *s = &r->sums[ANALYSIS_idle_host_sums];
    struct idle *d = r->idle;
    if (d && r->request.use == USE_EXPORT)
        idle_name(d, r->request.symbols);
    if (!d || !s->info)
        return;
    s->owner = d;
    s->begin_ns = d->walk->survey.origin_ns;
    for (uint32_t i = 0; i < d->rows.count; i++)
        if (d->rows.list[i].did && d->rows.list[i].ns)
            add_did(s, &d->rows.list[i]);
    sums_finish(s);
}

const struct analysis idle_host_analysis = {
    .uses = USE_EXPORT, .parts = REPORT_IDLE, .end = end_host};

static const struct column host_columns[] = {
    {"place", "where", SHOW(KEY, KEY_PLACE),
     .doc = "the line, after the file, the call, or the holder of the lock"},
    {"cause", "cause", COLUMN_TEXT, 13, SHOW(KEY, KEY_CAUSE),
     .doc = "the cause of the idle time, as in the table idle"},
    {"did", "did", COLUMN_TEXT, 13, SHOW(KEY, KEY_DID),
     .doc = "what the thread did meanwhile, or what it waited for"},
    {"count", "gaps", COLUMN_COUNT, 9, SHOW(VALUE, SUM_GAPS),
     .doc = "the number of gaps; if samples are the source, of gaps with a sample"},
    {"total_ns", "total", COLUMN_NS, 12, SHOW(VALUE, SUM_NS),
     .doc = "idle time of the GPUs meanwhile"},
    {"share", "share", COLUMN_SHARE, 7, SHOW(SHARE, SUM_NS),
     .doc = "idle time as a share of all rows"},
    {"longest_ns", "longest", COLUMN_NS, 12, .spare = 1, SHOW(VALUE, SUM_LONGEST),
     .doc = "the longest part of one gap"},
    {"at_ns", "began at", COLUMN_NS, 12, .spare = 2, SHOW(MOMENT, SUM_AT),
     .doc = "when that part began"},
};

const struct sums_info idle_host_sums = {
    .keys = {KEY_TEXT, KEY_TEXT, KEY_TEXT},
    .values = {JOIN_ADD, JOIN_ADD, JOIN_MOST, JOIN_WITH},
    .rows_max = SUMS_ROWS_MAX,
    .order = SUM_NS,
    .is_left_out = true,
    .parts = REPORT_IDLE,
    .table = {SUMS_TABLE, .name = "idle_host", .key = "idle_host",
              .title = "host activity while the GPUs waited", .columns = host_columns,
              .column_count = sizeof host_columns / sizeof host_columns[0],
              .text = {1, 2, 4, 5, 3, 6},
              .text_none = ": not recorded (gpuprof run --sample --os PROGRAM)"},
};
