/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run in few numbers, to compare with other runs: the metrics of run_metrics.def, its kernels
 * and where they were launched, and its facts (run_facts.def). Memory: 150 bytes and the texts for
 * each kernel and place, RUN_KERNELS_MAX at most.
 */
#ifndef GPUPROF_COLLECTOR_RUN_SUMMARY_H
#define GPUPROF_COLLECTOR_RUN_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/message.h"
#include "base/options.h"

#define RUN_KERNELS_MAX (1u << 16)

enum run_metric {
#define RUN_METRIC(id, key, text, unit, of, scale, gates) RUN_##id,
#include "diff/run_metrics.def"
    RUN_METRICS
};

enum run_unit { RUN_UNIT_NS, RUN_UNIT_BYTES, RUN_UNIT_MJ, RUN_UNIT_COUNT };
enum run_of { RUN_OF_STEP, RUN_OF_RUN };
enum run_scale { RUN_SCALE_OWN, RUN_SCALE_STEP_TIME, RUN_SCALE_EXACT };

struct run_metric_info {
    const char *key;
    const char *text;
    enum run_unit unit;
    enum run_of of;
    enum run_scale scale;
    bool gates;
};
extern const struct run_metric_info run_metric_infos[RUN_METRICS];

enum run_fact {
#define RUN_FACT(id, key, text, matters, meta) RUN_FACT_##id,
#include "diff/run_facts.def"
    RUN_FACTS
};

enum fact_matters { FACT_ALWAYS, FACT_IF_KNOWN, FACT_NOTED, FACT_NEVER };

struct run_fact_info {
    const char *key;
    const char *text;
    enum fact_matters matters;
    const char *meta;
};
extern const struct run_fact_info run_fact_infos[RUN_FACTS];

/* The name of a kernel, and where it was launched. */
enum run_text {
    RUN_NAME,     /* as recorded, possibly mangled */
    RUN_OPERATOR, /* such as "aten::mm" */
    RUN_LIBRARY,  /* call and shape, such as "cublasGemmEx 4096x4096x4096 bf16" */
    RUN_RANGE,    /* innermost range or label, with '*' for its numbers */
    RUN_LINE,     /* innermost line of the user's own code: "train (train.py:17)" */
    RUN_TEXTS
};

struct run_kernel {
    char *texts[RUN_TEXTS]; /* owned; NULL: no such place, or not known */
    uint64_t count;         /* in all steps */
    uint64_t ns;
};

struct run_kernels {
    struct run_kernel *list; /* owned */
    uint32_t count;
    uint64_t steps; /* of all runs that have kernels; a run without steps counts as one */
};

void run_kernels_release(struct run_kernels *k);

/* Adds a row with copies of its texts. */
void run_kernel_add(struct run_kernels *k, const struct run_kernel *kernel);

/* Sorts the rows by their texts, and adds up those with the same texts. */
void run_kernels_order(struct run_kernels *k);

struct run_summary {
    char *name;                  /* owned: the source of the run */
    double metrics[RUN_METRICS]; /* NAN: not known */
    char *facts[RUN_FACTS];      /* owned; NULL: none or not known */
    uint64_t steps;              /* steps in the metrics; 0: the whole run is one */
    uint64_t warm_up;            /* steps that were left out */
    uint64_t energy_steps;       /* steps in the energy metric; 0: not known */
    double cost;                 /* gpuprof's share of the threads' time; NAN: not measured */
};

/* Sets a fact to a copy of `text` on one line, unless it is set or `text` is empty or NULL. */
void run_fact_set(struct run_summary *r, enum run_fact fact, const char *text);

/* ---- runs ---- */

/* The runs of one side, and the kernels of all of them. */
#define RUNS_MAX 50

struct run_set {
    struct run_summary runs[RUNS_MAX];
    uint32_t count;
    struct run_kernels kernels;
};

void run_set_release(struct run_set *s);

/* Adds a run of which nothing is known but its name; NULL: there are RUNS_MAX already. */
struct run_summary *run_set_add(struct run_set *s, const char *name);

/* Fills `list` with the metric of the runs that have it, in order; returns their number. */
uint32_t run_set_gather(const struct run_set *s, enum run_metric m, double list[static RUNS_MAX]);

/* Writes a run as a JSON object. `has_all`: unknown values are null, not left out. */
void run_put_json(const struct run_summary *run, bool has_all, FILE *out);

/* ---- a recording as a run (run_make.c) ---- */

/* How runs are read: messages begin with `verb`, `folder` has the named baselines, and the options
 * say how to find steps and lines (--step-by, --step-range, --symbols, --keep-live). */
struct run_reading {
    const char *verb;
    const char *folder;
    const struct options *options;
};

struct recording;

/* Fills `run`, new in the set, from all events of `rec`, and adds its kernels to the set. Returns
 * EXIT_OK, or another exit code after one line on stderr. */
enum exit_code run_summary_make(struct run_set *s, struct run_summary *run, struct recording *rec,
                                const struct run_reading *how);

/*
 * A baseline: runs in a small file that can be stored in a repository. JSON with a line for each
 * run and kernel, so that its changes are readable, and with the keys of run_metrics.def and
 * run_facts.def. Unknown values are left out, and a reader skips unknown keys. It rejects
 * impossible values and other versions. Kernels are the BASELINE_KERNELS_MAX that took longest in
 * all runs together. A file of at most BASELINE_BYTES_MAX is read whole.
 */
#define BASELINE_VERSION     1
#define BASELINE_BYTES_MAX   (16u << 20)
#define BASELINE_KERNELS_MAX 500
#define BASELINE_NAME_BYTES  128
#define BASELINE_FOLDER      ".gpuprof/baselines"

/* Writes the set; sorts its kernels by time. */
void baseline_write(struct run_set *s, FILE *out);

/* Adds the runs of a baseline's text. Returns NULL, or what is wrong with it. */
const char *baseline_read(struct run_set *s, const char *text, size_t length);

/* ---- runs named on a command line: recordings, and files or names of baselines --------------- */

/* Returns the path of a baseline in new memory; NULL: the name is not valid (letters, digits, '.',
 * '_' and '-', the first not '.' or '-'). */
char *baseline_path(const char *folder, const char *name);

/* Are both the same file, folder or name? */
bool run_operands_same(const char *one, const char *other);

/* Adds the runs of each operand: a baseline file, a baseline's name, a recording (one run), or
 * several files with commas (one run). Rejects a word that is both a file here and the name of a
 * baseline. Returns EXIT_OK, or another exit code after one line on stderr; so does the next. */
enum exit_code run_operands_read(struct run_set *s, char **words, int count,
                                 const struct run_reading *how);

enum exit_code run_operands_baseline(struct run_set *s, const char *path, const char *verb);

#endif
