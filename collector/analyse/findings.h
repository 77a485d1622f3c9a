/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what is worth fixing in a recording: each finding with its cost, place, evidence, advice
 * and next command. finding_kinds.def has what each measures, and its threshold.
 *
 * finding_memory.c finds those about memory, which cost bytes instead of time.
 *
 * A finding is about one device of one process, the one that it costs most, and counts the others
 * that have it. Each nanosecond of a device is charged to one finding at most: work by
 * finding_gpu.h, idle time by idle.h.
 */
#ifndef GPUPROF_COLLECTOR_FINDINGS_H
#define GPUPROF_COLLECTOR_FINDINGS_H

#include "analyse/finding.h"
#include "memory/memory_rows.h"
#include "table/table.h"

/* The base of its share in brackets after a space, or "" if it is the device's time after start-up.
 */
const char *finding_base(const struct finding *f);

/* `walk` and `idle` must outlive it. `idle` may be NULL: then do not use findings_consumer and
 * findings_finish. Returns 0 or GPUPROF_NO_MEMORY; call findings_release in both cases. */
int findings_init(struct findings *f, struct walk *walk, struct idle *idle);
void findings_release(struct findings *f);

struct consumer findings_consumer(struct findings *f);

/* Call it after the walk, idle_finish and hang_finish, instead of idle_name. Makes the list, and
 * names the places of findings and idle time together, so that each file is searched once. A share
 * gets no list: all shares together do. Returns 0 or an error. */
int findings_finish(struct findings *f, const struct hang *hang, const char *symbol_folder);

/* Adds its evidence to a finding of time, once places are named: by name, the rows with most time
 * on the device at `place` of idle.h, and the main line. For a straggler these are of the devices
 * that waited for its process. Returns 0 or GPUPROF_NO_MEMORY. (finding_evidence.c) */
int finding_add_evidence(const struct findings *f, struct finding *to, uint32_t place);

/* Is the sum evidence for a finding, on the device that the finding costs most? */
bool findings_may_report(const struct findings *f, const struct finding_sum *sum);

/* Sorts by cost, highest first. */
void findings_sort(struct findings *f);

/* Its source is a struct findings or NULL. (findings_print.c) */
extern const struct table_info findings_table;

/* The title for people; and the command to run next, with its words filled in, in new memory. NULL:
 * none. */
const char *finding_title(const struct finding *f);
char *finding_next_line(const struct findings *f, const struct finding *found);

/*
 * Adds the findings about memory: owners that grow from step to step; owners of short-lived blocks
 * that make the peak; memory that PyTorch's allocator reserved and cannot use. The last two matter
 * only if the device is nearly full. memory_signs.h has the thresholds. Returns 0 or
 * GPUPROF_NO_MEMORY.
 */
int findings_add_memory(struct findings *f, const struct memory_look *look);

#endif
