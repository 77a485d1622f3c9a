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
#include <stdio.h>

#include "base/message.h"

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
#define RUNS_MAX 50

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

/* Writes a run as an object of JSON; `has_all`: what is not known is null, else it is not there.
 * NAN and INFINITY, which JSON does not have, are null. (baseline_file.c) */
void run_put_json(const struct run_summary *run, const char *name, bool has_all, FILE *out);
void run_put_number(const char *before, double number, FILE *out);

/* ---- a recording as a run (run_make.c) ---- */

/* How steps and lines are found: as --step-by, --step-range and --symbols have it; NULL: not given.
 * Messages begin with `verb`. */
struct run_request {
    const char *verb;
    const char *step_by;
    const char *step_pattern;
    const char *symbols;
};

struct recording;

/* Reads all events of `rec`. EXIT_OK, or another exit code after one line on stderr;
 * run_summary_release in both cases. */
enum exit_code run_summary_make(struct run_summary *r, struct recording *rec,
                                const struct run_request *request);

/*
 * A baseline: runs as a small file, which can be kept in a repository. JSON, a line for each run
 * and each kernel, so that its changes can be read:
 *
 *     {"gpuprof_baseline": 1,
 *     "runs": [
 *     {"name": .., "steps": .., "warm_up": .., "energy_steps": .., "cost": .., "metrics": {KEY: ..,
 *      ..}, "facts": {..}},
 *     ..],
 *     "kernel_steps": ..,
 *     "kernels": [
 *     {"count": .., "ns": .., "name": .., "operator": .., "library": .., "range": .., "line": ..},
 *     ..]}
 *
 * with the keys of run_metrics.def and run_facts.def; what a run does not know is not there, and
 * what a reader does not know it passes by. A value that cannot be is refused. Kernels are those of
 * all runs together, those that took longest, BASELINE_KERNELS_MAX at most. A reader takes its own
 * version only.
 *
 * Memory: a file is read whole, BASELINE_BYTES_MAX at most, and its texts are kept.
 */
#define BASELINE_VERSION     1
#define BASELINE_BYTES_MAX   (16u << 20)
#define BASELINE_KERNELS_MAX 500
#define BASELINE_NAME_BYTES  128
#define BASELINE_FOLDER      ".gpuprof/baselines"

/* Writes the set, whose kernels it brings into another order. */
void baseline_write(struct run_set *s, FILE *out);

/* Adds what the text says. 0; GPUPROF_NOT_OURS, GPUPROF_VERSION, GPUPROF_DAMAGED (`why` says what
 * it is, where), GPUPROF_LIMIT or GPUPROF_NO_MEMORY. */
#define BASELINE_WHY_BYTES 160
int baseline_read(struct run_set *s, const char *text, size_t length, char why[BASELINE_WHY_BYTES]);

/* ---- runs as a command line names them: recordings, and files or names of baselines ---- */

/* Where the baseline of that name is, in new memory; NULL: no memory, or no such name may be (of
 * letters, digits, '.', '_' and '-', the first no '.' and no '-'). */
char *baseline_path(const char *folder, const char *name);

/* Are both the same file or folder, or name? */
bool run_operands_same(const char *one, const char *other);

/* How operands are read: names of baselines are looked for in `folder`. */
struct run_reading {
    const char *folder;
    struct run_request request;
    bool keep_live;
};

/*
 * Adds what each of `words` is: a baseline file, or the name of one; a recording, as one run; or
 * several of these with commas between, where all recordings together are one run. What is both a
 * file here and the name of a baseline is refused. EXIT_OK, or another exit code after one line on
 * stderr.
 */
enum exit_code run_operands_read(struct run_set *s, char **words, int count,
                                 const struct run_reading *how);

/* Adds the runs of a baseline file; likewise. */
enum exit_code run_operands_baseline(struct run_set *s, const char *path, const char *verb);

#endif
