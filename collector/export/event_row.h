/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of events for csv and JSON lines (event_columns.def). event_row.c makes rows of events;
 * event_lines.c prints rows and adds those of processes, steps and losses at the end. Memory: the
 * longest row.
 */
#ifndef GPUPROF_COLLECTOR_EVENT_ROW_H
#define GPUPROF_COLLECTOR_EVENT_ROW_H

#include "api/api.h"
#include "export/export_writer.h"
#include "record/gpu_record.h"
#include "trace/packet.h"

enum event_column {
#define EVENT_COLUMN(NAME, ...) EVENT_##NAME,
#include "export/event_columns.def"
#undef EVENT_COLUMN
    EVENT_COLUMNS
};

/* The JSON of a cell, in `cell_text`. */
struct event_cell {
    uint32_t at;
    uint32_t bytes; /* 0: none */
};

struct export_writer {
    struct output *out;
    struct walk *walk;
    struct export_scope scope;
    bool is_csv;
    uint8_t columns[UINT8_MAX + 1][RECORD_ARGS_MAX]; /* by record type: columns of arguments; 0
                                                      * (kind): among `args` */
    struct event_cell cells[EVENT_COLUMNS];
    struct packet cell_text;
    struct packet args; /* arguments: a JSON object without its closing brace */
    struct packet line; /* the row as printed */
    char state[64];
};

/* ---- event_lines.c ---- */

/* Begins a row of that kind, with its process and time. */
void event_begin(struct export_writer *w, const char *kind, const struct process *p,
                 uint64_t begin_ns, uint64_t end_ns);

/* Fill a cell: with a number, with a text, cut to FUNCTION_BYTES_MAX bytes, or with a JSON value.
 */
void event_number(struct export_writer *w, enum event_column column, uint64_t number);
void event_text(struct export_writer *w, enum event_column column, const char *text);
void event_json(struct export_writer *w, enum event_column column, const char *json, size_t bytes);

/* Prints the row. */
void event_end(struct export_writer *w);

/* ---- event_row.c ---- */

/* Finds the columns of arguments; call it before the first row. */
void event_find_columns(struct export_writer *w);

/* Adds a member to `args`. */
void event_arg_text(struct export_writer *w, const char *label, const char *text);
void event_arg_number(struct export_writer *w, const char *label, unsigned kind, uint64_t value);

/* Prints the row of a slice, if it has one. */
void event_take(struct export_writer *w, const struct slice *s);

#endif
