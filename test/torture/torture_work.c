/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One life that ends at a random moment: torture_work MODE SEED. Some threads call CUDA; meanwhile
 * what MODE says happens. -DPLUGIN: a library whose calls come and go with it.
 */
#include <cuda_runtime_api.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
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
#define NOBODY          65534
#define HANDLER_STACK   12288 /* SIGSTKSZ, as it was for long, and a line of the CUDA's log */
#define GUARD_BYTES     65536
#define TAKEN_MAX       100

static const char *mode;
static char **self;
static _Atomic uint32_t seed;
static _Atomic int is_over;
static _Atomic unsigned calling; /* threads that have called */
static unsigned thread_count;

static int is_child, has_graphs;

static bool is(const char *name)
{
    return strcmp(mode, name) == 0;
}

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

/* Two fills in a graph; each thread launches its own. */
static void some_graph(void)
{
    static __thread char filled[64];
    static __thread cudaGraphExec_t exec;
    static __thread cudaStream_t stream;
    cudaGraph_t graph;
    if (!exec) {
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
        cudaMemsetAsync(filled, 1, sizeof filled, stream);
        cudaMemsetAsync(filled, 2, sizeof filled, stream);
        cudaStreamEndCapture(stream, &graph);
        cudaGraphInstantiateWithFlags(&exec, graph, 0);
    }
    cudaGraphLaunch(exec, stream);
}

static __thread volatile sig_atomic_t is_calling; /* a handler is not to call then */

static void some_calls(unsigned count)
{
    static __thread char target[64];
    static char large[300 << 10]; /* so much that it is looked at */
    is_calling = 1;
    for (unsigned i = 0; i < count; i++) {
        void *memory = NULL;
        struct sim_op *op = some_operator();
        some_block();
        if (any(4) == 0)
            some_product();
        some_module();
        if (has_graphs && !is_child)
            some_graph();
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
    is_calling = 0;
}

/* SIGALRM comes on a stack of so few bytes, below which nobody may write. */
static void take_handler_stack(void)
{
    char *memory = mmap(NULL, GUARD_BYTES + HANDLER_STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE))
        _exit(9);
    sigaltstack(&(stack_t){.ss_sp = memory + GUARD_BYTES, .ss_size = HANDLER_STACK}, NULL);
}

static void *call_on(void *data)
{
    if (is("handler_stack"))
        take_handler_stack();
    else
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

/* With a small stack it calls, if it interrupts no call. */
static void on_signal(int number)
{
    int saved = errno;
    if (is("handler_stack") && !is_calling) {
        is_calling = 1;
        cudaMemset(NULL, number, 0);
        is_calling = 0;
    }
    errno = saved;
}

static void signal_storm(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART};
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

/* The terminal's, which sends it to children, too; half of the programs catch it first, as Python
 * does, and then end by it. */
static volatile sig_atomic_t is_interrupted;

static void on_interrupt(int number)
{
    is_interrupted = number;
}

static void press_ctrl_c(void)
{
    bool catches = any(2);
    int terminal = posix_openpt(O_RDWR | O_NOCTTY); /* the life leads its session */
    if (terminal < 0 || grantpt(terminal) || unlockpt(terminal) ||
        open(ptsname(terminal), O_RDWR) < 0)
        _exit(9);
    if (catches)
        signal(SIGINT, on_interrupt);
    if (any(2) && fork() == 0) {
        is_child = 1;
        for (;;)
            some_calls(1);
    }
    usleep(any(END_US_MAX / 8));
    if (write(terminal, "\003", 1) != 1)
        _exit(9);
    while (!is_interrupted)
        some_calls(1);
    signal(SIGINT, SIG_DFL);
    kill(getpid(), SIGINT);
}

/* The rest of the life is a child's. Its parent and a sister end it, each asking it first, at any
 * moment of it; stopped, so that it answers nobody, or not. */
static void be_killed(void)
{
    pid_t life = fork(), sister;
    if (life == 0)
        return;
    usleep(any(2 * END_US_MAX));
    if (any(3) == 0)
        kill(life, SIGSTOP);
    sister = fork();
    kill(life, any(2) ? SIGTERM : SIGKILL);
    if (sister == 0)
        _exit(0);
    kill(life, SIGCONT);
    waitpid(life, NULL, 0);
    waitpid(sister, NULL, 0);
    _exit(3);
}

/* All threads answer; in the end with another user's rights, where that is allowed. */
static void change_user(bool is_last)
{
    bool is_root = getuid() == 0;
    if (is_last && is_root ? setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)
                           : setgid(getgid()) || setuid(getuid()))
        _exit(9);
}

/* patcher.c's module: it counts what it sees by changing the driver's code around each call. */
static unsigned (*event_count)(void);

static void load_patcher(void)
{
    void *module = dlopen(getenv("TORTURE_PATCHER"), RTLD_NOW);
    void (*start)(const char *) = module ? (void (*)(const char *))dlsym(module, "start") : NULL;
    event_count = module ? (unsigned (*)(void))dlsym(module, "event_count") : NULL;
    if (!start || !event_count)
        _exit(9);
    cudaFree(NULL);
    start(any(2) ? "own" : "default");
}

/* An allocation and its end are an event each. */
static void call_patched(void)
{
    for (unsigned i = any(10); i > 0; i--) {
        void *memory;
        unsigned before = event_count();
        cudaMalloc(&memory, 64);
        cudaFree(memory);
        if (event_count() != before + 2)
            _exit(9);
    }
}

/* Files of the program's that have the numbers of our descriptors: they stay its own. */
static struct {
    int fd;
    ino_t inode;
} taken[TAKEN_MAX];
static unsigned taken_count;

static void take_descriptors(void)
{
    char target[300];
    struct dirent *one;
    struct stat st;
    DIR *all = opendir("/proc/self/fd");
    while (all && (one = readdir(all)) && taken_count < TAKEN_MAX) {
        ssize_t length = readlinkat(dirfd(all), one->d_name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        int mine = strstr(target, "schedstat") ? memfd_create("mine", 0) : -1;
        if (mine < 0)
            continue;
        int fd = dup2(mine, atoi(one->d_name));
        close(mine);
        if (fstat(fd, &st) == 0)
            taken[taken_count].fd = fd, taken[taken_count++].inode = st.st_ino;
    }
    if (all)
        closedir(all);
    for (unsigned i = 0; i < taken_count; i++)
        if (fstat(taken[i].fd, &st) || st.st_ino != taken[i].inode)
            _exit(9);
}

/* Each life has a folder of its own, of which it is the one that loses it; the library reads the
 * name before main. */
static void begin_in_folder(char **argv)
{
    const char *out = getenv("GPUPROF_OUT");
    char own[4096];
    if (!out || getenv("TORTURE_BASE"))
        return;
    setenv("TORTURE_BASE", out, 1);
    snprintf(own, sizeof own, "%s/%s", out, argv[3]);
    setenv("GPUPROF_OUT", own, 1);
    mkdir(out, 0700);
    execv(argv[0], argv);
    _exit(9);
}

/* It is renamed, or emptied and removed; what is gone with it is told by the name of a file. */
static void lose_folder(void)
{
    char name[4200];
    const char *base = getenv("TORTURE_BASE"), *own = getenv("GPUPROF_OUT");
    if (!base)
        return;
    if (any(2)) {
        snprintf(name, sizeof name, "%s-moved", own);
        rename(own, name);
        return;
    }
    snprintf(name, sizeof name, "%s/%d.removed", base, (int)getpid());
    close(open(name, O_WRONLY | O_CREAT, 0600));
    DIR *all = opendir(own);
    for (struct dirent *one; all && (one = readdir(all));)
        unlinkat(dirfd(all), one->d_name, 0);
    if (all)
        closedir(all);
    rmdir(own);
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
    if (is("notes"))
        return 6;
    static const char *const ways[] = {"kill", "segv",       "abort", "_exit",
                                       "exit", "quick_exit", "raise"};
    static const char *const killed[] = {
        "governor", "control",  "tensors", "flight",        "libraries", "device", "modules",
        "patcher",  "silences", "graphs",  "handler_stack", "waits",     "samples"};
    for (unsigned i = 0; i < sizeof killed / sizeof killed[0]; i++)
        if (is(killed[i]))
            return 0;
    for (int i = 0; i < 7; i++)
        if (is(ways[i]))
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
    if (is("killers"))
        be_killed();
    if (is("folder"))
        begin_in_folder(argv);
    if (is("handler_stack"))
        take_handler_stack();
    if (is("signals") || is("handler_stack"))
        signal_storm();
    has_graphs = is("graphs");
    if (is("patcher"))
        load_patcher();
    if (is("callback"))
        subscribe();
    if (is("operators"))
        load_pytorch();
    if (is("modules"))
        load_driver();
    if (is("libraries"))
        multiply = (__typeof__(multiply))dlsym(dlopen(getenv("TORTURE_CUBLAS"), RTLD_LAZY),
                                               "cublasSgemm_v2");
    if (is("tensors"))
        tell = (__typeof__(tell))dlsym(RTLD_DEFAULT,
                                       "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
    /* A child of many threads must not need the locks that they hold, whatever the library; who
     * calls what another thread patches crashes; and what others do after a last flush needs a
     * file. */
    bool is_alone = is("bomb") || is("patcher") || is("notes");
    thread_count = is_alone ? 0 : any(THREADS_MAX);
    for (unsigned i = 0; i < thread_count; i++)
        pthread_create(&thread, NULL, call_on, NULL);
    uint32_t rounds = any(8);
    for (uint32_t i = 0; i < rounds; i++) {
        some_calls(any(30));
        if (is("flight")) {
            int (*dump)(const char *) = (__typeof__(dump))dlsym(RTLD_DEFAULT, "gpuprof_dump");
            if (dump)
                dump("torture");
            usleep(any(END_US_MAX / 4));
        }
        if (is("setuid"))
            change_user(i + 1 == rounds);
        if (is("patcher"))
            call_patched();
        if (is("folder") && i == rounds / 2)
            lose_folder();
        if (is("silences"))
            take_descriptors();
        if (is("forks") || is("operators") || is("device") || is("patcher") ||
            ((is("waits") || is("samples")) && i % 2))
            fork_one();
        else if (is("threads") || is("waits") || is("samples") || is("silences") || is("notes"))
            short_threads();
        else if (is("dlclose"))
            load_and_unload();
        usleep(any(END_US_MAX / 8));
    }
    if (is("bomb"))
        fork_bomb();
    if (is("oom"))
        run_out_of_memory();
    if (is("ctrl_c"))
        press_ctrl_c();
    if (is("governor") || is("control") || is("device"))
        go_on_for_a_while();
    end_now(way());
    return 3;
}

#endif
