/* SPDX-License-Identifier: Apache-2.0 */
#include "own_thread.h"

#include <pthread.h>
#include <sys/prctl.h>

#include "call.h"
#include "signals.h"

#define STACK_BYTES (1u << 20)

_Atomic uint32_t own_thread_count;

int own_thread_create(void *(*body)(void *), void *data)
{
    pthread_attr_t attributes;
    pthread_t thread;
    uint64_t mask = block_signals(); /* what the thread starts with */
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    atomic_fetch_add(&own_thread_count, 1);
    int error = pthread_create(&thread, &attributes, body, data);
    if (error)
        atomic_fetch_sub(&own_thread_count, 1);
    pthread_attr_destroy(&attributes);
    restore_signals(mask);
    return error;
}

void own_thread_begin(const char *name)
{
    this_thread.inside = CALL_FOR_GOOD;
    prctl(PR_SET_NAME, name);
}

void own_thread_end(void)
{
    atomic_fetch_sub(&own_thread_count, 1);
}
