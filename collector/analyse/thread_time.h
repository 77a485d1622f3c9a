/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread did on the host from one time to another: records of samples, OS calls, waits for
 * Python's GIL, garbage collections and silences, as the walk has met them up to then. Where
 * several say it, a garbage collection goes first, then the GIL, then the innermost OS call.
 *
 * Memory: 56 bytes a record of the time that is still asked for, THREAD_SPANS_MAX of a thread and
 * THREAD_SPANS_ALL of all; older ones are forgotten then, and their time is not known. Names of
 * files and functions as kernel_names.h has them.
 */
#ifndef GPUPROF_COLLECTOR_THREAD_TIME_H
#define GPUPROF_COLLECTOR_THREAD_TIME_H

#include "analyse/idle_rows.h"
#include "resolve/slice.h"

#define THREAD_SPANS_MAX 8192
#define THREAD_SPANS_ALL (1u << 20)

/* What a thread did; their words are in did_words. */
enum thread_did {
    DID_NONE,
    DID_RUNNING,
    DID_GC,
    DID_GIL,
    DID_LOCK,
    DID_CONDITION, /* or the end of another thread */
    DID_FILE,
    DID_PIPE, /* which another process or thread fills */
    DID_SOCKET,
    DID_POLL,
    DID_SLEEP,
    DID_CHILD,
    DID_LOAD,
    DID_MEMORY,
    DID_DEVICE,
    DID_FAULT,     /* page faults and swap */
    DID_IMPORT,    /* whatever Python does while it imports a module */
    DID_WORKERS,   /* it waited for a loader's workers, which were busy */
    DID_PREEMPTED, /* others had the processors */
    DID_THROTTLED, /* by a quota of the CPU */
    DID_WAITED,    /* it is not known what for */
    DID_UNKNOWN,
    DID_STOPPED, /* by a free-threaded Python, together with all its threads */
    DID_KINDS
};

/* In a row's `did` (idle_host.c), beside enum thread_did: a sample by the CPU, */
#define DID_SAMPLED 0x100u
#define DID_LOOKED  0x200u /* or by another thread, */
#define DID_RAN     0x400u /* which says that it ran meanwhile */

extern const char *const did_words[DID_KINDS];

/* Some of that time. */
struct thread_piece {
    enum thread_did kind;
    bool is_sample; /* `ns` is what a sample stands for, and may lie before the time */
    bool is_look;   /* ... by another thread */
    bool has_run;   /* ... and it ran in that time */
    struct idle_place
        place; /* its line by the stack; `word` the file, the call, the GIL's holder */
    uint64_t at_ns;
    uint64_t ns;
};

/* Is told of one. */
typedef void thread_piece_fn(void *context, const struct thread_piece *piece);

/* Before which time of the process's threads nobody will ask. */
typedef uint64_t thread_horizon_fn(void *context, uint32_t process);

struct thread_span {
    uint64_t begin_ns, end_ns;
    uint64_t ns;       /* what a sample stands for; 0: it is none */
    uint64_t reach_ns; /* the latest end of this one and those before it */
    union {
        struct {
            uint64_t word;
            uint32_t stack;
        };
        struct silence_look look; /* of a silence */
    };
    uint8_t kind, word_kind; /* enum thread_did, enum idle_word */
    bool is_look;            /* by another thread, ... */
    bool has_run;            /* ... and it ran */
};

struct thread_spans {
    struct thread_span *spans; /* owned; by their begin */
    uint32_t capacity, count;
};

struct thread_times {
    struct walk *walk;             /* a view */
    struct thread_spans *threads;  /* owned, by the index of a thread */
    struct thread_spans *silences; /* likewise */
    struct thread_spans *stops;    /* owned, by the index of a process: of all its threads */
    bool *is_known;                /* owned, by the index of a process: it has such records */
    uint64_t *busy_ns;             /* likewise: how long its threads ran or read, added up */
    uint32_t span_count;           /* room for so many, of all threads */
    struct kernel_names names;
    thread_horizon_fn *horizon;
    void *context; /* of `horizon` */
};

/* `walk` must stay. 0 or GPUPROF_NO_MEMORY; thread_times_release in both cases. */
int thread_times_init(struct thread_times *h, struct walk *walk, thread_horizon_fn *horizon,
                      void *context);
void thread_times_release(struct thread_times *h);

/* A slice in the order of time; others than those records are passed by. 0 or GPUPROF_NO_MEMORY. */
int thread_times_take(struct thread_times *h, const struct slice *s);

/* Has the process such records? Others have no pieces. */
static inline bool thread_times_has(const struct thread_times *h, uint32_t process)
{
    return h->is_known[process];
}

/*
 * Tells what the thread (its index, and that of its process) did between the two, as far as that is
 * known: pieces that do not overlap, and samples of the rest. Behind these DID_THROTTLED pieces,
 * for how long all threads were stopped, of whatever time it could have run.
 */
void thread_times_split(const struct thread_times *h, uint32_t process, uint32_t thread,
                        uint64_t begin_ns, uint64_t end_ns, thread_piece_fn *tell, void *context);

/* For how long the thread (its index) ran, waited and was preempted between the two, and for how
 * long it did one of the latter, as far as its silences say so. Adds to these. */
struct thread_shares {
    uint64_t ran_ns, waited_ns, preempted_ns, off_ns;
};
void thread_times_silences(const struct thread_times *h, uint32_t thread, uint64_t begin_ns,
                           uint64_t end_ns, struct thread_shares *shares);

#endif
