/* SPDX-License-Identifier: Apache-2.0 */
/* A library that answers in the kernel's place, as libfaketime does: clocks are 60 years ahead. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define AHEAD_SECONDS (60LL * 365 * 24 * 3600)

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME))
        now->tv_sec += AHEAD_SECONDS;
    return result;
}
