/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For how long a flight recorder's dump keeps a launch waiting: stall_cost CALLS APART_NS SECONDS
 *
 * CALLS launches fill the recorder; then launches that begin APART_NS after one another are timed,
 * for so many seconds without and then with a dump that is asked for at their begin. Prints a line
 * each: "plain" or "dump", the launches, how many took longer than 100 us, the longest in
 * microseconds, and the one of 10,000 that is as long.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "range/gpuprof.h"
#include "stub_cudart.h"

#define LATE_NS  100000u
#define CLASSES  4096u /* of 250 ns each; longer ones in the last */
#define CLASS_NS 250u

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void launch(void)
{
    static char kernel;
    static uint64_t any = 88172645463325252u; /* what compresses well makes a small dump */
    any ^= any << 13;
    any ^= any >> 7;
    any ^= any << 17;
    dim3 grid = {(unsigned)(any & 0xffffff), (unsigned)(any >> 24 & 0xffff), 1},
         block = {256, 1, 1};
    cudaLaunchKernel(&kernel, grid, block, NULL, any >> 40, NULL);
}

static void time_launches(const char *name, uint64_t apart_ns, uint64_t seconds)
{
    static uint64_t classes[CLASSES];
    uint64_t begin = now_ns(), next = begin, longest = 0, late = 0, count = 0, seen = 0;
    memset(classes, 0, sizeof classes);
    for (uint64_t before = begin; before - begin < seconds * 1000000000u; count++) {
        while ((before = now_ns()) < next)
            ;
        launch();
        uint64_t lasted = now_ns() - before, class = lasted / CLASS_NS;
        longest = lasted > longest ? lasted : longest;
        late += lasted > LATE_NS;
        classes[class < CLASSES ? class : CLASSES - 1]++;
        next = before + apart_ns;
    }
    unsigned class = CLASSES;
    while (class > 0 && seen < count / 10000)
        seen += classes[--class];
    printf("%s %llu %llu %.1f %.2f\n", name, (unsigned long long)count, (unsigned long long)late,
           (double)longest / 1e3, class * CLASS_NS / 1e3);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    uint64_t calls = strtoull(argv[1], NULL, 10), apart_ns = strtoull(argv[2], NULL, 10);
    uint64_t seconds = strtoull(argv[3], NULL, 10);
    for (uint64_t i = 0; i < calls; i++)
        launch();
    time_launches("plain", apart_ns, seconds);
    gpuprof_dump("bench");
    time_launches("dump", apart_ns, seconds);
    return 0;
}
