/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to preload: CLOCK_REALTIME is set forward by CLOCK_STEP_S seconds, CLOCK_STEP_MS after
 * the start, and runs faster by CLOCK_FAST_PPM parts in a million.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000

static int64_t start_ns, step_at_ns, step_ns, fast_ppm;

static int64_t ns_of(clockid_t clock)
{
    struct timespec now;
    syscall(SYS_clock_gettime, clock, &now);
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

static int64_t number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtoll(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void start(void)
{
    start_ns = ns_of(CLOCK_MONOTONIC);
    step_ns = number("CLOCK_STEP_S") * SECOND_NS;
    step_at_ns = number("CLOCK_STEP_MS") * 1000000;
    fast_ppm = number("CLOCK_FAST_PPM");
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int64_t ns = ns_of(clock);
    if (clock == CLOCK_REALTIME && start_ns) {
        int64_t since_ns = ns_of(CLOCK_MONOTONIC) - start_ns;
        ns += since_ns * fast_ppm / 1000000 + (since_ns >= step_at_ns ? step_ns : 0);
    }
    now->tv_sec = ns / SECOND_NS;
    now->tv_nsec = ns % SECOND_NS;
    return 0;
}
