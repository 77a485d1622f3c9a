/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the time of a program's steps (steps.h) was spent on: each step split into parts that add up
 * to it to the nanosecond, the phases of training on the host and on the GPU, and what is different
 * in the slowest step. A walk more than the report's own, of a piece two: what a step is, is known
 * when all marks are. Memory: that of the steps, 4 bytes more for each; 100 bytes for each process,
 * 1 for each thread; and STEP_CHANGES_MAX rows of what is different.
 */
#ifndef GPUPROF_COLLECTOR_STEP_REPORT_H
#define GPUPROF_COLLECTOR_STEP_REPORT_H

#include "query/sums.h"
#include "resolve/op_phases.h"
#include "resolve/steps.h"

#define STEP_CHANGES_MAX 8192
#define SLOWEST_SHOWN    5

/* Where a process is. */
struct step_sweep {
    uint64_t at_ns; /* until here its time is in some step's parts, or in none */
    uint64_t until_ns[STEP_RUNTIME + 1]; /* the last end of what has begun of each part */
    uint64_t waited_ns; /* the end of the last call outside of phases that waits for a device */
    uint64_t gap_ns;    /* since a phase ended, and no other one has begun */
    uint32_t operators; /* that are open, on all threads */
    uint32_t loaders;   /* likewise, labels */
    uint32_t phase_threads[PHASES];
    uint32_t next; /* place of the step that it is in, or comes to, and behind its last one */
    uint32_t end;
    uint8_t phase; /* the last one that it was in, in this step */
};

/* A part, a kernel or an operator in the median step, and in the slowest. */
enum change_kind { CHANGE_PART, CHANGE_KERNEL, CHANGE_OPERATOR, CHANGE_KINDS };
struct step_change {
    enum change_kind kind;
    const char *name;
    uint64_t count[2];
    uint64_t ns[2];
};

struct report;

/* Of whole steps: all of them, and those that the parts and the phases are of. */
struct step_totals {
    uint32_t whole;
    uint64_t total_ns;
    uint32_t blind; /* of these: the GPU's time is not known, or not all of it */
    uint32_t split; /* those that are not, or all, if all are; of these is what follows */
    uint64_t split_ns;
    uint64_t parts[STEP_PARTS];
    uint64_t host_ns[PHASES];
    uint64_t gpu_ns[PHASES];
};

struct step_differences {
    const struct step *slowest[SLOWEST_SHOWN]; /* but for those that have only waited for others */
    uint32_t slowest_count;
    const struct step *compared[2]; /* the median one and the slowest; NULL: there are none */
    struct sums sums;               /* while the walk lasts: of kernels and operators */
    struct step_change *list;       /* owned; by kind, what differs most first */
    uint32_t count;
};

struct step_report {
    const struct report *report; /* a view, for who prints */
    struct walk *walk;
    double samples;
    struct steps steps;
    struct op_phases phases;
    struct step_sweep *sweeps; /* owned, by process index */
    uint8_t *thread_phases;    /* owned, by thread index */
    uint32_t *order;           /* owned: places of the whole steps, the longest first */
    uint32_t processes;        /* that have steps */
    struct step_totals all;
    struct step_differences differs;
    struct step_wait *waits; /* owned, by place of the step; NULL: nobody waited for a rank */
};

/* The duration that `fraction` of all whole steps do not exceed; 0: there are none. */
uint64_t step_report_quantile(const struct step_report *r, double fraction);

/* ---- step_differences.c ---- */

void step_differences_init(struct step_differences *d, struct walk *walk);
void step_differences_release(struct step_differences *d);

/* When the steps are in order: which of them are compared. */
void step_differences_find(struct step_report *r);

/* What began then, if it is in one of these; `name` may be NULL. 0 or GPUPROF_NO_MEMORY. */
int step_differences_add(struct step_differences *d, enum change_kind kind,
                         const struct process *process, uint64_t begin_ns,
                         const struct kernel_name *name, uint64_t ns);

/* Behind the walk: makes the list. 0 or GPUPROF_NO_MEMORY. */
int step_differences_list(struct step_differences *d);

extern const char *const step_part_names[STEP_PARTS];  /* as JSON and csv have them, for ever */
extern const char *const step_part_titles[STEP_PARTS]; /* for people: answers.md has them */

static inline uint64_t step_ns(const struct step *s)
{
    return s->end_ns - s->begin_ns;
}

/* Statistics, the split, steps, phases; and, behind the first two, what differs: of a struct
 * step_report, which may be NULL. (step_report_print.c, step_change_print.c) */
#define STEP_TABLES 4
extern const struct table_info step_tables[STEP_TABLES];
extern const struct table_info step_changes_table;

/* "step 17", or where there are several processes "step 17 of rank 3"; and "power 34%". In new
 * memory; NULL: there is none, or, of the second, nothing worth it. */
char *step_text(const struct step_report *r, const struct step *step);
char *step_throttled_text(const struct step_report *r, const struct step *step);

#endif
