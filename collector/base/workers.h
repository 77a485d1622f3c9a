/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forked processes that each do a part of the work. They share what the parent read before; results
 * come back through a socket. Messages of the workers are stored and printed in worker order when
 * all have ended; of failed workers only the first prints, since a full disk fails them all.
 * Workers die with their parent.
 */
#ifndef GPUPROF_COLLECTOR_WORKERS_H
#define GPUPROF_COLLECTOR_WORKERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/message.h"

/* Threads, and the processors they may use. */

/* Starts a thread with all signals blocked: the others handle them. Returns false on failure. */
bool parallel_start(pthread_t *thread, void *(*work)(void *), void *context);

/* Returns how many processors this process may use, at most `most` (0: all). */
unsigned parallel_processors(unsigned most);

#define WORKERS_MAX 256

struct worker {
    pid_t pid; /* 0 or below: not started */
    int from;  /* socket with the worker's results */
    int words; /* unnamed file with its messages */
};

struct workers {
    struct worker *list; /* owned */
    uint32_t count;
};

/* Runs worker `index` in its process and writes results to `to`. Returns its exit code. */
typedef enum exit_code worker_fn(void *context, uint32_t index, int to);

/* Starts `count` workers, at most WORKERS_MAX. Returns false if that fails; none runs then and the
 * caller does the work alone. The caller must have no other threads. */
bool workers_start(struct workers *w, uint32_t count, worker_fn *work, void *context);

/* In a worker: writes all bytes. Returns false (errno) also if the parent stopped reading. */
bool workers_write(int to, const void *data, size_t bytes);

/* Reads the next bytes from a worker. Returns false if it ended before. */
bool workers_read(const struct workers *w, uint32_t index, void *data, size_t bytes);

/* Waits for all workers; writes of those still running fail, and they end cleanly. `how` is
 * WORKERS_DONE (all results were read), a failed worker's number (its messages are printed), or
 * WORKERS_UNWANTED (none are). Returns EXIT_OK, or the first failure's exit code after a line. */
#define WORKERS_DONE     UINT32_MAX
#define WORKERS_UNWANTED (UINT32_MAX - 1)
enum exit_code workers_end(struct workers *w, uint32_t how);

/* Runs work(result, context) in a child that may crash or hang, with /dev/null as its standard
 * streams; kills it after `seconds`. The `bytes` of `result` are passed in and come back, also what
 * was written before a crash. Returns false if the child did not finish. */
bool aside_run(void (*work)(void *result, void *context), void *result, size_t bytes, void *context,
               double seconds);

#endif
