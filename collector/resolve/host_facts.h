/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about the host, for consumers of a walk (event_walk.h): samples, system calls, the GIL and
 * garbage collections reach `take` as slices, in the order of time. The record has the arguments
 * (events.def); this file adds what is known beyond them. No survey is needed, except for the
 * meaning of stacks (WALK_STACKS).
 *
 * After the walk, place_lines.h turns the number of a stack into a line, or into frames.
 */
#ifndef GPUPROF_COLLECTOR_HOST_FACTS_H
#define GPUPROF_COLLECTOR_HOST_FACTS_H

#include "record.h"
#include "record/gpu_record.h"
#include "resolve/slice.h"

/* A sample of a thread. */
struct host_sample {
    const struct thread *thread; /* the sampled thread; NULL: it recorded nothing itself */
    uint64_t tid;                /* tid of the sampled thread */
    uint64_t at_ns;
    uint64_t count; /* number of periods that it represents */
    uint64_t ns;    /* the same as time, up to at_ns: CPU time, or else wall-clock time */
    bool is_cpu; /* a tick of the thread's CPU timer; else a sample in a gap between its CUDA calls
                  */
    bool in_kernel;
    bool in_gpuprof; /* in gpuprof's own code, so no stack */
    bool is_torn;    /* its stack was torn and rejected */
    bool is_silent;  /* the thread blocks the signal of samples, so no stack */
    char state;      /* as in /proc/PID/stat; 0: not known */
    int32_t syscall; /* system call in which it waits; -1: none, or not known */
    uint32_t stack;
    uint64_t holder; /* tid of the holder of the GIL that it waits for; 0: none */
    uint32_t holder_stack;
    /* For a sample in a gap, if known: time it ran, was runnable; page faults, major faults. */
    uint64_t ran_ns, delay_ns, faults, major_faults;
};

/* If the slice reports that a CPU quota stopped all threads of the process: the interval, and the
 * stopped time in it. Otherwise false. */
bool host_stop(const struct slice *s, uint64_t *begin_ns, uint64_t *end_ns, uint64_t *ns);

/* Reads a sample. False: the slice is no sample. */
bool host_sample(const struct slice *s, struct host_sample *sample);

/* The thread of a tid in a record; NULL: it recorded nothing. */
static inline const struct thread *host_thread(const struct event *e, uint64_t tid)
{
    return tid ? thread_of_tid(&e->process->threads, tid) : NULL;
}

/* The function's name of an OS_CALL, possibly in `text`. */
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

/* Kinds of CPU time, as Scalene separates it. */
enum host_time {
    HOST_UNKNOWN, /* it has no stack */
    HOST_PYTHON,  /* the interpreter, without native code of extensions */
    HOST_NATIVE,
    HOST_SYSTEM, /* the kernel */
    HOST_TIMES
};

/* After the walk: the kind of time of a sample. `stack` is a stack of that process. */
enum host_time host_time_of(const struct stack_table *t, uint32_t process, uint32_t stack,
                            bool in_kernel);

/* A system call in which a sampled thread may wait, by its number on this machine. */
struct system_call {
    int32_t number;
    enum os_class class; /* 0: a file, a pipe or a socket, which is not known */
    const char *name;
};

/* NULL: a number that is not listed. */
const struct system_call *system_call_of(int32_t number);

#endif
