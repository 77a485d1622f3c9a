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

const struct table_info gpu_time_table = {.name = "gpu_time",
                                          .key = "gpu_time",
                                          .title = "GPU time by activity",
                                          TABLE_COLUMNS(device_columns),
                                          .rows = {ROWS_IN(struct idle, devices, device_count)},
                                          .order = ORDER,
                                          .row = fill_device};

/* ---- idle time by cause and place ------------------------------------------------------------ */

/* Values of the totals: the last three are of the longest gap; its device is an index. */
enum { NS, GAPS, DEVICES, FIRST_PROCESS, LAST_PROCESS, LONGEST_NS, LONGEST_AT, LONGEST_DEVICE };

void idle_add_totals(struct idle *d)
{
    struct key_map seen = {0}; /* devices in each row */
    sums_init(&d->totals, &idle_sums, d->walk, NULL);
    d->totals.owner = d;
    for (uint32_t i = 0; i < d->rows.count; i++) {
        const struct idle_row *row = &d->rows.list[i];
        if (row->did)
            continue;
        uint64_t place = sums_text(&d->totals, row->text);
        const struct key device = {row->cause, place, row->device + 1};
        const uint64_t values[] = {
            row->ns,      row->count,      !key_map_get(&seen, device), row->process,
            row->process, row->longest_ns, row->longest_at_ns,          row->device};
        key_map_set(&seen, device, 1);
        sums_row_add(&d->totals, (struct key){row->cause, place, 0}, values);
    }
    key_map_release(&seen);
    sums_finish(&d->totals);
}

/* Of equally long gaps the first one counts. */
static void join_longest(uint64_t *to, const uint64_t *from)
{
    if ((ORDER(to[LONGEST_NS], from[LONGEST_NS])
             ?: ORDER(from[LONGEST_AT], to[LONGEST_AT])
             ?: ORDER(from[LONGEST_DEVICE], to[LONGEST_DEVICE])) < 0)
        memcpy(&to[LONGEST_NS], &from[LONGEST_NS], 3 * sizeof *to);
}

enum { CAUSE = 1, COUNT, TOTAL, SHARE, LONGEST, AT, RANK, HOST, PID, GPU };
enum { LONGEST_RANK = 12, LONGEST_PID, LONGEST_GPU };

static const struct column place_columns[] = {
    {"place", "where", SHOW(KEY, IDLE_PLACE),
     .doc = "where in the program: the line, or else the operator, range or call"},
    [CAUSE] = {"cause", "cause", COLUMN_TEXT, 13,
               .doc = "launch, host, waiting, preempted, loader, sync, copy, allocation, "
                      "communication, capture, start-up, nothing or unknown"},
    [COUNT] = {"count", "gaps", COLUMN_COUNT, 9, SHOW(VALUE, GAPS),
               .doc = "the number of gaps that contain it"},
    [TOTAL] = {"total_ns", "total", COLUMN_NS, 12, SHOW(VALUE, NS), .doc = "total idle time"},
    [SHARE] = {"share", "share", COLUMN_SHARE, 7,
               .doc =
                   "that as a part of the GPUs' recorded time after start-up; of start-up, of all"},
    [LONGEST] = {"longest_ns", "longest", COLUMN_NS, 12, .spare = 1, SHOW(VALUE, LONGEST_NS),
                 .doc = "the longest gap"},
    [AT] = {"at_ns", "began at", COLUMN_NS, 12, .spare = 2,
            .doc = "when that gap began, since the first event"},
    [RANK] = {"rank", .doc = "the rank, if all is on one GPU"},
    [HOST] = {"host", .doc = "the host, if all is on one GPU"},
    [PID] = {"pid", NULL, COLUMN_NUMBER, .ascending = true,
             .doc = "the process, if all is on one GPU"},
    [GPU] = {"device", NULL, COLUMN_NUMBER, .ascending = true,
             .doc = "the GPU, if all is on one GPU"},
    {"devices", NULL, COLUMN_COUNT, SHOW(VALUE, DEVICES), .doc = "the number of GPUs in the row"},
    [LONGEST_RANK] = {"longest_rank", .doc = "the rank of the longest gap"},
    [LONGEST_PID] = {"longest_pid", NULL, COLUMN_NUMBER, .ascending = true,
                     .doc = "the process of the longest gap"},
    [LONGEST_GPU] = {"longest_device", NULL, COLUMN_NUMBER, .ascending = true,
                     .doc = "the GPU of the longest gap"},
};

static void totals_begin(struct table *t)
{
    sums_begin(t);
    t->is_there = t->count || t->format != FORMAT_TEXT;
}

static void fill_total(const struct table *t, const struct sums_row *row, struct cell *cells)
{
    const struct idle *d = ((const struct sums *)t->source)->owner;
    const uint64_t *v = row->values, cause = row->keys[IDLE_CAUSE];
    const struct idle_device *device = &d->devices[v[LONGEST_DEVICE]];
    const struct process *p = device->process,
                         *one = v[FIRST_PROCESS] == v[LAST_PROCESS] ? p : NULL;
    uint64_t at_ns = v[LONGEST_AT], origin_ns = d->walk->survey.origin_ns;
    cells[CAUSE] = cell_text(idle_cause_words[cause]);
    cells[SHARE] = cell_share(v[NS], idle_share_of(d, cause));
    /* A gap that begins with the process begins before the first event. */
    cells[AT] = at_ns < origin_ns && t->format == FORMAT_TEXT
                    ? cell_text("the start")
                    : cell_number(at_ns > origin_ns ? at_ns - origin_ns : 0);
    cells[RANK] = cell_text(one ? process_rank(one) : NULL);
    cells[HOST] = cell_text(one ? one->header.host : NULL);
    cells[PID] = cell_known(one, p->header.pid);
    cells[GPU] = cell_known(v[DEVICES] == 1, device->device);
    cells[LONGEST_RANK] = cell_text(process_rank(p));
    cells[LONGEST_PID] = cell_number(p->header.pid);
    cells[LONGEST_GPU] = cell_number(device->device);
}

static void say_shares(const struct table *t, FILE *out)
{
    const struct sums *s = t->source;
    const struct idle *d = s ? s->owner : NULL;
    char run[UNIT_TEXT_BYTES], all[UNIT_TEXT_BYTES];
    if (d && (d->all.causes[IDLE_START_UP] || d->all.stopped_ns))
        fprintf(out, "  shares refer to the %s after start-up%s; for start-up, to all %s\n",
                time_text(run, idle_run_ns(d)), d->all.stopped_ns ? ", as far as recorded" : "",
                time_text(all, d->window_ns));
}

const struct sums_info idle_sums = {
    .keys = {KEY_NUMBER, KEY_TEXT},
    .values = {JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_LEAST, JOIN_MOST, JOIN_OWN, JOIN_OWN, JOIN_OWN},
    .order = NS,
    .join = join_longest,
    .fill = fill_total,
    .table = {.begin = totals_begin,
              .row = sums_show,
              .name = "idle",
              .place = PLACE_IDLE,
              .key = "idle",
              .title = "GPU idle time by cause",
              TABLE_COLUMNS(place_columns),
              .text = {CAUSE, TOTAL, SHARE, COUNT, LONGEST, AT},
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
