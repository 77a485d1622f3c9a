/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../programs/kernels.h"
#include "sim_meeting.h"
#include "sim_nccl.h"

/*
 * Groups: what is called between the start and the outermost end is queued, and done there. A
 * collective has a kernel of its own; the messages of a communicator share one.
 */

enum { GROUP_OPS_MAX = 1024, NOBODY = -1 };

#define KERNELS(X)                                                                                 \
    X(AllReduce, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")                                        \
    X(AllGather, "ncclDevKernel_AllGather_RING_LL")                                                \
    X(ReduceScatter, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL")                                \
    X(Broadcast, "ncclDevKernel_Broadcast_RING_LL")                                                \
    X(Reduce, "ncclDevKernel_Reduce_Sum_f32_RING_LL")                                              \
    X(SendRecv, "ncclDevKernel_SendRecv")
KERNELS_DEFINE(KERNELS)

struct group {
    unsigned depth, count;
    struct op ops[GROUP_OPS_MAX];
};

static __thread struct group group;

/* SIMNCCL_ABSENT=RANK:NUMBER[:DEPTH]. That rank's program never makes its call. */
static bool is_endless(const struct op *op)
{
    static const char *text;
    static int rank, depth;
    static unsigned long long number;
    if (!text) {
        const char *given = getenv("SIMNCCL_ABSENT");
        if (!given || sscanf(given, "%d:%llu:%d", &rank, &number, &depth) < 2)
            given = "";
        text = given;
    }
    return *text && op->kind == OP_COLLECTIVE && op->number == number &&
           op->comm->depth == (unsigned)depth && (rank == NOBODY || rank < op->comm->rank_count);
}

static void add_cells(struct sim_meeting *meeting, const struct op *op)
{
    struct board *board = op->comm->board;
    int rank = op->comm->rank;
    if (meeting->other_count + (unsigned)op->comm->rank_count > MEETING_CELLS_MAX) {
        fprintf(stderr, "simnccl: more than %d cells\n", MEETING_CELLS_MAX);
        abort();
    }
    if (op->kind == OP_COLLECTIVE) {
        meeting->own[meeting->own_count++] = &board->start_ns[op->number][rank];
        for (int i = 0; i < op->comm->rank_count; i++)
            meeting->others[meeting->other_count++] = &board->start_ns[op->number][i];
        meeting->is_endless |= is_endless(op);
        return;
    }
    bool is_sent = op->kind == OP_SEND;
    uint64_t *cells = is_sent ? board->message_ns[rank][op->peer][op->number]
                              : board->message_ns[op->peer][rank][op->number];
    meeting->own[meeting->own_count++] = &cells[is_sent ? 0 : 1];
    meeting->others[meeting->other_count++] = &cells[is_sent ? 1 : 0];
}

static void (*kernel_of(const struct op *op))(void)
{
    for (unsigned i = 0; op->kind == OP_COLLECTIVE && i < sizeof kernel_rows / sizeof *kernel_rows;
         i++) {
        const char *name = strstr(kernel_rows[i].name, op->kernel);
        if (name)
            return (void (*)(void))kernel_rows[i].host;
    }
    return SendRecv; /* of which the others are made, too */
}

static ncclResult_t launch_with(const struct op *op, const struct sim_meeting *meeting)
{
    static sim_meeting_next_fn *next;
    int before = 0;
    if (!next) {
        void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
        next = driver ? (sim_meeting_next_fn *)dlsym(driver, "sim_meeting_next") : NULL;
    }
    if (!next)
        return ncclUnhandledCudaError;
    cudaGetDevice(&before);
    if (op->comm->device != before)
        cudaSetDevice(op->comm->device);
    next(meeting);
    cudaError_t error = launch(kernel_of(op), 8, 512, 0, op->stream);
    next(NULL);
    if (op->comm->device != before)
        cudaSetDevice(before);
    return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

/* Where one thread is several ranks, none of its kernels waits for one that it launches later. */
static void arrive_all(const struct op *ops, unsigned count)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    bool is_several = false;
    for (unsigned i = 1; i < count; i++)
        is_several |= ops[i].comm != ops[0].comm;
    for (unsigned i = 0; is_several && i < count; i++) {
        struct sim_meeting meeting = {.own_count = 0};
        if (ops[i].kind == OP_JOIN || is_endless(&ops[i]))
            continue;
        add_cells(&meeting, &ops[i]);
        __atomic_store_n(meeting.own[0], now_ns, __ATOMIC_RELEASE);
    }
}

static ncclResult_t run(struct op *ops, unsigned count)
{
    ncclResult_t result = ncclSuccess;
    for (unsigned i = 0; i < count; i++)
        if (ops[i].kind == OP_JOIN)
            comm_arrive(ops[i].comm);
    arrive_all(ops, count);
    for (unsigned i = 0; i < count && result == ncclSuccess; i++) {
        struct sim_meeting meeting = {.own_count = 0};
        if (ops[i].kind == OP_JOIN) {
            result = comm_join(ops[i].comm);
            continue;
        }
        if (!ops[i].comm)
            continue; /* a message that went with an earlier one */
        add_cells(&meeting, &ops[i]);
        for (unsigned k = i + 1; ops[i].kind != OP_COLLECTIVE && k < count; k++) {
            bool is_message = ops[k].kind == OP_SEND || ops[k].kind == OP_RECEIVE;
            if (is_message && ops[k].comm == ops[i].comm && ops[k].stream == ops[i].stream) {
                add_cells(&meeting, &ops[k]);
                ops[k].comm = NULL;
            }
        }
        result = launch_with(&ops[i], &meeting);
    }
    return result;
}

struct job {
    unsigned count;
    struct op *ops;
    ncclComm_t *comms;
};

static void *job_main(void *data)
{
    struct job *job = data;
    ncclResult_t result = run(job->ops, job->count);
    for (unsigned i = 0; i < job->count; i++)
        comm_set(job->comms[i], result);
    free(job->ops);
    free(job->comms);
    free(job);
    return NULL;
}

/* Of communicators that do not block, a thread of our own does it. */
static ncclResult_t run_elsewhere(const struct op *ops, unsigned count)
{
    struct job *job = malloc(sizeof *job);
    pthread_t thread;
    if (!job || !(job->ops = malloc(count * sizeof *ops)) ||
        !(job->comms = malloc(count * sizeof *job->comms)))
        abort();
    job->count = count;
    memcpy(job->ops, ops, count * sizeof *ops);
    for (unsigned i = 0; i < count; i++) {
        job->comms[i] = ops[i].comm;
        comm_set(ops[i].comm, ncclInProgress);
    }
    if (pthread_create(&thread, NULL, job_main, job))
        return ncclSystemError;
    pthread_detach(thread);
    return ncclInProgress;
}

static ncclResult_t run_all(struct op *ops, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (!ops[i].comm->is_blocking)
            return run_elsewhere(ops, count);
    return run(ops, count);
}

ncclResult_t group_take(const struct op *op)
{
    struct op own = *op;
    if (!group.depth)
        return run_all(&own, 1);
    if (group.count == GROUP_OPS_MAX)
        return ncclInternalError;
    group.ops[group.count++] = own;
    return ncclSuccess;
}

static ncclResult_t group_end(void)
{
    if (!group.depth)
        return ncclInvalidUsage;
    if (--group.depth)
        return ncclSuccess;
    unsigned count = group.count;
    group.count = 0;
    return run_all(group.ops, count);
}

static ncclResult_t group_simulate(ncclSimInfo_t *info)
{
    if (!group.depth)
        return ncclInvalidUsage;
    if (--group.depth)
        return ncclSuccess;
    if (info)
        info->estimatedTime = (float)group.count;
    group.count = 0;
    return ncclSuccess;
}

NCCL_EXPORT ncclResult_t pncclGroupStart(void)
{
    entry_begin("ncclGroupStart", NULL, "-");
    group.depth++;
    return entry_end("ncclGroupStart", ncclSuccess);
}
NCCL_EXPORT __attribute__((weak, alias("pncclGroupStart"))) ncclResult_t ncclGroupStart(void);

NCCL_EXPORT ncclResult_t pncclGroupEnd(void)
{
    entry_begin("ncclGroupEnd", NULL, "-");
    return entry_end("ncclGroupEnd", group_end());
}
NCCL_EXPORT __attribute__((weak, alias("pncclGroupEnd"))) ncclResult_t ncclGroupEnd(void);

NCCL_EXPORT ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t *info)
{
    entry_begin("ncclGroupSimulateEnd", NULL, "-");
    return entry_end("ncclGroupSimulateEnd", group_simulate(info));
}
NCCL_EXPORT __attribute__((weak, alias("pncclGroupSimulateEnd"))) ncclResult_t
ncclGroupSimulateEnd(ncclSimInfo_t *info);
