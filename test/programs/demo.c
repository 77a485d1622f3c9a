/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The demo: a training loop in miniature. Two processes ("ranks"), each with a loader thread that
 * copies batches, a compute thread that replays a captured graph, and a main thread that steps the
 * optimizer, keeps checkpoints and makes a mistake or two. It says its steps and ranges with
 * gpuprof.h, which costs nothing without gpuprof. It runs for about a second and a half.
 */

#include <cuda_runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpuprof.h"
#include "kernels.h"

#define KERNELS(X)                                                                                 \
    X(embedding, "_ZN5model16embedding_kernelIfEEvPKlPKT_PS3_i")                                   \
    X(layernorm, "_ZN5model16layernorm_kernelIfLi256EEEvPKT_S3_S3_PS1_f")                          \
    X(gemm, "_ZN7cutlass6KernelINS_4gemm6kernel4GemmIfLi128ELi128ELi8EEEEEvNT_6ParamsE")           \
    X(softmax, "_ZN5model14softmax_kernelIfLi1024EEEvPT_ii")                                       \
    X(gelu, "_ZN5model11gelu_kernelIfEEvPT_m")                                                     \
    X(cross_entropy, "_ZN5model20cross_entropy_kernelIfEEvPKT_PKlPS1_i")                           \
    X(gemm_backward, "_ZN7cutlass6KernelINS_4gemm6kernel10GemmSplitKIfLi64EEEEEvNT_6ParamsE")      \
    X(adam, "_ZN5optim11adam_kernelIfEEvPT_PKS1_S2_S2_fffi")                                       \
    X(reduce_norm, "_ZN5optim11reduce_normIfEEvPKT_Pfm")
KERNELS_DEFINE(KERNELS)

enum {
    STEP_COUNT = 120,
    LAYER_COUNT = 6,
    BATCH_BYTES = 1 << 20,
    WEIGHT_BYTES = 1 << 20,
    STEP_PAUSE_US = 3000,
    CHECKPOINT_STEPS = 40,
};

struct trainer {
    float *weights, *gradients, *batch[2];
    char *host_batch[2], *checkpoint;
    cudaStream_t compute, copy, optimizer;
    cudaEvent_t batch_ready[2], batch_done[2], backward_done, update_done;
    cudaGraph_t graph;
    cudaGraphExec_t step;
    pthread_barrier_t barrier;
    unsigned kernel_count;
};

/* A training loop does not stop at the first error, and neither does this one. */
static void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "demo: %s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}

#define CHECK(call) check(call, #call)

static void pause_us(long us)
{
    struct timespec nap = {0, us * 1000};
    nanosleep(&nap, NULL);
}

static void trainer_init(struct trainer *trainer, int rank)
{
    memset(trainer, 0, sizeof *trainer);
    CHECK(cudaSetDevice(rank));
    CHECK(cudaMalloc((void **)&trainer->weights, WEIGHT_BYTES));
    CHECK(cudaMalloc((void **)&trainer->gradients, WEIGHT_BYTES));
    CHECK(cudaMemset(trainer->weights, 0, WEIGHT_BYTES));
    CHECK(cudaMallocHost((void **)&trainer->checkpoint, WEIGHT_BYTES));
    for (int i = 0; i < 2; i++) {
        CHECK(cudaMalloc((void **)&trainer->batch[i], BATCH_BYTES));
        CHECK(cudaMallocHost((void **)&trainer->host_batch[i], BATCH_BYTES));
        CHECK(cudaEventCreateWithFlags(&trainer->batch_ready[i], cudaEventDisableTiming));
        CHECK(cudaEventCreateWithFlags(&trainer->batch_done[i], cudaEventDisableTiming));
    }
    CHECK(cudaStreamCreateWithFlags(&trainer->compute, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&trainer->copy, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithPriority(&trainer->optimizer, cudaStreamNonBlocking, -1));
    CHECK(cudaEventCreateWithFlags(&trainer->backward_done, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&trainer->update_done, cudaEventDisableTiming));
    pthread_barrier_init(&trainer->barrier, NULL, 3);
}

/* Forward and backward of one step, captured once and replayed. */
static void trainer_capture(struct trainer *trainer)
{
    cudaStream_t stream = trainer->compute;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(launch(embedding, 64, 256, 0, stream));
    for (int layer = 0; layer < LAYER_COUNT; layer++) {
        CHECK(launch(layernorm, 128, 256, 0, stream));
        CHECK(launch(gemm, 512, 256, 32768, stream));
        CHECK(launch(softmax, 128, 512, 4096, stream));
        CHECK(launch(gelu, 256, 256, 0, stream));
    }
    CHECK(launch(cross_entropy, 32, 256, 0, stream));
    CHECK(cudaMemsetAsync(trainer->gradients, 0, WEIGHT_BYTES, stream));
    for (int layer = 0; layer < LAYER_COUNT; layer++)
        CHECK(launch(gemm_backward, 512, 256, 32768, stream));
    CHECK(cudaStreamEndCapture(stream, &trainer->graph));
    CHECK(cudaGraphInstantiate(&trainer->step, trainer->graph, 0));
    CHECK(cudaGraphUpload(trainer->step, stream));
}

/* Copies the next batch while the last one is computed on. */
static void *loader_main(void *data)
{
    pthread_setname_np(pthread_self(), "loader");
    struct trainer *trainer = data;
    for (int step = 0; step < STEP_COUNT; step++) {
        int slot = step & 1;
        gpuprof_range_push("load batch");
        memset(trainer->host_batch[slot], step, 4096);
        CHECK(cudaStreamWaitEvent(trainer->copy, trainer->batch_done[slot], 0));
        CHECK(cudaMemcpyAsync(trainer->batch[slot], trainer->host_batch[slot], BATCH_BYTES,
                              cudaMemcpyHostToDevice, trainer->copy));
        CHECK(cudaEventRecord(trainer->batch_ready[slot], trainer->copy));
        CHECK(cudaEventSynchronize(trainer->batch_ready[slot]));
        gpuprof_range_pop();
        pthread_barrier_wait(&trainer->barrier);
        pthread_barrier_wait(&trainer->barrier);
    }
    return NULL;
}

static void *compute_main(void *data)
{
    pthread_setname_np(pthread_self(), "compute");
    struct trainer *trainer = data;
    float *scratch;
    for (int step = 0; step < STEP_COUNT; step++) {
        int slot = step & 1;
        pthread_barrier_wait(&trainer->barrier);
        gpuprof_range_push("forward and backward");
        CHECK(cudaStreamWaitEvent(trainer->compute, trainer->batch_ready[slot], 0));
        CHECK(cudaStreamWaitEvent(trainer->compute, trainer->update_done, 0));
        CHECK(cudaMallocAsync((void **)&scratch, WEIGHT_BYTES / 2, trainer->compute));
        CHECK(cudaGraphLaunch(trainer->step, trainer->compute));
        CHECK(cudaFreeAsync(scratch, trainer->compute));
        CHECK(cudaEventRecord(trainer->batch_done[slot], trainer->compute));
        CHECK(cudaEventRecord(trainer->backward_done, trainer->compute));
        gpuprof_range_pop();
        pthread_barrier_wait(&trainer->barrier);
    }
    return NULL;
}

static void optimizer_step(struct trainer *trainer, int step)
{
    float norm = 0;
    gpuprof_range_push("optimizer");
    CHECK(cudaStreamWaitEvent(trainer->optimizer, trainer->backward_done, 0));
    CHECK(launch(reduce_norm, 64, 512, 2048, trainer->optimizer));
    for (int layer = 0; layer < LAYER_COUNT; layer++)
        CHECK(launch(adam, 256, 256, 0, trainer->optimizer));
    CHECK(cudaEventRecord(trainer->update_done, trainer->optimizer));
    CHECK(cudaMemcpyAsync(&norm, trainer->weights, sizeof norm, cudaMemcpyDeviceToHost,
                          trainer->optimizer));
    CHECK(cudaStreamSynchronize(trainer->optimizer));
    gpuprof_range_pop();
    if (step % CHECKPOINT_STEPS == CHECKPOINT_STEPS - 1) {
        gpuprof_range_push("checkpoint");
        CHECK(cudaMemcpy(trainer->checkpoint, trainer->weights, WEIGHT_BYTES,
                         cudaMemcpyDeviceToHost));
        gpuprof_range_pop();
    }
    trainer->kernel_count += 1 + LAYER_COUNT;
    trainer->kernel_count += 2 + 5 * LAYER_COUNT;
}

/* Two mistakes, as seen in real programs: too large a block of threads, and memory freed twice. (No
 * lack of memory: a report says that before all else, and this one shows where time goes.) */
static int make_mistakes(struct trainer *trainer)
{
    void *twice = NULL;
    int failed = 0;
    failed += launch(gelu, 1, 2048, 0, trainer->compute) != cudaSuccess;
    CHECK(cudaMalloc(&twice, 4096));
    CHECK(cudaFree(twice));
    failed += cudaFree(twice) != cudaSuccess;
    cudaGetLastError();
    return failed;
}

static void trainer_release(struct trainer *trainer)
{
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGraphExecDestroy(trainer->step));
    CHECK(cudaGraphDestroy(trainer->graph));
    for (int i = 0; i < 2; i++) {
        CHECK(cudaFree(trainer->batch[i]));
        CHECK(cudaFreeHost(trainer->host_batch[i]));
        CHECK(cudaEventDestroy(trainer->batch_ready[i]));
        CHECK(cudaEventDestroy(trainer->batch_done[i]));
    }
    CHECK(cudaFree(trainer->weights));
    CHECK(cudaFree(trainer->gradients));
    CHECK(cudaFreeHost(trainer->checkpoint));
    CHECK(cudaEventDestroy(trainer->backward_done));
    CHECK(cudaEventDestroy(trainer->update_done));
    CHECK(cudaStreamDestroy(trainer->compute));
    CHECK(cudaStreamDestroy(trainer->copy));
    CHECK(cudaStreamDestroy(trainer->optimizer));
    pthread_barrier_destroy(&trainer->barrier);
}

static int train(int rank)
{
    struct trainer trainer;
    struct cudaDeviceProp prop;
    pthread_t loader, compute;
    int device_count = 0;
    CHECK(cudaGetDeviceCount(&device_count));
    trainer_init(&trainer, rank % device_count);
    CHECK(cudaGetDeviceProperties(&prop, rank % device_count));
    trainer_capture(&trainer);
    pthread_create(&loader, NULL, loader_main, &trainer);
    pthread_create(&compute, NULL, compute_main, &trainer);
    for (int step = 0; step < STEP_COUNT; step++) {
        gpuprof_step((uint64_t)step);
        pthread_barrier_wait(&trainer.barrier);
        pthread_barrier_wait(&trainer.barrier);
        optimizer_step(&trainer, step);
        pause_us(STEP_PAUSE_US);
    }
    pthread_join(loader, NULL);
    pthread_join(compute, NULL);
    int failed = make_mistakes(&trainer);
    trainer_release(&trainer);
    printf("demo: process %d on %s: %d steps, %u kernels, %d calls failed on purpose\n", rank,
           prop.name, STEP_COUNT, trainer.kernel_count, failed);
    return failed == 2 ? 0 : 1;
}

/* By its own name: a process executed as /proc/self/exe would be shown as "exe". */
static void execute_rank(char *name, char *rank)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length > 0) {
        path[length] = '\0';
        execv(path, (char *[]){name, "--rank", rank, NULL});
    }
    _exit(127);
}

int main(int argc, char **argv)
{
    int status = 0;
    if (argc > 1 && strcmp(argv[1], "--rank") == 0)
        return train(argc > 2 ? atoi(argv[2]) : 0);
    /* Before any CUDA call: a child of an initialised process could make none. */
    pid_t child = fork();
    if (child < 0) {
        perror("demo: fork");
        return 1;
    }
    if (child == 0) {
        execute_rank(argv[0], "1");
    }
    int result = train(0);
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        result = 1;
    return result;
}
