/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "sim_nccl.h"

enum { LOOK_NS = 50000, SCHEMA_INIT = 0, SCHEMA_DESTROY = 2, SCHEMA_ABORT = 3 };
#define COMM_MAGIC 0x6c63636e6d6973ull

static void look_again(void)
{
    nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
}

static uint64_t hash_of(const void *data, size_t bytes, uint64_t hash)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const uint8_t *)data)[i]) * 1099511628211u;
    return hash;
}

static char *board_path(uint64_t hash, char *path, size_t bytes)
{
    const char *folder = getenv("SIMNCCL_FOLDER");
    snprintf(path, bytes, "%s/simnccl-%016llx", folder ? folder : "/tmp", (unsigned long long)hash);
    return path;
}

static struct board *board_open(uint64_t hash)
{
    char path[4096];
    int file = open(board_path(hash, path, sizeof path), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    struct board *board = MAP_FAILED;
    if (file >= 0 && ftruncate(file, sizeof *board) == 0)
        board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (board == MAP_FAILED) {
        perror(path);
        abort();
    }
    close(file);
    return board;
}

bool comm_is(ncclComm_t comm)
{
    return comm && comm->magic == COMM_MAGIC;
}

static ncclResult_t comm_state(ncclComm_t comm)
{
    return (ncclResult_t)__atomic_load_n(&comm->state, __ATOMIC_ACQUIRE);
}

void comm_set(ncclComm_t comm, ncclResult_t state)
{
    __atomic_store_n(&comm->state, (int)state, __ATOMIC_RELEASE);
}

ncclResult_t comm_ready(ncclComm_t comm)
{
    return comm_is(comm) && comm_state(comm) == ncclSuccess ? ncclSuccess : ncclInvalidArgument;
}

static ncclComm_t comm_make(const ncclConfig_t *config)
{
    ncclComm_t comm = calloc(1, sizeof *comm);
    if (!comm)
        abort();
    comm->magic = COMM_MAGIC;
    comm->is_blocking = !config || config->blocking != 0;
    comm->state = ncclInProgress;
    cudaGetDevice(&comm->device);
    return comm;
}

static void comm_name(ncclComm_t comm, uint64_t hash, int rank, int rank_count)
{
    comm->hash = hash;
    comm->rank = rank;
    comm->rank_count = rank_count;
    comm->board = board_open(hash);
}

void comm_arrive(ncclComm_t comm)
{
    if (comm->board)
        __atomic_store_n(&comm->board->arrived[comm->rank], 1, __ATOMIC_RELEASE);
}

/* A child's ranks are those of its color, by key and then by rank; those kept, in their order. */
static void child_name(ncclComm_t child)
{
    ncclComm_t parent = child->parent;
    struct choice *choices = parent->board->choices[child->choice_count], *own;
    uint32_t number = child->choice_count;
    int rank = 0, rank_count = 0;
    own = &choices[parent->rank];
    for (int i = 0; i < child->is_kept_count; i++) {
        struct choice *other = &choices[child->kept[i]];
        while (!__atomic_load_n(&other->is_made, __ATOMIC_ACQUIRE))
            look_again();
        if (other->color != own->color)
            continue;
        rank_count++;
        rank += other->key < own->key || (other->key == own->key && child->kept[i] < parent->rank);
    }
    uint64_t hash = hash_of(&number, sizeof number, parent->hash);
    hash = hash_of(&own->color, sizeof own->color, hash);
    child->choice_count = 0;
    child->parent = NULL;
    comm_name(child, hash, rank, rank_count);
    comm_arrive(child);
}

ncclResult_t comm_join(ncclComm_t comm)
{
    char path[4096];
    if (comm->parent)
        child_name(comm);
    for (int i = 0; i < comm->rank_count; i++)
        while (!__atomic_load_n(&comm->board->arrived[i], __ATOMIC_ACQUIRE))
            look_again();
    if (comm->rank == 0)
        unlink(board_path(comm->hash, path, sizeof path)); /* all have it */
    comm_set(comm, ncclSuccess);
    return ncclSuccess;
}

static ncclResult_t join(ncclComm_t comm)
{
    return group_take(&(struct op){.kind = OP_JOIN, .comm = comm});
}

static ncclResult_t init_rank(ncclComm_t *comm, int ranks, const ncclUniqueId *id, int rank,
                              const ncclConfig_t *config)
{
    if (!comm || ranks < 1 || ranks > RANKS_MAX || rank < 0 || rank >= ranks)
        return ncclInvalidArgument;
    *comm = comm_make(config);
    comm_name(*comm, hash_of(id, sizeof *id, 14695981039346656037u), rank, ranks);
    return join(*comm);
}

static ncclResult_t entered_init(const char *name, ncclComm_t *comm, int ranks,
                                 const ncclUniqueId *id, int rank, const ncclConfig_t *config)
{
    int device = 0;
    cudaGetDevice(&device);
    uint64_t hash = hash_of(id, sizeof *id, 14695981039346656037u);
    entry_begin(name,
                &(struct payload){
                    SCHEMA_INIT,
                    {hash, (uint32_t)ranks | (uint64_t)(uint32_t)rank << 32, (uint32_t)device},
                    20},
                "comm=%016llx ranks=%d rank=%d device=%d", (unsigned long long)hash, ranks, rank,
                device);
    return entry_end(name, init_rank(comm, ranks, id, rank, config));
}

static ncclResult_t init_all(ncclComm_t *comms, int count, const int *devices)
{
    ncclUniqueId id;
    int before = 0;
    if (!comms || count < 1 || count > RANKS_MAX)
        return ncclInvalidArgument;
    ncclResult_t result = pncclGetUniqueId(&id);
    cudaGetDevice(&before);
    for (int i = 0; i < count; i++) {
        if (cudaSetDevice(devices ? devices[i] : i) != cudaSuccess)
            return ncclUnhandledCudaError;
        comms[i] = comm_make(NULL);
        comm_name(comms[i], hash_of(&id, sizeof id, 14695981039346656037u), i, count);
        comm_arrive(comms[i]);
    }
    cudaSetDevice(before);
    for (int i = 0; i < count; i++)
        comm_join(comms[i]);
    return result;
}

/* The choice of this rank; the child is named when those of all others are known. */
static ncclResult_t child_of(ncclComm_t comm, int color, int key, const int *left_out,
                             int left_out_count, ncclComm_t *made, const ncclConfig_t *config)
{
    if (comm_ready(comm) != ncclSuccess || !made || comm->choice_count == CHOICES_MAX)
        return ncclInvalidArgument;
    unsigned number = comm->choice_count++;
    struct choice *own = &comm->board->choices[number][comm->rank];
    own->color = color;
    own->key = key;
    __atomic_store_n(&own->is_made, 1, __ATOMIC_RELEASE);
    *made = NULL;
    if (color == NCCL_SPLIT_NOCOLOR)
        return ncclSuccess;
    ncclComm_t child = *made = comm_make(config);
    child->is_blocking = config ? config->blocking != 0 : comm->is_blocking;
    child->parent = comm;
    child->device = comm->device;
    child->depth = comm->depth + 1;
    child->choice_count = number;
    for (int i = 0; i < comm->rank_count; i++) {
        bool is_left_out = false;
        for (int k = 0; k < left_out_count; k++)
            is_left_out |= left_out[k] == i;
        if (!is_left_out)
            child->kept[child->is_kept_count++] = i;
    }
    return join(child);
}

static ncclResult_t comm_end(ncclComm_t comm)
{
    if (!comm_is(comm))
        return ncclInvalidArgument;
    if (comm->board)
        munmap(comm->board, sizeof *comm->board);
    comm->magic = 0;
    free(comm);
    return ncclSuccess;
}

static ncclResult_t entered_end(const char *name, int schema, ncclComm_t comm)
{
    struct payload payload = {.schema = 0};
    if (comm_is(comm))
        payload = (struct payload){
            schema,
            {comm->hash, (uint32_t)comm->rank_count | (uint64_t)(uint32_t)comm->rank << 32,
             (uint32_t)comm->device},
            20};
    entry_begin(name, &payload, "comm=%016llx", (unsigned long long)payload.words[0]);
    return entry_end(name, comm_end(comm));
}

/* What a communicator that is not ready cannot tell yet. */
static ncclResult_t tell(const char *name, ncclComm_t comm, const int *known, int *out)
{
    entry_begin(name, NULL, "comm=%016llx", comm_is(comm) ? (unsigned long long)comm->hash : 0);
    ncclResult_t result = !comm_is(comm) || !out ? ncclInvalidArgument : comm_state(comm);
    if (result == ncclSuccess)
        *out = *known;
    return entry_end(name, result);
}

#define TWIN(returns, name, params)                                                                \
    NCCL_EXPORT __attribute__((weak, alias("pnccl" #name))) returns nccl##name params;
#define STRONG NCCL_EXPORT ncclResult_t

STRONG pncclGetVersion(int *version)
{
    *version = 22809;
    return ncclSuccess;
}
TWIN(ncclResult_t, GetVersion, (int *version))

STRONG pncclGetUniqueId(ncclUniqueId *id)
{
    entry_begin("ncclGetUniqueId", NULL, "-");
    bool is_made = id && getrandom(id, sizeof *id, 0) == sizeof *id;
    return entry_end("ncclGetUniqueId", is_made ? ncclSuccess : ncclSystemError);
}
TWIN(ncclResult_t, GetUniqueId, (ncclUniqueId * id))

STRONG pncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
    return entered_init("ncclCommInitRank", comm, ranks, &id, rank, NULL);
}
TWIN(ncclResult_t, CommInitRank, (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank))

STRONG pncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                               ncclConfig_t *config)
{
    return entered_init("ncclCommInitRankConfig", comm, ranks, &id, rank, config);
}
TWIN(ncclResult_t, CommInitRankConfig,
     (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config))

STRONG pncclCommInitRankScalable(ncclComm_t *comm, int ranks, int rank, int id_count,
                                 ncclUniqueId *ids, ncclConfig_t *config)
{
    if (id_count < 1 || !ids)
        return ncclInvalidArgument;
    return entered_init("ncclCommInitRankScalable", comm, ranks, ids, rank, config);
}
TWIN(ncclResult_t, CommInitRankScalable,
     (ncclComm_t * comm, int ranks, int rank, int id_count, ncclUniqueId *ids,
      ncclConfig_t *config))

STRONG pncclCommInitAll(ncclComm_t *comms, int count, const int *devices)
{
    entry_begin("ncclCommInitAll", NULL, "ranks=%d", count);
    return entry_end("ncclCommInitAll", init_all(comms, count, devices));
}
TWIN(ncclResult_t, CommInitAll, (ncclComm_t * comms, int count, const int *devices))

STRONG pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made, ncclConfig_t *config)
{
    entry_begin("ncclCommSplit", NULL, "comm=%016llx color=%d key=%d",
                comm_is(comm) ? (unsigned long long)comm->hash : 0, color, key);
    return entry_end("ncclCommSplit", child_of(comm, color, key, NULL, 0, made, config));
}
TWIN(ncclResult_t, CommSplit,
     (ncclComm_t comm, int color, int key, ncclComm_t *made, ncclConfig_t *config))

STRONG pncclCommShrink(ncclComm_t comm, int *left_out, int left_out_count, ncclComm_t *made,
                       ncclConfig_t *config, int flags)
{
    entry_begin("ncclCommShrink", NULL, "comm=%016llx left_out=%d flags=%d",
                comm_is(comm) ? (unsigned long long)comm->hash : 0, left_out_count, flags);
    return entry_end("ncclCommShrink",
                     child_of(comm, 0, 0, left_out, left_out_count, made, config));
}
TWIN(ncclResult_t, CommShrink,
     (ncclComm_t comm, int *left_out, int left_out_count, ncclComm_t *made, ncclConfig_t *config,
      int flags))

STRONG pncclCommFinalize(ncclComm_t comm)
{
    entry_begin("ncclCommFinalize", NULL, "comm=%016llx",
                comm_is(comm) ? (unsigned long long)comm->hash : 0);
    return entry_end("ncclCommFinalize", comm_is(comm) ? ncclSuccess : ncclInvalidArgument);
}
TWIN(ncclResult_t, CommFinalize, (ncclComm_t comm))

STRONG pncclCommDestroy(ncclComm_t comm)
{
    return entered_end("ncclCommDestroy", SCHEMA_DESTROY, comm);
}
TWIN(ncclResult_t, CommDestroy, (ncclComm_t comm))

STRONG pncclCommAbort(ncclComm_t comm)
{
    return entered_end("ncclCommAbort", SCHEMA_ABORT, comm);
}
TWIN(ncclResult_t, CommAbort, (ncclComm_t comm))

STRONG pncclCommRevoke(ncclComm_t comm, int flags)
{
    return comm_is(comm) && flags == 0 ? ncclSuccess : ncclInvalidArgument;
}
TWIN(ncclResult_t, CommRevoke, (ncclComm_t comm, int flags))

STRONG pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    if (!comm_is(comm) || !error)
        return ncclInvalidArgument;
    *error = comm_state(comm);
    return ncclSuccess;
}
TWIN(ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t *error))

STRONG pncclCommCount(const ncclComm_t comm, int *count)
{
    return tell("ncclCommCount", comm, comm ? &comm->rank_count : NULL, count);
}
TWIN(ncclResult_t, CommCount, (const ncclComm_t comm, int *count))

STRONG pncclCommUserRank(const ncclComm_t comm, int *rank)
{
    return tell("ncclCommUserRank", comm, comm ? &comm->rank : NULL, rank);
}
TWIN(ncclResult_t, CommUserRank, (const ncclComm_t comm, int *rank))

STRONG pncclCommCuDevice(const ncclComm_t comm, int *device)
{
    return tell("ncclCommCuDevice", comm, comm ? &comm->device : NULL, device);
}
TWIN(ncclResult_t, CommCuDevice, (const ncclComm_t comm, int *device))

STRONG pncclCommRegister(const ncclComm_t comm, void *buffer, size_t size, void **handle)
{
    if (!comm_is(comm) || !handle || !size)
        return ncclInvalidArgument;
    *handle = buffer;
    return ncclSuccess;
}
TWIN(ncclResult_t, CommRegister, (const ncclComm_t comm, void *buffer, size_t size, void **handle))

STRONG pncclCommDeregister(const ncclComm_t comm, void *handle)
{
    return comm_is(comm) && handle ? ncclSuccess : ncclInvalidArgument;
}
TWIN(ncclResult_t, CommDeregister, (const ncclComm_t comm, void *handle))

STRONG pncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t size, ncclWindow_t *window,
                               int flags)
{
    (void)flags;
    if (!comm_is(comm) || !window || !size)
        return ncclInvalidArgument;
    *window = buffer;
    return ncclSuccess;
}
TWIN(ncclResult_t, CommWindowRegister,
     (ncclComm_t comm, void *buffer, size_t size, ncclWindow_t *window, int flags))

STRONG pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
    return comm_is(comm) && window ? ncclSuccess : ncclInvalidArgument;
}
TWIN(ncclResult_t, CommWindowDeregister, (ncclComm_t comm, ncclWindow_t window))

STRONG pncclMemAlloc(void **memory, size_t size)
{
    return cudaMalloc(memory, size) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
TWIN(ncclResult_t, MemAlloc, (void **memory, size_t size))

STRONG pncclMemFree(void *memory)
{
    return cudaFree(memory) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
TWIN(ncclResult_t, MemFree, (void *memory))

NCCL_EXPORT const char *pncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return result >= 0 && result <= ncclInProgress ? texts[result] : "unknown result code";
}
TWIN(const char *, GetErrorString, (ncclResult_t result))

NCCL_EXPORT const char *pncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}
TWIN(const char *, GetLastError, (ncclComm_t comm))
