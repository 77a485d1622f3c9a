/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim_cupti.h"

/* The way to the driver, what may happen without one, and the questions with simple answers. */

const struct sim_traced *cupti_driver;
__thread struct cupti_thread cupti_thread;

static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_gone;        /* the driver's atexit handler has run; atomic */
static uint32_t *fork_page; /* zero in a child */
static int thread_id_types[SCOPE_COUNT];
static __thread CUptiResult last_error;

void cupti_misuse(const char *format, ...)
{
    static bool is_said; /* several threads may find the same thing wrong: one line */
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    while (__atomic_exchange_n(&is_said, true, __ATOMIC_ACQ_REL))
        pause();
    fprintf(stderr, "sim-cupti: %s\n", text);
    abort();
}

/* 13.0 remembers nothing until it has a driver. */
CUptiResult cupti_error(CUptiResult result)
{
    if (result != CUPTI_SUCCESS && (SIM_CUPTI < 130 || cupti_driver))
        last_error = result;
    return result;
}

void cupti_note(const char *what, CUptiResult result, const struct sim_arg *args, unsigned count)
{
    if (!cupti_switches.log || !cupti_driver)
        return;
    uint64_t now_ns = sim_now_ns();
    const struct sim_note note = {.layer = 'P',
                                  .what = what,
                                  .start_ns = now_ns,
                                  .end_ns = now_ns,
                                  .result = result,
                                  .args = args,
                                  .arg_count = count};
    cupti_driver->log->note(&note);
}

static void told_work(const struct sim_trace_work *work)
{
    cupti_lock("work");
    record_work(work);
    cupti_unlock();
}

static void told_resource(const struct sim_trace_resource *resource)
{
    bool is_destroy = resource->kind == SIM_STREAM_DESTROY;
    cupti_lock("resource");
    record_resource(resource);
    cupti_unlock();
    cupti_thread.in_stream_destroy = is_destroy;
    callback_resource(resource);
    cupti_thread.in_stream_destroy = false;
}

static void told_sync(const struct sim_trace_sync *sync)
{
    cupti_lock("synchronization");
    record_sync(sync);
    cupti_unlock();
    callback_sync(sync);
}

static void told_memory(const struct sim_trace_memory *memory)
{
    cupti_lock("memory");
    record_memory(memory);
    cupti_unlock();
}

/* What is still here is lost, as with the real one. */
static void told_gone(void)
{
    if (cupti_in_child()) /* somebody who is not here may have the lock */
        return;
    cupti_lock("exit");
    size_t count = buffer_discard_all();
    cupti_unlock();
    __atomic_store_n(&is_gone, true, __ATOMIC_RELEASE);
    const struct sim_arg args[] = {NOTE_U("records", count)};
    cupti_note("lost", 0, args, 1);
}

static const struct sim_tracer tracer = {
    .enter = callback_enter,
    .leave = callback_leave,
    .work = told_work,
    .resource = told_resource,
    .sync = told_sync,
    .memory = told_memory,
    .driver_gone = told_gone,
};

static CUptiResult no_driver(void)
{
    return SIM_CUPTI >= 130 ? CUPTI_ERROR_UNKNOWN : CUPTI_ERROR_NOT_INITIALIZED;
}

bool cupti_is_dead(void)
{
    return __atomic_load_n(&is_gone, __ATOMIC_ACQUIRE) || cupti_in_child();
}

bool cupti_in_child(void)
{
    const uint32_t *page = __atomic_load_n(&fork_page, __ATOMIC_ACQUIRE);
    return page && *page == 0;
}

static void fork_child(void)
{
    *fork_page = 0;
}

/* The handler is for emulators, which ignore the advice. */
static void fork_watch(void)
{
    uint32_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        abort();
    madvise(page, 4096, MADV_WIPEONFORK);
    *page = 1;
    __atomic_store_n(&fork_page, page, __ATOMIC_RELEASE);
    pthread_atfork(NULL, NULL, fork_child);
}

static CUptiResult attach(void)
{
    typedef const struct sim_traced *attach_function(const struct sim_tracer *);
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    attach_function *function =
        library ? (attach_function *)(uintptr_t)dlsym(library, "sim_cupti_attach") : NULL;
    if (!function)
        return no_driver();
    const struct sim_traced *driver = function(NULL);
    if (cupti_switches.is_newer || driver->version() / 1000 < SIM_CUPTI / 10)
        return CUPTI_ERROR_NOT_INITIALIZED;
    bool was_ready = false;
    cupti_thread.is_inside = true;
    int result = driver->init(&was_ready);
    cupti_thread.is_inside = false;
    if (result != 0)
        return no_driver();
    if (!fork_page) /* before anybody can be called back, and fork */
        fork_watch();
    __atomic_store_n(&cupti_driver, driver, __ATOMIC_RELEASE);
    if (!function(&tracer)) {
        __atomic_store_n(&cupti_driver, NULL, __ATOMIC_RELEASE);
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    }
    const struct sim_arg args[] = {NOTE_U("implicit", !was_ready), NOTE_U("version", SIM_CUPTI)};
    cupti_note("attached", 0, args, 2);
    return CUPTI_SUCCESS;
}

CUptiResult cupti_ready(const char *function)
{
    if (cupti_thread.buffer_callback)
        cupti_misuse("%s called inside the client's %s callback", function,
                     cupti_thread.buffer_callback);
    if (cupti_is_dead() || cupti_switches.is_refused)
        return cupti_error(no_driver());
    CUptiResult result = CUPTI_SUCCESS;
    if (!__atomic_load_n(&cupti_driver, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(&attach_lock);
        result = cupti_driver ? CUPTI_SUCCESS : attach();
        pthread_mutex_unlock(&attach_lock);
    }
    return cupti_error(result == CUPTI_SUCCESS ? cupti_failure(function) : result);
}

uint32_t cupti_thread_id(unsigned scope)
{
    return thread_id_types[scope] == SIM_CUPTI_THREAD_ID_SYSTEM
               ? (uint32_t)syscall(SYS_gettid)
               : (uint32_t)(uintptr_t)pthread_self();
}

CUptiResult cupti_thread_id_type(unsigned scope, int type)
{
    if (type < 0 || type > SIM_CUPTI_THREAD_ID_SYSTEM)
        return CUPTI_ERROR_INVALID_PARAMETER;
    thread_id_types[scope] = type;
    return CUPTI_SUCCESS;
}

CUPTI_EXPORT CUptiResult cuptiGetVersion(uint32_t *version)
{
    if (!version)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *version = SIM_CUPTI == 118 ? 18 : SIM_CUPTI == 124 ? 22 : SIM_CUPTI == 130 ? 130001 : 130500;
    return cupti_failure(__func__);
}

CUPTI_EXPORT CUptiResult cuptiGetLastError(void)
{
    CUptiResult result = last_error;
    last_error = CUPTI_SUCCESS;
    return result;
}

static const char *const result_names[] = {
    "SUCCESS",
    "ERROR_INVALID_PARAMETER",
    "ERROR_INVALID_DEVICE",
    "ERROR_INVALID_CONTEXT",
    "ERROR_INVALID_EVENT_DOMAIN_ID",
    "ERROR_INVALID_EVENT_ID",
    "ERROR_INVALID_EVENT_NAME",
    "ERROR_INVALID_OPERATION",
    "ERROR_OUT_OF_MEMORY",
    "ERROR_HARDWARE",
    "ERROR_PARAMETER_SIZE_NOT_SUFFICIENT",
    "ERROR_API_NOT_IMPLEMENTED",
    "ERROR_MAX_LIMIT_REACHED",
    "ERROR_NOT_READY",
    "ERROR_NOT_COMPATIBLE",
    "ERROR_NOT_INITIALIZED",
    "ERROR_INVALID_METRIC_ID",
    "ERROR_INVALID_METRIC_NAME",
    "ERROR_QUEUE_EMPTY",
    "ERROR_INVALID_HANDLE",
    "ERROR_INVALID_STREAM",
    "ERROR_INVALID_KIND",
    "ERROR_INVALID_EVENT_VALUE",
    "ERROR_DISABLED",
    "ERROR_INVALID_MODULE",
    "ERROR_INVALID_METRIC_VALUE",
    "ERROR_HARDWARE_BUSY",
    "ERROR_NOT_SUPPORTED",
    "ERROR_UM_PROFILING_NOT_SUPPORTED",
    "ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE",
    "ERROR_UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES",
    "ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS",
    "ERROR_CDP_TRACING_NOT_SUPPORTED",
    "ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED",
    "ERROR_CUDA_COMPILER_NOT_COMPATIBLE",
    "ERROR_INSUFFICIENT_PRIVILEGES",
    NULL, /* 36 and 37 are defined, and unknown to the real one, too */
    NULL,
    "ERROR_LEGACY_PROFILER_NOT_SUPPORTED",
    "ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
    "ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
    "ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED",
    "ERROR_CMP_DEVICE_NOT_SUPPORTED",
    "ERROR_MIG_DEVICE_NOT_SUPPORTED",
    "ERROR_SLI_DEVICE_NOT_SUPPORTED",
    "ERROR_WSL_DEVICE_NOT_SUPPORTED",
    "ERROR_INVALID_CHIP_NAME",
};

CUPTI_EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    static char texts[sizeof result_names / sizeof result_names[0]][64];
    enum { COUNT = SIM_CUPTI >= 130 ? 47 : 43 };
    if (!text)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *text = "<unknown>";
    if (result == CUPTI_ERROR_UNKNOWN) {
        *text = "CUPTI_ERROR_UNKNOWN";
        return CUPTI_SUCCESS;
    }
    if (result < 0 || result >= COUNT || !result_names[result])
        return CUPTI_ERROR_INVALID_PARAMETER;
    snprintf(texts[result], sizeof texts[result], "CUPTI_%s", result_names[result]);
    *text = texts[result];
    return CUPTI_SUCCESS;
}

CUPTI_EXPORT CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
    return timestamp ? clock_now(0, timestamp) : CUPTI_ERROR_INVALID_PARAMETER;
}

#if SIM_CUPTI >= 133
CUPTI_EXPORT CUptiResult cuptiGetTimestamp_v2(CUpti_SubscriberHandle given, uint64_t *timestamp)
{
    unsigned scope = 0;
    CUptiResult result = timestamp ? scope_of(given, &scope, NULL) : CUPTI_ERROR_INVALID_PARAMETER;
    return result == CUPTI_SUCCESS ? clock_now(scope, timestamp) : result;
}
#endif

CUPTI_EXPORT CUptiResult cuptiSetThreadIdType(int type)
{
    CUptiResult result = cupti_ready(__func__);
    if (result == CUPTI_SUCCESS && scope_is_shared())
        result = cupti_error(CUPTI_ERROR_NOT_SUPPORTED);
    if (result == CUPTI_SUCCESS)
        result = cupti_error(cupti_thread_id_type(0, type));
    CUPTI_NOTE(result, NOTE_U("type", type));
    return result;
}

CUPTI_EXPORT CUptiResult cuptiGetThreadIdType(int *type)
{
    if (!type)
        return cupti_error(CUPTI_ERROR_INVALID_PARAMETER);
    CUptiResult result = cupti_ready(__func__);
    if (result == CUPTI_SUCCESS && scope_is_shared())
        result = cupti_error(CUPTI_ERROR_NOT_SUPPORTED);
    if (result == CUPTI_SUCCESS)
        *type = thread_id_types[0];
    return result;
}

#define ASK(parameter, wrong, call)                                                                \
    {                                                                                              \
        if (!id || !(parameter))                                                                   \
            return cupti_error(CUPTI_ERROR_INVALID_PARAMETER);                                     \
        CUptiResult result = cupti_ready(__func__);                                                \
        if (result == CUPTI_SUCCESS && (call) != 0)                                                \
            result = cupti_error(wrong);                                                           \
        return result;                                                                             \
    }

CUPTI_EXPORT CUptiResult cuptiGetContextId(void *context, uint32_t *id)
    ASK(true, CUPTI_ERROR_INVALID_CONTEXT, cupti_driver->context_id(context, id))

        CUPTI_EXPORT CUptiResult cuptiGetDeviceId(void *context, uint32_t *id)
            ASK(true, CUPTI_ERROR_INVALID_CONTEXT, cupti_driver->context_device(context, id))

                CUPTI_EXPORT CUptiResult
    cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread, uint32_t *id)
        ASK(true, CUPTI_ERROR_INVALID_STREAM,
            cupti_driver->stream_id(context, stream, per_thread != 0, id))

            CUPTI_EXPORT CUptiResult cuptiGetGraphId(void *graph, uint32_t *id)
                ASK(graph, CUPTI_ERROR_INVALID_PARAMETER, cupti_driver->graph_id(graph, id))

                    CUPTI_EXPORT CUptiResult cuptiGetGraphNodeId(void *node, uint64_t *id)
                        ASK(node, CUPTI_ERROR_INVALID_PARAMETER, cupti_driver->node_id(node, id))

#if SIM_CUPTI >= 124
                            CUPTI_EXPORT CUptiResult
    cuptiGetGraphExecId(void *exec, uint32_t *id)
        ASK(exec, CUPTI_ERROR_INVALID_PARAMETER, cupti_driver->exec_id(exec, id))
#endif

    /* Other profilers' words: it never goes well. The switch lets a test see what comes after. */
    CUPTI_EXPORT CUptiResult cuptiFinalize(void)
{
    if (!cupti_switches.may_finalize)
        cupti_misuse("cuptiFinalize called");
    CUptiResult result = cupti_ready(__func__);
    if (result != CUPTI_SUCCESS || callback_subscriber_count() > 1)
        return result; /* with several, nobody ends it for the others */
    callback_unsubscribe_all();
    cupti_lock(__func__);
    buffer_discard_all();
    name_forbid();
    cupti_unlock();
    CUPTI_NOTE(result);
    return result;
}
