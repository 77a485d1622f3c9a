/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between libgpuprof.so and libgpuprof-os.so. The latter hooks the C library's
 * blocking calls, and is preloaded only to record them. It times the calls and reports long ones;
 * libgpuprof.so does the rest. Both come from one build: this is not a stable ABI.
 */
#ifndef GPUPROF_INJECT_OS_TABLE_H
#define GPUPROF_INJECT_OS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OS_OFF UINT64_MAX

/* Memory that libgpuprof.so needs only together with the other library; see os_calls.c and
 * gil_events.c. */
#define OS_KEPT_BYTES    (2300u << 10) /* pages are touched as it fills */
#define OS_HOLDERS_BYTES (80u << 10)

struct os_function {
    const char *name;
    uint8_t class; /* enum os_class */
};

/* A call that has returned, or in which its thread was cancelled (error ECANCELED). */
struct os_said {
    uint32_t function; /* index in os_client.functions */
    int32_t result;
    int32_t error;    /* errno, or the result of a pthread function; 0: none */
    int32_t known_fd; /* descriptor + 1; 0: none */
    uint64_t begin;   /* in ticks */
    uint64_t end;
    uint64_t object;  /* address of a mutex ...; 0: none */
    uint64_t bytes;   /* bytes moved */
    const char *path; /* as the program gave it, maybe unreadable; NULL: none */
    uintptr_t caller; /* return address in the program */
};

/* Events of a watched condition variable. */
enum os_condition_event {
    OS_CONDITION_WAITS,   /* before the real function */
    OS_CONDITION_WAITED,  /* after it */
    OS_CONDITION_SIGNALS, /* before the real function */
};

/* Part of libgpuprof-os.so. libgpuprof.so writes the atomic words, which every call reads. */
struct os_client {
    _Atomic uint64_t threshold;     /* in ticks: shorter calls are not reported; OS_OFF: none is */
    _Atomic uintptr_t watched;      /* start address of the watched condition variables ... */
    _Atomic uint64_t watched_bytes; /* ... and the size of that memory; 0: none */
    const struct os_function *functions;
    uint32_t function_count;
    void *kept;    /* OS_KEPT_BYTES, zeroed; used by libgpuprof.so */
    void *holders; /* OS_HOLDERS_BYTES, likewise */
};

struct os_host {
    /* Called on the thread that made the call, maybe in a signal handler. May change errno. */
    void (*call)(const struct os_said *said);
    /* An event of a watched condition variable; `result` is that of a finished wait. Returns true
     * if the wait is recorded in another way, so that call() must not report it. */
    bool (*condition)(enum os_condition_event event, const void *condition, uint64_t ticks,
                      int result);
};

/*
 * Exported by libgpuprof.so: connects the two. Returns NULL if nothing will ever be recorded here.
 */
const struct os_host *gpuprof_os_v1(struct os_client *client);

#endif
