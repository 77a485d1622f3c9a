/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a report (steps.h) in a part: what they are and when each began and ended. Some 8
 * bytes each. What a step is, is said for all processes together: of parts in which it is something
 * else, the first kind of enum step_kind holds, and the steps of the others are none.
 */
#ifndef GPUPROF_COLLECTOR_STEP_PART_H
#define GPUPROF_COLLECTOR_STEP_PART_H

#include "model/steps.h"
#include "query/part_file.h"

/* `s` may be NULL. */
void step_part_put(const struct steps *s, struct part *p);

/* Adds those of the part, of whose `processes` there are so many. 0 or GPUPROF_NO_MEMORY; that it
 * is damaged the part says. *has_more: it had more than it kept. */
int step_part_add(struct steps *s, struct part *p, struct process *const *processes,
                  uint32_t process_count, bool *has_more);

/* After the last part: puts them into order. */
void step_part_add_end(struct steps *s);

#endif
