/* SPDX-License-Identifier: Apache-2.0 */
#include "model/silence_look.h"

#include "record/gpu_record.h"

#define PART_LEAST 10 /* what has less than this part of a silence is not told apart */
#define BURST_MOST 4  /* times the silence: in so many calls before it a thread may wait as long */

enum { RAN, WAITED, DELAYED, OFF, PARTS };

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Small parts go to the largest one. */
static struct silence_look shares_of(uint64_t ns[static PARTS], uint64_t all_ns)
{
    uint32_t shares[PARTS], most = RAN;
    for (unsigned i = 0; i < PARTS; i++)
        most = ns[i] > ns[most] ? i : most;
    for (unsigned i = 0; i < PARTS; i++) {
        bool is_small = ns[i] < all_ns / PART_LEAST;
        shares[i] = is_small ? 0 : (uint32_t)((double)SILENCE_ALL * (double)ns[i] / (double)all_ns);
    }
    shares[most] = 0;
    shares[most] = SILENCE_ALL - shares[RAN] - shares[WAITED] - shares[DELAYED] - shares[OFF];
    return (struct silence_look){shares[WAITED], shares[DELAYED], shares[OFF]};
}

/* A thread that makes calls one after another runs: what it waited, it waited in the silence.
 * Others may have kept it from running in both. */
bool silence_look_of(const struct record *r, struct silence_look *look)
{
    uint64_t silent_ns = record_arg(r, SILENCE_NS), since_ns = record_arg(r, SILENCE_SINCE);
    uint64_t delay_ns = record_arg(r, SILENCE_DELAY), ns[PARTS] = {0};
    if (!silent_ns || since_ns < silent_ns)
        return false;
    uint64_t burst_ns = since_ns - silent_ns;
    uint64_t off_ns = since_ns - least_of(record_arg(r, SILENCE_CPU), since_ns);
    uint64_t most_ns = least_of(off_ns, silent_ns);
    uint64_t least_ns = off_ns > burst_ns ? off_ns - burst_ns : 0;
    if (burst_ns / BURST_MOST > silent_ns && most_ns > least_ns + silent_ns / 2)
        return false;
    if (!delay_ns) {
        ns[OFF] = most_ns;
    } else {
        delay_ns = least_of(delay_ns - 1, off_ns);
        ns[WAITED] = least_of(off_ns - delay_ns, silent_ns);
        ns[DELAYED] = (uint64_t)((unsigned __int128)delay_ns * silent_ns / since_ns);
        ns[DELAYED] = least_of(ns[DELAYED], silent_ns - ns[WAITED]);
    }
    ns[RAN] = silent_ns - ns[WAITED] - ns[DELAYED] - ns[OFF];
    *look = shares_of(ns, silent_ns);
    return true;
}
