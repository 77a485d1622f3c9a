/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/rank_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "rank.h"
#include "read/process_title.h"

static int compare(const void *left, const void *right)
{
    const struct process *a = ((const struct rank_row *)left)->process;
    const struct process *b = ((const struct rank_row *)right)->process;
    int order = ORDER(a->job, b->job);
    order = order ? order : ORDER(a->rank, b->rank);
    return order ? order : ORDER(a->index, b->index);
}

static void add_device(struct rank_row *row, const struct idle_device *device)
{
    row->devices++;
    row->window_ns += device->end_ns - device->begin_ns;
    row->stopped_ns += device->stopped_ns;
    for (unsigned part = 0; part < IDLE_PARTS; part++)
        row->parts[part] += device->parts[part];
    row->idle_ns += device->idle_ns;
    row->start_up_ns += device->causes[IDLE_START_UP];
    row->waits_ns += device->causes[IDLE_COMMUNICATION];
    row->collectives += device->collectives;
    row->late += device->late;
    row->late_ns += device->late_ns;
    row->awaited_ns += device->awaited_ns;
}

int rank_report_init(struct rank_report *r, const struct recording *rec, const struct steps *steps)
{
    struct rank_row *rows = calloc(rec->count + 1u, sizeof *rows);
    *r = (struct rank_report){.rows = rows};
    if (!rows)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; steps && i < steps->count; i++) {
        const struct step *step = &steps->list[i];
        rows[step->process->index].steps += !step->is_partial;
        rows[step->process->index].step_ns += step->is_partial ? 0 : step->end_ns - step->begin_ns;
    }
    return 0;
}

void rank_report_make(struct rank_report *r, const struct recording *rec, const struct idle *idle)
{
    struct rank_row *rows = r->rows;
    r->left_out = rec->left_out_ranks;
    for (uint32_t i = 0; idle && i < idle->device_count; i++)
        add_device(&rows[idle->devices[i].process->index], &idle->devices[i]);
    if (idle)
        memcpy(r->missed, idle->arrivals.missed, sizeof r->missed);
    for (uint32_t i = 0; i < rec->count; i++) {
        rows[i].process = rec->processes[i];
        if (rows[i].process->rank != RANK_NONE && (rows[i].devices || rows[i].steps))
            rows[r->count++] = rows[i];
    }
    qsort(rows, r->count, sizeof *rows, compare);
}

void rank_report_release(struct rank_report *r)
{
    free(r->rows);
    *r = (struct rank_report){0};
}

/* ---- on paper -------------------------------------------------------------------------------- */

enum {
    TITLE,
    RANK,
    JOB,
    HOST,
    LOCAL_RANK,
    PID,
    DEVICES,
    STEPS,
    STEP_MEAN,
    WINDOW,
    COMPUTE,
    COMMUNICATION,
    COPIES,
    IDLE,
    RUN_IDLE,
    IDLE_SHARE,
    START_UP,
    WAITS,
    COLLECTIVES,
    LATE,
    LATE_SHARE,
    BEHIND,
    AWAITED,
    STOPPED,
    OTHER,
    COLUMNS
};

static const struct column columns[COLUMNS] = {
    [TITLE] = {NULL, "rank"},
    [RANK] = {"rank", NULL},
    [JOB] = {"job", NULL, COLUMN_NUMBER, .ascending = true},
    [HOST] = {"host", NULL},
    [LOCAL_RANK] = {"local_rank", NULL},
    [PID] = {"pid", NULL, COLUMN_NUMBER, .ascending = true},
    [DEVICES] = {"devices", NULL, COLUMN_COUNT},
    [STEPS] = {"steps", "steps", COLUMN_COUNT, 7, .spare = 1, .is_filled = true},
    [STEP_MEAN] = {"step_mean_ns", "a step", COLUMN_NS, 11, .spare = 3, .is_filled = true},
    [WINDOW] = {"window_ns", NULL, COLUMN_NS},
    [COMPUTE] = {"compute_ns", "compute", COLUMN_NS, 11, .spare = 2},
    [COMMUNICATION] = {"communication_ns", "communication", COLUMN_NS, 13, .spare = 2},
    [COPIES] = {"copies_ns", NULL, COLUMN_NS},
    [IDLE] = {"idle_ns", NULL, COLUMN_NS},
    [RUN_IDLE] = {NULL, "GPU idle", COLUMN_NS, 11, .spare = 3},
    [IDLE_SHARE] = {"idle_share", "idle", COLUMN_SHARE, 6, .spare = 1},
    [START_UP] = {"idle_start_up_ns", NULL, COLUMN_NS},
    [WAITS] = {"waits_ns", "it waited", COLUMN_NS, 11, .is_filled = true},
    [COLLECTIVES] = {"collectives", NULL, COLUMN_COUNT},
    [LATE] = {"late", "came last", COLUMN_COUNT, 9, .spare = 4, .is_filled = true},
    [LATE_SHARE] = {"late_share", "last", COLUMN_SHARE, 6, .spare = 1, .is_filled = true},
    [BEHIND] = {"late_ns", "behind", COLUMN_NS, 11, .spare = 4, .is_filled = true},
    [AWAITED] = {"awaited_ns", "others waited", COLUMN_NS, 13, .is_filled = true},
    [STOPPED] = {"stopped_ns", NULL, COLUMN_NS},
    [OTHER] = {"other_ns", NULL, COLUMN_NS},
};

static void begin(struct table *t, enum report_format format)
{
    const struct rank_report *r = t->source;
    t->is_there = r->count > 1 || format == FORMAT_JSON;
    t->count = t->is_there ? r->count : 0;
    if (r->left_out)
        t->none = RANKS_LEFT_OUT;
}

/* Of a file that was cut off, or a process that was killed, the sums are of less time. */
static struct cell title(const struct process *p)
{
    char *text = NULL;
    char rank[RANK_TITLE_BYTES];
    const char *end = p->losses.torn_bytes || p->losses.not_ended ? ", cut off"
                      : p->end_reason == END_KILLED               ? ", killed"
                                                                  : "";
    int length = asprintf(&text, "%.*s (%s)%s", (int)strcspn(process_rank_title(p, rank), ":"),
                          rank, p->header.host, end);
    return cell_owned(length < 0 ? NULL : text);
}

static void fill(const struct table *t, uint32_t index, enum report_format format,
                 struct cell *cells)
{
    const struct rank_row *row = &((const struct rank_report *)t->source)->rows[index];
    bool is_text = format == FORMAT_TEXT;
    cells[TITLE] = title(row->process);
    cells[RANK] = cell_text(process_rank(row->process));
    cells[JOB] = cell_number(row->process->job);
    cells[HOST] = cell_text(row->process->header.host);
    cells[LOCAL_RANK] = cell_text(process_local_rank(row->process));
    cells[PID] = cell_number(row->process->header.pid);
    cells[DEVICES] = cell_number(row->devices);
    if (row->steps || !is_text) {
        cells[STEPS] = cell_number(row->steps);
        cells[STEP_MEAN] = cell_number(row->steps ? row->step_ns / row->steps : 0);
    }
    cells[WINDOW] = cell_number(row->window_ns);
    cells[COMPUTE] = cell_number(row->parts[IDLE_COMPUTE]);
    cells[COMMUNICATION] = cell_number(row->parts[IDLE_COMMUNICATING]);
    cells[COPIES] = cell_number(row->parts[IDLE_COPYING]);
    cells[IDLE] = cell_number(row->idle_ns);
    cells[RUN_IDLE] = cell_number(row->idle_ns - row->start_up_ns);
    cells[IDLE_SHARE] = cell_share(row->idle_ns - row->start_up_ns,
                                   row->window_ns - row->start_up_ns - row->stopped_ns);
    cells[START_UP] = cell_number(row->start_up_ns);
    cells[STOPPED] = cell_number(row->stopped_ns);
    cells[OTHER] = cell_number(row->parts[IDLE_OTHER]);
    if (!row->collectives && is_text)
        return;
    cells[WAITS] = cell_number(row->waits_ns);
    cells[COLLECTIVES] = cell_number(row->collectives);
    cells[LATE] = cell_number(row->late);
    cells[LATE_SHARE] = cell_share(row->late, row->collectives);
    cells[BEHIND] = cell_number(row->late_ns);
    cells[AWAITED] = cell_number(row->awaited_ns);
}

static void print_notes(const struct table *t, FILE *out)
{
    const struct rank_report *r = t->source;
    bool has_waited = false;
    for (uint32_t i = 0; i < t->count && !has_waited; i++)
        has_waited = r->rows[i].waits_ns;
    if (has_waited)
        fputs("  GPU idle has the waits for other ranks in it, which 'steps' has as busy\n", out);
    arrivals_say_missed(r->missed, out);
}

const struct table_info ranks_table = {
    .name = "ranks",
    .about = "what each rank spent its time on, and which rank it waited for",
    .key = "ranks",
    .title = "ranks",
    .columns = columns,
    .column_count = COLUMNS,
    .text = {STEPS, STEP_MEAN, COMPUTE, COMMUNICATION, RUN_IDLE, IDLE_SHARE, WAITS, LATE,
             LATE_SHARE, BEHIND, AWAITED},
    .name_width = 20, /* it is short */
    .text_none = ": it has a row for each rank, and needs recordings of two or more",
    .json_empty = "[]",
    .begin = begin,
    .row = fill,
    .text_behind = print_notes};
