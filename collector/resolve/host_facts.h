/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host did, as consumers of a walk (event_walk.h) are told: samples, calls of the system,
 * the GIL and garbage collections come to `take` as slices, in the order of time. The record of a
 * slice has the arguments (events.def); here is what is known beyond it. All is known at once: no
 * survey is needed, but for what a stack means (WALK_STACKS, at the end).
 *
 *     static int take(void *context, const struct slice *s)
 *     {
 *         struct host_sample sample;
 *         if (host_sample(s, &sample) && sample.is_cpu)
 *             ... sample.thread ran for sample.ns up to sample.at_ns, in stack sample.stack
 *         if (s->event.record->type == RECORD_OS_CALL)
 *             ... s->event.thread waited from s->event.begin_ns to s->event.end_ns, in
 *             host_os_name(&s->event, text); the record's bytes are the file or the peer
 *     }
 *
 * A number of a stack becomes a line with place_lines.h, or frames with told_stacks.h, once the
 * walk is over.
 */
#ifndef GPUPROF_COLLECTOR_HOST_FACTS_H
#define GPUPROF_COLLECTOR_HOST_FACTS_H

#include "record/gpu_record.h"
#include "resolve/slice.h"

/* A sample: somebody looked at a thread. */
struct host_sample {
    const struct thread *thread; /* that was looked at; NULL: it recorded nothing itself */
    uint64_t tid;                /* of it */
    uint64_t at_ns;
    uint64_t count; /* periods that it stands for */
    uint64_t ns;    /* the same as time that ended then: of the CPU, or else of the clock */
    bool is_cpu;    /* a tick of the thread's CPU timer; else a look at a thread in a gap between
                       its calls of CUDA */
    bool in_kernel;
    bool in_gpuprof; /* inside gpuprof's own code: no stack */
    bool is_torn;    /* its stack was refused */
    bool is_silent;  /* the thread blocks the signal of samples: no stack */
    char state;      /* as in /proc/PID/stat; 0: not known */
    int32_t syscall; /* that it waits in; -1: none, or not known */
    uint32_t stack;
    uint64_t holder; /* tid of who holds the GIL that it waits for; 0: none */
    uint32_t holder_stack;
    /* Of a look, as far as it is known: it ran, it could have run, and how many page faults it had,
     * those that read something apart. */
    uint64_t ran_ns, delay_ns, faults, major_faults;
};

/* From when on, until when, and for how long in that, a quota stopped all threads of the process.
 * False: the slice says nothing of it. */
bool host_stop(const struct slice *s, uint64_t *begin_ns, uint64_t *end_ns, uint64_t *ns);

/* False: the slice is no sample. */
bool host_sample(const struct slice *s, struct host_sample *sample);

/* The thread of a tid that a record names; NULL: none recorded anything. */
static inline const struct thread *host_thread(const struct event *e, uint64_t tid)
{
    return tid ? thread_of_tid(&e->process->threads, tid) : NULL;
}

/* Of an OS_CALL: the function's name, perhaps in `text`; and enum os_class. */
static inline const char *host_os_name(const struct event *e, char text[static OS_TEXT_BYTES])
{
    return os_function_name(&e->process->os, e->record, text);
}

/* 0: not known. */
static inline uint64_t host_os_class(const struct event *e)
{
    const struct os_function *function = os_function_of(&e->process->os, e->record);
    return function ? function->class : 0;
}

/* What the time of a CPU sample went into, as Scalene tells it apart. */
enum host_time {
    HOST_UNKNOWN, /* it has no stack */
    HOST_PYTHON,  /* the interpreter, which has no native code of others between it and the line */
    HOST_NATIVE,
    HOST_SYSTEM, /* the kernel */
    HOST_TIMES
};

/* When the walk is over: `stack` is of that process, `in_kernel` the sample's. */
enum host_time host_time_of(const struct stack_table *t, uint32_t process, uint32_t stack,
                            bool in_kernel);

#endif
