/* SPDX-License-Identifier: Apache-2.0 */
#include "device/device_thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/say.h"
#include "base/ticks.h"
#include "cuda/current_device.h"
#include "cupti/gpu_devices.h"
#include "cupti/gpu_drain.h"
#include "device/device_early.h"
#include "device/device_source.h"
#include "record/own_thread.h"
#include "record/recorded.h"
#include "record/thread.h"

#define SOURCES_MAX (2 * GPU_DEVICES_MAX)
#define SECOND_NS   1000000000u
#define LOOK_NS     50000000u /* how often to look for devices while none is known */
#define SOON_NS     5000000u  /* the same for contexts, at the beginning */
#define SOON_MAX    200
#define DRAIN_NS    200000000u /* at the end: time for records that CUPTI still holds */
/* how often CUPTI is asked to flush for this; afterwards its regular flushes suffice */
#define LOOKS_MAX             40
#define APART_NS              20000000u   /* shortest time between two readings */
#define END_NS                500000000u  /* the last reading takes some milliseconds */
#define HANG_NS               2000000000u /* a call that takes this long is considered hung */
#define WINDOW                5           /* number of readings whose cost is averaged */
#define COST_PART             100u        /* readings may take 1/100 of the time */
#define PERIOD_MAX_NS         5000000000u
#define RESTARTS_MAX          3
#define INITIAL_PID_NAMESPACE 0xeffffffcu /* the kernel's PROC_PID_INIT_INO */

/* Each member names its writer. Reset in the child of a fork. */
static struct {
    _Atomic uint32_t running;   /* futex: the thread exists */
    _Atomic uint32_t wake;      /* futex: incremented to make the thread check */
    _Atomic uint32_t ending;    /* set by the thread that ends the recording */
    _Atomic uint64_t waited_ns; /* how long the end has waited in vain */
    /* it was reported that the driver does not answer; used by the writer */
    bool is_reported;
} control;

/* Used by this thread only. */
static struct {
    struct device_source sources[SOURCES_MAX];
    unsigned count;
    uint64_t taken; /* CUDA devices that have a source, one bit each */
    uint64_t period_ns;
    uint64_t read_ns;         /* begin of the last reading; 0: none */
    uint64_t listed_ns;       /* when processes were listed */
    uint64_t cost_ns[WINDOW]; /* cost of the last readings */
    unsigned cost_count;
    unsigned looks;
    unsigned waits; /* looks for a first context so far */
    unsigned restarts;
    uint32_t own_pid;  /* as NVML knows it; 0: not known */
    bool is_off;       /* recording is stopped */
    bool has_given_up; /* no more readings will come */
    bool is_started;   /* NVML is started */
} all;

_Static_assert(GPU_DEVICES_MAX <= 64, "a bit each");

static uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* ---- which devices there are ----------------------------------------------------------------- */

/* No more readings of any device will come; writes the reason to the stream. */
static void device_thread_give_up(struct thread *me, enum device_missing_reason reason,
                                  nvmlReturn_t result, const char *why)
{
    all.has_given_up = true;
    device_tell_missing(me, &(struct device_lack){.reason = reason, .result = result, .why = why});
}

/* Registered so that it runs before the library's own exit handlers and destructors. */
static void device_thread_at_exit(void)
{
    device_end(gp.settings.numbers[SETTING_EXIT_WAIT]);
}

static void report_of_source(struct thread *me, const struct device_source *s, nvmlReturn_t result)
{
    device_tell_missing(me, &(struct device_lack){.source = s->number,
                                                  .reason = device_missing_reason_of(result),
                                                  .result = result,
                                                  .why = nvml_result_text(result)});
}

/* The end of the process does not wait for this. */
static bool start_nvml(struct thread *me)
{
    static bool is_registered; /* in a child, too, which inherits the registration */
    char reason[NVML_REASON_BYTES_MAX];
    nvmlReturn_t result;
    if (all.is_started || atomic_load(&control.ending))
        return all.is_started;
    all.is_started = nvml_library_start(reason, &result);
    if (!all.is_started)
        device_thread_give_up(me,
                              result == NVML_ERROR_NO_PERMISSION ? DEVICE_ABSENT_NO_PERMISSION
                                                                 : DEVICE_ABSENT_LIBRARY,
                              result, reason);
    else if (!is_registered)
        is_registered = atexit(device_thread_at_exit) == 0;
    if (all.is_started && !all.is_off)
        device_early_read();
    return all.is_started;
}

static struct device_source *device_thread_add(void)
{
    if (all.count == SOURCES_MAX)
        return NULL;
    struct device_source *s = &all.sources[all.count++];
    *s = (struct device_source){.number = all.count};
    return s;
}

static void add_found(struct thread *me, struct device_source *s, nvmlReturn_t result)
{
    bool has_early = result == NVML_SUCCESS && !device_is_part(s);
    device_source_describe(s, me, all.period_ns, has_early ? device_early_take(s->uuid) : NULL);
    if (result == NVML_SUCCESS)
        return;
    s->handle = NULL;
    report_of_source(me, s, result);
}

/* Adds the devices that CUPTI has reported since the last look. A MIG instance is followed by its
 * GPU. */
static void add_reported(struct thread *me)
{
    struct gpu_device device;
    for (unsigned i = 0; i < GPU_DEVICES_MAX; i++) {
        struct device_source *s;
        if (all.taken >> i & 1 || !gpu_devices_get(i, &device))
            continue;
        if (!start_nvml(me) || !(s = device_thread_add()))
            return;
        all.taken |= 1ull << i;
        s->device = i + 1;
        add_found(me, s, device_source_find(s, device.uuid, device.mig));
        struct device_source *whole = s->handle && device_is_part(s) ? device_thread_add() : NULL;
        if (whole) {
            whole->device = i + 1;
            add_found(me, whole, device_source_take(whole, s->whole));
        }
    }
}

/* Without CUPTI's records: adds the devices that list this process. */
static void add_listed(struct thread *me)
{
    unsigned device_count = 0, process_count;
    uint64_t bytes;
    bool has_own;
    if (!all.own_pid) {
        device_thread_give_up(
            me, DEVICE_ABSENT_UNKNOWN, NVML_SUCCESS,
            "cannot find the devices of this process: it has no GPU rows, and NVML lists pids "
            "of another PID namespace");
        return;
    }
    if (!start_nvml(me) || NVML_CALL(nvmlDeviceGetCount_v2, &device_count) != NVML_SUCCESS)
        return;
    for (unsigned i = 0; i < device_count; i++) {
        nvmlDevice_t handle;
        struct device_source *s;
        if (NVML_CALL(nvmlDeviceGetHandleByIndex_v2, i, &handle) == NVML_SUCCESS &&
            device_processes(handle, all.own_pid, &process_count, &has_own, &bytes) ==
                NVML_SUCCESS &&
            has_own && (s = device_thread_add()))
            add_found(me, s, device_source_take(s, handle));
    }
}

/* Known from the hooks; CUPTI's records come later. */
static bool has_context(void)
{
    for (int i = 0; i < GPU_DEVICES_MAX; i++)
        if (device_has_context(i))
            return true;
    return false;
}

/* Looks for devices. Returns false if none will come. */
static bool device_thread_look(struct thread *me, bool is_ending)
{
    if (!all.is_started && has_context() && !start_nvml(me) && all.has_given_up)
        return false;
    if (is_ending && !all.count)
        gpu_drain(DRAIN_NS);
    add_reported(me);
    if (all.taken)
        return !all.has_given_up;
    if (gpu_devices_come()) {
        if (all.looks++ < LOOKS_MAX)
            gpu_flush_wake(); /* CUPTI may have the records, and waits to be asked */
    } else if (!all.count && (all.own_pid || !is_ending)) {
        add_listed(me);
        if (!all.count && ++all.looks == LOOKS_MAX)
            device_thread_give_up(
                me, DEVICE_ABSENT_UNKNOWN, NVML_SUCCESS,
                "cannot find the devices of this process: it has no GPU rows, and no process "
                "list of NVML has it");
    }
    return !all.has_given_up;
}

/* ---- readings -------------------------------------------------------------------------------- */

static void stop_source(struct thread *me, struct device_source *s, nvmlReturn_t result)
{
    s->handle = NULL;
    report_of_source(me, s, result);
}

/* The program has shut NVML down more often than it started it. Handles may have changed. */
static nvmlReturn_t restart(struct device_source *s)
{
    nvmlReturn_t result = NVML_ERROR_UNINITIALIZED;
    if (all.restarts++ < RESTARTS_MAX)
        result = NVML_CALL(nvmlInit_v2);
    if (result == NVML_SUCCESS)
        result = device_source_find(s, s->uuid, s->mig);
    memset(&s->gpm, 0, sizeof s->gpm);
    return result;
}

/* Reads all devices. Returns true if something was read. */
static bool device_thread_read_all(struct thread *me, uint64_t begin_ns)
{
    bool has_any = false, lists = begin_ns - all.listed_ns >= SECOND_NS;
    if (lists)
        all.listed_ns = begin_ns;
    for (unsigned i = 0; i < all.count; i++) {
        struct device_source *s = &all.sources[i];
        if (!s->handle)
            continue;
        nvmlReturn_t result = device_source_read(s, me, all.own_pid, lists);
        if (result == NVML_ERROR_UNINITIALIZED)
            result = restart(s);
        if (result == NVML_SUCCESS)
            has_any = true;
        else
            stop_source(me, s, result);
    }
    return has_any;
}

static void forget_between(void)
{
    for (unsigned i = 0; i < all.count; i++)
        device_gpm_forget(&all.sources[i].gpm);
}

/* Typical cost of a reading: the mean of the last ones without the most expensive. */
static uint64_t usual_cost_ns(void)
{
    uint64_t sum_ns = 0, most_ns = 0;
    for (unsigned i = 0; i < WINDOW; i++) {
        sum_ns += all.cost_ns[i];
        most_ns = all.cost_ns[i] > most_ns ? all.cost_ns[i] : most_ns;
    }
    return (sum_ns - most_ns) / (WINDOW - 1);
}

/* Halves the rate while readings take more than their share of the time. Returns false if they must
 * end. */
static bool keep_cheap(struct thread *me, uint64_t cost_ns)
{
    char why[NVML_REASON_BYTES_MAX];
    all.cost_ns[all.cost_count++ % WINDOW] = cost_ns;
    uint64_t usual_ns = usual_cost_ns(), before_ns = all.period_ns;
    if (all.cost_count < WINDOW)
        return true;
    while (usual_ns * COST_PART > all.period_ns && all.period_ns < PERIOD_MAX_NS)
        all.period_ns *= 2;
    if (usual_ns * COST_PART > all.period_ns) {
        snprintf(why, sizeof why,
                 "one reading takes the driver %llu ms, more than 1 %% of the time even at one "
                 "reading in %llu s",
                 (unsigned long long)usual_ns / 1000000,
                 (unsigned long long)all.period_ns / SECOND_NS);
        device_thread_give_up(me, DEVICE_ABSENT_SLOW, NVML_SUCCESS, why);
        return false;
    }
    for (unsigned i = 0; i < all.count && all.period_ns != before_ns; i++)
        if (all.sources[i].handle)
            device_source_describe(&all.sources[i], me, all.period_ns, NULL);
    return true;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Returns the time until the next reading; 0: it is due. */
static uint64_t rest_ns(bool is_off, bool is_ending, uint64_t now)
{
    uint64_t since = all.read_ns ? now - all.read_ns : UINT64_MAX;
    bool turns = is_off != all.is_off || (is_ending && !is_off);
    if (!all.count)
        return !all.is_started && all.waits++ < SOON_MAX ? SOON_NS : LOOK_NS;
    if (turns)
        return since >= APART_NS || is_ending ? 0 : APART_NS - since;
    if (is_off)
        return SECOND_NS;
    return since >= all.period_ns ? 0 : all.period_ns - since;
}

/* Returns true if reading goes on. */
static bool read_once(struct thread *me, bool is_off, uint64_t begin_ns)
{
    if (all.is_off && !is_off)
        forget_between();
    all.is_off = is_off;
    /*
     * The next reading is due relative to when this one was due, unless this one is late already.
     */
    bool is_late = !all.read_ns || begin_ns - all.read_ns >= 2 * all.period_ns;
    bool is_first = !all.read_ns;
    all.read_ns =
        is_late || begin_ns < all.read_ns + all.period_ns ? begin_ns : all.read_ns + all.period_ns;
    if (!device_thread_read_all(me, begin_ns))
        return false;
    /* The first reading finds out what can be read. */
    return is_first || keep_cheap(me, now_ns() - begin_ns);
}

/* Reads until nothing can be read any more, or the recording ends. */
static void read_on(struct thread *me)
{
    for (bool is_ending = false; !is_ending && atomic_load(&gp.writer.running);) {
        uint32_t wake = atomic_load(&control.wake);
        is_ending = atomic_load(&control.ending);
        if (!thread_attach(me) || !device_thread_look(me, is_ending))
            return;
        bool is_off = recorded_asked() & OFF_CALLS;
        uint64_t now = now_ns(), rest = rest_ns(is_off, is_ending, now);
        if (rest == 0 && !read_once(me, is_off, now))
            return;
        own_thread_report(COST_DEVICE);
        if (rest && !is_ending)
            futex_wait(&control.wake, wake, rest);
    }
}

static void *device_main(void *data)
{
    struct thread *me = &this_thread;
    (void)data;
    own_thread_begin("gpuprof-device");
    read_on(me);
    bool is_ending = atomic_load(&control.ending);
    if (is_ending && !all.count && !all.has_given_up && has_context() && thread_takes_part(me))
        device_thread_give_up(me, DEVICE_ABSENT_UNKNOWN, NVML_SUCCESS,
                              "the process ended before its devices were known");
    /* Not at the end of the process: NVML's resources are released with it, and a driver that hangs
     * would delay the end for nothing. */
    if (all.is_started && !is_ending)
        NVML_CALL(nvmlShutdown);
    own_thread_report(COST_DEVICE);
    if (thread_takes_part(me))
        thread_leave(me);
    atomic_store(&control.running, 0);
    futex_wake_all(&control.running);
    own_thread_end();
    return NULL;
}

void device_start(struct thread *writer)
{
    (void)writer;
    if (!gp.settings.numbers[SETTING_DEVICE])
        return;
    memset(&all, 0, sizeof all);
    device_early_forget();
    all.is_off = recorded_asked() & OFF_CALLS;
    all.period_ns = gp.settings.numbers[SETTING_DEVICE_PERIOD];
    if (gp.header.pid_namespace == INITIAL_PID_NAMESPACE)
        all.own_pid = (uint32_t)getpid();
    atomic_store(&control.running, 1);
    if (own_thread_create(device_main, NULL) != 0) {
        atomic_store(&control.running, 0);
        note(SAY_DEVICE, "no device counters: cannot start a thread for them");
    }
}

void device_turn(void)
{
    if (!atomic_load(&control.running))
        return;
    atomic_fetch_add(&control.wake, 1);
    futex_wake_all(&control.wake);
}

/* Reports that the driver does not answer, which the thread that waits for it cannot. At the end of
 * the process that is a call as old as the end has waited; others are merely slow. */
void device_tick(struct thread *writer)
{
    char why[NVML_REASON_BYTES_MAX];
    uint64_t since_ns, now = now_ns(), waited_ns = atomic_load(&control.waited_ns);
    const char *name = atomic_load(&control.running) ? nvml_under_way(&since_ns) : NULL;
    if (!name || now < since_ns || control.is_reported ||
        now - since_ns < (waited_ns ? waited_ns : HANG_NS))
        return;
    control.is_reported = true;
    snprintf(why, sizeof why, "the driver does not answer: %s has not returned for %llu ms", name,
             (unsigned long long)(now - since_ns) / 1000000);
    device_tell_missing(writer, &(struct device_lack){.reason = DEVICE_ABSENT_SLOW, .why = why});
}

void device_end(uint64_t ns)
{
    uint64_t begin_ns = now_ns(), now = begin_ns, end_ns = now + (ns < END_NS ? ns : END_NS);
    if (!atomic_load(&control.running) || atomic_load(&control.waited_ns))
        return;
    atomic_store(&control.ending, 1);
    device_turn();
    while (atomic_load(&control.running) && now < end_ns) {
        futex_wait(&control.running, 1, end_ns - now);
        now = now_ns();
    }
    if (atomic_load(&control.running))
        atomic_store(&control.waited_ns, now - begin_ns + 1);
}

void device_forget(void)
{
    nvml_asks(NULL);
    memset(&control, 0, sizeof control);
}
