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
#include "bytes.h"
#include "error.h"
#include "export/event_row.h"
#include "rank.h"
#include "read/process.h"
#include "record/losses.h"

#define CELL_BYTES 64 /* per cell, with its JSON name, without text */

/* The names as JSON members, up to their values. */
static const struct {
    const char *text;
    size_t bytes;
} columns[EVENT_COLUMNS] = {
#define EVENT_COLUMN(NAME, name, meaning) {"\"" #name "\":", sizeof #name + 2},
#include "export/event_columns.def"
#undef EVENT_COLUMN
};

/* ---- a row ----------------------------------------------------------------------------------- */

void event_begin(struct export_writer *w, const char *kind, const struct process *p,
                 uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t origin_ns = w->walk->survey.origin_ns;
    memset(w->cells, 0, sizeof w->cells);
    w->args.used = 0;
    w->state[0] = '\0';
    event_word(w, EVENT_KIND, kind);
    event_number(w, EVENT_START, begin_ns > origin_ns ? begin_ns - origin_ns : 0);
    event_number(w, EVENT_DURATION, end_ns > begin_ns ? end_ns - begin_ns : 0);
    if (p->is_of_several && p->job != JOB_NONE)
        event_number(w, EVENT_JOB, p->job);
    if (p->rank != RANK_NONE)
        event_number(w, EVENT_RANK, p->rank);
    if (w->host_of != p) {
        char *end = json_escape(w->host, p->header.host, strlen(p->header.host));
        w->host_of = p;
        w->host_bytes = (size_t)(end - w->host);
    }
    event_string(w, EVENT_HOST, w->host, w->host_bytes);
    event_number(w, EVENT_PID, p->shown_pid);
}

void event_name(struct export_writer *w, const char *name)
{
    size_t length = strlen(name);
    char *end =
        json_escape(w->name, name, length < FUNCTION_BYTES_MAX ? length : FUNCTION_BYTES_MAX);
    event_string(w, EVENT_NAME, w->name, (size_t)(end - w->name));
}

int event_end(struct export_writer *w)
{
    if (w->args.used) {
        packet_append(&w->args, "}", 1);
        w->cells[EVENT_ARGS] = (struct event_cell){.form = CELL_OBJECT,
                                                   .bytes = (uint32_t)w->args.used,
                                                   .text = (const char *)w->args.bytes};
    }
    if (w->state[0])
        event_word(w, EVENT_STATE, w->state);
    if (!w->error && !w->args.failed)
        w->print(w);
    event_fail(w, w->args.failed || w->line.failed ? GPUPROF_NO_MEMORY : 0);
    return w->error;
}

/* ---- printed --------------------------------------------------------------------------------- */

/* Returns room for all cells in either format. NULL: no memory. */
static char *row_room(struct export_writer *w)
{
    size_t bytes = 2 + CELL_BYTES * EVENT_COLUMNS;
    for (unsigned i = 0; i < EVENT_COLUMNS; i++)
        bytes += 2ull * w->cells[i].bytes;
    return packet_room(&w->line, bytes);
}

static void end_row(struct export_writer *w, char *out, const char *end)
{
    out = (char *)memcpy(out, end, strlen(end)) + strlen(end);
    output_write(w->out, (const char *)w->line.bytes, (size_t)(out - (char *)w->line.bytes));
}

static char *event_lines_put_number(char *out, const struct event_cell *c)
{
    bool is_negative = c->form == CELL_SIGNED && (int64_t)c->number < 0;
    if (is_negative)
        *out++ = '-';
    return json_decimal(out, is_negative ? 0 - c->number : c->number);
}

static char *event_lines_put_text(char *out, const struct event_cell *c)
{
    memcpy(out, c->text, c->bytes);
    return out + c->bytes;
}

/* ---- csv ------------------------------------------------------------------------------------- */

static void print_csv(struct export_writer *w)
{
    char *out = row_room(w);
    for (unsigned i = 0; out && i < EVENT_COLUMNS; i++) {
        const struct event_cell *c = &w->cells[i];
        if (i)
            *out++ = ',';
        switch (c->form) {
        case CELL_NUMBER:
        case CELL_SIGNED: out = event_lines_put_number(out, c); break;
        case CELL_WORD: out = event_lines_put_text(out, c); break;
        case CELL_STRING:
            if (!memchr(c->text, '\\', c->bytes)) {
                out = event_lines_put_text(out, c);
                break;
            }
            __attribute__((fallthrough));
        case CELL_OBJECT: out = csv_escape(out, c->text, c->bytes); break;
        default: break;
        }
    }
    if (out)
        end_row(w, out, "\n");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void event_lines_print_json(struct export_writer *w)
{
    char *out = row_room(w);
    char separator = '{';
    for (unsigned i = 0; out && i < EVENT_COLUMNS; i++) {
        const struct event_cell *c = &w->cells[i];
        if (c->form == CELL_NONE)
            continue;
        *out++ = separator;
        separator = ',';
        memcpy(out, columns[i].text, columns[i].bytes);
        out += columns[i].bytes;
        if (c->form == CELL_WORD)
            out = json_escape(out, c->text, c->bytes);
        else
            out = c->form <= CELL_SIGNED ? event_lines_put_number(out, c)
                                         : event_lines_put_text(out, c);
    }
    if (out)
        end_row(w, out, "}\n");
}

/* ---- behind the events: a row for each process, step and loss -------------------------------- */

/* Begins a row about a process as a whole, which has no time. */
static void begin_fact(struct export_writer *w, const char *kind, const struct process *p,
                       const char *name)
{
    event_begin(w, kind, p, 0, 0);
    event_name(w, name);
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
        event_name(w, title);
    } else {
        begin_fact(w, "process", p, title);
    }
    snprintf(moment, sizeof moment, "%llu", (unsigned long long)w->walk->survey.origin_ns);
    event_arg_text(w, "epoch_ns", moment); /* of start_ns 0, as text: JavaScript would round a
                                            * number */
    event_arg_number(w, "own_pid", ARG_COUNT, p->header.pid);
    if (command)
        event_arg_text(w, "command", command);
    (void)event_end(w);
    for (unsigned i = 0; i < LOSS_COUNT; i++) {
        struct loss_info info = loss_info(i);
        if (!loss_value(l, i))
            continue;
        begin_fact(w, info.weight == LOSS_NONE ? "note" : "loss", p, info.key);
        event_arg_number(w, "value", ARG_COUNT, loss_value(l, i));
        event_arg_text(w, "text", info.text);
        (void)event_end(w);
    }
}

static int event_ends(struct export_writer *w)
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
        event_name(w, event_step_name(steps->kind, step));
        event_number(w, EVENT_STEP, step->number);
        if (step->is_partial)
            event_word(w, EVENT_STATE, "partial");
        (void)event_end(w);
    }
    for (uint32_t i = 0; i < rec->count; i++)
        event_lines_put_process(w, rec->processes[i]);
    return w->error;
}

/* ---- the formats ----------------------------------------------------------------------------- */

static void lines_free(struct export_writer *w)
{
    packet_release(&w->args);
    packet_release(&w->line);
    free(w);
}

static struct export_writer *event_lines_create(struct output *out, struct walk *walk,
                                                const struct export_scope *scope,
                                                void (*print)(struct export_writer *w))
{
    struct export_writer *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->out = out;
    w->walk = walk;
    w->scope = *scope;
    w->print = print;
    event_find_columns(w);
    return w;
}

static struct export_writer *create_csv(struct output *out, struct walk *walk,
                                        const struct export_scope *scope)
{
    for (unsigned i = 0; i < EVENT_COLUMNS; i++) {
        output_write(out, ",", i != 0);
        output_write(out, columns[i].text + 1, columns[i].bytes - 3);
    }
    output_write(out, "\n", 1);
    return event_lines_create(out, walk, scope, print_csv);
}

static struct export_writer *create_json(struct output *out, struct walk *walk,
                                         const struct export_scope *scope)
{
    return event_lines_create(out, walk, scope, event_lines_print_json);
}

/* ---- what all exporters say alike ------------------------------------------------------------ */

int event_call_id(struct walk *w, const struct event *e, uint64_t *id)
{
    const struct record *r = e->record;
    struct correlated_call found;
    int count =
        r->flags & RECORD_NESTED && r->correlation
            ? correlation_find(&w->survey.calls, e->process->index, r->correlation, 0, &found)
            : 0;
    bool is_outer = count <= 0 || found.begin_ns == e->begin_ns;
    *id = event_id(e->process, is_outer ? r->correlation : 0);
    return count < 0 ? count : 0;
}

const char *event_op_kind(const struct op *op)
{
    if (op_is_module(op))
        return "module";
    if (op_is_label(op))
        return "label";
    return op->is_traced ? "traced" : op->scope == OP_SCOPE_BACKWARD ? "backward" : "operator";
}

const char *event_step_name(enum step_kind kind, const struct step *step)
{
    return step->made_of          ? step->made_of->shown
           : kind == STEPS_CALLED ? "gpuprof_step"
                                  : "launches of a graph";
}

#define ROWS_FORMAT(format, its_ending, its_create)                                                \
    const struct export_format format##_export = {                                                 \
        .file = {#format, its_ending},                                                             \
        .is_rows = true,                                                                           \
        .create = its_create,                                                                      \
        .take = event_take,                                                                        \
        .end = event_ends,                                                                         \
        .free = lines_free,                                                                        \
    }

ROWS_FORMAT(csv, "csv", create_csv);
ROWS_FORMAT(jsonl, "jsonl", create_json);
