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

enum cell_form {
    CELL_NONE,
    CELL_NUMBER,
    CELL_SIGNED,
    CELL_WORD,   /* a text that needs no escape */
    CELL_STRING, /* a JSON string with its quotes */
    CELL_OBJECT, /* a JSON object */
};

struct event_cell {
    uint8_t form;   /* enum cell_form */
    uint32_t bytes; /* of the text */
    uint64_t number;
    const char *text; /* a view */
};

struct export_writer {
    struct output *out;
    struct walk *walk;
    struct export_scope scope;
    void (*print)(struct export_writer *w);
    uint8_t columns[UINT8_MAX + 1][RECORD_ARGS_MAX]; /* by record type: columns of arguments; 0
                                                      * (kind): among `args` */
    struct event_cell cells[EVENT_COLUMNS];
    struct packet args; /* arguments: a JSON object without its closing brace */
    struct packet line; /* the row as printed */
    char name[6 * FUNCTION_BYTES_MAX + 2];
    char host[6 * STREAM_HOST_BYTES_MAX + 2];
    const struct process *host_of; /* the process whose host name is in `host` */
    size_t host_bytes;
    char state[64];
    int error; /* first error; 0: none */
};

static inline void event_fail(struct export_writer *w, int error)
{
    w->error = w->error ? w->error : error;
}

static inline void event_number(struct export_writer *w, enum event_column column, uint64_t number)
{
    w->cells[column] = (struct event_cell){.form = CELL_NUMBER, .number = number};
}

/* The text must stay valid until the row is printed. */
static inline void event_word(struct export_writer *w, enum event_column column, const char *word)
{
    w->cells[column] =
        (struct event_cell){.form = CELL_WORD, .bytes = (uint32_t)strlen(word), .text = word};
}

static inline void event_string(struct export_writer *w, enum event_column column, const char *json,
                                size_t bytes)
{
    w->cells[column] =
        (struct event_cell){.form = CELL_STRING, .bytes = (uint32_t)bytes, .text = json};
}

/* ---- event_lines.c ---- */

/* Begins a row of that kind, with its process and time. */
void event_begin(struct export_writer *w, const char *kind, const struct process *p,
                 uint64_t begin_ns, uint64_t end_ns);

/* Writes its name, cut to FUNCTION_BYTES_MAX bytes. */
void event_name(struct export_writer *w, const char *name);

/* Prints the row. Returns 0 or the first error. */
int event_end(struct export_writer *w);

/* ---- event_row.c ---- */

/* Finds the columns of arguments; call it before the first row. */
void event_find_columns(struct export_writer *w);

/* Adds a member to `args`. */
void event_arg_text(struct export_writer *w, const char *label, const char *text);
void event_arg_number(struct export_writer *w, const char *label, unsigned kind, uint64_t value);

/* Prints the row of a slice, if it has one. Returns 0 or an error. */
int event_take(struct export_writer *w, const struct slice *s);

#endif
