/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of a program's steps (steps.h) went. Each step is split into parts that add up to
 * the nanosecond, and into the phases of training on the host and on the GPU; the slowest step is
 * compared. It takes one more walk than the report, because steps are known only after all marks.
 * Memory: that of the steps and 4 bytes more for each; 100 bytes a process, 1
 * a thread; and STEP_CHANGES_MAX rows of differences, beyond which names are left out.
 */
#ifndef GPUPROF_COLLECTOR_STEP_REPORT_H
#define GPUPROF_COLLECTOR_STEP_REPORT_H

#include "analyse/idle.h"
#include "query/sums.h"
#include "resolve/op_phases.h"
#include "resolve/steps.h"
#include "table/table.h"

#define STEP_CHANGES_MAX 8192
#define SLOWEST_SHOWN    5

/* The state of a process during the walk. */
struct step_sweep {
    uint64_t at_ns; /* time up to here is assigned to a step's parts, or to none */
    uint64_t until_ns[STEP_RUNTIME + 1]; /* the latest end of what has begun of each part */
    uint64_t waited_ns; /* end of the last call outside of phases that waited for a device */
    uint64_t gap_ns;    /* time since a phase ended without another */
    uint32_t operators; /* open operators on all threads */
    uint32_t loaders;   /* open data-loading labels, likewise */
    uint32_t phase_threads[PHASES];
    uint32_t next; /* index of its current or next step, and behind its last one */
    uint32_t end;
    uint8_t phase; /* the last phase in this step */
};

/* What is compared in two steps, the last rows first. */
enum change_kind { CHANGE_OPERATOR = 1, CHANGE_KERNEL, CHANGE_PART };

struct report;

/* Totals of the complete steps, and of those with parts and phases. */
struct step_totals {
    uint32_t whole;
    uint64_t total_ns;
    uint32_t blind; /* of these: the GPU's time is incomplete or not known */
    uint32_t
        split; /* steps that are not blind, or all if all are; the members below add these up */
    uint64_t split_ns;
    uint64_t parts[STEP_PARTS];
    uint64_t host_ns[PHASES];
    uint64_t gpu_ns[PHASES];
};

struct step_differences {
    const struct step *slowest[SLOWEST_SHOWN]; /* without steps that only waited for others */
    uint32_t slowest_count;
    const struct step *compared[2]; /* the median step and the slowest; NULL: none */
    struct sums changes;            /* parts, kernels and operators in both steps */
};

struct step_report {
    const struct report *report; /* a view, for printing */
    struct walk *walk;
    double samples;
    struct steps steps;
    struct op_phases phases;
    struct step_sweep *sweeps; /* owned, by process index */
    uint8_t *thread_phases;    /* owned, by thread index */
    uint32_t *order;           /* owned: indexes of the complete steps, longest first */
    uint32_t processes;        /* that have steps */
    struct step_totals all;
    struct step_differences differs;
};

/* The duration that `fraction` of all complete steps do not exceed; 0 if there are none. */
uint64_t step_report_quantile(const struct step_report *r, double fraction);

/* ---- step_changes.c ---- */

/* Call when the steps are in order: chooses the steps to compare. */
void step_differences_find(struct step_report *r);

/* Adds something that began then, if it lies in a compared step; `name` may be NULL. */
void step_differences_add(struct step_differences *d, enum change_kind kind,
                          const struct process *process, uint64_t begin_ns,
                          const struct kernel_name *name, uint64_t ns);

/* Call after the walk: completes the changes. */
void step_differences_finish(struct step_report *r);

/* ---- For each step, the process that its own process waited for longest in it (struct step), as
 * analyse/idle.h knows it ---- */

#define STEP_WAIT_NS 1000u /* shorter waits stay out of the text: clocks agree no better */

/* Finds which process each step waited for. `idle`, finished, may be NULL. */
void step_waits_find(struct steps *steps, struct idle *idle);

/* True if `step` was within a hundredth as long as the one that it waited for. Reports then name
 * that one, which waited less itself. */
bool step_has_only_waited(const struct steps *steps, const struct step *step);

/* "rank 1, 20.000 ms" in new memory; NULL if the wait is below STEP_WAIT_NS. */
char *step_wait_text(const struct step *step);

extern const struct step_part_info {
    const char *name;  /* in JSON and csv; it never changes */
    const char *title; /* for the text; see answers.md */
} step_parts[STEP_PARTS];

static inline uint64_t step_ns(const struct step *s)
{
    return s->end_ns - s->begin_ns;
}

/* The tables of statistics, of the split, of steps and of phases; the differences follow the first
 * two. Their state is a struct step_report, which may be NULL; that of the differences a struct
 * sums. */
#define STEP_TABLES 4
extern const struct table_info step_tables[STEP_TABLES];
extern const struct sums_info step_changes;

/* New text: "step 17", or "step 17 of rank 3" with several processes. */
char *step_text(const struct step_report *r, const struct step *step);

#endif
