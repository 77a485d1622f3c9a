/* SPDX-License-Identifier: Apache-2.0 */
/* Where the devices' time went, on paper. */
#include "base/unit_text.h"
#include "find/idle.h"
#include "read/process_title.h"

enum {
    DEVICE,
    RANK,
    HOST,
    PID,
    GPU,
    WINDOW,
    START_UP,
    COMPUTE,
    COMMUNICATION,
    COPIES,
    IDLE,
    RUN_IDLE,
    IDLE_SHARE,
    STOPPED,
    OTHER,
    ORDER,
    CAUSES,
    DEVICE_COLUMNS = CAUSES + IDLE_CAUSES
};

_Static_assert(DEVICE_COLUMNS <= TABLE_COLUMNS_MAX, "a row has all causes");

static const struct column device_columns[DEVICE_COLUMNS] = {
    [DEVICE] = {NULL, "device"},
    [RANK] = {"rank", NULL},
    [HOST] = {"host", NULL},
    [PID] = {"pid", NULL, COLUMN_NUMBER, .ascending = true},
    [GPU] = {"device", NULL, COLUMN_NUMBER, .ascending = true},
    [WINDOW] = {"window_ns", "time", COLUMN_NS, 12},
    [START_UP] = {NULL, "start-up", COLUMN_NS, 12},
    [COMPUTE] = {"compute_ns", "compute", COLUMN_NS, 12},
    [COMMUNICATION] = {"communication_ns", "communication", COLUMN_NS, 13, .spare = 1},
    [COPIES] = {"copies_ns", "copies", COLUMN_NS, 12, .spare = 1},
    [IDLE] = {"idle_ns", NULL, COLUMN_NS},
    [RUN_IDLE] = {NULL, "idle", COLUMN_NS, 12},
    [IDLE_SHARE] = {"idle_share", "idle", COLUMN_SHARE, 7},
    [STOPPED] = {"stopped_ns", "not recorded", COLUMN_NS, 12, .is_filled = true},
    [OTHER] = {"other_ns", "other work", COLUMN_NS, 12, .is_filled = true},
    [ORDER] = {NULL, NULL, COLUMN_NUMBER, .ascending = true},
    [CAUSES + IDLE_LAUNCH] = {"idle_launch_ns", NULL, COLUMN_NS},
    [CAUSES + IDLE_HOST] = {"idle_host_ns", NULL, COLUMN_NS},
    [CAUSES + IDLE_WAITING] = {"idle_waiting_ns", NULL, COLUMN_NS},
    [CAUSES + IDLE_PREEMPTED] = {"idle_preempted_ns", NULL, COLUMN_NS},
    [CAUSES + IDLE_SYNC] = {"idle_sync_ns", NULL, COLUMN_NS},
    [CAUSES + IDLE_COPY] = {"idle_copy_ns", NULL, COLUMN_NS},
    [CAUSES + IDLE_LOADER] = {"idle_loader_ns", NULL, COLUMN_NS},
    [CAUSES + IDLE_ALLOCATION] = {"idle_allocation_ns", NULL, COLUMN_NS},
    [CAUSES + IDLE_COMMUNICATION] = {"idle_communication_ns", NULL, COLUMN_NS},
    [CAUSES + IDLE_CAPTURE] = {"idle_capture_ns", NULL, COLUMN_NS},
    [CAUSES + IDLE_START_UP] = {"idle_start_up_ns", NULL, COLUMN_NS},
    [CAUSES + IDLE_NOTHING] = {"idle_nothing_ns", NULL, COLUMN_NS},
    [CAUSES + IDLE_UNKNOWN] = {"idle_unknown_ns", NULL, COLUMN_NS},
};

static void devices_begin(struct table *t, enum report_format format)
{
    const struct idle *d = t->source;
    bool has_devices = d && d->device_count;
    t->is_there = has_devices || format == FORMAT_JSON;
    t->count = has_devices ? d->device_count : 0;
}

static struct cell device_name(const struct idle_device *device)
{
    char who[RANK_TITLE_BYTES], *text = NULL;
    int length = asprintf(&text, "%s, GPU %llu", process_who(device->process, who),
                          (unsigned long long)device->device);
    return cell_owned(length < 0 ? NULL : text);
}

static void fill_device(const struct table *t, uint32_t index, enum report_format format,
                        struct cell *cells)
{
    const struct idle_device *device = &((const struct idle *)t->source)->devices[index];
    uint64_t window_ns = device->end_ns - device->begin_ns;
    uint64_t start_up_ns = device->causes[IDLE_START_UP];
    cells[DEVICE] = device_name(device);
    cells[RANK] = cell_text(process_rank(device->process));
    cells[HOST] = cell_text(device->process->header.host);
    cells[PID] = cell_number(device->process->header.pid);
    cells[GPU] = cell_number(device->device);
    cells[WINDOW] = cell_number(window_ns);
    cells[START_UP] = cell_number(start_up_ns);
    cells[COMPUTE] = cell_number(device->parts[IDLE_COMPUTE]);
    cells[COMMUNICATION] = cell_number(device->parts[IDLE_COMMUNICATING]);
    cells[COPIES] = cell_number(device->parts[IDLE_COPYING]);
    cells[IDLE] = cell_number(device->idle_ns);
    cells[RUN_IDLE] = cell_number(device->idle_ns - start_up_ns);
    cells[IDLE_SHARE] =
        cell_share(device->idle_ns - start_up_ns, window_ns - start_up_ns - device->stopped_ns);
    if (device->stopped_ns || format != FORMAT_TEXT)
        cells[STOPPED] = cell_number(device->stopped_ns);
    if (device->parts[IDLE_OTHER] || format != FORMAT_TEXT)
        cells[OTHER] = cell_number(device->parts[IDLE_OTHER]);
    cells[ORDER] = cell_number((uint64_t)device->process->index << 32 | (uint32_t)device->device);
    for (unsigned cause = 0; cause < IDLE_CAUSES; cause++)
        cells[CAUSES + cause] = cell_number(device->causes[cause]);
}

enum {
    PLACE,
    CAUSE,
    COUNT,
    TOTAL,
    SHARE,
    LONGEST,
    AT,
    PLACE_RANK,
    PLACE_HOST,
    PLACE_PID,
    PLACE_GPU,
    PLACE_DEVICES,
    LONGEST_RANK,
    LONGEST_PID,
    LONGEST_GPU,
    PLACE_COLUMNS
};

static const struct column place_columns[PLACE_COLUMNS] = {
    [PLACE] = {"place", "where"},
    [CAUSE] = {"cause", "cause", COLUMN_TEXT, 13},
    [COUNT] = {"count", "gaps", COLUMN_COUNT, 9},
    [TOTAL] = {"total_ns", "total", COLUMN_NS, 12},
    [SHARE] = {"share", "share", COLUMN_SHARE, 7},
    [LONGEST] = {"longest_ns", "longest", COLUMN_NS, 12, .spare = 1},
    [AT] = {"at_ns", "began at", COLUMN_NS, 12, .spare = 2},
    [PLACE_RANK] = {"rank", NULL},
    [PLACE_HOST] = {"host", NULL},
    [PLACE_PID] = {"pid", NULL, COLUMN_NUMBER, .ascending = true},
    [PLACE_GPU] = {"device", NULL, COLUMN_NUMBER, .ascending = true},
    [PLACE_DEVICES] = {"devices", NULL, COLUMN_COUNT},
    [LONGEST_RANK] = {"longest_rank", NULL},
    [LONGEST_PID] = {"longest_pid", NULL, COLUMN_NUMBER, .ascending = true},
    [LONGEST_GPU] = {"longest_device", NULL, COLUMN_NUMBER, .ascending = true},
};

static void places_begin(struct table *t, enum report_format format)
{
    const struct idle *d = t->source;
    bool has_devices = d && d->device_count;
    t->count = has_devices ? d->total_count : 0;
    t->is_there = t->count || format == FORMAT_JSON;
}

static void fill_place(const struct table *t, uint32_t index, enum report_format format,
                       struct cell *cells)
{
    const struct idle *d = t->source;
    const struct idle_total *total = &d->totals[index];
    const struct idle_row *row = &d->rows.list[total->longest];
    const struct idle_device *device = &d->devices[row->device];
    uint64_t origin_ns = d->walk->survey.origin_ns;
    cells[PLACE] = cell_text(total->place);
    cells[CAUSE] = cell_text(idle_cause_words[total->cause]);
    cells[COUNT] = cell_number(total->count);
    cells[TOTAL] = cell_number(total->ns);
    cells[SHARE] = cell_share(total->ns, idle_share_of(d, total->cause));
    cells[LONGEST] = cell_number(row->longest_ns);
    /* What begins with the process begins before the first event. */
    cells[AT] =
        row->longest_at_ns < origin_ns && format == FORMAT_TEXT
            ? cell_text("the start")
            : cell_number(row->longest_at_ns > origin_ns ? row->longest_at_ns - origin_ns : 0);
    cells[PLACE_RANK] = cells[LONGEST_RANK] = cell_text(process_rank(device->process));
    cells[PLACE_HOST] = cell_text(device->process->header.host);
    cells[PLACE_PID] = cells[LONGEST_PID] = cell_number(device->process->header.pid);
    cells[PLACE_GPU] = cells[LONGEST_GPU] = cell_number(device->device);
    cells[PLACE_DEVICES] = cell_number(total->devices);
    if (total->has_processes) /* it is the sum of all of them */
        cells[PLACE_RANK] = cells[PLACE_HOST] = cells[PLACE_PID] = cell_text(NULL);
    if (total->devices > 1)
        cells[PLACE_GPU] = cell_text(NULL);
}

static void say_shares(const struct table *t, FILE *out)
{
    const struct idle *d = t->source;
    char run[UNIT_TEXT_BYTES], all[UNIT_TEXT_BYTES];
    if (d && (d->causes[IDLE_START_UP] || d->stopped_ns))
        fprintf(out, "  shares are of the %s after start-up%s, those of start-up of all %s\n",
                time_text(run, idle_run_ns(d)), d->stopped_ns ? " that were recorded" : "",
                time_text(all, d->window_ns));
}

const struct table_info idle_tables[IDLE_TABLES] = {
    {.name = "gpu_time",
     .key = "gpu_time",
     .title = "where the GPUs' time went",
     .columns = device_columns,
     .column_count = DEVICE_COLUMNS,
     .text = {WINDOW, START_UP, COMPUTE, COMMUNICATION, COPIES, RUN_IDLE, IDLE_SHARE, STOPPED,
              OTHER},
     .order = ORDER,
     .json_empty = "[]",
     .begin = devices_begin,
     .row = fill_device},
    {.name = "idle",
     .place = PLACE_IDLE,
     .key = "idle",
     .title = "why the GPUs were idle",
     .columns = place_columns,
     .column_count = PLACE_COLUMNS,
     .text = {CAUSE, TOTAL, SHARE, COUNT, LONGEST, AT},
     .json_empty = "[]",
     .begin = places_begin,
     .row = fill_place,
     .text_behind = say_shares},
};
