/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuprof.h: what a program can say to the profiler that it may be running under. C and C++.
 *
 *     gpuprof_step(i);                 an iteration begins; it lasts until the next one
 *     gpuprof_range_push("forward");   a range begins ...
 *     gpuprof_range_pop();             ... and ends, on the same thread; ranges nest
 *     gpuprof_mark("checkpoint");      a moment
 *     gpuprof_stop();                  CUDA calls are not recorded from here on ...
 *     gpuprof_start();                 ... to here
 *     gpuprof_dump("slow request");    what `gpuprof run --flight` keeps is written
 *
 * There is nothing to link with (before glibc 2.34: -ldl). Without gpuprof each call costs a load
 * and a branch; the first one of each function in each source file looks for the library. Texts are
 * UTF-8, copied, and cut at 4096 bytes; NULL is an empty one. Any thread may call any of them.
 *
 * Ranges are those of NVTX's default domain: both may be used in one program. None of these calls
 * starts a recording: a process that makes no CUDA call leaves no file.
 *
 * Between gpuprof_stop() and gpuprof_start(), no call that begins is recorded, in any thread,
 * except allocations and frees, and what begins and ends stream captures: later calls cannot be
 * understood without them. Ranges and marks are recorded only as far as they reach beyond that
 * time. A call that is open at gpuprof_stop() is recorded to its end. A child of fork begins as its
 * parent is. `gpuprof run --start-paused` begins as if gpuprof_stop() had been called.
 */
#ifndef GPUPROF_PUBLIC_H
#define GPUPROF_PUBLIC_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#define GPUPROF_H_VERSION 2 /* grows with what is declared here */

#ifdef __cplusplus
extern "C" {
#endif

/* dlsym, and not a weak reference: in an executable that is no PIE those stay NULL for ever. */
typedef union gpuprof_function {
    void *address;
    int (*push)(const char *text);
    int (*pop)(void);
    void (*mark)(const char *text);
    void (*step)(uint64_t number);
    void (*plain)(void);
    int (*dump)(const char *why);
} gpuprof_function;

/* The library's function of that name; NULL without the library. `known` keeps the answer. */
static __inline__ __attribute__((unused)) gpuprof_function gpuprof_find(void **known,
                                                                        const char *name)
{
    gpuprof_function function;
    function.address = __atomic_load_n(known, __ATOMIC_RELAXED);
    if (__builtin_expect(!function.address, 0)) {
        function.address = dlsym(NULL, name);
        if (!function.address)
            function.address = (void *)known; /* no function's: it is not there */
        __atomic_store_n(known, function.address, __ATOMIC_RELAXED);
    }
    if (function.address == (void *)known)
        function.address = NULL;
    return function;
}

/* The level of the range among the thread's open ones, from 0 on; -2 without the library. */
static __inline__ __attribute__((unused)) int gpuprof_range_push(const char *text)
{
    static void *known;
    gpuprof_function function = gpuprof_find(&known, "gpuprof_range_push");
    return function.address ? function.push(text) : -2;
}

/* The level of the range that ends; -1 if none is open, -2 without the library. */
static __inline__ __attribute__((unused)) int gpuprof_range_pop(void)
{
    static void *known;
    gpuprof_function function = gpuprof_find(&known, "gpuprof_range_pop");
    return function.address ? function.pop() : -2;
}

static __inline__ __attribute__((unused)) void gpuprof_mark(const char *text)
{
    static void *known;
    gpuprof_function function = gpuprof_find(&known, "gpuprof_mark");
    if (function.address)
        function.mark(text);
}

/* `number` is the program's own, so that it means the same after a restart and on all ranks. */
static __inline__ __attribute__((unused)) void gpuprof_step(uint64_t number)
{
    static void *known;
    gpuprof_function function = gpuprof_find(&known, "gpuprof_step");
    if (function.address)
        function.step(number);
}

static __inline__ __attribute__((unused)) void gpuprof_start(void)
{
    static void *known;
    gpuprof_function function = gpuprof_find(&known, "gpuprof_start");
    if (function.address)
        function.plain();
}

static __inline__ __attribute__((unused)) void gpuprof_stop(void)
{
    static void *known;
    gpuprof_function function = gpuprof_find(&known, "gpuprof_stop");
    if (function.address)
        function.plain();
}

/*
 * Has the flight recorder's memory written to the data folder, soon, by gpuprof's own thread; `why`
 * is copied, cut at 255 bytes, and shown. 0, -1 without a flight recorder, -2 without the library.
 */
static __inline__ __attribute__((unused)) int gpuprof_dump(const char *why)
{
    static void *known;
    gpuprof_function function = gpuprof_find(&known, "gpuprof_dump");
    return function.address ? function.dump(why) : -2;
}

#ifdef __cplusplus
}
#endif

#endif
