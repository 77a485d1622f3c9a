/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_work MS [THREADS [deaf]]: burns MS milliseconds of CPU time before its first CUDA call,
 * three quarters of it in heavy(), the rest in light(), then the same again after it; THREADS more
 * threads burn MS each in burn_beside(), which they begin after the first call, with all signals
 * blocked if deaf. Prints what each function used, by the thread's own clock: "NAME NS".
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

extern int cudaMalloc(void **, size_t);
extern int cudaDeviceSynchronize(void);

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define BURN(name)                                                                                 \
    static __attribute__((noinline)) uint64_t name(uint64_t ns)                                    \
    {                                                                                              \
        volatile uint64_t sum = 0;                                                                 \
        uint64_t begin_ns = cpu_ns(), now_ns;                                                      \
        do                                                                                         \
            for (int i = 0; i < 20000; i++)                                                        \
                sum += (uint64_t)i;                                                                \
        while ((now_ns = cpu_ns()) - begin_ns < ns);                                               \
        return now_ns - begin_ns;                                                                  \
    }

BURN(heavy)
BURN(light)
BURN(burn_beside)

static int is_detached;
static _Atomic unsigned done;

static void *beside(void *ns)
{
    static char text[64];
    uint64_t used = burn_beside((uintptr_t)ns);
    snprintf(text, sizeof text, "burn_beside %llu\n", (unsigned long long)used);
    write(1, text, sizeof text - 1 < 64 ? __builtin_strlen(text) : 0);
    done++;
    while (is_detached) /* until the process ends: it is there to be counted */
        pause();
    return NULL;
}

static void burn(const char *when, uint64_t ns)
{
    uint64_t heavy_ns = heavy(ns / 4 * 3), light_ns = light(ns / 4);
    printf("heavy-%s %llu\nlight-%s %llu\n", when, (unsigned long long)heavy_ns, when,
           (unsigned long long)light_ns);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    uint64_t ns = strtoul(argv[1], NULL, 10) * 1000000u;
    unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    pthread_t threads[64];
    void *memory;
    sigset_t deaf;
    burn("before", ns);
    cudaMalloc(&memory, 64);
    sigfillset(&deaf);
    is_detached = argc > 3;
    if (is_detached)
        pthread_sigmask(SIG_BLOCK, &deaf, NULL);
    for (unsigned i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, beside, (void *)(uintptr_t)ns);
    pthread_sigmask(SIG_UNBLOCK, &deaf, NULL);
    burn("after", ns);
    while (done < count)
        usleep(1000);
    for (unsigned i = 0; i < count && !is_detached; i++)
        pthread_join(threads[i], NULL);
    usleep(100000); /* it uses no CPU time */
    cudaDeviceSynchronize();
    return 0;
}
