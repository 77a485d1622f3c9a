/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between libgpuprof.so and libgpuprof-os.so, which hooks the C library's calls that wait and is
 * preloaded only where they are to be recorded. The second times the calls and tells of those that
 * lasted long enough; all else is done by the first. Both are of one build: nothing here is an ABI.
 */
#ifndef GPUPROF_INJECT_OS_TABLE_H
#define GPUPROF_INJECT_OS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OS_OFF UINT64_MAX

/* Memory that libgpuprof.so needs only where the other one is; see os_calls.c and gil_events.c. */
#define OS_KEPT_BYTES    (2300u << 10) /* touched as it fills */
#define OS_HOLDERS_BYTES (80u << 10)

struct os_function {
    const char *name;
    uint8_t class; /* enum os_class */
};

/* A call that has returned, or whose thread was cancelled in it (error ECANCELED). */
struct os_said {
    uint32_t function; /* its place in os_client.functions */
    int32_t result;
    int32_t error;    /* errno, or what a pthread function returned; 0 = none */
    int32_t known_fd; /* descriptor + 1; 0 = none */
    uint64_t begin;   /* ticks */
    uint64_t end;
    uint64_t object;  /* address of a mutex ...; 0 = none */
    uint64_t bytes;   /* moved */
    const char *path; /* as the program gave it: perhaps not readable; NULL = none */
    uintptr_t caller; /* where the program goes on */
};

/* What happens to a condition variable that is watched. */
enum os_condition_event {
    OS_CONDITION_WAITS,   /* before the real function */
    OS_CONDITION_WAITED,  /* after it */
    OS_CONDITION_SIGNALS, /* before the real function */
};

/* libgpuprof-os.so: libgpuprof.so writes the atomic words, any call reads them. */
struct os_client {
    _Atomic uint64_t threshold;     /* ticks from which on a call is told of; OS_OFF: none is */
    _Atomic uintptr_t watched;      /* condition variables from this address on ... */
    _Atomic uint64_t watched_bytes; /* ... in so many bytes; 0 = none */
    const struct os_function *functions;
    uint32_t function_count;
    void *kept;    /* OS_KEPT_BYTES, zero; libgpuprof.so's from then on */
    void *holders; /* OS_HOLDERS_BYTES, likewise */
};

struct os_host {
    /* On the thread that made the call, perhaps in a signal handler. errno may change. */
    void (*call)(const struct os_said *said);
    /*
     * A condition variable that is watched. `result` is of a wait that is over. True then: the
     * wait is recorded in another way, so call() is not told of it.
     */
    bool (*condition)(enum os_condition_event event, const void *condition, uint64_t ticks,
                      int result);
};

/* Exported by libgpuprof.so: joins the two. NULL: nothing will ever be recorded here. */
const struct os_host *gpuprof_os_v1(struct os_client *client);

#endif
