/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Annotated source (--source=DIR): the lines of files below a folder beside what they cost. A call
 * counts for its innermost line there that is the user's own (own_line.h), as "own", and once for
 * each such line above, as "all". Lines that cost nothing are shown around the others: all of their
 * functions, or SOURCE_AROUND on each side where there is none. Memory: 200 bytes a line that cost
 * something, 16 a line that is shown, and SOURCE_TEXT_MAX of text.
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
    const struct kernel_name *recorded; /* its path, or one of them */
    uint32_t index;                     /* in the tree */
    uint32_t first;                     /* of its lines */
    uint32_t count;
    struct stack_cost own;   /* of all its lines */
    struct source_text text; /* of no lines: could not be read */
    bool is_newer;           /* than the recording's begin */
};

struct source_line_cost {
    uint32_t file;
    uint32_t line;
    const struct kernel_name *function;
    uint32_t stamp; /* the last node that was counted for it */
    struct stack_cost own;
    struct stack_cost all;
};

enum source_row_kind { SOURCE_HEAD, SOURCE_LINE, SOURCE_GAP };

struct source_row {
    uint32_t kind;
    uint32_t file;
    uint32_t line;
    uint32_t cost; /* place + 1 of the line's; 0: it has none */
};

struct source_report {
    const struct stack_report *stacks;
    struct source_tree tree;
    bool is_list; /* the text has only lines that cost something, for who wants another order */
    struct source_file *files; /* owned; the most expensive first */
    uint32_t file_count;
    struct source_line_cost *lines; /* owned; by file and line */
    uint32_t line_count;
    struct source_row *rows; /* owned: what is shown */
    uint32_t row_count;
    struct stack_cost elsewhere; /* of calls with a stack that has no line there */
};

/* EXIT_OK, or EXIT_USAGE after one line: there is no such folder. */
enum exit_code source_report_check(const char *folder);

/* As they are shown, without what terminals obey, or NULL; new memory: a line, "?" if the file does
 * not have it, with blanks for tabs; and a file's path, with what is to be said of it.
 * (source_report_print.c) */
char *source_line_text(const struct source_file *file, uint32_t line);
char *source_head_text(const struct source_report *r, const struct source_file *file);

/* Of a struct source_report; NULL: not there. (source_report_print.c) */
extern const struct table_info source_table;

#endif
