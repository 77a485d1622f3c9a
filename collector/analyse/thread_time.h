/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread did on the host between two times, from the records of the walk so far: samples, OS
 * calls, waits for Python's GIL, garbage collections and silences. Where they overlap, a garbage
 * collection wins, then the GIL, then the innermost OS call.
 *
 * Memory: 56 bytes a record of the time that may still be queried, at most THREAD_SPANS_MAX a
 * thread and THREAD_SPANS_ALL in all. Older ones are dropped, and their time is not known. Names of
 * files and functions as kernel_names.h has them.
 */
#ifndef GPUPROF_COLLECTOR_THREAD_TIME_H
#define GPUPROF_COLLECTOR_THREAD_TIME_H

#include "analyse/idle_rows.h"
#include "resolve/slice.h"

#define THREAD_SPANS_MAX 8192
#define THREAD_SPANS_ALL (1u << 20)

/* What a thread did; the texts are in did_words. */
enum thread_did {
    DID_NONE,
    DID_RUNNING,
    DID_GC,
    DID_GIL,
    DID_LOCK,
    DID_CONDITION, /* or the end of another thread */
    DID_FILE,
    DID_PIPE, /* filled by another process or thread */
    DID_SOCKET,
    DID_POLL,
    DID_SLEEP,
    DID_CHILD,
    DID_LOAD,
    DID_MEMORY,
    DID_DEVICE,
    DID_FAULT,     /* page faults and swap */
    DID_IMPORT,    /* all that Python does while it imports a module */
    DID_WORKERS,   /* waiting for a loader's workers, which were busy */
    DID_PREEMPTED, /* others had the processors */
    DID_THROTTLED, /* by a quota of the CPU */
    DID_WAITED,    /* for an unknown reason */
    DID_UNKNOWN,
    DID_STOPPED, /* by a free-threaded Python, with all its threads */
    DID_KINDS
};

/* Flags beside enum thread_did, for samples: by the CPU, ... */
#define DID_SAMPLED 0x100u
#define DID_LOOKED  0x200u /* ... or by another thread, ... */
#define DID_RAN     0x400u /* ... which saw that it ran meanwhile */

extern const char *const did_words[DID_KINDS];

/* A part of the queried time. */
struct thread_piece {
    uint32_t did;            /* enum thread_did, and flags of a sample */
    struct idle_place place; /* by the stack; `word`: the file, the call or the GIL's holder */
    uint64_t at_ns;
    uint64_t ns; /* the time that a sample stands for may lie before the queried time */
};

/* Receives one part. */
typedef void thread_piece_fn(void *context, const struct thread_piece *piece);

/* Returns the time before which nobody will query the process's threads. */
typedef uint64_t thread_horizon_fn(void *context, uint32_t process);

struct thread_span {
    uint64_t begin_ns, end_ns;
    uint64_t ns;       /* time that a sample stands for; 0: no sample */
    uint64_t reach_ns; /* latest end of this span and those before it */
    union {
        struct {
            uint64_t word;
            uint32_t stack;
        };
        struct silence_look look; /* for a silence */
    };
    uint16_t did;      /* enum thread_did, and flags of a sample */
    uint8_t word_kind; /* enum idle_word */
};

struct thread_spans {
    struct thread_span *spans; /* owned; by their begin */
    uint32_t capacity, count;
};

struct thread_times {
    struct walk *walk;             /* a view */
    struct thread_spans *threads;  /* owned, by the index of a thread; the next two lie behind it */
    struct thread_spans *silences; /* likewise */
    struct thread_spans *stops;    /* by process index: stops of all its threads */
    bool *is_known;                /* owned, by process index: it has such records */
    uint64_t *busy_ns;             /* likewise: total time that its threads ran or read */
    uint32_t span_count;           /* allocated spans of all threads */
    struct kernel_names names;
    thread_horizon_fn *horizon;
    void *context; /* of `horizon` */
};

/* `walk` must outlive `h`. */
void thread_times_init(struct thread_times *h, struct walk *walk, thread_horizon_fn *horizon,
                       void *context);
void thread_times_release(struct thread_times *h);

/* Takes a slice, in time order; ignores other records. */
void thread_times_take(struct thread_times *h, const struct slice *s);

/* True if the process has such records. Other processes have no parts. */
static inline bool thread_times_has(const struct thread_times *h, uint32_t process)
{
    return h->is_known[process];
}

/*
 * Reports what the thread (by index, with its process's) did between the two times, as far as
 * known: parts that do not overlap, and samples of the rest. DID_THROTTLED parts come last: how
 * long a quota stopped all threads, within any time in which it could have run.
 */
void thread_times_split(const struct thread_times *h, uint32_t process, uint32_t thread,
                        uint64_t begin_ns, uint64_t end_ns, thread_piece_fn *notify, void *context);

/* Adds how long the thread (by index) ran, waited and was preempted between the two times, and how
 * long it did either of the latter two, as far as its silences show. */
struct thread_shares {
    uint64_t ran_ns, waited_ns, preempted_ns, off_ns;
};
void thread_times_silences(const struct thread_times *h, uint32_t thread, uint64_t begin_ns,
                           uint64_t end_ns, struct thread_shares *shares);

#endif
