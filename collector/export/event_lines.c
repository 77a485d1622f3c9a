/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints event rows as csv (RFC 4180, with a heading) and as JSON, an object per line. Texts arrive
 * as JSON strings, valid UTF-8 without control characters; without a backslash they are also valid
 * csv.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argument_kind.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "bytes.h"
#include "export/event_row.h"
#include "rank.h"
#include "read/process.h"
#include "record/losses.h"
#include "trace/trace_writer.h"

#define COLUMN_BYTES 32 /* of a column's name as JSON, and its quotes as csv */

/* The names as JSON members, up to their values. */
static const char *const columns[EVENT_COLUMNS] = {
#define EVENT_COLUMN(NAME, name, meaning) ",\"" #name "\":",
#include "export/event_columns.def"
#undef EVENT_COLUMN
};

/* ---- a row ----------------------------------------------------------------------------------- */

/* Fills a cell with the bytes written from `used` up to `end`. */
static void end_cell(struct export_writer *w, enum event_column column, const char *end)
{
    struct packet *p = &w->cell_text;
    size_t used = (size_t)(end - (const char *)p->bytes);
    w->cells[column] = (struct event_cell){(uint32_t)p->used, (uint32_t)(used - p->used)};
    p->used = used;
}

void event_number(struct export_writer *w, enum event_column column, uint64_t number)
{
    end_cell(w, column, json_decimal(packet_room(&w->cell_text, JSON_DECIMAL_MAX), number));
}

void event_text(struct export_writer *w, enum event_column column, const char *text)
{
    size_t length = strlen(text);
    char *out = packet_room(&w->cell_text, json_escape_bytes_max(length));
    end_cell(w, column, json_escape(out, text, length));
}

void event_json(struct export_writer *w, enum event_column column, const char *json, size_t bytes)
{
    end_cell(w, column, mempcpy(packet_room(&w->cell_text, bytes), json, bytes));
}

void event_begin(struct export_writer *w, const char *kind, const struct process *p,
                 uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t origin_ns = w->walk->survey.origin_ns;
    memset(w->cells, 0, sizeof w->cells);
    w->cell_text.used = w->args.used = 0;
    w->state[0] = '\0';
    event_text(w, EVENT_KIND, kind);
    event_number(w, EVENT_START, begin_ns > origin_ns ? begin_ns - origin_ns : 0);
    event_number(w, EVENT_DURATION, end_ns > begin_ns ? end_ns - begin_ns : 0);
    if (p->is_of_several && p->job != JOB_NONE)
        event_number(w, EVENT_JOB, p->job);
    if (p->rank != RANK_NONE)
        event_number(w, EVENT_RANK, p->rank);
    event_text(w, EVENT_HOST, p->header.host);
    event_number(w, EVENT_PID, p->shown_pid);
}

/* ---- printed --------------------------------------------------------------------------------- */

/* Words have no quotes; texts keep those of JSON unless something is escaped. */
static char *put_csv(char *out, enum event_column column, const char *json, size_t bytes)
{
    bool is_word = column == EVENT_KIND || column == EVENT_ERROR || column == EVENT_STATE;
    bool is_text = *json == '"', is_object = *json == '{';
    if (is_text && is_word)
        return mempcpy(out, json + 1, bytes - 2);
    if (is_object || (is_text && memchr(json, '\\', bytes)))
        return csv_escape(out, json, bytes);
    return mempcpy(out, json, bytes);
}

void event_end(struct export_writer *w)
{
    if (w->args.used) {
        packet_append(&w->args, "}", 1);
        event_json(w, EVENT_ARGS, (const char *)w->args.bytes, w->args.used);
    }
    if (w->state[0])
        event_text(w, EVENT_STATE, w->state);
    char *line = packet_room(&w->line, 2 * w->cell_text.used + COLUMN_BYTES * EVENT_COLUMNS);
    char *out = line;
    for (unsigned i = 0; i < EVENT_COLUMNS; i++) {
        const struct event_cell *c = &w->cells[i];
        const char *json = (const char *)w->cell_text.bytes + c->at;
        if (w->is_csv) {
            out = c->bytes ? put_csv(out, i, json, c->bytes) : out;
            *out++ = i + 1 < EVENT_COLUMNS ? ',' : '\n';
        } else if (c->bytes) {
            out = mempcpy(stpcpy(out, columns[i]), json, c->bytes);
        }
    }
    if (!w->is_csv) {
        *line = '{'; /* in place of a comma */
        out = stpcpy(out, "}\n");
    }
    output_write(w->out, line, (size_t)(out - line));
}

/* ---- behind the events: a row for each process, step and loss -------------------------------- */

/* Begins a row about a process as a whole, which has no time. */
static void begin_fact(struct export_writer *w, const char *kind, const struct process *p,
                       const char *name)
{
    event_begin(w, kind, p, 0, 0);
    event_text(w, EVENT_NAME, name);
    w->cells[EVENT_START] = w->cells[EVENT_DURATION] = (struct event_cell){0};
}

static void event_lines_put_process(struct export_writer *w, const struct process *p)
{
    const char *command = process_meta(p, "cmdline");
    const struct losses *l = &w->walk->losses[p->index];
    uint64_t first_ns = w->walk->first_ns[p->index];
    char title[FUNCTION_BYTES_MAX], moment[24];
    process_title(p, false, title, sizeof title);
    if (first_ns) {
        event_begin(w, "process", p, first_ns, w->walk->last_ns[p->index]);
        event_text(w, EVENT_NAME, title);
    } else {
        begin_fact(w, "process", p, title);
    }
    snprintf(moment, sizeof moment, "%llu", (unsigned long long)w->walk->survey.origin_ns);
    event_arg_text(w, "epoch_ns", moment); /* of start_ns 0, as text: JavaScript would round a
                                            * number */
    event_arg_number(w, "own_pid", ARG_COUNT, p->header.pid);
    if (command)
        event_arg_text(w, "command", command);
    event_end(w);
    for (unsigned i = 0; i < LOSS_COUNT; i++) {
        struct loss_info info = loss_info(i);
        if (!loss_value(l, i))
            continue;
        begin_fact(w, info.weight == LOSS_NONE ? "note" : "loss", p, info.key);
        event_arg_number(w, "value", ARG_COUNT, loss_value(l, i));
        event_arg_text(w, "text", info.text);
        event_end(w);
    }
}

static void event_ends(struct export_writer *w)
{
    const struct recording *rec = w->walk->rec;
    const struct steps *steps = w->scope.steps;
    bool has_steps = !w->scope.options->select.kinds; /* a selection by kind excludes
                                                       * steps */
    for (uint32_t i = 0; has_steps && i < steps->count; i++) {
        const struct step *step = &steps->list[i];
        if (!selection_reaches(w->scope.selection, step->process, step->begin_ns, step->end_ns))
            continue;
        event_begin(w, "step", step->process, step->begin_ns, step->end_ns);
        event_text(w, EVENT_NAME, step_made_of(steps, step));
        event_number(w, EVENT_STEP, step->number);
        if (step->is_partial)
            event_text(w, EVENT_STATE, "partial");
        event_end(w);
    }
    for (uint32_t i = 0; i < rec->count; i++)
        event_lines_put_process(w, rec->processes[i]);
}

/* ---- the formats ----------------------------------------------------------------------------- */

static void lines_free(struct export_writer *w)
{
    packet_release(&w->cell_text);
    packet_release(&w->args);
    packet_release(&w->line);
    free(w);
}

static struct export_writer *lines_create(struct output *out, struct walk *walk,
                                          const struct export_scope *scope)
{
    struct export_writer *w = memory_new(1, sizeof *w);
    w->out = out;
    w->walk = walk;
    w->scope = *scope;
    w->is_csv = scope->format == &csv_export;
    event_find_columns(w);
    if (!w->is_csv)
        return w;
#define EVENT_COLUMN(NAME, name, meaning) output_print(out, "%s" #name, EVENT_##NAME ? "," : "");
#include "export/event_columns.def"
#undef EVENT_COLUMN
    output_write(out, "\n", 1);
    return w;
}

/* ---- what all exporters say alike ------------------------------------------------------------ */

uint64_t event_call_id(struct walk *w, const struct event *e)
{
    const struct record *r = e->record;
    struct correlated_call found;
    bool is_inner =
        r->flags & RECORD_NESTED && r->correlation &&
        correlation_find(&w->survey.calls, e->process->index, r->correlation, 0, &found) > 0 &&
        found.begin_ns != e->begin_ns;
    return event_id(e->process, is_inner ? 0 : r->correlation);
}

const char *event_op_kind(const struct host_span *op)
{
    if (op_is_module(op))
        return "module";
    if (op_is_label(op))
        return "label";
    return op->is_traced ? "traced" : op->scope == OP_SCOPE_BACKWARD ? "backward" : "operator";
}

#define ROWS_FORMAT(name)                                                                          \
    const struct export_format name##_export = {.file = {#name, #name},                            \
                                                .is_rows = true,                                   \
                                                .create = lines_create,                            \
                                                .take = event_take,                                \
                                                .end = event_ends,                                 \
                                                .free = lines_free}

ROWS_FORMAT(csv);
ROWS_FORMAT(jsonl);
