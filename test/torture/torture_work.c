/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One life that ends at a random moment: torture_work MODE SEED. Some threads call CUDA; meanwhile
 * what MODE says happens. -DPLUGIN: a library whose calls come and go with it.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

void plugin_calls(void);

#ifdef PLUGIN

void plugin_calls(void)
{
    void *memory;
    cudaMalloc(&memory, 64);
    cudaFree(memory);
}

#else

#define THREADS_MAX     4
#define END_US_MAX      25000
#define GOVERNOR_MS_MAX 900
#define BOMB            1000
#define BOMB_LIVE       50

static const char *mode;
static char **self;
static _Atomic uint32_t seed;
static _Atomic int is_over;
static _Atomic unsigned calling; /* threads that have called */
static unsigned thread_count;

static int is_child;

/* Of the simulated PyTorch (sim_torch.h), if MODE has it. */
struct sim_op;
static struct sim_op *(*op_begin)(const char *, int, long, unsigned long, const char *);
static void (*op_end)(struct sim_op *);

/* What PyTorch's allocator calls, if MODE has it: of libc10, which is not there. */
struct c10_device {
    signed char type, index;
};
static void (*tell)(void *, int64_t, uint64_t, uint64_t, struct c10_device);

static uint32_t any(uint32_t limit)
{
    uint32_t x = seed += 0x9e3779b9u;
    x = (x ^ x >> 16) * 0x21f0aaadu;
    x = (x ^ x >> 15) * 0x735a2d97u;
    return (x ^ x >> 15) % limit;
}

static int (*multiply)(void *handle, int transa, int transb, int m, int n, int k,
                       const float *alpha, const float *a, int lda, const float *b, int ldb,
                       const float *beta, float *c, int ldc);

/* A label or an operator. Not in a child: the library's lock may be held by a thread of the
 * parent's. */
static struct sim_op *some_operator(void)
{
    char inputs[32];
    if (!op_begin || is_child)
        return NULL;
    snprintf(inputs, sizeof inputs, "T6[%u] I%u", any(50), any(300));
    return any(4) ? op_begin("aten::any", 0, any(100), 0, inputs)
                  : op_begin("any ()", 7, -1, 0, "");
}

/* As the allocator does it: a block is got and freed under a lock that threads wait for. */
static void some_block(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t allocated;
    int64_t bytes = 512 << any(14);
    if (!tell || is_child)
        return;
    pthread_mutex_lock(&lock);
    allocated += (uint64_t)bytes;
    tell(&lock, bytes, allocated, 64 << 20, (struct c10_device){1, 0});
    allocated -= (uint64_t)bytes;
    tell(&lock, -bytes, allocated, 64 << 20, (struct c10_device){1, 0});
    pthread_mutex_unlock(&lock);
}

/* A call of a library's, which calls CUDA inside. */
static void some_product(void)
{
    static const float two = 2, three = 3;
    static float c[1];
    int size = 1 + (int)any(500);
    if (multiply && !is_child)
        multiply(c, 0, 1, size, size, 8, &two, &two, 77, &three, 77, &three, c, 77);
}

/* Of the driver, if MODE has modules: what loads, names, lists and unloads their kernels. */
static struct {
    int (*load)(void **, const void *, void *, void *, unsigned, void *, void *, unsigned);
    int (*get)(void **, void *, const char *);
    int (*list)(void **, unsigned, void *);
    int (*unload)(void *);
} driver;

static void load_driver(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_LAZY);
    *(void **)&driver.load = dlsym(cuda, "cuLibraryLoadData");
    *(void **)&driver.get = dlsym(cuda, "cuLibraryGetKernel");
    *(void **)&driver.list = dlsym(cuda, "cuLibraryEnumerateKernels");
    *(void **)&driver.unload = dlsym(cuda, "cuLibraryUnload");
}

/* Its kernels have handles that others had before. */
static void some_module(void)
{
    void *library, *kernels[3];
    if (!driver.load ||
        driver.load(&library, "functions one two", NULL, NULL, 0, NULL, NULL, 0) != 0)
        return;
    if (driver.get(&kernels[2], library, any(2) ? "one" : "three") == 0 &&
        driver.list(kernels, 2, library) == 0)
        cudaLaunchKernel(kernels[any(3)], (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL);
    driver.unload(library);
}

static void some_calls(unsigned count)
{
    static __thread char target[64];
    static char large[300 << 10]; /* so much that it is looked at */
    for (unsigned i = 0; i < count; i++) {
        void *memory = NULL;
        struct sim_op *op = some_operator();
        some_block();
        if (any(4) == 0)
            some_product();
        some_module();
        if (any(100) == 0)
            cudaMemcpy(large, large, sizeof large, cudaMemcpyHostToDevice);
        switch (any(4)) {
        case 0:
            cudaMalloc(&memory, 64);
            cudaFree(memory);
            break;
        case 1: cudaStreamSynchronize(NULL); break;
        case 2: cudaMemset(target, 0, 1 + any(64)); break;
        default: cudaMemcpy(target, target, 1 + any(64), cudaMemcpyHostToHost); break;
        }
        if (op)
            op_end(op);
    }
}

static void *call_on(void *data)
{
    some_calls(20);
    calling++;
    while (!is_over) {
        some_calls(1 + any(20));
        usleep(any(300));
    }
    return data;
}

static void *call_a_little(void *data)
{
    some_calls(1 + any(5));
    return data;
}

/* Each comes through the PLT, and is known there for what it is. */
static void signal_itself(void)
{
    switch (any(5)) {
    case 0: raise(SIGTERM); break;
    case 1: kill(getpid(), SIGTERM); break;
    case 2: pthread_kill(pthread_self(), SIGTERM); break;
    case 3: sigqueue(getpid(), SIGTERM, (union sigval){0}); break;
    default: tgkill(getpid(), gettid(), SIGTERM); break;
    }
}

static void end_now(int as)
{
    switch (as) {
    case 0: syscall(SYS_kill, getpid(), SIGKILL); break;
    case 1: syscall(SYS_tgkill, getpid(), gettid(), SIGSEGV); break;
    case 2: abort();
    case 3: _exit(3);
    case 4: exit(3);
    case 5: quick_exit(3);
    case 6: signal_itself(); break;
    default: break;
    }
}

/* A child of one thread, while the others go on; it ends in one of three ways. */
static void fork_one(void)
{
    struct sim_op *op = some_operator();
    pid_t child = fork();
    if (child == 0) {
        is_child = 1;
        some_calls(any(10));
        end_now((const int[]){0, 3, 4}[any(3)]);
    }
    some_calls(2);
    if (op)
        op_end(op);
    if (child > 0)
        waitpid(child, NULL, 0);
}

static void load_pytorch(void)
{
    void *torch = dlopen(getenv("TORTURE_TORCH"), RTLD_NOW | RTLD_GLOBAL);
    op_begin = (struct sim_op * (*)(const char *, int, long, unsigned long, const char *))
        dlsym(torch, "sim_op_begin");
    op_end = (void (*)(struct sim_op *))dlsym(torch, "sim_op_end");
    if (!op_begin || !op_end)
        _exit(9);
}

static void fork_bomb(void)
{
    for (int i = 0, live = 0; i < BOMB; i++) {
        pid_t child = fork();
        if (child == 0) {
            some_calls(3);
            _exit(0);
        }
        live += child > 0;
        if (live >= BOMB_LIVE && wait(NULL) > 0)
            live--;
    }
    while (wait(NULL) > 0)
        ;
}

static void short_threads(void)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, call_a_little, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

static void load_and_unload(void)
{
    void *plugin = dlopen(self[1], RTLD_NOW | RTLD_LOCAL);
    void (*calls)(void) = plugin ? (void (*)(void))dlsym(plugin, "plugin_calls") : NULL;
    if (!calls)
        _exit(9);
    calls();
    dlclose(plugin);
}

static void on_signal(int number)
{
    (void)number;
}

static void signal_storm(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    const struct itimerval often = {{0, 300}, {0, 300}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

/* At the begin of a call, on the thread that makes it: a child, which ends there. */
static void on_callback(void *data, int domain, uint32_t cbid, const void *info)
{
    (void)data, (void)domain, (void)cbid;
    uint32_t site;
    memcpy(&site, info, sizeof site);
    if (site != 0 || is_child || any(60) != 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        is_child = 1;
        some_calls(any(5));
        end_now((const int[]){0, 3, 4}[any(3)]);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

static void subscribe(void)
{
    enum { RUNTIME_API = 2 };
    static void *subscriber;
    void *cupti = dlopen(getenv("TORTURE_CUPTI"), RTLD_NOW | RTLD_GLOBAL);
    int (*cupti_subscribe)(void **, void (*)(void *, int, uint32_t, const void *), void *) =
        (int (*)(void **, void (*)(void *, int, uint32_t, const void *), void *))dlsym(
            RTLD_DEFAULT, "cuptiSubscribe");
    int (*cupti_enable)(uint32_t, void *, int) =
        (int (*)(uint32_t, void *, int))dlsym(RTLD_DEFAULT, "cuptiEnableDomain");
    cudaFree(NULL); /* a driver that CUPTI itself has to start is another matter */
    if (!cupti || !cupti_subscribe || !cupti_enable ||
        cupti_subscribe(&subscriber, on_callback, NULL) || cupti_enable(1, subscriber, RUNTIME_API))
        _exit(9);
}

/*
 * Takes what memory there is left, and some of it again and again; then it is killed, as by the
 * kernel's own hand. The simulated CUDA has what it needs of each thread by then.
 */
static void run_out_of_memory(void)
{
    struct rlimit limit = {.rlim_max = RLIM_INFINITY};
    char line[64] = "";
    some_calls(20);
    while (calling < thread_count)
        usleep(500);
    FILE *status = fopen("/proc/self/statm", "r");
    if (!status || !fgets(line, sizeof line, status))
        _exit(9);
    fclose(status);
    limit.rlim_cur = (strtoul(line, NULL, 10) + any(4096)) * 4096;
    setrlimit(RLIMIT_AS, &limit);
    for (unsigned i = 0; i < 60; i++) {
        size_t bytes = (size_t)4096 << any(11);
        void *memory =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED && any(20) == 0)
            break;
        if (memory != MAP_FAILED && any(4) == 0)
            munmap(memory, bytes);
        some_calls(1 + any(10));
    }
    syscall(SYS_kill, getpid(), SIGKILL);
}

/* So long that most of the steps against too much overhead are taken, at most. */
static void go_on_for_a_while(void)
{
    for (uint32_t ms = any(GOVERNOR_MS_MAX); ms > 0; ms--) {
        some_calls(10);
        usleep(1000);
    }
}

/* The number of the end in end_now; 4 for those that only come to their end by it. */
static int way(void)
{
    static const char *const ways[] = {"kill", "segv",       "abort", "_exit",
                                       "exit", "quick_exit", "raise"};
    if (strcmp(mode, "governor") == 0 || strcmp(mode, "control") == 0 ||
        strcmp(mode, "tensors") == 0 || strcmp(mode, "flight") == 0 ||
        strcmp(mode, "libraries") == 0 || strcmp(mode, "device") == 0 ||
        strcmp(mode, "modules") == 0)
        return 0;
    for (int i = 0; i < 7; i++)
        if (strcmp(mode, ways[i]) == 0)
            return i;
    return 4;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc < 4)
        return 2;
    self = argv + 1;
    mode = argv[1];
    seed = (uint32_t)strtoul(argv[3], NULL, 10);
    if (strcmp(mode, "signals") == 0)
        signal_storm();
    if (strcmp(mode, "callback") == 0)
        subscribe();
    if (strcmp(mode, "operators") == 0)
        load_pytorch();
    if (strcmp(mode, "modules") == 0)
        load_driver();
    if (strcmp(mode, "libraries") == 0)
        multiply = (__typeof__(multiply))dlsym(dlopen(getenv("TORTURE_CUBLAS"), RTLD_LAZY),
                                               "cublasSgemm_v2");
    if (strcmp(mode, "tensors") == 0)
        tell = (__typeof__(tell))dlsym(RTLD_DEFAULT,
                                       "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
    /* A child of many threads must not need the locks that they hold, whatever the library. */
    thread_count = strcmp(mode, "bomb") == 0 ? 0 : any(THREADS_MAX);
    for (unsigned i = 0; i < thread_count; i++)
        pthread_create(&thread, NULL, call_on, NULL);
    uint32_t rounds = any(8);
    for (uint32_t i = 0; i < rounds; i++) {
        some_calls(any(30));
        if (strcmp(mode, "flight") == 0) {
            int (*dump)(const char *) = (__typeof__(dump))dlsym(RTLD_DEFAULT, "gpuprof_dump");
            if (dump)
                dump("torture");
            usleep(any(END_US_MAX / 4));
        }
        if (strcmp(mode, "forks") == 0 || strcmp(mode, "operators") == 0 ||
            strcmp(mode, "device") == 0)
            fork_one();
        else if (strcmp(mode, "threads") == 0)
            short_threads();
        else if (strcmp(mode, "dlclose") == 0)
            load_and_unload();
        usleep(any(END_US_MAX / 8));
    }
    if (strcmp(mode, "bomb") == 0)
        fork_bomb();
    if (strcmp(mode, "oom") == 0)
        run_out_of_memory();
    if (strcmp(mode, "governor") == 0 || strcmp(mode, "control") == 0 ||
        strcmp(mode, "device") == 0)
        go_on_for_a_while();
    end_now(way());
    return 3;
}

#endif
