/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges and marks by NVTX, around CUDA calls: nvtx_work SCENARIO. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nvtx_client.h"
#include "tiny_cudart.h"

#ifdef PLUGIN /* one of several libraries that embed NVTX */

int plugin_push(const char *text);
int plugin_pop(void);
unsigned long plugin_domain(const char *text);

__attribute__((constructor)) static void early(void)
{
    if (getenv("NVTX_EARLY"))
        nvtxRangePushA("constructor");
}

int plugin_push(const char *text)
{
    return nvtxRangePushA(text);
}

int plugin_pop(void)
{
    return nvtxRangePop();
}

unsigned long plugin_domain(const char *text)
{
    return (unsigned long)nvtxDomainCreateA(text);
}

#else

static void cuda_names(void)
{
#ifndef REAL_NVTX /* its headers for these want CUDA's */
    nvtxNameCuDeviceA(1, "device");
    nvtxNameCuDeviceW(2, L"d\u00ebvice");
    nvtxNameCuContextA((void *)0x1000, "context");
    nvtxNameCuContextW((void *)0x2000, L"context w");
    nvtxNameCuStreamA((void *)0x3000, "stream");
    nvtxNameCuStreamW((void *)0x4000, L"stream w");
    nvtxNameCuEventA((void *)0x5000, "event");
    nvtxNameCuEventW((void *)0x6000, L"event w");
    nvtxNameCudaDeviceA(0, "device");
    nvtxNameCudaDeviceW(-1, L"device w");
    nvtxNameCudaStreamA((void *)0x7000, "stream");
    nvtxNameCudaStreamW((void *)0x8000, L"stream w");
    nvtxNameCudaEventA((void *)0x9000, "event");
    nvtxNameCudaEventW((void *)0xa000, L"event w");
    nvtxNameCudaStreamA((void *)0x7000, "stream"); /* nothing new */
    nvtxNameCudaStreamA((void *)0x7000, "renamed");
    nvtxNameCudaStreamA((void *)0x7000, "stream");
#endif
}

static nvtxEventAttributes_t text_event(const char *text)
{
    nvtxEventAttributes_t a = {0};
    a.version = NVTX_VERSION;
    a.size = sizeof a;
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = text;
    return a;
}

static void core(void)
{
    nvtxEventAttributes_t a = text_event("mark ex");
    a.category = 7;
    a.colorType = NVTX_COLOR_ARGB;
    a.color = 0x80ff0102;
    a.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    a.payload.llValue = -5;
    nvtxMarkEx(&a);
    nvtxMarkA("mark a");
    nvtxMarkW(L"mark \u20ac \U0001F600 w");
    nvtxNameCategoryA(7, "seven");
    nvtxNameCategoryW(8, L"\u00e4cht");
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "the main one");
    nvtxNameOsThreadW(4000000, L"another");
    nvtxEventAttributes_t b = text_event("push ex");
    b.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    b.payload.dValue = 0.1;
    printf("push %d\n", nvtxRangePushEx(&b));
    printf("push %d\n", nvtxRangePushA("push a"));
    printf("push %d\n", nvtxRangePushW(L"push w"));
    for (int i = 0; i < 4; i++)
        printf("pop %d\n", nvtxRangePop());
    nvtxEventAttributes_t c = text_event("start ex");
    c.payloadType = NVTX_PAYLOAD_TYPE_INT32;
    memset(&c.payload, 0xff, sizeof c.payload);
    c.payload.iValue = -1;
    nvtxRangeId_t ids[] = {nvtxRangeStartEx(&c), nvtxRangeStartA("start a"),
                           nvtxRangeStartW(L"start w")};
    nvtxRangeEnd(ids[1]);
    nvtxRangeEnd(ids[0]);
    nvtxRangeEnd(ids[2]);
    nvtxRangeEnd(0);
    printf("ids %llu %llu %llu\n", (unsigned long long)ids[0], (unsigned long long)ids[1],
           (unsigned long long)ids[2]);
}

static void domains(void)
{
#if NVTX_VERSION >= 3
    nvtxInitialize(NULL);
#endif
    nvtxDomainHandle_t one = nvtxDomainCreateA("one"), two = nvtxDomainCreateW(L"t\u03c9o");
    nvtxStringHandle_t string = nvtxDomainRegisterStringA(one, "a string");
    nvtxStringHandle_t wide = nvtxDomainRegisterStringW(one, L"a w\u00efde string");
    printf("domains %lu %lu %lu\n", (unsigned long)one, (unsigned long)two,
           (unsigned long)nvtxDomainCreateA("one"));
    printf("strings %lu %lu %lu\n", (unsigned long)string, (unsigned long)wide,
           (unsigned long)nvtxDomainRegisterStringA(one, "a string"));
    nvtxDomainNameCategoryA(one, 1, "first");
    nvtxDomainNameCategoryW(two, 1, L"also first");
    nvtxEventAttributes_t a = text_event("");
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = string;
    nvtxDomainMarkEx(one, &a);
    printf("push %d\n", nvtxDomainRangePushEx(one, &a));
    a.messageType = NVTX_MESSAGE_TYPE_UNICODE;
    a.message.unicode = L"wide \u00fc";
    printf("push %d\n", nvtxDomainRangePushEx(two, &a));
    printf("push %d\n", nvtxDomainRangePushEx(one, &a));
    printf("pop %d\n", nvtxDomainRangePop(one));
    printf("pop %d\n", nvtxDomainRangePop(one));
    printf("pop %d\n", nvtxDomainRangePop(two));
    a = text_event("started");
    nvtxRangeId_t first = nvtxDomainRangeStartEx(one, &a), second = nvtxDomainRangeStartEx(two, &a);
    nvtxDomainRangeEnd(one, first);
    nvtxRangeEnd(second);
    printf("ids %llu %llu\n", (unsigned long long)first, (unsigned long long)second);
    nvtxResourceAttributes_t r = {0};
    r.version = 0;
    r.size = sizeof r;
    r.identifierType = NVTX_RESOURCE_TYPE_GENERIC_POINTER;
    r.identifier.ullValue = 0x1234567890;
    r.messageType = NVTX_MESSAGE_TYPE_ASCII;
    r.message.ascii = "a thing";
    nvtxDomainResourceDestroy(nvtxDomainResourceCreate(one, &r));
    nvtxDomainDestroy(two);
    nvtxDomainMarkEx(two, &a);
}

/* What is open when the recording begins, and what no longer is. */
static void before(void)
{
    nvtxDomainHandle_t one = nvtxDomainCreateA("one");
    nvtxStringHandle_t string = nvtxDomainRegisterStringA(one, "kept");
    nvtxEventAttributes_t a = text_event("");
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = string;
    nvtxMarkA("lost");
    nvtxRangePushA("over");
    nvtxRangePop();
    nvtxRangePushA("outer");
    nvtxDomainRangePushEx(one, &a);
    nvtxRangePushA("inner");
    nvtxRangeId_t over = nvtxRangeStartA("over"), started = nvtxRangeStartA("started");
    nvtxRangeEnd(over);
    usleep(20000);
    cudaFree(NULL);
    printf("pop %d\n", nvtxRangePop());
    printf("pop %d\n", nvtxDomainRangePop(one));
    printf("pop %d\n", nvtxRangePop());
    printf("pop %d\n", nvtxRangePop());
    nvtxRangeEnd(started);
}

static void nested(void)
{
    nvtxMarkA("alone");
    nvtxRangePushA("alone");
    nvtxDomainCreateA("alone");
    nvtxRangePop();
    nvtxRangeStartA("alone");
}

static pthread_barrier_t barrier;

/* Even ones call CUDA; odd ones do not. All push while the recording runs, and before. */
static void *worker(void *data)
{
    int number = (int)(intptr_t)data;
    char text[32];
    snprintf(text, sizeof text, "early %d", number);
    nvtxRangePushA(text);
    pthread_barrier_wait(&barrier); /* main calls CUDA */
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "%d %d", number, i);
        if (nvtxRangePushA(text) != 1)
            abort();
        if (number % 2 == 0)
            cudaMemset(NULL, 0, (size_t)i + 1);
        if (nvtxRangePop() != 1)
            abort();
    }
    if (nvtxRangePop() != 0)
        abort();
    return NULL;
}

static void threads(void)
{
    enum { COUNT = 6 };
    pthread_t ids[COUNT];
    pthread_barrier_init(&barrier, NULL, COUNT + 1);
    for (int i = 0; i < COUNT; i++)
        pthread_create(&ids[i], NULL, worker, (void *)(intptr_t)i);
    pthread_barrier_wait(&barrier);
    cudaFree(NULL);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < COUNT; i++)
        pthread_join(ids[i], NULL);
}

/* Threads that end with ranges open must not use up the table. */
static void *leaves_open(void *data)
{
    (void)data;
    nvtxRangePushA("left open");
    nvtxRangePushA("left open, too");
    return NULL;
}

static void many(void)
{
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 50; i++) {
            pthread_t id;
            pthread_create(&id, NULL, leaves_open, NULL);
            pthread_join(id, NULL);
        }
        usleep(20000);
    }
    nvtxRangePushA("kept");
    cudaFree(NULL);
    nvtxRangePop();
}

static void plugins(int count, char **paths)
{
    cudaFree(NULL);
    printf("main %d\n", nvtxRangePushA("main"));
    for (int i = 0; i < count; i++) {
        void *plugin = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
        if (!plugin)
            abort();
        int (*push)(const char *) = (int (*)(const char *))dlsym(plugin, "plugin_push");
        int (*pop)(void) = (int (*)(void))dlsym(plugin, "plugin_pop");
        unsigned long (*domain)(const char *) =
            (unsigned long (*)(const char *))dlsym(plugin, "plugin_domain");
        printf("domain %lu\n", domain("shared"));
        printf("push %d\n", push(paths[i]));
        printf("pop %d\n", pop());
        dlclose(plugin);
    }
    printf("main %d\n", nvtxRangePop());
}

static void child(void (*call)(void))
{
    pid_t pid = fork();
    int status = 0;
    if (pid == 0) {
        call();
        exit(0);
    }
    waitpid(pid, &status, 0);
    if (status)
        abort();
}

static void in_child(void)
{
    nvtxRangePop(); /* "inner": if it is not in this recording, nor is its end */
    nvtxRangePushA("child");
    cudaFree(NULL);
    nvtxRangePop();
    nvtxRangePop(); /* "outer" */
    nvtxMarkA("child's end");
}

static void forks(int is_recording)
{
    nvtxDomainCreateA("parent's");
    if (is_recording)
        cudaFree(NULL);
    nvtxRangePushA("outer");
    nvtxRangePushA("inner");
    child(in_child);
    child(nested); /* NVTX alone: no file */
    nvtxRangePop();
    nvtxRangePop();
}

static void at_exit(void)
{
    nvtxMarkA("exit handler");
    cudaFree(NULL);
}

__attribute__((destructor)) static void late(void)
{
    if (getenv("NVTX_LATE"))
        nvtxMarkA("destructor");
}

static void cut(void)
{
    static char text[10001];
    static wchar_t wide[10001];
    cudaFree(NULL);
    memset(text, 'x', 10000);
    nvtxMarkA(text);
    text[4096] = '\0';
    nvtxMarkA(text);
    text[4096] = 'x';
    memcpy(text + 4094, "\xf0\x9f\x98\x80", 4); /* a character across the end */
    nvtxMarkA(text);
    for (int i = 0; i < 10000; i++)
        wide[i] = 0x20ac;
    nvtxMarkW(wide);
    nvtxMarkW(L"\xd800|\x7fffffff"); /* no characters */
    nvtxNameCategoryA(1, text);
    nvtxMarkA(NULL);
    nvtxMarkEx(NULL);
    nvtxEventAttributes_t half = text_event("beyond its size");
    half.size = 16;
    half.category = 5;
    nvtxMarkEx(&half);
    nvtxEventAttributes_t extended = text_event("a schema's payload");
    extended.payloadType = (int32_t)0xdfbd0009;
    extended.payload.ullValue = 1;
    nvtxMarkEx(&extended);
}

struct payload {
    uint64_t schema;
    size_t size;
    const void *data;
};

/* As NCCL says its calls, and payloads that mean nothing. */
static void payloads(void)
{
    struct {
        uint64_t comm;
        size_t bytes;
        int root, op;
        uint64_t more[2];
    } reduce = {0xfeedc0ffee0ddf00, 4096, 3, 4, {5, 6}};
    struct payload given[] = {{(1 << 24) + 8, 24, &reduce},
                              {(1 << 24) + 8, sizeof reduce, &reduce},
                              {7, 3, "abc"},
                              {0, 8, &reduce},
                              {9, SIZE_MAX, &reduce},
                              {9, 8, NULL},
                              {9, 0, &reduce}};
    nvtxDomainHandle_t nccl = nvtxDomainCreateA("NCCL");
    nvtxStringHandle_t name = nvtxDomainRegisterStringA(nccl, "ncclReduce");
    for (unsigned i = 0; i < sizeof given / sizeof given[0]; i++) {
        nvtxEventAttributes_t a = text_event("");
        a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
        a.message.registered = name;
        a.payloadType = (int32_t)0xdfbd0009;
        a.reserved0 = 1;
        a.payload.ullValue = (uint64_t)(uintptr_t)&given[i];
        nvtxDomainRangePushEx(nccl, &a);
        if (i == 0)
            cudaFree(NULL); /* until then it is kept */
        nvtxDomainRangePop(nccl);
        if (i == 1)
            nvtxDomainMarkEx(nccl, &a);
        if (i == 2)
            nvtxDomainRangeEnd(nccl, nvtxDomainRangeStartEx(nccl, &a));
    }
}

static void limits(void)
{
    char text[64];
    unsigned long last = 0;
    cudaFree(NULL);
    for (int i = 0; i < 1100; i++) {
        snprintf(text, sizeof text, "domain %d", i);
        last = (unsigned long)nvtxDomainCreateA(text);
    }
    printf("last %lu\n", last);
    nvtxEventAttributes_t a = text_event("in another");
    nvtxDomainMarkEx((nvtxDomainHandle_t)last, &a);
    nvtxDomainMarkEx((nvtxDomainHandle_t)text, &a); /* no handle of anybody's */
    for (int i = 0; i < 270000; i++) {
        snprintf(text, sizeof text, "string %d", i);
        last = (unsigned long)nvtxDomainRegisterStringA(NULL, text);
    }
    printf("string %lu\n", last);
}

/* More open ranges than are kept. */
static void deep(void)
{
    for (int i = 0; i < 600; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        if (nvtxRangePushA(text) != i)
            abort();
    }
    cudaFree(NULL);
    for (int i = 599; i >= 0; i--)
        if (nvtxRangePop() != i)
            abort();
}

/* More domains than a thread's levels are counted in. */
static void broad(void)
{
    enum { COUNT = 9 };
    nvtxDomainHandle_t domains[COUNT];
    nvtxEventAttributes_t a = text_event("broad");
    cudaFree(NULL);
    for (int i = 0; i < COUNT; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        domains[i] = nvtxDomainCreateA(text);
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++)
            printf("%d ", nvtxDomainRangePushEx(domains[i], &a));
        for (int i = 0; i < COUNT; i++)
            printf("%d ", nvtxDomainRangePop(domains[i]));
        printf("%d\n", nvtxDomainRangePop(domains[0]));
    }
}

enum { ROUNDS = 100000, ROUNDS_MAX = 20000000, SPENT = 500, HANDLED = 20 };

static volatile sig_atomic_t handled;

static void on_signal(int signal)
{
    int saved = errno;
    (void)signal;
    handled += nvtxRangePushA("handler") >= 0; /* or it interrupted ourselves */
    cudaMemset(NULL, 0, 1);
    nvtxRangePop();
    errno = saved;
}

/* Until enough of the signals have come outside of us, which is half of the time. */
static void handler(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 300}, {0, 300}};
    sigaction(SIGALRM, &action, NULL);
    cudaFree(NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; i < ROUNDS || (handled < HANDLED && i < ROUNDS_MAX); i++) {
        if (nvtxRangePushA("outer") != 0)
            abort();
        if (nvtxRangePushA("inner") != 1)
            abort();
        for (volatile int spent = 0; spent < SPENT; spent++)
            ;
        if (nvtxRangePop() != 1 || nvtxRangePop() != 0)
            abort();
    }
    timer = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void during(const char *symbol, uint64_t argument)
{
    (void)symbol, (void)argument;
    nvtxRangePushA("inside");
    nvtxRangePop();
}

static void inside(void)
{
    tiny_during = during;
    cudaMemset(NULL, 0, 1);
    cudaMemset(NULL, 0, 2);
}

static void open_at_kill(void)
{
    nvtxRangePushA("early");
    cudaFree(NULL);
    nvtxRangePushA("open");
    nvtxRangeStartA("started");
    syscall(SYS_kill, getpid(), SIGKILL);
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 1 ? argv[1] : "";
    if (getenv("NVTX_LATE"))
        atexit(at_exit);
    if (strcmp(scenario, "core") == 0) {
        cudaFree(NULL);
        core();
    } else if (strcmp(scenario, "domains") == 0) {
        cudaFree(NULL);
        domains();
    } else if (strcmp(scenario, "names") == 0) {
        cudaFree(NULL);
        cuda_names();
    } else if (strcmp(scenario, "deep") == 0) {
        deep();
    } else if (strcmp(scenario, "broad") == 0) {
        broad();
    } else if (strcmp(scenario, "alone") == 0) {
        core();
        domains();
        nested();
    } else if (strcmp(scenario, "before") == 0) {
        before();
    } else if (strcmp(scenario, "threads") == 0) {
        threads();
    } else if (strcmp(scenario, "many") == 0) {
        many();
    } else if (strcmp(scenario, "plugins") == 0) {
        plugins(argc - 2, argv + 2);
    } else if (strcmp(scenario, "fork") == 0) {
        forks(1);
    } else if (strcmp(scenario, "fork-before") == 0) {
        forks(0);
    } else if (strcmp(scenario, "payloads") == 0) {
        payloads();
    } else if (strcmp(scenario, "cut") == 0) {
        cut();
    } else if (strcmp(scenario, "limits") == 0) {
        limits();
    } else if (strcmp(scenario, "handler") == 0) {
        handler();
    } else if (strcmp(scenario, "inside") == 0) {
        inside();
    } else if (strcmp(scenario, "kill") == 0) {
        open_at_kill();
    } else if (strcmp(scenario, "late") == 0) {
        cudaFree(NULL);
    } else {
        return 2;
    }
    fflush(stdout);
    return 3;
}

#endif
