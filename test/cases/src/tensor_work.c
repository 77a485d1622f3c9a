/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As PyTorch's caching allocator: hands out blocks under a lock and tells libc10 of each, and
 * prints what it did, a line each: operation (1 got, 2 freed, 0 could not be had), address, bytes,
 * what is allocated and reserved of the device, device; in a child's lines a "c" before. At the
 * end: whether libc10 was told the same. blocks THREADS COUNT  on two devices, sizes of 512 bytes
 * to 8 MiB one COUNT             the same by one thread, of up to 64 KiB, none freed fork the child
 * goes on with its own many COUNT            as fast as it goes, without lines With -DPLUGIN a
 * library, and `run` instead of main.
 */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "c10.h"

#define BLOCKS 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t allocated[2], reserved[2], next_address = 0x7f0000000000;
static struct c10_told told;
static int is_quiet, is_child;

static void add(uint64_t word)
{
    told.sum += word * 0x9E3779B97F4A7C15u;
}

static void note(int operation, uint64_t address, int64_t bytes, struct c10_device device)
{
    int at = device.index < 0 ? 0 : device.index;
    told.calls++;
    add(address);
    add((uint64_t)bytes + 1);
    add(allocated[at] + 2);
    add(reserved[at] + 3);
    add((uint64_t)(uint8_t)device.type << 8 | (uint8_t)device.index);
    if (!is_quiet && device.type)
        printf("%s%d %#lx %ld %lu %lu %d\n", is_child ? "c" : "", operation, address, labs(bytes),
               allocated[at], reserved[at], at);
}

static void tell(int operation, uint64_t address, int64_t bytes, struct c10_device device)
{
    int at = device.index < 0 ? 0 : device.index;
    errno = 12345;
    if (operation)
        c10_usage((void *)(uintptr_t)address, bytes, allocated[at], reserved[at], device);
    else
        c10_failure(bytes, allocated[at], reserved[at], device);
    if (errno != 12345)
        exit(9);
    note(operation, address, bytes, device);
}

struct block {
    uint64_t address;
    int64_t bytes;
    int device;
};

static struct block get(int64_t bytes, int device)
{
    pthread_mutex_lock(&lock);
    struct block b = {next_address, bytes, device};
    next_address += (uint64_t)bytes;
    allocated[device] += (uint64_t)bytes;
    if (allocated[device] > reserved[device])
        reserved[device] = allocated[device];
    tell(1, b.address, bytes, (struct c10_device){1, (signed char)device});
    pthread_mutex_unlock(&lock);
    return b;
}

static void give_back(struct block *b)
{
    pthread_mutex_lock(&lock);
    allocated[b->device] -= (uint64_t)b->bytes;
    tell(2, b->address, -b->bytes, (struct c10_device){1, (signed char)b->device});
    pthread_mutex_unlock(&lock);
    b->bytes = 0;
}

static unsigned rounds;

static void *of_thread(void *number)
{
    struct block blocks[BLOCKS] = {0};
    unsigned seed = (unsigned)(uintptr_t)number + 1;
    for (unsigned i = 0; i < rounds; i++) {
        struct block *b = &blocks[rand_r(&seed) % BLOCKS];
        if (b->bytes)
            give_back(b);
        else
            *b = get(512L << rand_r(&seed) % 15, (int)(rand_r(&seed) & 1));
    }
    return NULL;
}

static void on_threads(unsigned count)
{
    pthread_t threads[16];
    for (unsigned i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, of_thread, (void *)(uintptr_t)i);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_lock(&lock);
    tell(0, 0, 1L << 40, (struct c10_device){1, 1});
    tell(1, 0x1000, 64, (struct c10_device){0, -1}); /* the host's, as while there is a profiler */
    tell(2, 0x1000, -64, (struct c10_device){0, -1});
    pthread_mutex_unlock(&lock);
}

static int finish(const char *whose)
{
    struct c10_told real = c10_told();
    printf("%s %s\n", whose, real.calls == told.calls && real.sum == told.sum ? "same" : "other");
    fflush(stdout);
    return 0;
}

static void forked(void)
{
    void *ptr;
    fflush(stdout);
    if (fork() == 0) {
        is_child = 1;
        cudaMalloc(&ptr, 64); /* fails; recorded all the same */
        struct block b = get(4096, 1);
        give_back(&b);
        exit(finish("child"));
    }
    wait(NULL);
}

int run(int argc, char **argv);
int run(int argc, char **argv)
{
    void *segment;
    const char *what = argc > 1 ? argv[1] : "";
    if (cudaMalloc(&segment, 1 << 20) != cudaSuccess)
        return 8;
    rounds = argc > 2 ? (unsigned)atoi(argv[argc - 1]) : 0;
    is_quiet = strcmp(what, "many") == 0;
    if (strcmp(what, "blocks") == 0) {
        on_threads((unsigned)atoi(argv[2]));
    } else if (strcmp(what, "fork") == 0) {
        struct block b = get(512, 0);
        forked();
        give_back(&b);
    } else {
        unsigned seed = 1;
        for (unsigned i = 0; i < rounds; i++) {
            struct block b = get(512L * (1 + rand_r(&seed) % 128), 0);
            if (is_quiet)
                give_back(&b);
        }
    }
    return finish("libc10");
}

#ifndef PLUGIN
int main(int argc, char **argv)
{
    return run(argc, argv);
}
#endif
