/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_nccl.h"

/* The operations: what each one's range carries, and its place in the order of its communicator. */

struct asked {
    const char *name, *kernel;
    int schema;
    enum op_kind kind;
    size_t count;
    ncclDataType_t type;
    int redop, peer; /* peer: or the root; -1: none */
    ncclComm_t comm;
    cudaStream_t stream;
};

static ncclResult_t number_of(const struct asked *a, uint64_t *number)
{
    ncclComm_t comm = a->comm;
    uint64_t *counter = a->kind == OP_COLLECTIVE ? &comm->collective_count
                        : a->kind == OP_SEND     ? &comm->sent_count[a->peer]
                                                 : &comm->received_count[a->peer];
    uint64_t bound = a->kind == OP_COLLECTIVE ? COLLECTIVES_MAX : PAIRS_MAX;
    *number = (*counter)++;
    return *number < bound ? ncclSuccess : ncclInternalError;
}

static ncclResult_t operate(const struct asked *a, bool is_peer)
{
    if (comm_ready(a->comm) != ncclSuccess || (unsigned)a->type >= ncclNumTypes || a->redop < -1 ||
        (is_peer && (a->peer < 0 || a->peer >= a->comm->rank_count)))
        return ncclInvalidArgument;
    struct op op = {a->kind, a->kernel, a->comm, a->peer, a->stream, 0};
    ncclResult_t result = number_of(a, &op.number);
    return result == ncclSuccess ? group_take(&op) : result;
}

static ncclResult_t entered(struct asked a)
{
    static const size_t sizes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    bool is_known = comm_is(a.comm), is_peer = a.peer != INT_MIN;
    size_t bytes = (unsigned)a.type < ncclNumTypes ? a.count * sizes[a.type] : 0;
    struct payload payload = {a.schema, {is_known ? a.comm->hash : 0, bytes, 0}, 16};
    uint32_t numbers[2];
    unsigned count = 0;
    if (is_peer)
        numbers[count++] = (uint32_t)a.peer;
    if (a.redop >= 0)
        numbers[count++] = (uint32_t)a.redop;
    for (unsigned i = 0; i < count; i++)
        payload.words[2] |= (uint64_t)numbers[i] << 32 * i;
    payload.bytes += 4 * count;
    uint64_t number = !is_known                                   ? 0
                      : a.kind == OP_COLLECTIVE                   ? a.comm->collective_count
                      : !is_peer || (unsigned)a.peer >= RANKS_MAX ? 0
                      : a.kind == OP_SEND                         ? a.comm->sent_count[a.peer]
                                                                  : a.comm->received_count[a.peer];
    entry_begin(a.name, &payload,
                "comm=%016llx rank=%d number=%llu count=%zu type=%d op=%d peer=%d",
                (unsigned long long)payload.words[0], is_known ? a.comm->rank : -1,
                (unsigned long long)number, a.count, (int)a.type, a.redop, is_peer ? a.peer : -1);
    return entry_end(a.name, operate(&a, is_peer));
}

/* The twins: the strong one, which everything calls, and the weak one that may be replaced. */
#define OPERATION(symbol, params, ...)                                                             \
    NCCL_EXPORT ncclResult_t pnccl##symbol params                                                  \
    {                                                                                              \
        return entered((struct asked){.name = "nccl" #symbol, __VA_ARGS__});                       \
    }                                                                                              \
    NCCL_EXPORT __attribute__((weak, alias("pnccl" #symbol))) ncclResult_t nccl##symbol params;

#define COLLECTIVE(word, number)                                                                   \
    .kernel = word, .schema = number, .kind = OP_COLLECTIVE, .count = count, .type = type,         \
    .comm = comm, .stream = stream
#define NO_PEER .peer = INT_MIN
#define NO_OP   .redop = -1

#pragma GCC diagnostic ignored "-Wunused-parameter" /* no memory is looked at */

OPERATION(AllReduce,
          (const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
           ncclComm_t comm, cudaStream_t stream),
          COLLECTIVE("_AllReduce", 5), .redop = (int)op, NO_PEER)
OPERATION(AllGather,
          (const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
           cudaStream_t stream),
          COLLECTIVE("_AllGather", 4), NO_OP, NO_PEER)
OPERATION(ReduceScatter,
          (const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
           ncclComm_t comm, cudaStream_t stream),
          COLLECTIVE("_ReduceScatter", 7), .redop = (int)op, NO_PEER)
OPERATION(Broadcast,
          (const void *send, void *receive, size_t count, ncclDataType_t type, int root,
           ncclComm_t comm, cudaStream_t stream),
          COLLECTIVE("_Broadcast", 6), NO_OP, .peer = root)
OPERATION(Reduce,
          (const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
           int root, ncclComm_t comm, cudaStream_t stream),
          COLLECTIVE("_Reduce_", 8), .redop = (int)op, .peer = root)
OPERATION(AlltoAll,
          (const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
           cudaStream_t stream),
          COLLECTIVE("_SendRecv", 16), NO_OP, NO_PEER)
OPERATION(Gather,
          (const void *send, void *receive, size_t count, ncclDataType_t type, int root,
           ncclComm_t comm, cudaStream_t stream),
          COLLECTIVE("_SendRecv", 17), NO_OP, .peer = root)
OPERATION(Scatter,
          (const void *send, void *receive, size_t count, ncclDataType_t type, int root,
           ncclComm_t comm, cudaStream_t stream),
          COLLECTIVE("_SendRecv", 18), NO_OP, .peer = root)
OPERATION(Send,
          (const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
           cudaStream_t stream),
          .kernel = "SendRecv", .schema = 9, .kind = OP_SEND, .count = count, .type = type, NO_OP,
          .peer = peer, .comm = comm, .stream = stream)
OPERATION(Recv,
          (void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
           cudaStream_t stream),
          .kernel = "SendRecv", .schema = 10, .kind = OP_RECEIVE, .count = count, .type = type,
          NO_OP, .peer = peer, .comm = comm, .stream = stream)

/* By the name that may be replaced, as the real one does it. */
NCCL_EXPORT ncclResult_t pncclBcast(void *buffer, size_t count, ncclDataType_t type, int root,
                                    ncclComm_t comm, cudaStream_t stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
NCCL_EXPORT __attribute__((weak, alias("pncclBcast"))) ncclResult_t
ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
          cudaStream_t stream);
