/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of CUPTI that does what its arguments say, one step each, and prints what comes of it:
 *
 *     result STEP CODE                      every call of CUPTI
 *     callback SITE DOMAIN CBID FUNCTION correlation=N key=value ...
 *     request THREAD / buffer SIZE VALID    the buffer callbacks
 *     record KIND member=value ...          every record, as it lies in the buffer
 *
 * CUPTI_LIB names the library; CUPTI_KINDS, CUPTI_CALLBACKS (domain:cbid,...), CUPTI_ATTRIBUTES
 * (number=value,...), CUPTI_BUFFER (bytes), CUPTI_BUFFERS (how many before NULL).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cupti_functions.h"
#include "cupti_work.h"

static CUpti_SubscriberHandle subscriber;
static const char *kept_name; /* of a kernel, out of a record */
static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    size_t buffer_bytes;
    long buffers_left;
    bool is_dirty, takes_lock, flushes_in_request, flushes_in_complete, keeps_data;
    bool calls_cuda, flushes_in_destroy, is_quiet;
    uint8_t *last_request;
} how = {.buffer_bytes = 65536, .buffers_left = -1};

static void done(const char *step, CUptiResult result)
{
    printf("result %s %d\n", step, result);
}

/* The lists in the environment: NUMBER SEPARATOR NUMBER, ... */
static void each_pair(const char *text, void (*use)(long first, long second))
{
    while (text && *text) {
        char *end;
        long first = strtol(text, &end, 10), second = 0;
        if (*end == ':' || *end == '=')
            second = strtol(end + 1, &end, 10);
        use(first, second);
        text = *end ? end + 1 : end;
    }
}

static const struct {
    int kind;
    unsigned offset, width;
    const char *member;
} fields[] = {
#define KIND_KERNEL                          10
#define KIND_MEMCPY                          1
#define KIND_MEMCPY2                         22
#define KIND_MEMSET                          2
#define KIND_SYNC                            38
#define KIND_EVENT                           36
#define KIND_GRAPH                           51
#define KIND_OVERHEAD                        17
#define KIND_MEMORY                          49
#define KIND_POOL                            50
#define KIND_DEVICE                          8
#define KIND_CONTEXT                         9
#define KIND_STREAM                          37
#define KIND_API                             5
#define KIND_EXTERNAL                        39
#define FIELD(record, member, offset, width) {KIND_##record, offset, width, #member},
#include "sim_cupti_fields.def"
#undef FIELD
};

static void record_print(const char *record, const unsigned *bytes)
{
    int kind;
    memcpy(&kind, record, sizeof kind);
    int layout = kind == CUPTI_ACTIVITY_KIND_DRIVER ? CUPTI_ACTIVITY_KIND_RUNTIME : kind;
    flockfile(stdout); /* one line, whoever else prints */
    printf("record %d", kind);
    for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        uint64_t value = 0;
        if (fields[i].kind != layout || fields[i].width > sizeof value ||
            fields[i].offset + fields[i].width > bytes[kind])
            continue;
        memcpy(&value, record + fields[i].offset, fields[i].width);
        if (strcmp(fields[i].member, "name") == 0 && value) {
            printf("\tname=%s", (const char *)(uintptr_t)value);
            kept_name = (const char *)(uintptr_t)value;
        } else {
            printf("\t%s=%llu", fields[i].member, (unsigned long long)value);
        }
        if (strcmp(fields[i].member, "overheadData") == 0 && value) {
            uint32_t data[3];
            memcpy(data, (const void *)(uintptr_t)value, sizeof data);
            printf("\tlength=%u", data[0]);
            if (!how.keeps_data)
                free((void *)(uintptr_t)value);
        }
    }
    printf("\n");
    funlockfile(stdout);
}

static void flush_here(const char *step)
{
    done(step, cuptiActivityFlushAll(0));
}

static void on_request(uint8_t **buffer, size_t *size, size_t *record_count_max)
{
    *record_count_max = 0;
    if (how.flushes_in_request)
        flush_here("flush-in-request");
    if (how.takes_lock) {
        pthread_mutex_lock(&own_lock);
        pthread_mutex_unlock(&own_lock);
    }
    printf("request %ld\n", syscall(SYS_gettid));
    *size = how.buffer_bytes;
    *buffer = NULL;
    if (how.buffers_left == 0)
        return;
    how.buffers_left--;
    *buffer = aligned_alloc(64, (how.buffer_bytes + 63) / 64 * 64);
    memset(*buffer, how.is_dirty ? 0xa5 : 0, how.buffer_bytes);
    how.last_request = *buffer;
}

static void on_complete(void *context, uint32_t stream_id, uint8_t *buffer, size_t size,
                        size_t valid)
{
    static unsigned bytes[SIM_CUPTI_KIND_COUNT];
    void *record = NULL;
    (void)context;
    (void)stream_id;
    if (how.flushes_in_complete)
        flush_here("flush-in-complete");
    if (how.takes_lock) {
        pthread_mutex_lock(&own_lock);
        pthread_mutex_unlock(&own_lock);
    }
    if (bytes[1] == 0)
        for (int kind = 1; kind < 60; kind++)
            bytes[kind] = record_bytes(kind);
    printf("buffer %zu %zu\n", size, valid);
    unsigned count = 0;
    CUptiResult result;
    while ((result = cuptiActivityGetNextRecord(buffer, valid, &record)) == CUPTI_SUCCESS) {
        count++;
        if (!how.is_quiet)
            record_print(record, bytes);
    }
    printf("walked %u %d\n", count, result);
    free(buffer);
}

static uint64_t own_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The arguments of the launches, as the real structs have them. */
static void print_params(int domain, uint32_t cbid, const CUpti_CallbackData *data)
{
    enum { RUNTIME_LAUNCH = 211, DRIVER_LAUNCH = 307, RUNTIME_COPY = 31 };
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && cbid == RUNTIME_LAUNCH) {
        const struct {
            const void *func;
            dim3 grid, block;
            void **args;
            size_t shared;
            void *stream;
        } *p = data->functionParams;
        printf("\tgrid=%u,%u,%u\tblock=%u,%u,%u\tshared=%zu\tkernel=%s", p->grid.x, p->grid.y,
               p->grid.z, p->block.x, p->block.y, p->block.z, p->shared, data->symbolName);
    } else if (domain == CUPTI_CB_DOMAIN_DRIVER_API && cbid == DRIVER_LAUNCH) {
        const struct {
            void *function;
            unsigned grid[3], block[3], shared;
            void *stream;
        } *p = data->functionParams;
        printf("\tgrid=%u,%u,%u\tblock=%u,%u,%u\tshared=%u\tkernel=%s", p->grid[0], p->grid[1],
               p->grid[2], p->block[0], p->block[1], p->block[2], p->shared, data->symbolName);
    } else if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && cbid == RUNTIME_COPY) {
        const struct {
            void *dst;
            const void *src;
            size_t bytes;
            int kind;
        } *p = data->functionParams;
        printf("\tbytes=%zu\tkind=%d", p->bytes, p->kind);
    }
}

static void on_callback(void *userdata, int domain, uint32_t cbid, const void *given)
{
    if (userdata != &how)
        abort();
    if (domain == CUPTI_CB_DOMAIN_RESOURCE || domain == CUPTI_CB_DOMAIN_SYNCHRONIZE) {
        printf("callback 0 %d %u\n", domain, cbid);
        if (how.flushes_in_destroy && domain == CUPTI_CB_DOMAIN_RESOURCE && cbid == 4)
            flush_here("flush-in-destroy");
        return;
    }
    const CUpti_CallbackData *data = given;
    const char *name = NULL;
    int result = -1;
    cuptiGetCallbackName(domain, cbid, &name);
    if (data->callbackSite == CUPTI_API_ENTER)
        *data->correlationData = 1000000 + data->correlationId;
    else
        memcpy(&result, data->functionReturnValue, sizeof result);
    flockfile(stdout);
    printf("callback %d %d %u\tfunction=%s\tname=%s\tcorrelation=%u\tdata=%llu\tresult=%d\ttid=%ld",
           data->callbackSite, domain, cbid, data->functionName, name, data->correlationId,
           (unsigned long long)*data->correlationData, result, syscall(SYS_gettid));
    print_params(domain, cbid, data);
    printf("\n");
    funlockfile(stdout);
    if (how.calls_cuda) {
        void *memory;
        cudaMalloc(&memory, 16);
    }
}

static void use_kind(long kind, long unused)
{
    (void)unused;
    printf("result enable-%ld %d\n", kind, cuptiActivityEnable((int)kind));
}

static void use_disable(long kind, long unused)
{
    (void)unused;
    printf("result disable-%ld %d\n", kind, cuptiActivityDisable((int)kind));
}

static void use_callback(long domain, long cbid)
{
    CUptiResult result = cbid ? cuptiEnableCallback(1, subscriber, (int)domain, (uint32_t)cbid)
                              : cuptiEnableDomain(1, subscriber, (int)domain);
    printf("result callback-%ld:%ld %d\n", domain, cbid, result);
}

static void use_attribute(long number, long value)
{
    size_t bytes = 8;
    uint64_t have = 0;
    CUptiResult get = cuptiActivityGetAttribute((int)number, &bytes, &have);
    printf("attribute %ld %d %llu %zu\n", number, get, (unsigned long long)have, bytes);
    if (value >= 0) {
        have = (uint64_t)value;
        printf("result attribute-%ld %d\n", number,
               cuptiActivitySetAttribute((int)number, &bytes, &have));
    }
}

static void step_subscribe_v2(void)
{
    char old[64] = "";
    CUpti_SubscriberParams params = {.structSize = sizeof params,
                                     .subscriberName = "the client",
                                     .oldSubscriberName = old,
                                     .oldSubscriberSize = sizeof old};
    if (!cuptiSubscribe_v2) {
        done("subscribe2", -1);
        return;
    }
    done("subscribe2", cuptiSubscribe_v2(&subscriber, on_callback, &how, &params));
    printf("holder %s\n", old);
}

static void *hold_and_flush(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&own_lock);
    flush_here("flush-locked");
    pthread_mutex_unlock(&own_lock);
    return NULL;
}

static void step_child(void)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(1);
        cuptiActivityFlushAll(0);
        _exit(3);
    }
    int status;
    waitpid(child, &status, 0);
    printf("child %s\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "hung" : "returned");
}

static void at_exit_flush(void)
{
    flush_here("flush-at-exit");
    fflush(stdout);
}

static void step_walk_wrong(void)
{
    uint64_t one[32] = {10}, other[32] = {10};
    void *record = other;
    done("walk-wrong", cuptiActivityGetNextRecord((uint8_t *)one, sizeof one, &record));
}

static void step_walk_held(void)
{
    void *record = NULL;
    done("walk-held", cuptiActivityGetNextRecord(how.last_request, 4096, &record));
}

static void step_ids(void)
{
    uint32_t id = 0;
    CUptiResult result = cuptiGetStreamIdEx(NULL, NULL, 0, &id);
    printf("id stream %d %u\n", result, id);
    result = cuptiGetStreamIdEx(NULL, NULL, 1, &id);
    printf("id thread-stream %d %u\n", result, id);
    result = cuptiGetDeviceId(NULL, &id);
    printf("id device %d %u\n", result, id);
}

static void step_timestamp(void)
{
    uint64_t now = 0;
    done("timestamp", cuptiGetTimestamp(&now));
    printf("timestamp %llu %llu\n", (unsigned long long)now, (unsigned long long)own_clock());
}

static void step_dropped(void)
{
    size_t count = 99;
    CUptiResult result = cuptiActivityGetNumDroppedRecords(NULL, 0, &count);
    printf("dropped %d %zu\n", result, count);
}

static void step_threads(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, cupti_work_thread, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void step_locked(void)
{
    pthread_t thread;
    how.takes_lock = true;
    pthread_create(&thread, NULL, hold_and_flush, NULL);
    pthread_join(thread, NULL);
}

/* What the other client's library, if it is preloaded, does in the middle. */
static void other_client(const char *function)
{
    void (*act)(const char *) = (void (*)(const char *))(uintptr_t)dlsym(RTLD_DEFAULT, function);
    if (!act) {
        fprintf(stderr, "no %s: preload the other_client\n", function);
        exit(2);
    }
    act("thief");
}

static void step_other_client_start(void)
{
    other_client("other_client_start");
}

static void step_other_client_stop(void)
{
    other_client("other_client_stop");
}

/* A launch that asks for a buffer waits for our lock, and we for CUPTI's. */
static void step_inversion(void)
{
    pthread_t thread;
    pthread_mutex_lock(&own_lock);
    pthread_create(&thread, NULL, cupti_work_thread, NULL);
    usleep(100000);
    flush_here("flush-locked");
    pthread_mutex_unlock(&own_lock);
    pthread_join(thread, NULL);
}

static void step_version(void)
{
    uint32_t version = 0;
    CUptiResult result = cuptiGetVersion(&version);
    printf("version %d %u\n", result, version);
}

/* Each flag makes a later step misbehave. */
static bool step_flag(const char *step)
{
    static const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        {"dirty", &how.is_dirty},
        {"takes-lock", &how.takes_lock},
        {"flush-in-request", &how.flushes_in_request},
        {"flush-in-complete", &how.flushes_in_complete},
        {"flush-in-destroy", &how.flushes_in_destroy},
        {"keep-data", &how.keeps_data},
        {"cuda-in-callback", &how.calls_cuda},
        {"quiet", &how.is_quiet},
    };
    for (unsigned i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(step, flags[i].name) == 0)
            return *flags[i].flag = true;
    return false;
}

static bool step_cupti(const char *step)
{
    if (strcmp(step, "subscribe") == 0)
        done(step, cuptiSubscribe(&subscriber, on_callback, &how));
    else if (strcmp(step, "unsubscribe") == 0)
        done(step, cuptiUnsubscribe(subscriber));
    else if (strcmp(step, "buffers") == 0)
        done(step, cuptiActivityRegisterCallbacks(on_request, on_complete));
    else if (strcmp(step, "clock") == 0)
        done(step, cuptiActivityRegisterTimestampCallback(own_clock));
    else if (strcmp(step, "latency") == 0)
        done(step, cuptiActivityEnableLatencyTimestamps(1));
    else if (strcmp(step, "system-ids") == 0)
        done(step, cuptiSetThreadIdType(SIM_CUPTI_THREAD_ID_SYSTEM));
    else if (strcmp(step, "flush") == 0)
        done(step, cuptiActivityFlushAll(0));
    else if (strcmp(step, "flush-forced") == 0)
        done(step, cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    else if (strcmp(step, "period") == 0)
        done(step, cuptiActivityFlushPeriod(10));
    else if (strcmp(step, "finalize") == 0)
        done(step, cuptiFinalize());
    else if (strcmp(step, "enable") == 0)
        each_pair(getenv("CUPTI_KINDS"), use_kind);
    else if (strcmp(step, "disable") == 0)
        each_pair(getenv("CUPTI_KINDS"), use_disable);
    else if (strcmp(step, "callbacks") == 0)
        each_pair(getenv("CUPTI_CALLBACKS"), use_callback);
    else if (strcmp(step, "attributes") == 0)
        each_pair(getenv("CUPTI_ATTRIBUTES"), use_attribute);
    else
        return false;
    return true;
}

static bool step_other(const char *step)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } steps[] = {
        {"subscribe2", step_subscribe_v2},
        {"version", step_version},
        {"child", step_child},
        {"walk-wrong", step_walk_wrong},
        {"walk-held", step_walk_held},
        {"ids", step_ids},
        {"other_client-start", step_other_client_start},
        {"other_client-stop", step_other_client_stop},
        {"timestamp", step_timestamp},
        {"dropped", step_dropped},
        {"threads", step_threads},
        {"locked", step_locked},
        {"inversion", step_inversion},
        {"work", cupti_work_all},
        {"launch", cupti_work_launch},
        {"launches", cupti_work_launches},
        {"graph", cupti_work_graph},
        {"sync", cupti_work_sync},
        {"init", cupti_work_init},
        {"destroy", cupti_work_destroy},
    };
    for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (strcmp(step, steps[i].name) == 0) {
            steps[i].run();
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    const char *bytes = getenv("CUPTI_BUFFER"), *buffers = getenv("CUPTI_BUFFERS");
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (bytes)
        how.buffer_bytes = strtoul(bytes, NULL, 10);
    if (buffers)
        how.buffers_left = strtol(buffers, NULL, 10);
    library_load();
    for (int i = 1; i < argc; i++) {
        printf("step %s\n", argv[i]);
        if (strcmp(argv[i], "sleep") == 0)
            usleep(300000);
        else if (strcmp(argv[i], "kill") == 0)
            syscall(SYS_kill, getpid(), SIGKILL);
        else if (strcmp(argv[i], "at-exit") == 0)
            atexit(at_exit_flush);
        else if (strcmp(argv[i], "use-name") == 0)
            printf("used %zu\n", strlen(kept_name));
        else if (!step_flag(argv[i]) && !step_cupti(argv[i]) && !step_other(argv[i])) {
            fprintf(stderr, "what is %s?\n", argv[i]);
            return 2;
        }
    }
    return 0;
}
