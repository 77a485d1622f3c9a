/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a recording is worth fixing: each finding with what it costs, where, the evidence, what
 * to do and what to run next. finding_kinds.def has what each measures and its threshold.
 *
 * Of memory they are found by finding_memory.c, and cost bytes instead of time.
 *
 * A finding is of one device of one process, the one that it costs most; of how many others there
 * is the same is said with it. Each nanosecond of a device is charged to one finding at most: what
 * the device did by finding_gpu.h, the rest by idle.h.
 */
#ifndef GPUPROF_COLLECTOR_FINDINGS_H
#define GPUPROF_COLLECTOR_FINDINGS_H

#include "analyse/finding.h"
#include "memory/memory_rows.h"
#include "table/table.h"

/* What its share is of, where that is not the device's time behind start-up: for people, in
 * brackets behind a blank, or "". */
const char *finding_base(const struct finding *f);

/* Is it a share of the whole time? It is of what is done once. */
static inline bool finding_is_of_all(const struct finding_kind *kind)
{
    return kind == &finding_kinds[FINDING_START_UP] || kind == &finding_kinds[FINDING_SLOW_IMPORT];
}

/* `walk` and `idle` must stay; it may be NULL: then there is no consumer to be handed over, and no
 * findings_finish. 0 or GPUPROF_NO_MEMORY; findings_release in both cases. */
int findings_init(struct findings *f, struct walk *walk, struct idle *idle);
void findings_release(struct findings *f);

struct consumer findings_consumer(struct findings *f);

/* After the walk, idle_finish and hang_finish, instead of idle_name: makes the list, and names the
 * places of both, so that each file is searched for names once. Of a share there is no list: that
 * comes out of all. 0 or an error. */
int findings_finish(struct findings *f, const struct hang *hang, const char *symbol_folder);

/* Once places are named: adds to a finding of time what was charged to it on the device at that
 * place of idle.h's (or of what others waited for its process), by name, the rows with most time,
 * and the line that most of it is at. 0 or GPUPROF_NO_MEMORY. (finding_evidence.c) */
int finding_add_evidence(const struct findings *f, struct finding *to, uint32_t place);

/* Of a share: may the sum be told, when the findings of all are known? */
bool findings_may_tell(const struct findings *f, const struct finding_sum *sum);

/* The gravest first. */
void findings_sort(struct findings *f);

/* Of a struct findings, which may be NULL. (findings_print.c) */
extern const struct table_info findings_table;

/* For people; and what to run next, with what is known of its words, in new memory. NULL: there is
 * none. */
const char *finding_title(const struct finding *f);
char *finding_next_line(const struct findings *f, const struct finding *found);

/* Once all have their places: where a finding has the function alone, or nothing, and no finding
 * has a line, it is said that the program has none. */
void findings_judge_lines(struct findings *f);

/*
 * What is worth fixing about memory: owners that grow from step to step; owners of what is there
 * for a moment only, which make the peak; and what PyTorch's allocator has reserved, and cannot
 * use. The last two matter where the device is nearly full. The thresholds are those of
 * memory_signs.h.
 */
/* 0 or GPUPROF_NO_MEMORY. */
int findings_add_memory(struct findings *f, const struct memory_look *look);

#endif
