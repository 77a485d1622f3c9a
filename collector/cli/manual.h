/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of verbs, of those in `verbs`, which NULL ends. */
#ifndef GPUPROF_COLLECTOR_MANUAL_H
#define GPUPROF_COLLECTOR_MANUAL_H

#include "base/options.h"

/* Prints what the verb of that name does and its options; NULL: what there is. */
enum exit_code verb_help(const struct verb *const *verbs, const char *name);

/* What gpuprof is and how to begin, on stdout, for who has named no verb. EXIT_USAGE. */
enum exit_code verb_missing(const char *command);

/* Says, behind `before`, that there is no such verb, and what it may have been. EXIT_USAGE. */
enum exit_code verb_unknown(const struct verb *const *verbs, const char *before, const char *name);

/* (manual_parts.c) Pieces of the manual, as troff on stdout. */
void roff_text(const char *text);
void roff_item(const char *name, const char *text);
void roff_column(const char *name, const char *text);

/* Examples, variables, files and exit statuses of a verb; `heading` is the macro, with what follows
 * it, of a part's title. */
void roff_parts(const struct verb *verb, const char *heading);
void roff_sections(void);
enum exit_code manual_of_header(void);

#endif
