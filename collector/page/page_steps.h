/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a page: how long each took, and of those that somebody will look at (the slowest,
 * and each process's median one, with which they are compared) the times of the kernels and
 * operators that take most in all. Memory: 4 bytes a step, and 600 for each of these, of which
 * there are PAGE_STEPS_MAX at most and one for each process.
 */
#ifndef GPUPROF_COLLECTOR_PAGE_STEPS_H
#define GPUPROF_COLLECTOR_PAGE_STEPS_H

#include "analyse/step_report.h"
#include "page/page_data.h"
#include "report/report.h"

#define PAGE_STEPS_MAX 12000
#define PAGE_NAMES_MAX 16 /* kernels, and operators */

enum page_name_kind { NAME_KERNELS, NAME_OPERATORS, NAME_KINDS };

struct page_step {
    const struct step *step;
    uint64_t ns[NAME_KINDS][PAGE_NAMES_MAX];
    uint32_t count[NAME_KINDS][PAGE_NAMES_MAX];
};

struct page_steps {
    struct walk *walk;
    const struct step_report *report;
    struct page_step *details; /* owned */
    uint32_t detail_count;
    uint32_t *places;  /* owned, by place of the step: its detail + 1 */
    uint32_t *medians; /* owned, by process index: place of its median step + 1 */
    const char *names[NAME_KINDS][PAGE_NAMES_MAX]; /* views; NULL behind the last */
    struct key_map found;                          /* (kind, text) -> place of the name + 1, or
                                                    * PAGE_NAMES_MAX + 1: it is none of them */
};

/* `r` must stay. 0 or GPUPROF_NO_MEMORY; page_steps_release in both cases. */
int page_steps_init(struct page_steps *s, const struct report *r);
void page_steps_release(struct page_steps *s);

struct consumer page_steps_consumer(struct page_steps *s);

/* Its data; times are from origin_ns on. 0. */
int page_steps_put(const struct page_steps *s, uint64_t origin_ns, struct page_data *d);

#endif
