/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI fills one buffer after the other, and nobody parses:
 *   buffers_fit MEGABYTES US ROUNDS
 * Each is full after so many microseconds. Prints how many bytes were given out before there were
 * no more, and in how many buffers; then all are parsed, and the next round begins.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cupti/gpu_buffers.h"
#include "cupti/gpu_state.h"

enum { NEW_VERSION = 130000 }; /* takes a refusal */

struct state gp;
struct gpu gpu;

static _Atomic uint64_t counters[COUNTER_COUNT];

/* Nobody waits here. */
void futex_wake_all(_Atomic uint32_t *word);
void futex_wake_all(_Atomic uint32_t *word)
{
    (void)word;
}

static void fill(useconds_t us)
{
    size_t sum = 0, bytes = 0, record_max = 1;
    uint8_t *buffer = NULL;
    unsigned count = 0;
    for (;; count++) {
        gpu_buffers_requested(&buffer, &bytes, &record_max);
        if (!buffer)
            break;
        if (buffer[0] || buffer[bytes - 1]) {
            fprintf(stderr, "a buffer is not empty\n");
            exit(1);
        }
        buffer[0] = buffer[bytes - 1] = 1;
        sum += bytes;
        gpu_buffers_completed(NULL, 0, buffer, bytes, bytes);
        if (us)
            usleep(us);
    }
    printf("%zu %u\n", sum, count);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    gp.counters = counters;
    gpu.cupti.version = NEW_VERSION;
    if (!gpu_buffers_create((uint64_t)atoi(argv[1]) << 20))
        return 2;
    for (int round = 0; round < atoi(argv[3]); round++) {
        struct gpu_buffer buffer;
        fill((useconds_t)atoi(argv[2]));
        while (gpu_buffers_take(&buffer))
            gpu_buffers_release(&buffer);
    }
    return 0;
}
