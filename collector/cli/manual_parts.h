/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of manual pages that no table of options has. */
#ifndef GPUPROF_COLLECTOR_MANUAL_PARTS_H
#define GPUPROF_COLLECTOR_MANUAL_PARTS_H

#include "base/options.h"
#include "cli/help_rows.h"

/* Parts of the manual, as troff on stdout. */
void roff_text(const char *text);
item_fn roff_item, roff_column;

/* Examples, variables, files and exit statuses of a verb; `heading` is the macro for titles. */
void roff_parts(const struct verb *verb, const char *heading);
void roff_sections(void);
enum exit_code manual_of_header(void);

#endif
