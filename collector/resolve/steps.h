/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a program: what its iterations are, by the first of these that is recorded, or by
 * the one that somebody wants. Those of one process follow one another and do not overlap.
 *
 *   range       from one gpuprof_step() to the next; or, where a pattern is given, the ranges and
 *               labels whose names match it
 *   profiler    PyTorch's labels ProfilerStep#N, which a program's own profiler makes
 *   optimizer   updates: from the end of one outermost Optimizer.step# label to that of the next.
 *               Its class is that of the first one; those of other classes, of other threads, and
 *               those inside a backward operator (an optimizer fused into the backward pass runs
 *               for each parameter there) are none
 *   dataloader  from the begin of one outermost enumerate(DataLoader)# label to that of the next
 *   graph       from one launch of the graph that is launched most often to the next, or until its
 *               thread waits behind the last one of a burst (gpu_record.h); of a process
 *               in which that goes on for less than a STEPS_GRAPH_PART of its time, only where they
 *               are wanted
 *
 * A step is partial if its begin or its end is not known (what lies behind the last begin, what
 * lies before the first update, what had not ended), or if recording was stopped in it. What lies
 * in a pause as a whole (a flight recorder's dump has some of before it began) is no step.
 *
 * Memory: 64 bytes for each mark while they are gathered, and STEP_BYTES for each step after that;
 * of both there are STEPS_FREE and one more for each STEP_FILE_BYTES of the files, STEPS_MAX at
 * most. Later ones are counted.
 */
#ifndef GPUPROF_COLLECTOR_STEPS_H
#define GPUPROF_COLLECTOR_STEPS_H

#include "resolve/event_walk.h"
#include "resolve/range_text.h"

#define STEPS_FREE      4096
#define STEP_FILE_BYTES 64
#define STEPS_MAX       (1u << 19)

#define STEPS_GRAPH_PART 10

/* The first goes before the others. */
enum step_kind {
    STEPS_CALLED,
    STEPS_PROFILER,
    STEPS_OPTIMIZER,
    STEPS_LOADER,
    STEPS_GRAPH,
    STEPS_NAMED,
    STEPS_NONE
};

/* What its time was spent on: at each moment the first of these that was under way in its process,
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
    uint64_t number; /* the program's own where it gives some; else from 0 on */
    const struct process *process;
    const struct kernel_name *made_of; /* NULL: of no name */
    uint64_t parts[STEP_PARTS];        /* ns; 0 before somebody adds to them */
    uint32_t batches;                  /* likewise */
    bool is_partial;
    bool is_blind; /* of some of it nothing is known but calls (cost_table.h) */
};
#define STEP_BYTES 112
_Static_assert(sizeof(struct step) <= STEP_BYTES, "STEP_BYTES is what it says");

struct step_mark {
    uint64_t begin_ns;
    uint64_t end_ns; /* 0: it has not ended */
    uint64_t number; /* of a gpuprof_step(), or the graph's, if it is no wait */
    struct process *process;
    const struct thread *thread;
    const struct kernel_name *text;
    uint32_t order;
    bool is_cut; /* it ended no later than that */
    bool ends;   /* the step before ends here, and none begins */
};

struct steps {
    struct walk *walk;
    unsigned wanted;     /* bits of those that may be taken */
    const char *by;      /* as it was given */
    const char *class;   /* of optimizers; NULL: any */
    const char *pattern; /* of ranges and labels; NULL: none */
    enum step_kind kind; /* of the marks so far; at last, of the steps */
    struct step_mark *marks;
    uint32_t mark_count;
    uint64_t made; /* of all kinds so far, for who looks at them as they come */
    uint32_t steps_max;
    uint32_t *firsts;  /* owned, by process index, and one more: places of the first steps */
    bool has_sampled;  /* launches stand for others, too: they are no marks */
    struct step *list; /* owned; by process, in the order of time */
    uint32_t count;
    uint64_t beyond;          /* marks for which there was no room */
    struct step_names others; /* of ranges and labels before the first that is a step by its name */
    uint64_t unrecorded;      /* steps that lie in a pause: of these there are none here */
    uint64_t overlapping;     /* ranges and labels that began in another one that is a step */
};

/*
 * `by`: as --step-by has it, `pattern` as --step-range, each NULL if it is not given. 0 or
 * GPUPROF_NO_MEMORY; steps_release in both cases.
 */
int steps_init(struct steps *s, struct walk *walk, const char *by, const char *pattern);
void steps_release(struct steps *s);

/* Its `end` leaves the steps complete. */
struct consumer steps_consumer(struct steps *s);

/* Behind the walk: makes steps of the marks, which go. 0 or GPUPROF_NO_MEMORY. (step_make.c) */
int steps_make(struct steps *s);

/* A word for --step-by, "none" for STEPS_NONE. */
const char *step_kind_word(enum step_kind kind);

/* What marks them, for people: words for --step-by, of which "range" has two meanings. */
const char *step_kind_text(enum step_kind kind);

/* Once they are complete: EXIT_OK, or EXIT_USAGE after one line if those that were wanted are not
 * there. */
enum exit_code steps_check(struct steps *s, const char *verb);

/*
 * All three: steps_init, a walk, or with `surveys` the survey if there was none yet, which finds
 * them, and steps_check. EXIT_OK, or another code after
 * one line on stderr that begins with `verb`; steps_release in both cases.
 */
enum exit_code steps_find(struct steps *s, struct walk *walk, const char *by, const char *pattern,
                          bool surveys, const char *verb);

/* The last step of the process that begins at that time or before, or NULL; the end is not looked
 * at. */
const struct step *steps_at(const struct steps *s, const struct process *p, uint64_t ns);

#endif
