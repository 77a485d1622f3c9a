/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"

#include <malloc.h>
#include <sched.h>
#include <signal.h>

bool parallel_start(pthread_t *thread, void *(*work)(void *), void *context)
{
    sigset_t all, before;
    mallopt(M_ARENA_MAX, 1); /* what one thread gives back another can have */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(thread, NULL, work, context) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

unsigned parallel_processors(unsigned most)
{
    cpu_set_t usable, used;
    int here = sched_getcpu();
    unsigned count = 0;
    CPU_ZERO(&used);
    if (here < 0 || sched_getaffinity(0, sizeof usable, &usable) < 0)
        return most == 1 ? 1 : 2; /* a set of CPU_SETSIZE has not room for all that there are */
    /* From where we run on, so that several of us do not share the first ones. */
    for (int i = 0; i < CPU_SETSIZE && (!most || count < most); i++) {
        int cpu = (here + i) % CPU_SETSIZE;
        if (CPU_ISSET(cpu, &usable)) {
            CPU_SET(cpu, &used);
            count++;
        }
    }
    if (most)
        sched_setaffinity(0, sizeof used, &used); /* else the system decides which are used */
    return count;
}
