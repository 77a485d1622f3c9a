/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_work WHO: a thread that launches kernels, and helpers that copy. Each is in a range of its
 * own name all the time. The one who sleeps for 20 ms in each of ROUNDS rounds is known to
 * whoever knows WHO.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "cupti_work.h"
#include "range/gpuprof.h"

enum { ROUNDS = 12, LONG_US = 20000, OFTEN_US = 3000, LOAD_US = 2000, BYTES = 1 << 18 };

static const char *who;
static sem_t full, slots;
static atomic_bool is_over;
static cudaEvent_t copied;
static cudaStream_t launches;

static bool is(const char *name)
{
    return strcmp(who, name) == 0;
}

static void step(void)
{
    for (unsigned i = 0; i < 8; i++)
        launch(gemm, 3, 64, 128, launches);
    cudaStreamSynchronize(launches);
}

struct buffer {
    cudaStream_t stream;
    void *device, *host;
};

static struct buffer make_buffer(void)
{
    struct buffer b = {0};
    if (!is("shared stream"))
        cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking);
    cudaMalloc(&b.device, BYTES);
    cudaMallocHost(&b.host, BYTES);
    return b;
}

static void copy(const struct buffer *b)
{
    cudaMemcpyAsync(b->device, b->host, BYTES, cudaMemcpyHostToDevice, b->stream);
    if (is("loader's event"))
        cudaEventRecord(copied, b->stream);
    else
        cudaStreamSynchronize(b->stream);
}

/* Whatever the other one does. */
static void copy_often(const struct buffer *b)
{
    while (!is_over) {
        copy(b);
        usleep(is("both") ? LONG_US / 3 : OFTEN_US);
    }
}

static void load(const struct buffer *b)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        sem_wait(&slots);
        usleep(is("prefetched") ? LOAD_US : LONG_US);
        copy(b);
        sem_post(&full);
    }
}

static void take_steps(void)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        sem_wait(&full);
        sem_post(&slots);
        if (is("loader's event"))
            cudaStreamWaitEvent(launches, copied, 0);
        step();
        if (is("prefetched"))
            usleep(LONG_US);
    }
}

static bool is_queue(void)
{
    return is("prefetched") || is("loader") || is("loader's event");
}

static void *help(void *unused)
{
    gpuprof_range_push("helper");
    if (is("feeder")) {
        take_steps();
        return unused;
    }
    struct buffer b = make_buffer();
    if (is_queue())
        load(&b);
    else
        copy_often(&b);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t t[2];
    unsigned helpers = argc > 1 && strcmp(argv[1], "two helpers") == 0 ? 2 : 1;
    who = argc > 1 ? argv[1] : "";
    gpuprof_range_push("main");
    sem_init(&full, 0, 0);
    sem_init(&slots, 0, 1);
    cudaEventCreateWithFlags(&copied, cudaEventDisableTiming);
    if (!is("shared stream"))
        cudaStreamCreateWithFlags(&launches, cudaStreamNonBlocking);
    step();
    for (unsigned i = 0; i < helpers; i++)
        pthread_create(&t[i], NULL, help, NULL);
    if (is("feeder")) {
        struct buffer b = make_buffer();
        load(&b);
    } else if (is_queue()) {
        take_steps();
    } else {
        for (unsigned i = 0; i < ROUNDS; i++) {
            step();
            usleep(LONG_US);
        }
    }
    is_over = true;
    for (unsigned i = 0; i < helpers; i++)
        pthread_join(t[i], NULL);
    return 0;
}
