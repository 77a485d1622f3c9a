/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps (iterations) of a program, by the first of these that is recorded, or by the one that
 * is requested. Steps of one process follow one another and do not overlap.
 *
 *    range       from one gpuprof_step() to the next; or, with a pattern, the ranges and
 *                labels with names that match it
 *    profiler    PyTorch's labels ProfilerStep#N, which a program's own profiler makes
 *    optimizer   updates: from the end of one outermost Optimizer.step# label to that of the
 *                next. The first one sets the class; labels of other classes or threads do not
 *                count, nor those inside a backward operator (an optimizer fused into the
 *                backward pass runs for each parameter there)
 *    dataloader  from the begin of one outermost enumerate(DataLoader)# label to that of the next
 *    graph       from one launch of the most often launched graph to the next, or until its
 *                thread waits after the last launch of a burst (gpu_record.h); only on
 *                request for a process that does so for less than 1/STEPS_GRAPH_PART of its
 *                time
 *
 * A step is partial if recording stopped in it, or if its begin or end is not known (after the last
 * begin, before the first update, not ended). What lies entirely in a pause is no step; a flight
 * recorder's dump may contain such events.
 *
 * Memory: 64 bytes for each mark while they are collected, then STEP_BYTES for each step; at most
 * STEPS_FREE of both and one more for each STEP_FILE_BYTES of the files, up to STEPS_MAX. Later
 * ones are only counted.
 */
#ifndef GPUPROF_COLLECTOR_STEPS_H
#define GPUPROF_COLLECTOR_STEPS_H

#include "resolve/event_walk.h"

#define STEPS_FREE      4096
#define STEP_FILE_BYTES 64
#define STEPS_MAX       (1u << 19)

#define STEPS_GRAPH_PART 10

/* What defines the steps, in order of preference. */
enum step_kind {
    STEPS_CALLED,
    STEPS_PROFILER,
    STEPS_OPTIMIZER,
    STEPS_LOADER,
    STEPS_GRAPH,
    STEPS_NAMED,
    STEPS_NONE
};

struct step_kind_info {
    const char *word;       /* for --step-by, where "range" has two meanings */
    const char *text;       /* for people */
    const char *definition; /* what a step of that kind is */
    const char *missing;    /* why there are none, if they were requested; NULL: not told */
};
extern const struct step_kind_info step_kinds[];

/* Parts of a step's time. Each moment counts for the first of these that was active in the process,
 * in the order of TensorBoard's overview. */
enum step_part {
    STEP_KERNELS,
    STEP_COPIES, /* and sets */
    STEP_COMMUNICATION,
    STEP_RUNTIME, /* calls */
    STEP_LOADER_WAIT,
    STEP_OPERATORS,
    STEP_OTHER,
    STEP_PARTS
};

struct step {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t number; /* the program's own number if it gives one, else counted from 0 */
    const struct process *process;
    const struct kernel_name *made_of; /* the name that defines it; NULL: none */
    uint64_t parts[STEP_PARTS];        /* ns; 0 until a user of the steps adds to them */
    /* The process that its own process waited for longest in it (analyse/step_changes.c), NULL:
     * none; and how long for all processes. Of several devices, the one that waited longest
     * decides. */
    const struct process *awaited;
    uint64_t awaited_ns, all_awaited_ns;
    uint32_t batches; /* 0 until a user of the steps adds to it */
    bool is_partial;
    bool is_blind; /* for some of it only calls are known (cost_table.h) */
};
#define STEP_BYTES 136
_Static_assert(sizeof(struct step) <= STEP_BYTES, "STEP_BYTES is what it says");

struct step_mark {
    uint64_t begin_ns;
    uint64_t end_ns; /* 0: not ended */
    uint64_t number; /* of a gpuprof_step(), or the graph's number; 0 for a wait */
    struct process *process;
    const struct thread *thread;
    const struct kernel_name *text;
    uint32_t order;
    bool is_cut; /* the real end is not known, but no later than end_ns */
    bool ends;   /* the step before ends here, and none begins */
};

struct steps {
    struct walk *walk;
    unsigned wanted;     /* bits of enum step_kind that may be used */
    const char *by;      /* value of --step-by */
    const char *class;   /* class of optimizers; NULL: any */
    const char *pattern; /* pattern of ranges and labels; NULL: none */
    enum step_kind kind; /* kind of the marks so far; in the end, of the steps */
    struct step_mark *marks;
    uint32_t mark_count;
    uint64_t made; /* marks of all kinds so far, for users that follow them */
    uint32_t steps_max;
    uint32_t *firsts;  /* owned, by process index, with one more: index of the first step */
    bool has_sampled;  /* launches were sampled, so they are no marks */
    struct step *list; /* owned; by process, in the order of time */
    uint32_t count;
    uint64_t beyond;      /* marks beyond the maximum */
    uint64_t unrecorded;  /* steps that lie in a pause, and are not in `list` */
    uint64_t overlapping; /* ranges and labels that began inside one that is a step */
    bool has_waits;       /* somebody waited for another process */
};

/*
 * `by` is the value of --step-by, `pattern` that of --step-range; each NULL if not given.
 */
void steps_init(struct steps *s, struct walk *walk, const char *by, const char *pattern);
void steps_release(struct steps *s);

/* The consumer that collects them; its `end` completes the steps. */
struct consumer steps_consumer(struct steps *s);

/* After the walk: makes steps from marks, frees these. (step_make.c) */
void steps_make(struct steps *s);

/* After completion: EXIT_OK, or EXIT_USAGE after one line if the requested kind was not found. */
enum exit_code steps_check(struct steps *s, const char *verb);

/*
 * Does all three: steps_init, a walk that finds the steps (with `surveys` the survey, if it is
 * still to be done), and steps_check. Returns EXIT_OK, or another code after one line on stderr
 * that begins with `verb`; steps_release in both cases.
 */
enum exit_code steps_find(struct steps *s, struct walk *walk, const char *by, const char *pattern,
                          bool surveys, const char *verb);

/* The last step of the process that begins at `ns` or before, whatever its end, or NULL. */
const struct step *steps_at(const struct steps *s, const struct process *p, uint64_t ns);

#endif
