/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of our own, and the processors that they may use. */
#ifndef GPUPROF_COLLECTOR_PARALLEL_H
#define GPUPROF_COLLECTOR_PARALLEL_H

#include <pthread.h>
#include <stdbool.h>

/* It gets no signals: these are for the threads that were there before. False: none can be had. */
bool parallel_start(pthread_t *thread, void *(*work)(void *), void *context);

/* Restricts this process, before it has threads, to so many processors; 0: to all that there are.
 * How many it may run on. */
unsigned parallel_processors(unsigned most);

#endif
