/* SPDX-License-Identifier: Apache-2.0 */
/* How long a program goes on: for some time, or until its stdin ends. */
#ifndef GPUPROF_TEST_UNTIL_H
#define GPUPROF_TEST_UNTIL_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* `end_ms` 0: nobody knows; stdin tells. */
static inline bool is_until(uint64_t end_ms)
{
    struct pollfd end = {.fd = STDIN_FILENO, .events = POLLIN};
    return end_ms ? now_ms() >= end_ms : poll(&end, 1, 0) > 0;
}

#endif
