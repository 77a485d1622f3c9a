/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Some of the faults of faults.py in C: faults SCENE. The faulty lines end with "fault SCENE"; the
 * simulated CUDA gives a kernel a microsecond for each block. Says as JSON which process it is.
 */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NAME "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_64x3_tn"

enum { STEPS = 40, MS = 1000, FOREVER = 0x7fffffff, COPY_BYTES = 1 << 20, HANGS_SECONDS = 3 };

static CUfunction gemm;
static CUstream queue;
static CUdeviceptr target;
static char source[COPY_BYTES];

#define GEMM(blocks) cuLaunchKernel(gemm, (blocks), 1, 1, 128, 1, 1, 0, queue, NULL, NULL)

static void launch_bound(void)
{
    for (int i = 0; i < 100 * STEPS; i++)
        GEMM(20); // fault launch-bound
}

static void sync_in_loop(void)
{
    for (int i = 0; i < STEPS / 2; i++) {
        GEMM(16 * MS);
        cuStreamSynchronize(queue); // fault sync-in-loop
        usleep(8000);
    }
}

/* As loss.item() of PyTorch, or a flag that says whether to go on. */
static void loss_item(void)
{
    for (int i = 0; i < STEPS / 2; i++) {
        float loss;
        GEMM(16 * MS);
        cuMemcpyDtoHAsync(&loss, target, sizeof loss, queue); // fault loss-item
        usleep(8000);
    }
}

static void pageable_copies(void)
{
    for (int i = 0; i < STEPS; i++) {
        memset(source, i, sizeof source);
        cuMemcpyHtoDAsync(target, source, COPY_BYTES, queue); // fault pageable-copies
        GEMM(4 * MS);
    }
}

static void allocation_churn(void)
{
    for (int i = 0; i < STEPS; i++) {
        CUdeviceptr memory;
        cuMemAlloc(&memory, COPY_BYTES); // fault allocation-churn
        GEMM(4 * MS);
        cuMemFree(memory); // fault allocation-churn
    }
}

/* Until somebody ends the job, which a signal of its own stands for. */
static void hang(void)
{
    struct itimerval end = {.it_value = {.tv_sec = HANGS_SECONDS}};
    for (int i = 0; i < STEPS; i++) {
        GEMM(16 * MS);
        cuStreamSynchronize(queue);
    }
    setitimer(ITIMER_REAL, &end, NULL);
    GEMM(FOREVER);
    cuStreamSynchronize(queue); // fault hang
}

static const struct {
    const char *name;
    void (*run)(void);
} scenes[] = {{"launch-bound", launch_bound},
              {"sync-in-loop", sync_in_loop},
              {"loss-item", loss_item},
              {"pageable-copies", pageable_copies},
              {"allocation-churn", allocation_churn},
              {"hang", hang}};

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("{\"rank\": 0, \"pid\": %d, \"began_ns\": %lld}\n", (int)getpid(),
           now.tv_sec * 1000000000ll + now.tv_nsec);
    fflush(stdout);
    cuInit(0);
    cuDeviceGet(&device, 0);
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxSetCurrent(context);
    cuModuleLoadData(&module, "simulated code");
    cuModuleGetFunction(&gemm, module, NAME);
    cuStreamCreate(&queue, CU_STREAM_NON_BLOCKING);
    cuMemAlloc(&target, COPY_BYTES);
    for (size_t i = 0; argc > 1 && i < sizeof scenes / sizeof scenes[0]; i++)
        if (strcmp(argv[1], scenes[i].name) == 0)
            scenes[i].run();
    return cuStreamSynchronize(queue);
}
