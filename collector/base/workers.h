/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of our own that do a piece of the work each. They are forked, so they know all that was
 * read before; what they change stays with them, and what they find they write to a socket. What a
 * worker says on stderr is kept until all have ended, and then said in their order: of those that
 * failed only by the first, since a full disk is met by all. They are killed when their parent
 * dies.
 */
#ifndef GPUPROF_COLLECTOR_WORKERS_H
#define GPUPROF_COLLECTOR_WORKERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/message.h"

/* Threads of our own, and the processors that they may use. */

/* It gets no signals: these are for the threads that were there before. False: none can be had. */
bool parallel_start(pthread_t *thread, void *(*work)(void *), void *context);

/* Restricts this process, before it has threads, to so many processors; 0: to all that there are.
 * How many it may run on. */
unsigned parallel_processors(unsigned most);

#define WORKERS_MAX 256

struct worker {
    pid_t pid; /* not above 0: it could not be started */
    int from;  /* the socket from which its bytes come */
    int words; /* a file without a name: what it says */
};

struct workers {
    struct worker *list; /* owned */
    uint32_t count;
};

/* Of worker `index`, in its process: what it finds goes to `to`. Returns its exit code. */
typedef enum exit_code worker_fn(void *context, uint32_t index, int to);

/* Starts so many, at most WORKERS_MAX. False: they cannot be had, and none runs; whoever asked for
 * them does the work alone. The caller has no other threads. */
bool workers_start(struct workers *w, uint32_t count, worker_fn *work, void *context);

/* In a worker: writes all of it. False: nobody reads any more, or errno. */
bool workers_write(int to, const void *data, size_t bytes);

/* In a worker: what it has said up to now is not said, since another one says the same. */
void workers_unsay(void);

/* Something for a worker: what it means is between them. In the worker: waits for it. False: the
 * other has ended. */
bool workers_tell(const struct workers *w, uint32_t index, const void *data, size_t bytes);
bool workers_hear(int to, void *data, size_t bytes);

/* The next bytes that a worker wrote. False: it has ended before. */
bool workers_read(const struct workers *w, uint32_t index, void *data, size_t bytes);

/* What they write from now on finds nobody who reads; what they wrote before can be read. */
void workers_stop(const struct workers *w);

/*
 * Waits for all; who writes finds nobody who reads, and ends, having left nothing half done.
 * WORKERS_DONE: nothing more is to be read. The number of one that has failed: what that one has
 * said is said. WORKERS_UNWANTED: nothing is. EXIT_OK, or the exit code of the first that failed,
 * after a line on stderr.
 */
#define WORKERS_DONE     UINT32_MAX
#define WORKERS_UNWANTED (UINT32_MAX - 1)
enum exit_code workers_end(struct workers *w, uint32_t how);

/*
 * Does work(result, context) in a process that may crash or hang, with standard input, output and
 * error from and to /dev/null, and ends it after so many seconds. `result` has `bytes` that it
 * begins with and that come back: what it had written before its end stays. False: it did not come
 * to its end.
 */
bool aside_run(void (*work)(void *result, void *context), void *result, size_t bytes, void *context,
               double seconds);

#endif
