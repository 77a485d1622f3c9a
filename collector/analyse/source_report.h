/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Annotated source (--source=DIR): the lines of files below a folder with their costs. A call
 * counts as "own" for its innermost line there that is the user's own (shown_frame.h), and as "all"
 * once for each such line above. Lines without costs are shown around the others: the whole
 * function, or SOURCE_AROUND lines on each side outside functions. Memory: 200 bytes a line with
 * costs, 40 a shown line, and SOURCE_TEXT_MAX of text.
 */
#ifndef GPUPROF_COLLECTOR_SOURCE_REPORT_H
#define GPUPROF_COLLECTOR_SOURCE_REPORT_H

#include "analyse/stack_report.h"
#include "resolve/stack_costs.h"
#include "source/source_tree.h"
#include "table/table.h"

#define SOURCE_AROUND   2
#define SOURCE_TEXT_MAX (128u << 20)

struct source_file {
    const struct kernel_name *recorded; /* one of its paths */
    uint32_t index;                     /* in the tree */
    uint32_t first;                     /* of its lines */
    uint32_t count;
    struct stack_cost own;   /* of all its lines */
    struct source_text text; /* no lines if it could not be read */
    bool is_newer;           /* newer than the recording's begin */
};

struct source_line_cost {
    uint32_t file;
    uint32_t line;
    const struct kernel_name *function;
    uint32_t stamp; /* the last node counted for it */
    struct stack_cost own;
    struct stack_cost all;
};

enum source_row_kind { SOURCE_HEAD, SOURCE_LINE, SOURCE_GAP };

struct source_row {
    enum source_row_kind kind;
    uint32_t file;
    uint32_t line;
    const struct source_line_cost *cost; /* NULL: none */
    const struct stack_cost *own, *all;  /* its, or of the file; NULL: none */
};

struct source_report {
    const struct stack_report *stacks;
    struct source_tree tree;
    bool is_list;              /* the text shows only lines with costs, for sorted output */
    struct source_file *files; /* owned; the most expensive first */
    uint32_t file_count;
    struct source_line_cost *lines; /* owned; those of a file by number */
    uint32_t line_count;
    struct source_row *rows; /* owned: the shown lines */
    uint32_t row_count;
    struct stack_cost elsewhere; /* of calls with a stack but no line there */
};

/* Returns EXIT_OK, or EXIT_USAGE after one line on stderr if there is no such folder. */
enum exit_code source_report_check(const char *folder);

/* New text for display, without control characters. The first returns a line with tabs as blanks,
 * or
 * "?" if the file lacks it; the second a file's path with remarks. */
char *source_line_text(const struct source_file *file, uint32_t line);
char *source_head_text(const struct source_report *r, const struct source_file *file);

/* The table's state is a struct source_report, or NULL for no table. */
extern const struct table_info source_table;

#endif
