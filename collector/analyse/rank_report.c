/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/rank_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "rank.h"
#include "read/process.h"

static int rank_report_compare(const void *left, const void *right)
{
    const struct process *a = ((const struct rank_row *)left)->process;
    const struct process *b = ((const struct rank_row *)right)->process;
    return ORDER(a->job, b->job) ?: ORDER(a->rank, b->rank) ?: ORDER(a->index, b->index);
}

void rank_report_make(struct rank_report *r, const struct recording *rec, const struct steps *steps,
                      const struct idle *idle)
{
    struct rank_row *rows = memory_new(rec->count + 1u, sizeof *rows);
    *r = (struct rank_report){.rows = rows, .left_out = rec->left_out_ranks};
    for (uint32_t i = 0; steps && i < steps->count; i++) {
        const struct step *step = &steps->list[i];
        rows[step->process->index].steps += !step->is_partial;
        rows[step->process->index].step_ns += step->is_partial ? 0 : step->end_ns - step->begin_ns;
    }
    for (uint32_t i = 0; idle && i < idle->device_count; i++) {
        struct rank_row *row = &rows[idle->devices[i].process->index];
        idle_device_add(&row->all, &idle->devices[i]);
        row->devices++;
        row->run_idle_ns = row->all.idle_ns - row->all.causes[IDLE_START_UP];
        row->run_ns = row->all.end_ns - row->all.causes[IDLE_START_UP] - row->all.stopped_ns;
    }
    if (idle)
        memcpy(r->missed, idle->arrivals.missed, sizeof r->missed);
    for (uint32_t i = 0; i < rec->count; i++) {
        rows[i].process = rec->processes[i];
        if (rows[i].process->rank != RANK_NONE && (rows[i].devices || rows[i].steps))
            rows[r->count++] = rows[i];
    }
    qsort(rows, r->count, sizeof *rows, rank_report_compare);
}

void rank_report_release(struct rank_report *r)
{
    free(r->rows);
    *r = (struct rank_report){0};
}

/* ---- the table ------------------------------------------------------------------------------- */

enum { TITLE, LOCAL_RANK = 4, STEPS = 7, STEP_MEAN, WAITS = 17, AWAITED = 22 };

static const struct column columns[] = {
    [TITLE] = {NULL, "rank", .doc = "the rank, and its process if several have that rank"},
    COLUMN_RANK(struct rank_row, process),
    {"job", NULL, COLUMN_NUMBER, .ascending = true, MEMBER_OF(struct rank_row, process, job),
     .doc = "the job of the rank, if there are several jobs"},
    COLUMN_HOST(struct rank_row, process),
    [LOCAL_RANK] = {"local_rank", NULL, .doc = "its number on its host, if the launcher set it"},
    COLUMN_PID(struct rank_row, process),
    {"devices", NULL, COLUMN_COUNT, MEMBER(struct rank_row, devices), .doc = "GPUs that it used"},
    [STEPS] = {"steps", "steps", COLUMN_COUNT, 7, .spare = 1, .is_filled = true,
               MEMBER(struct rank_row, steps), .doc = "whole steps that it made"},
    [STEP_MEAN] = {"step_mean_ns", "a step", COLUMN_NS, 11, .spare = 3, .is_filled = true,
                   .doc = "mean time of a step"},
    {"window_ns", NULL, COLUMN_NS, MEMBER(struct rank_row, all.end_ns),
     .doc = "time from the start of the process to its last event, for all of its GPUs"},
    {"compute_ns", "compute", COLUMN_NS, 11, .spare = 2,
     MEMBER(struct rank_row, all.parts[IDLE_COMPUTE]),
     .doc = "a kernel or graph ran, other than communication"},
    {"communication_ns", "communication", COLUMN_NS, 13, .spare = 2,
     MEMBER(struct rank_row, all.parts[IDLE_COMMUNICATING]),
     .doc = "only communication ran, and waited for no other rank"},
    {"copies_ns", NULL, COLUMN_NS, MEMBER(struct rank_row, all.parts[IDLE_COPYING]),
     .doc = "only copies and sets ran"},
    {"idle_ns", NULL, COLUMN_NS, MEMBER(struct rank_row, all.idle_ns),
     .doc = "nothing ran, including start-up"},
    {NULL, "GPU idle", COLUMN_NS, 11, .spare = 3, MEMBER(struct rank_row, run_idle_ns),
     .doc = "nothing ran, without start-up"},
    {"idle_share", "idle", COLUMN_SHARE, 6, .spare = 1,
     MEMBER_SHARE(struct rank_row, run_idle_ns, run_ns),
     .doc = "nothing ran, as a share of the recorded time after start-up"},
    {"idle_start_up_ns", NULL, COLUMN_NS, MEMBER(struct rank_row, all.causes[IDLE_START_UP]),
     .doc = "the part of idle_ns before the steps ran"},
    [WAITS] = {"waits_ns", "it waited", COLUMN_NS, 11, .is_filled = true,
               MEMBER(struct rank_row, all.causes[IDLE_COMMUNICATION]),
               .doc = "the part of idle_ns in which only NCCL ran and waited for a rank"},
    {"collectives", NULL, COLUMN_COUNT, MEMBER(struct rank_row, all.met.collectives),
     .doc = "collectives with other ranks"},
    {"late", "came last", COLUMN_COUNT, 9, .spare = 4, .is_filled = true,
     MEMBER(struct rank_row, all.met.late), .doc = "collectives that this rank was last to begin"},
    {"late_share", "last", COLUMN_SHARE, 6, .spare = 1, .is_filled = true,
     MEMBER_SHARE(struct rank_row, all.met.late, all.met.collectives),
     .doc = "late as a share of collectives"},
    {"late_ns", "behind", COLUMN_NS, 11, .spare = 4, .is_filled = true,
     MEMBER(struct rank_row, all.met.late_ns),
     .doc = "total delay behind the first rank in the collectives of late"},
    [AWAITED] = {"awaited_ns", "others waited", COLUMN_NS, 13, .is_filled = true,
                 MEMBER(struct rank_row, all.met.awaited_ns),
                 .doc = "how long the GPUs of other ranks only waited for this rank"},
    {"stopped_ns", NULL, COLUMN_NS, MEMBER(struct rank_row, all.stopped_ns),
     .doc = "time that was not recorded"},
    {"other_ns", NULL, COLUMN_NS, MEMBER(struct rank_row, all.parts[IDLE_OTHER]),
     .doc = "work outside of the selection ran"},
};

static void rank_report_begin(struct table *t)
{
    const struct rank_report *r = t->source;
    t->is_there = r->count > 1 || t->format == FORMAT_JSON;
    t->count = t->is_there ? r->count : 0;
    if (r->left_out)
        t->none = RANKS_LEFT_OUT;
}

/* A cut file or a killed process covers less time. */
static struct cell rank_report_title(const struct process *p)
{
    char rank[RANK_TITLE_BYTES];
    const char *end = p->losses.torn_bytes || p->losses.not_ended ? ", cut off"
                      : p->end_reason == END_KILLED               ? ", killed"
                                                                  : "";
    return cell_printf("%.*s (%s)%s", (int)strcspn(process_rank_title(p, rank), ":"), rank,
                       p->header.host, end);
}

static void rank_report_fill(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct rank_row *row = table_item(t, index);
    bool is_text = t->format == FORMAT_TEXT;
    cells[TITLE] = rank_report_title(row->process);
    cells[LOCAL_RANK] = cell_text(process_local_rank(row->process));
    cells[STEP_MEAN] = cell_number(row->steps ? row->step_ns / row->steps : 0);
    if (is_text && !row->steps)
        cells[STEPS] = cells[STEP_MEAN] = (struct cell){0};
    if (is_text && !row->all.met.collectives)
        memset(&cells[WAITS], 0, (AWAITED + 1 - WAITS) * sizeof *cells);
}

static void rank_report_print_notes(const struct table *t, FILE *out)
{
    arrivals_say_missed(((const struct rank_report *)t->source)->missed, out);
}

const struct table_info ranks_table = {.name = "ranks",
                                       .about = "time per rank, and the rank that it waited for",
                                       .key = "ranks",
                                       .title = "ranks",
                                       TABLE_COLUMNS(columns),
                                       .rows = {ROWS_IN(struct rank_report, rows, count)},
                                       .name_width = 20, /* short names */
                                       .text_none = ": needs recordings of at least two ranks",
                                       .begin = rank_report_begin,
                                       .row = rank_report_fill,
                                       .text_behind = rank_report_print_notes};
