/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one CUDA call costs, beside the floor: call_cost FUNCTION THREADS CALLS ROUNDS
 *
 * FUNCTION is launch, malloc, sync, innerN (sync, which makes N driver calls inside), range (one
 * pushed and popped, by gpuprof.h), gemm (cublasGemmEx), matmul (cublasLtMatmul), mutex (one that
 * nobody else wants, locked and unlocked), contended (one that all threads want, held for some 100
 * ns each time), read (a byte of /dev/zero), deepN (sync, below N frames of the program's own) or
 * distinct (sync, each time by another way). Rounds of the floor loop (two raw reads of the cycle
 * counter and a 32-byte store, through 64 KiB of memory) and rounds of the call loop alternate,
 * CALLS each in every thread. Prints a line per round, nanoseconds per call: floor wall, floor CPU,
 * call wall, call CPU; then the minor faults per call that the threads took in the call loop, which
 * tell a round that touched pages of the live file first from one whose pages had been touched.
 * Wall is per core (times min(threads, processors) / threads); CPU is that of the calling threads.
 * At the end "writer NS": the CPU time of gpuprof's thread per call, if there is such a thread.
 */
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "range/gpuprof.h"
#include "stub_cublas.h"
#include "stub_cudart.h"

#define FLOOR_WORDS 8192
#define THREADS_MAX 64
#define HELD_TURNS  300
#define SETTLE_US   300000 /* the writer is through by then: GPUPROF_SEAL in bench.py */

static unsigned thread_count, round_count;
static uint64_t call_count;
static void (*call_loop)(void);
static pthread_barrier_t barrier;
static struct spent {
    uint64_t cpu_ns, faults;
} spent[THREADS_MAX][2]; /* in the present round: floor, call */

static inline uint64_t counter(void)
{
    uint64_t ticks;
#if defined(__x86_64__)
    ticks = __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
#endif
    __asm__ volatile("" ::: "memory");
    return ticks;
}

static void floor_loop(void)
{
    static __thread uint64_t room[FLOOR_WORDS] __attribute__((aligned(64)));
    uint64_t *p = room;
    for (uint64_t i = 0; i < call_count; i++) {
        uint64_t begin = counter();
        uint64_t end = counter();
        p[0] = i;
        p[1] = begin;
        p[2] = end - begin;
        p[3] = (uint64_t)(uintptr_t)p;
        p = p + 4 == room + FLOOR_WORDS ? room : p + 4;
        __asm__ volatile("" ::: "memory");
    }
}

static void launch_loop(void)
{
    static char kernel;
    dim3 grid = {128, 2, 1}, block = {256, 1, 1};
    for (uint64_t i = 0; i < call_count; i++)
        cudaLaunchKernel(&kernel, grid, block, NULL, 0, NULL);
}

static void malloc_loop(void)
{
    void *pointer;
    for (uint64_t i = 0; i < call_count; i++)
        cudaMalloc(&pointer, 4096);
}

static void sync_loop(void)
{
    for (uint64_t i = 0; i < call_count; i++)
        cudaStreamSynchronize(NULL);
}

static void range_loop(void)
{
    for (uint64_t i = 0; i < call_count; i++) {
        gpuprof_range_push("forward");
        gpuprof_range_pop();
    }
}

static void gemm_loop(void)
{
    static float one = 1, matrix[3];
    for (uint64_t i = 0; i < call_count; i++)
        cublasGemmEx(NULL, 0, 1, 512, 256, 64, &one, &matrix[0], 2, 512, &matrix[1], 2, 64, &one,
                     &matrix[2], 2, 512, 68, -1);
}

static void matmul_loop(void)
{
    static struct stub_structure multiply = {{68, 0, 0, 0, 1, 0, 0, 4}},
                                 layout = {{2, 0, 512, 256, 0, 1}}, other = {{14, 0, 64, 256}};
    static float one = 1, matrix[4];
    for (uint64_t i = 0; i < call_count; i++)
        cublasLtMatmul(NULL, &multiply, &one, &matrix[0], &layout, &matrix[1], &layout, &one,
                       &matrix[2], &other, &matrix[3], &layout, NULL, NULL, 0, NULL);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void mutex_loop(void)
{
    for (uint64_t i = 0; i < call_count; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
}

static void contended_loop(void)
{
    for (uint64_t i = 0; i < call_count; i++) {
        pthread_mutex_lock(&lock);
        for (unsigned held = 0; held < HELD_TURNS; held++)
            __asm__ volatile("" : "+r"(held));
        pthread_mutex_unlock(&lock);
    }
}

static void read_loop(void)
{
    static int zeros;
    char byte;
    zeros = zeros ? zeros : open("/dev/zero", O_RDONLY);
    for (uint64_t i = 0; i < call_count; i++)
        if (read(zeros, &byte, 1) != 1)
            abort();
}

static unsigned depth;

static __attribute__((noinline)) unsigned go_deep(unsigned below)
{
    if (below == 0)
        sync_loop();
    unsigned went = below ? go_deep(below - 1) : 0;
    __asm__ volatile("" : "+r"(went)); /* not a jump */
    return went + 1;
}

static void deep_loop(void)
{
    go_deep(depth - 1);
}

/* One of two calls at each level, by the bits of `way`. */
static __attribute__((noinline)) unsigned go_by(uint64_t way, unsigned levels)
{
    unsigned went = 0;
    if (levels == 0) {
        cudaStreamSynchronize(NULL);
    } else if (way & 1) {
        went = go_by(way >> 1, levels - 1);
        __asm__ volatile("" : "+r"(went));
    } else {
        went = go_by(way >> 1, levels - 1);
        __asm__ volatile("nop" : "+r"(went));
    }
    return went + 1;
}

static void distinct_loop(void)
{
    static uint64_t way;
    for (uint64_t i = 0; i < call_count; i++)
        go_by(way++, 15);
}

static uint64_t thread_ns(clockid_t clock)
{
    struct timespec now = {0, 0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t thread_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)usage.ru_minflt;
}

/* Wall nanoseconds. */
static uint64_t timed(void (*loop)(void), struct spent *own)
{
    pthread_barrier_wait(&barrier);
    uint64_t faults = thread_faults(), wall_begin = monotonic_ns(),
             cpu_begin = thread_ns(CLOCK_THREAD_CPUTIME_ID);
    loop();
    own->cpu_ns = thread_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begin;
    own->faults = thread_faults() - faults;
    pthread_barrier_wait(&barrier);
    return monotonic_ns() - wall_begin;
}

static void print_round(uint64_t floor_wall, uint64_t call_wall)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    double share = thread_count < cores ? thread_count : (double)cores;
    double calls = (double)call_count * thread_count, cpu[2] = {0, 0}, faults = 0;
    for (unsigned t = 0; t < thread_count; t++) {
        for (unsigned kind = 0; kind < 2; kind++)
            cpu[kind] += (double)spent[t][kind].cpu_ns;
        faults += (double)spent[t][1].faults;
    }
    printf("round %.3f %.3f %.3f %.3f %.6f\n", (double)floor_wall * share / calls, cpu[0] / calls,
           (double)call_wall * share / calls, cpu[1] / calls, faults / calls);
}

static void *work(void *number)
{
    struct spent *own = spent[(uintptr_t)number];
    for (unsigned i = 0; i < round_count; i++) {
        uint64_t floor_wall = timed(floor_loop, &own[0]);
        uint64_t call_wall = timed(call_loop, &own[1]);
        if (number == NULL)
            print_round(floor_wall, call_wall);
    }
    return NULL;
}

/* CPU time of gpuprof's writer thread so far; 0 if there is none. */
static uint64_t writer_ns(void)
{
    uint64_t ns = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *comm = fopen(path, "re");
        if (comm && fgets(name, sizeof name, comm) && strcmp(name, "gpuprof\n") == 0)
            /* The kernel's encoding of "the CPU clock of thread N". */
            ns = thread_ns((clockid_t)(~(unsigned)atoi(entry->d_name) << 3 | 6));
        if (comm)
            fclose(comm);
    }
    if (tasks)
        closedir(tasks);
    return ns;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    sscanf(argv[1], "inner%u", &stub_inner); /* then a sync_loop like others */
    call_loop = strcmp(argv[1], "launch") == 0                    ? launch_loop
                : strcmp(argv[1], "malloc") == 0                  ? malloc_loop
                : strcmp(argv[1], "range") == 0                   ? range_loop
                : strcmp(argv[1], "gemm") == 0                    ? gemm_loop
                : strcmp(argv[1], "matmul") == 0                  ? matmul_loop
                : strcmp(argv[1], "distinct") == 0                ? distinct_loop
                : strcmp(argv[1], "mutex") == 0                   ? mutex_loop
                : strcmp(argv[1], "contended") == 0               ? contended_loop
                : strcmp(argv[1], "read") == 0                    ? read_loop
                : sscanf(argv[1], "deep%u", &depth) == 1 && depth ? deep_loop
                                                                  : sync_loop;
    thread_count = (unsigned)atoi(argv[2]);
    call_count = (uint64_t)atoll(argv[3]);
    round_count = (unsigned)atoi(argv[4]);
    assert(thread_count >= 1 && thread_count <= THREADS_MAX && call_count && round_count);
    cudaStreamSynchronize(NULL); /* what starting costs is not what a call costs */
    usleep(SETTLE_US);
    uint64_t writer_begin = writer_ns();
    pthread_t threads[THREADS_MAX];
    pthread_barrier_init(&barrier, NULL, thread_count);
    for (uintptr_t t = 1; t < thread_count; t++)
        pthread_create(&threads[t], NULL, work, (void *)t);
    work(NULL);
    for (uintptr_t t = 1; t < thread_count; t++)
        pthread_join(threads[t], NULL);
    if (writer_begin) {
        usleep(SETTLE_US);
        double calls = (double)call_count * thread_count * round_count;
        printf("writer %.3f\n", (double)(writer_ns() - writer_begin) / calls);
    }
    return 0;
}
