/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's operators, labels and modules in a part: rows by name, and what was in none of them. */
#ifndef GPUPROF_COLLECTOR_OP_PART_H
#define GPUPROF_COLLECTOR_OP_PART_H

#include "analyse/op_report.h"
#include "query/part_file.h"

/* Of a report by name, complete; it may be NULL. */
void op_part_put(const struct op_report *o, struct part *p);

/* Adds what is in the part; op_report_complete follows the last one. 0 or GPUPROF_NO_MEMORY; that
 * it is damaged the part says. *has_more: it had more than it kept. */
int op_part_add(struct op_report *o, struct part *p, struct process *const *processes,
                uint32_t process_count, bool *has_more);

#endif
