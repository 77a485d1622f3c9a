/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of devices' time and idle time. */
#include <stdlib.h>

#include "analyse/idle.h"
#include "analyse/report_make.h"
#include "base/text.h"
#include "error.h"
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

enum { PLACE, CAUSE, COUNT, TOTAL, SHARE, LONGEST, AT, RANK, HOST, PID, GPU };
enum { LONGEST_RANK = 12, LONGEST_PID, LONGEST_GPU };

static const struct column place_columns[] = {
    {"place", "where", MEMBER(struct idle_total, place),
     .doc = "where in the program: the line, or else the operator, range or call"},
    [CAUSE] = {"cause", "cause", COLUMN_TEXT, 13,
               .doc = "launch, host, waiting, preempted, loader, sync, copy, allocation, "
                      "communication, capture, start-up, nothing or unknown"},
    [COUNT] = {"count", "gaps", COLUMN_COUNT, 9, MEMBER(struct idle_total, count),
               .doc = "the number of gaps that contain it"},
    [TOTAL] = {"total_ns", "total", COLUMN_NS, 12, MEMBER(struct idle_total, ns),
               .doc = "total idle time"},
    [SHARE] = {"share", "share", COLUMN_SHARE, 7,
               .doc =
                   "that as a part of the GPUs' recorded time after start-up; of start-up, of all"},
    [LONGEST] = {"longest_ns", "longest", COLUMN_NS, 12, .spare = 1, .doc = "the longest gap"},
    [AT] = {"at_ns", "began at", COLUMN_NS, 12, .spare = 2,
            .doc = "when that gap began, since the first event"},
    [RANK] = {"rank", NULL, .doc = "the rank, if all is on one GPU"},
    [HOST] = {"host", NULL, .doc = "the host, if all is on one GPU"},
    [PID] = {"pid", NULL, COLUMN_NUMBER, .ascending = true,
             .doc = "the process, if all is on one GPU"},
    [GPU] = {"device", NULL, COLUMN_NUMBER, .ascending = true,
             .doc = "the GPU, if all is on one GPU"},
    {"devices", NULL, COLUMN_COUNT, MEMBER(struct idle_total, devices),
     .doc = "the number of GPUs in the row"},
    [LONGEST_RANK] = {"longest_rank", NULL, .doc = "the rank of the longest gap"},
    [LONGEST_PID] = {"longest_pid", NULL, COLUMN_NUMBER, .ascending = true,
                     .doc = "the process of the longest gap"},
    [LONGEST_GPU] = {"longest_device", NULL, COLUMN_NUMBER, .ascending = true,
                     .doc = "the GPU of the longest gap"},
};

static void idle_print_fill_place(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct idle *d = t->source;
    const struct idle_total *total = &d->totals.list[index];
    const struct idle_row *row = &d->rows.list[total->longest];
    const struct idle_device *device = &d->devices[row->device];
    uint64_t origin_ns = d->walk->survey.origin_ns;
    cells[CAUSE] = cell_text(idle_cause_words[total->cause]);
    cells[SHARE] = cell_share(total->ns, idle_share_of(d, total->cause));
    cells[LONGEST] = cell_number(row->longest_ns);
    /* A gap that begins with the process begins before the first event. */
    cells[AT] =
        row->longest_at_ns < origin_ns && t->format == FORMAT_TEXT
            ? cell_text("the start")
            : cell_number(row->longest_at_ns > origin_ns ? row->longest_at_ns - origin_ns : 0);
    cells[RANK] = cells[LONGEST_RANK] = cell_text(process_rank(device->process));
    cells[HOST] = cell_text(device->process->header.host);
    cells[PID] = cells[LONGEST_PID] = cell_number(device->process->header.pid);
    cells[GPU] = cells[LONGEST_GPU] = cell_number(device->device);
    if (total->has_processes) /* the row adds up several processes */
        cells[RANK] = cells[HOST] = cells[PID] = cell_text(NULL);
    if (total->devices > 1)
        cells[GPU] = cell_text(NULL);
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

static int add_did(struct sums *s, const struct idle_row *row)
{
    uint64_t values[SUMS_VALUES] = {row->count, row->ns, row->longest_ns, row->longest_at_ns};
    return sums_row_add(s,
                        (struct key){sums_text(s, idle_cause_words[row->cause]),
                                     sums_text(s, did_words[row->did]), sums_text(s, row->text)},
                        values);
}

/* Runs after the places of idle time are named, as the findings need them. */
static int end_host(struct report *r)
{
    struct sums *s = &r->sums[ANALYSIS_idle_host_sums];
    struct idle *d = r->idle;
    int error = d && r->request.use == USE_EXPORT ? idle_name(d, r->request.symbols) : 0;
    if (!d || !s->info)
        return error;
    s->owner = d;
    s->begin_ns = d->walk->survey.origin_ns;
    for (uint32_t i = 0; error == 0 && i < d->rows.count; i++)
        if (d->rows.list[i].did && d->rows.list[i].ns)
            error = add_did(s, &d->rows.list[i]);
    return error == 0 ? sums_finish(s) : error;
}

const struct analysis idle_host_analysis = {
    .uses = USE_EXPORT, .parts = REPORT_IDLE, .end = end_host};

static const struct column host_columns[] = {
    {"place", "where", .shows = SHOWS_KEY, .of = KEY_PLACE,
     .doc = "the line, after the file, the call, or the holder of the lock"},
    {"cause", "cause", COLUMN_TEXT, 13, .shows = SHOWS_KEY, .of = KEY_CAUSE,
     .doc = "the cause of the idle time, as in the table idle"},
    {"did", "did", COLUMN_TEXT, 13, .shows = SHOWS_KEY, .of = KEY_DID,
     .doc = "what the thread did meanwhile, or what it waited for"},
    {"count", "gaps", COLUMN_COUNT, 9, .shows = SHOWS_VALUE, .of = SUM_GAPS,
     .doc = "the number of gaps; if samples are the source, of gaps with a sample"},
    {"total_ns", "total", COLUMN_NS, 12, .shows = SHOWS_VALUE, .of = SUM_NS,
     .doc = "idle time of the GPUs meanwhile"},
    {"share", "share", COLUMN_SHARE, 7, .shows = SHOWS_SHARE, .of = SUM_NS,
     .doc = "idle time as a share of all rows"},
    {"longest_ns", "longest", COLUMN_NS, 12, .spare = 1, .shows = SHOWS_VALUE, .of = SUM_LONGEST,
     .doc = "the longest part of one gap"},
    {"at_ns", "began at", COLUMN_NS, 12, .spare = 2, .shows = SHOWS_MOMENT, .of = SUM_AT,
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
