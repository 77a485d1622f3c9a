/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "sim_driver.h"

/*
 * Host functions, callbacks and whatever has to wait for them run on one thread of their own, in
 * the order of their streams: an operation is taken when its time has come, all it depends on is
 * done and, for a wait on a memory value, the value is there.
 */

enum { OP_DEPS_MAX = 2 };

struct host_op {
    unsigned refs; /* under ops.lock, like all of it */
    bool done;
    uint64_t due_ns;
    CUstream stream;
    uint64_t stream_id;
    struct host_op *deps[OP_DEPS_MAX];
    struct host_action action;
    struct host_op *next;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct host_op *first, **last;
    bool has_worker;
} ops = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .last = &ops.first};

static void op_unref_locked(struct host_op *op)
{
    if (!op || --op->refs)
        return;
    for (unsigned i = 0; i < OP_DEPS_MAX; i++)
        op_unref_locked(op->deps[i]);
    if (op->action.free_data)
        free(op->action.data);
    free(op);
}

static bool op_is_ready(const struct host_op *op, uint64_t now_ns)
{
    if (sim_config.timeline && op->due_ns > now_ns)
        return false;
    for (unsigned i = 0; i < OP_DEPS_MAX; i++)
        if (op->deps[i] && !op->deps[i]->done)
            return false;
    return !op->action.ready || op->action.ready(op->action.data);
}

/* Unlinks the first operation that can run; otherwise says when to look again. */
static struct host_op *op_take(uint64_t *again_ns)
{
    uint64_t now_ns = sim_now_ns();
    *again_ns = now_ns + 1000000000u;
    for (struct host_op **at = &ops.first; *at; at = &(*at)->next) {
        struct host_op *op = *at;
        if (op_is_ready(op, now_ns)) {
            *at = op->next;
            if (!*at)
                ops.last = at;
            return op;
        }
        uint64_t look_ns = op->due_ns > now_ns ? op->due_ns : now_ns + 50000;
        if (look_ns < *again_ns)
            *again_ns = look_ns;
    }
    return NULL;
}

static void op_finish(struct host_op *op)
{
    uint64_t now_ns = sim_now_ns();
    if (sim_pool_has(&pool_streams, op->stream) && op->stream->id == op->stream_id)
        stream_advance(op->stream, now_ns);
    pthread_mutex_lock(&ops.lock);
    op->done = true;
    op_unref_locked(op);
    pthread_cond_broadcast(&ops.changed);
}

static void *worker_main(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "simcuda-host");
    pthread_mutex_lock(&ops.lock);
    for (;;) {
        uint64_t again_ns;
        struct host_op *op = op_take(&again_ns);
        if (op) {
            pthread_mutex_unlock(&ops.lock);
            if (op->action.run)
                op->action.run(op->action.data);
            op_finish(op);
        } else {
            struct timespec again;
            uint64_t now_ns = sim_now_ns();
            clock_gettime(CLOCK_REALTIME, &again);
            uint64_t left_ns = again_ns > now_ns ? again_ns - now_ns : 0;
            left_ns += (uint64_t)again.tv_nsec;
            again.tv_sec += (time_t)(left_ns / 1000000000u);
            again.tv_nsec = (long)(left_ns % 1000000000u);
            pthread_cond_timedwait(&ops.changed, &ops.lock, &again);
        }
    }
    return NULL;
}

/* Signals are the program's: its handlers must not find themselves on our thread. */
static void worker_start(void)
{
    sigset_t all, old;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&thread, NULL, worker_main, NULL) == 0) {
        pthread_detach(thread);
        ops.has_worker = true;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void op_add(CUstream stream, struct host_action action, struct host_op *other)
{
    struct host_op *op = calloc(1, sizeof *op);
    if (!op)
        abort();
    pthread_mutex_lock(&stream->lock);
    pthread_mutex_lock(&ops.lock);
    op->refs = 2; /* the queue's and the stream's */
    op->action = action;
    op->stream = stream;
    op->stream_id = stream->id;
    op->due_ns = stream_start(stream, sim_now_ns());
    op->deps[0] = stream->last_op;
    op->deps[1] = other;
    if (other)
        other->refs++;
    __atomic_store_n(&stream->last_op, op, __ATOMIC_RELEASE);
    *ops.last = op;
    ops.last = &op->next;
    if (!ops.has_worker)
        worker_start();
    pthread_cond_broadcast(&ops.changed);
    pthread_mutex_unlock(&ops.lock);
    pthread_mutex_unlock(&stream->lock);
}

void host_op_enqueue(CUstream stream, struct host_action action)
{
    op_add(stream, action, NULL);
}

/* Later work in STREAM waits for OP of another stream. */
void host_op_join(CUstream stream, struct host_op *op)
{
    if (op && !host_op_done(op))
        op_add(stream, (struct host_action){0}, op);
}

bool host_op_done(struct host_op *op)
{
    if (!op)
        return true;
    pthread_mutex_lock(&ops.lock);
    bool done = op->done;
    pthread_mutex_unlock(&ops.lock);
    return done;
}

struct host_op *host_op_ref(struct host_op *op)
{
    if (op) {
        pthread_mutex_lock(&ops.lock);
        op->refs++;
        pthread_mutex_unlock(&ops.lock);
    }
    return op;
}

void host_op_unref(struct host_op *op)
{
    if (op) {
        pthread_mutex_lock(&ops.lock);
        op_unref_locked(op);
        pthread_mutex_unlock(&ops.lock);
    }
}

void host_op_wait(struct host_op *op)
{
    if (!op)
        return;
    pthread_mutex_lock(&ops.lock);
    while (!op->done)
        pthread_cond_wait(&ops.changed, &ops.lock);
    pthread_mutex_unlock(&ops.lock);
}
