/* SPDX-License-Identifier: Apache-2.0 */
/*
 * killed_work SCENE: works on the simulated CUDA for a while, and rests until gpuprof has that;
 * then it goes on as the scene has it, says "now" once that has lasted, and goes on until it is
 * killed:
 *
 *   ahead  launches faster than the device works, and waits for nothing
 *   waits  launches a little, and waits for it
 *   hangs  waits for a kernel that does not end (SIMCUDA_ENDLESS)
 *   polls  asks for that again and again
 *   ends   ends by itself; nobody need kill it
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../programs/kernels.h"
#include <cuda.h>

#define KERNELS(X) X(gemm, "_Z4gemmPf") X(endless, "_Z7endlessPf")
KERNELS_DEFINE(KERNELS)

enum { PAUSE_US = 200, REST_US = 600000 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void work(int waits)
{
    launch(gemm, 1, 32, 0, NULL);
    if (waits)
        cudaDeviceSynchronize();
    usleep(PAUSE_US);
}

int main(int argc, char **argv)
{
    const char *scene = argc > 1 ? argv[1] : "";
    int hangs = strcmp(scene, "hangs") == 0, polls = strcmp(scene, "polls") == 0, said = 0;
    for (unsigned i = 0; i < 20; i++)
        work(1);
    usleep(REST_US);
    if (hangs || polls)
        launch(endless, 1, 32, 0, NULL);
    double begin = seconds();
    for (;;) {
        if (!said && seconds() > begin + (polls ? 1.5 : 0.8)) {
            puts("now");
            fflush(stdout);
            if (strcmp(scene, "ends") == 0)
                return 0;
            said = 1;
        }
        if (hangs) {
            puts("now");
            fflush(stdout);
            cudaDeviceSynchronize();
        } else if (polls) {
            cudaStreamQuery(NULL);
            usleep(10000);
        } else {
            work(strcmp(scene, "ahead") != 0);
        }
    }
}
