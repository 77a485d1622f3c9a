/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/announce.h"
#include "base/futex.h"
#include "base/objects.h"
#include "base/real_dlsym.h"
#include "base/say.h"
#include "base/ticks.h"
#include "cupti/gpu_buffers.h"
#include "cupti/gpu_callback.h"
#include "cupti/gpu_describe.h"
#include "cupti/gpu_devices.h"
#include "cupti/gpu_drain.h"
#include "cupti/gpu_flush.h"
#include "cupti/gpu_kinds.h"
#include "cupti/gpu_other_client.h"
#include "cupti/gpu_parse.h"
#include "cupti/gpu_quiet.h"
#include "cupti/gpu_rest.h"
#include "cupti/gpu_scope.h"
#include "cupti/gpu_state.h"
#include "cupti/gpu_stop.h"
#include "cupti/gpu_subscriber.h"
#include "hook/call.h"
#include "record/recorded.h"
#include "record/start.h"
#include "record/synced.h"
#include "record/thread.h"

/* The thread that starts CUPTI needs the loader's lock, which a caller of the waiting thread may
 * hold. */
#define START_WAIT_NS 1000000000u

static int gpu_visit_driver(const struct object *o, void *data)
{
    void **version = data;
    if (!object_is(o, "libcuda.so"))
        return 0;
    *version = object_symbol(o, "cuDriverGetVersion");
    return 1;
}

/* Returns 0 if it cannot be read. */
static unsigned driver_version(void)
{
    void *get_version = NULL;
    int version = 0;
    objects_each(gpu_visit_driver, &get_version);
    if (!get_version || ((CUresult(*)(int *))get_version)(&version) != CUDA_SUCCESS)
        return 0;
    return (unsigned)version;
}

static bool is_held(CUptiResult result)
{
    return result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ||
           result == CUPTI_ERROR_MAX_LIMIT_REACHED;
}

/* Subscribes alone, with the parameters of 13.0, or as one of several. */
static CUptiResult subscribe_as(bool shared, char *holder, size_t holder_bytes)
{
    static char name[] = "gpuprof";
    if (!gpu.cupti.cuptiSubscribe_v2)
        return gpu.cupti.cuptiSubscribe(&gpu.subscriber, gpu_callback, NULL);
    CUpti_SubscriberParams params = {
        .structSize =
            shared ? sizeof params : offsetof(CUpti_SubscriberParams, allowMultipleSubscribers),
        .subscriberName = name,
        .oldSubscriberName = holder,
        .oldSubscriberSize = holder_bytes,
        .allowMultipleSubscribers = shared};
    CUptiResult result = gpu.cupti.cuptiSubscribe_v2(&gpu.subscriber, gpu_callback, NULL, &params);
    holder[holder_bytes - 1] = '\0';
    gpu.shared = shared && result == CUPTI_SUCCESS;
    gpu.scope = gpu.shared ? gpu.subscriber : NULL;
    return result;
}

/*
 * The first subscriber's choice, alone or shared, holds for the whole process. We choose alone:
 * clients that know only the process's records then work as before. We subscribe beside others only
 * if the program has allowed it, or if nothing else works.
 */
static CUptiResult subscribe(char *holder, size_t holder_bytes)
{
    bool can_share = gpu_scope_by_subscriber(&gpu.cupti);
    bool shared = can_share && gpu_subscriber_shares();
    holder[0] = '\0';
    gpu.subscriber = gpu_subscriber_subscription(&gpu.cupti, gpu_callback);
    if (gpu.subscriber)
        return CUPTI_SUCCESS;
    CUptiResult result = subscribe_as(shared, holder, holder_bytes);
    if (is_held(result) && can_share && !shared)
        result = subscribe_as(true, holder, holder_bytes);
    return result;
}

/* Finds a libcupti that the driver accepts, and subscribes. */
static bool find_and_subscribe(void)
{
    char reason[CUPTI_REASON_BYTES_MAX];
    char holder[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN + 1];
    /* static: one thread comes here, once */
    static char refused[CUPTI_REFUSED_MAX][CUPTI_PATH_BYTES_MAX];
    dlsym_find_real(); /* the program may not have called our dlsym yet, and may never do so */
    gpu.driver_version = driver_version();
    struct cupti_search search = {.setting = gp.settings.texts[SETTING_CUPTI],
                                  .homes = {getenv("CUDA_HOME"), "/usr/local/cuda"},
                                  .library_path = getenv("LD_LIBRARY_PATH"),
                                  .refused = refused,
                                  .driver_major = gpu.driver_version / 1000,
                                  .find_symbol = real_dlsym};
    CUptiResult result = CUPTI_SUCCESS;
    for (;;) {
        if (!cupti_library_load(&gpu.cupti, &search, reason, sizeof reason))
            break;
        result = subscribe(holder, sizeof holder);
        if (result == CUPTI_SUCCESS) {
            snprintf(gpu.refused_library, sizeof gpu.refused_library, "%s", refused[0]);
            return true;
        }
        if (is_held(result)) {
            gpu.subscriber = NULL;
            gpu_fail("%s already uses CUPTI, which serves one client per process",
                     holder[0] ? holder : "another profiler");
            return false;
        }
        gpu.subscriber = NULL;
        snprintf(reason, sizeof reason, "%.600s does not work with this driver: %s", gpu.cupti.path,
                 gpu_result_text(result));
        if ((search.setting && search.setting[0]) || search.refused_count == CUPTI_REFUSED_MAX)
            break;
        memcpy(refused[search.refused_count++], gpu.cupti.path, sizeof refused[0]);
    }
    gpu_fail("%s", reason);
    return false;
}

/* No callbacks are needed for the runtime if libcudart is a shared library whose calls the hooks
 * see. */
static int visit_runtime(const struct object *o, void *data)
{
    (void)data;
    return object_is(o, "libcudart.so");
}

static bool shows(unsigned code)
{
    return gpu_is_active() && gpu_detachment() == GPU_HEARS && gpu.is_called_back[code];
}

static bool is_detached(void)
{
    return gpu_detachment() == GPU_DETACHED;
}

static const struct call_watcher callbacks = {.shows = shows, .is_detached = is_detached};

/* Enables callbacks of the driver, and of the runtime if its calls bypass the hooks. */
static void enable_callbacks(bool past_hooks)
{
    uint64_t front = gp.settings.numbers[SETTING_FRONT];
    bool runtime = past_hooks || front == FRONT_CUPTI || front == FRONT_RUNTIME ||
                   !objects_each(visit_runtime, NULL);
    if (front == FRONT_HOOKS)
        return;
    call_watch(&callbacks);
    if (!cupti_callback_map_fill(&gpu.callbacks, gpu.cupti.cuptiGetCallbackName))
        gpu.refused_callbacks++;
    for (unsigned d = 1; d < CUPTI_API_DOMAINS; d++) {
        if (d == CUPTI_CB_DOMAIN_RUNTIME_API ? !runtime : front == FRONT_RUNTIME)
            continue;
        for (uint32_t cbid = 0; cbid < CUPTI_CBID_MAX; cbid++) {
            if (!gpu.callbacks.codes[d][cbid])
                continue;
            if (gpu.cupti.cuptiEnableCallback(1, gpu.subscriber, (CUpti_CallbackDomain)d, cbid) ==
                CUPTI_SUCCESS)
                gpu.is_called_back[gpu.callbacks.codes[d][cbid] - 1] = true;
            else
                gpu.refused_callbacks++;
        }
    }
}

bool gpu_has_callbacks(void)
{
    return gpu_is_active() && gp.settings.numbers[SETTING_FRONT] != FRONT_HOOKS &&
           gpu_detachment() == GPU_HEARS;
}

/* Some versions lack some of these attributes; the code below works without them. */
static void set_attributes(void)
{
    gpu_scope_thread_ids(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    gpu_scope_buffer_attributes();
}

static CUptiResult register_ours(bool yielded)
{
    CUptiResult result = CUPTI_SUCCESS;
    if (!yielded) { /* otherwise the other client's buffers would change under it */
        set_attributes();
        /* Only once: every later registration damages the records that are being written. */
        result = gpu_scope_clock(gpu_timestamp);
        gpu.on_realtime = result == CUPTI_ERROR_NOT_SUPPORTED || is_held(result) ||
                          (result != CUPTI_SUCCESS && gpu.scope);
        if (gpu.on_realtime)
            result = CUPTI_SUCCESS;
    }
    return result == CUPTI_SUCCESS
               ? gpu_scope_register(gpu_other_client_requested, gpu_other_client_completed)
               : result;
}

static bool start_records(bool yielded)
{
    CUptiResult result = register_ours(yielded);
    /* A client that subscribed earlier receives records as a subscriber; then every later client
     * must do so, too. */
    if (result == CUPTI_ERROR_NOT_COMPATIBLE && !gpu.scope && gpu_scope_by_subscriber(&gpu.cupti) &&
        !gpu_subscriber_subscription(&gpu.cupti, gpu_callback)) {
        gpu.scope = gpu.subscriber;
        result = register_ours(yielded);
    }
    if (result == CUPTI_ERROR_NOT_COMPATIBLE)
        gpu_fail("CUPTI gives no records: another client subscribed to them exclusively");
    else if (result != CUPTI_SUCCESS)
        gpu_fail("CUPTI gives no records: %s", gpu_result_text(result));
    else if (!gpu.cupti.sizes.bytes[CUPTI_ACTIVITY_KIND_MEMCPY] && !gpu_scope_measure())
        gpu_fail("%.600s cannot read its own records", gpu.cupti.path);
    if (atomic_load(&gpu.phase) == GPU_DEAD)
        return false;
    gpu.graphs_are_whole = gpu_scope_graphs_are_whole();
    if (gp.settings.numbers[SETTING_KINDS] & KINDS_LATENCY)
        gpu.has_latency = gpu_scope_latency(1) == CUPTI_SUCCESS;
    if (!gpu_kinds_follow()) {
        gpu_fail("CUPTI enabled none of the requested activity kinds");
        return false;
    }
    return true;
}

void gpu_turn(void)
{
    uint32_t phase = atomic_load(&gpu.phase);
    if ((phase != GPU_ACTIVE && phase != GPU_YIELDED) || atomic_load(&gpu.epoch) != epoch_now())
        return; /* or in the child of a fork */
    if (recorded_asked() & (OFF_CALLBACKS | OFF_CUPTI))
        gpu_flush_wake();
    struct quiet quiet = quiet_begin();
    gpu_rest_turn();
    if (gpu_kinds_are_due() && !gpu_kinds_follow()) {
        if (phase == GPU_ACTIVE)
            /* the records from before the pause */
            gpu_drain(gp.settings.numbers[SETTING_EXIT_WAIT]);
        gpu_fail("CUPTI enabled no activity again after %s",
                 phase == GPU_ACTIVE ? "a pause" : "another client released it");
    }
    quiet_end(&quiet);
}

void gpu_context_goes(void)
{
    gpu_drain(gp.settings.numbers[SETTING_EXIT_WAIT]);
}

void gpu_end(uint64_t ns)
{
    gpu_flush_is_last();
    gpu_drain(ns);
    uint32_t active = GPU_ACTIVE, yielded = GPU_YIELDED;
    if (!atomic_compare_exchange_strong(&gpu.phase, &active, GPU_DEAD))
        atomic_compare_exchange_strong(&gpu.phase, &yielded, GPU_DEAD);
}

void gpu_dies(bool is_certain, uint64_t ns)
{
    if (is_certain) {
        gpu_flush_is_last();
        gpu_drain(ns);
    } else {
        gpu_drain_finished(ns);
    }
}

static void gpu_at_exit(void)
{
    gpu_end(gp.settings.numbers[SETTING_EXIT_WAIT]);
}

static void gpu_start(bool subscribed)
{
    bool yielded = gpu_other_client_is_at_work();
    if (yielded)
        gpu_other_client_has(true);
    if (!gpu_buffers_create(gp.settings.numbers[SETTING_GPU_BUFFER])) {
        gpu_fail("cannot allocate CUPTI's buffers: %s", error_text(errno));
    } else if ((subscribed || find_and_subscribe()) && start_records(yielded)) {
        if (!subscribed)
            enable_callbacks(false);
        if (gpu_parse_start() && gpu_flush_start()) {
            /* Registered after cuInit, so that it runs before the driver's own handler. */
            atexit(gpu_at_exit);
            gpu_report_source();
            gpu_describe_now(&this_thread);
            atomic_store(&gpu.epoch, epoch_now());
            atomic_store(&gpu.phase, yielded ? GPU_YIELDED : GPU_ACTIVE);
            gpu_turn(); /* applies changes that were requested meanwhile */
            if (gp.settings.numbers[SETTING_DEVICE])
                gpu_flush_wake(); /* reads the list of devices before they have work */
        } else {
            gpu_fail("cannot start a thread for CUPTI's records");
        }
    }
}

static bool is_off(void)
{
    if (gp.settings.numbers[SETTING_GPU] != GPU_SETTING_OFF)
        return false;
    gpu_set_status("absent: turned off (%s)", setting_infos[SETTING_GPU].variable);
    atomic_store(&gpu.phase, GPU_DEAD);
    futex_wake_all(&gpu.phase);
    return true;
}

static void start_if_due(void)
{
    uint32_t phase = GPU_OFF;
    if (atomic_load(&gpu.cuda_pid) != (uint32_t)getpid() || epoch_now() == EPOCH_NONE)
        return;
    if (atomic_load(&gpu.phase) == GPU_WATCHING)
        phase = GPU_WATCHING;
    if (!atomic_compare_exchange_strong(&gpu.phase, &phase, GPU_STARTING) || is_off())
        return;
    struct quiet quiet = quiet_begin();
    uint64_t begin = ticks_now();
    gpu_start(phase == GPU_WATCHING);
    thread_cost_time(this_thread.cost, COST_START, ticks_now() - begin);
    futex_wake_all(&gpu.phase);
    quiet_end(&quiet);
}

void gpu_watch(void)
{
    uint32_t phase = GPU_OFF;
    atomic_store(&gpu.cuda_pid, (uint32_t)getpid());
    start_if_due();
    if (!start_load_settings() ||
        !atomic_compare_exchange_strong(&gpu.phase, &phase, GPU_STARTING) || is_off())
        return;
    struct quiet quiet = quiet_begin();
    gpu.past_hooks = true;
    if (find_and_subscribe()) {
        enable_callbacks(true);
        atomic_store(&gpu.phase, GPU_WATCHING);
    }
    futex_wake_all(&gpu.phase);
    quiet_end(&quiet);
}

void gpu_load(void)
{
    if (start_is_switched_on(SETTING_GPU))
        announce_by("CUDA_INJECTION64_PATH"); /* see gpu_watch */
}

void gpu_cuda_runs(void)
{
    atomic_store(&gpu.cuda_pid, (uint32_t)getpid());
    start_if_due();
}

void gpu_recording_runs(bool may_wait)
{
    static atomic_bool is_too_long; /* one thread has waited in vain; do not let others wait */
    start_if_due();
    if (!may_wait || atomic_load(&gpu.phase) != GPU_STARTING || atomic_load(&is_too_long))
        return;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), end_ns = now_ns + START_WAIT_NS;
    while (atomic_load(&gpu.phase) == GPU_STARTING && now_ns < end_ns) {
        futex_wait(&gpu.phase, GPU_STARTING, end_ns - now_ns);
        now_ns = clock_ns(CLOCK_MONOTONIC);
    }
    if (atomic_load(&gpu.phase) == GPU_STARTING)
        atomic_store(&is_too_long, true);
}

void gpu_forget(void)
{
    gpu_devices_forget();
    atomic_store(&synced.state, SYNCED_NOBODY);
    if (atomic_load(&gpu.phase) == GPU_OFF)
        return;
    atomic_store(&gpu.phase, GPU_DEAD);
    gpu_set_status("absent: the process was forked after CUDA was initialised");
}
