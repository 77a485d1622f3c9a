/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run in few numbers, to be compared with those of other runs: the metrics of run_metrics.def,
 * its kernels with where they were launched, and what else there is to know of it (run_facts.def).
 * Memory: 150 bytes and the texts for each kernel and place, RUN_KERNELS_MAX at most.
 */
#ifndef GPUPROF_COLLECTOR_RUN_SUMMARY_H
#define GPUPROF_COLLECTOR_RUN_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "diff/rank_test.h"

#define RUN_KERNELS_MAX (1u << 16)

enum run_metric {
#define RUN_METRIC(id, key, text, whole, unit, of, scale, gates) RUN_##id,
#include "diff/run_metrics.def"
    RUN_METRICS
};

enum run_unit { RUN_UNIT_NS, RUN_UNIT_BYTES, RUN_UNIT_MJ, RUN_UNIT_COUNT };
enum run_of { RUN_OF_STEP, RUN_OF_RUN };
enum run_scale { RUN_SCALE_OWN, RUN_SCALE_STEP_TIME, RUN_SCALE_EXACT };

struct run_metric_info {
    const char *key;
    const char *text;
    const char *whole; /* `text`, of runs without steps */
    enum run_unit unit;
    enum run_of of;
    enum run_scale scale;
    bool gates;
};
extern const struct run_metric_info run_metric_infos[RUN_METRICS];

enum run_fact {
#define RUN_FACT(id, key, text, matters) RUN_FACT_##id,
#include "diff/run_facts.def"
    RUN_FACTS
};

enum fact_matters { FACT_ALWAYS, FACT_IF_KNOWN, FACT_NOTED, FACT_NEVER };

struct run_fact_info {
    const char *key;
    const char *text;
    enum fact_matters matters;
};
extern const struct run_fact_info run_fact_infos[RUN_FACTS];

/* Where a kernel was launched. */
enum run_place {
    RUN_OPERATOR, /* "aten::mm" */
    RUN_LIBRARY,  /* call and shape, "cublasGemmEx 4096x4096x4096 bf16" */
    RUN_RANGE,    /* the innermost range or label, with '*' for its numbers */
    RUN_LINE,     /* the innermost line that is the user's own: "train (train.py:17)" */
    RUN_PLACES
};

struct run_kernel {
    char *name;              /* owned: as it was recorded, mangled where it was */
    char *place[RUN_PLACES]; /* owned; NULL: none, or not known */
    uint64_t count;          /* in all steps of the run */
    uint64_t ns;
};

struct run_summary {
    double metrics[RUN_METRICS]; /* NAN: not known */
    char *facts[RUN_FACTS];      /* owned; NULL: not known, or none */
    uint64_t steps;              /* that are in the metrics; 0: the run is one as a whole */
    uint64_t warm_up;            /* steps that were left out */
    uint64_t energy_steps;       /* that the metric of energy is of; 0: it is not known */
    double cost;                 /* what gpuprof took of the threads' time; NAN: not measured */
    struct run_kernel *kernels;  /* owned; by name, then place: each pair once */
    uint32_t kernel_count;
    uint32_t kernel_capacity;
};

void run_summary_release(struct run_summary *r);

/* Sets a fact that is not known yet to a copy of `text`, on one line, unless that is NULL or "". 0
 * or GPUPROF_NO_MEMORY. */
int run_fact_set(struct run_summary *r, enum run_fact fact, const char *text);

/* Adds a row, whose texts are copied. 0 or GPUPROF_NO_MEMORY. */
int run_kernel_add(struct run_summary *r, const struct run_kernel *kernel);

/* Brings rows into order, and makes one of those that have the same name and places. */
void run_kernels_order(struct run_summary *r);

/* ---- runs ---- */

/*
 * Runs that are compared as one side, and the kernels of all of them. Memory: that of the runs,
 * RUNS_MAX at most.
 */
#define RUNS_MAX RANKS_MAX

struct run_set {
    struct run_summary runs[RUNS_MAX]; /* without kernels */
    char *names[RUNS_MAX];             /* owned: where each comes from */
    uint32_t count;
    struct run_summary together; /* of this only `kernels`, and `steps`: of all runs with them */
};

void run_set_release(struct run_set *s);

/* Takes `run`, whose kernels become those of the set, and leaves nothing in it. 0,
 * GPUPROF_NO_MEMORY, or GPUPROF_LIMIT: there are RUNS_MAX. */
int run_set_add(struct run_set *s, struct run_summary *run, const char *name);

/* The metric of the runs that know it, in their order; how many these are. */
uint32_t run_set_gather(const struct run_set *s, enum run_metric m, double list[static RUNS_MAX]);

#endif
