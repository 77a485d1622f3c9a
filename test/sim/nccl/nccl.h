/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_NCCL_INCLUDE_H
#define SIM_NCCL_INCLUDE_H

/*
 * What the simulated NCCL declares: the names, types and numbers that NCCL 2.28 documents, as far
 * as programs of the tests use them. It lies apart from the simulated CUDA's headers, which would
 * hide a toolkit's from nvcc; cuda_runtime.h may be either's.
 */

#include <cuda_runtime.h>
#include <limits.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NCCL_MAJOR           2
#define NCCL_MINOR           28
#define NCCL_PATCH           9
#define NCCL_VERSION_CODE    22809
#define NCCL_UNIQUE_ID_BYTES 128

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;

typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
    ncclSuccess,
    ncclUnhandledCudaError,
    ncclSystemError,
    ncclInternalError,
    ncclInvalidArgument,
    ncclInvalidUsage,
    ncclRemoteError,
    ncclInProgress,
} ncclResult_t;

typedef enum { ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg } ncclRedOp_t;

typedef enum {
    ncclInt8,
    ncclUint8,
    ncclInt32,
    ncclUint32,
    ncclInt64,
    ncclUint64,
    ncclFloat16,
    ncclFloat32,
    ncclFloat64,
    ncclBfloat16,
    ncclFloat8e4m3,
    ncclFloat8e5m2,
    ncclNumTypes,
    ncclChar = ncclInt8,
    ncclInt = ncclInt32,
    ncclHalf = ncclFloat16,
    ncclFloat = ncclFloat32,
    ncclDouble = ncclFloat64
} ncclDataType_t;

typedef struct {
    size_t size;
    unsigned magic, version;
    int blocking, cgaClusterSize, minCTAs, maxCTAs;
    const char *netName;
    int splitShare, trafficClass;
    const char *commName;
    int collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs, nChannelsPerNetPeer, nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_SPLIT_NOCOLOR  -1
#define NCCL_SHRINK_DEFAULT 0
#define NCCL_CONFIG_OF(waits)                                                                      \
    ((ncclConfig_t){.size = sizeof(ncclConfig_t),                                                  \
                    .magic = 0xcafebeef,                                                           \
                    .version = NCCL_VERSION_CODE,                                                  \
                    .blocking = waits})

typedef struct {
    size_t size;
    unsigned magic, version;
    float estimatedTime;
} ncclSimInfo_t;

#define NCCL_SIM_INFO ((ncclSimInfo_t){sizeof(ncclSimInfo_t), 0x74685283, NCCL_VERSION_CODE, -1.0f})

#define NCCL_BOTH(returns, name, params)                                                           \
    returns nccl##name params;                                                                     \
    returns pnccl##name params;
#define NCCL_FUNCTION(name, params) NCCL_BOTH(ncclResult_t, name, params)

NCCL_FUNCTION(GetVersion, (int *version))
NCCL_FUNCTION(GetUniqueId, (ncclUniqueId * id))
NCCL_FUNCTION(CommInitRank, (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank))
NCCL_FUNCTION(CommInitRankConfig,
              (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config))
NCCL_FUNCTION(CommInitRankScalable, (ncclComm_t * comm, int ranks, int rank, int id_count,
                                     ncclUniqueId *ids, ncclConfig_t *config))
NCCL_FUNCTION(CommInitAll, (ncclComm_t * comms, int count, const int *devices))
NCCL_FUNCTION(CommSplit,
              (ncclComm_t comm, int color, int key, ncclComm_t *made, ncclConfig_t *config))
NCCL_FUNCTION(CommShrink, (ncclComm_t comm, int *left_out, int left_out_count, ncclComm_t *made,
                           ncclConfig_t *config, int flags))
NCCL_FUNCTION(CommFinalize, (ncclComm_t comm))
NCCL_FUNCTION(CommDestroy, (ncclComm_t comm))
NCCL_FUNCTION(CommAbort, (ncclComm_t comm))
NCCL_FUNCTION(CommRevoke, (ncclComm_t comm, int flags))
NCCL_FUNCTION(CommGetAsyncError, (ncclComm_t comm, ncclResult_t *error))
NCCL_FUNCTION(CommCount, (const ncclComm_t comm, int *count))
NCCL_FUNCTION(CommUserRank, (const ncclComm_t comm, int *rank))
NCCL_FUNCTION(CommCuDevice, (const ncclComm_t comm, int *device))
NCCL_FUNCTION(CommRegister, (const ncclComm_t comm, void *buffer, size_t size, void **handle))
NCCL_FUNCTION(CommDeregister, (const ncclComm_t comm, void *handle))
NCCL_FUNCTION(CommWindowRegister,
              (ncclComm_t comm, void *buffer, size_t size, ncclWindow_t *window, int flags))
NCCL_FUNCTION(CommWindowDeregister, (ncclComm_t comm, ncclWindow_t window))
NCCL_FUNCTION(MemAlloc, (void **memory, size_t size))
NCCL_FUNCTION(MemFree, (void *memory))
NCCL_FUNCTION(AllReduce, (const void *send, void *receive, size_t count, ncclDataType_t type,
                          ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(AllGather, (const void *send, void *receive, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(ReduceScatter, (const void *send, void *receive, size_t count, ncclDataType_t type,
                              ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(Broadcast, (const void *send, void *receive, size_t count, ncclDataType_t type,
                          int root, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(Bcast, (void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                      cudaStream_t stream))
NCCL_FUNCTION(Reduce, (const void *send, void *receive, size_t count, ncclDataType_t type,
                       ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(AlltoAll, (const void *send, void *receive, size_t count, ncclDataType_t type,
                         ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(Gather, (const void *send, void *receive, size_t count, ncclDataType_t type, int root,
                       ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(Scatter, (const void *send, void *receive, size_t count, ncclDataType_t type,
                        int root, ncclComm_t comm, cudaStream_t stream))
NCCL_FUNCTION(Send, (const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                     cudaStream_t stream))
NCCL_FUNCTION(Recv, (void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                     cudaStream_t stream))
NCCL_FUNCTION(GroupStart, (void))
NCCL_FUNCTION(GroupEnd, (void))
NCCL_FUNCTION(GroupSimulateEnd, (ncclSimInfo_t * info))
NCCL_BOTH(const char *, GetErrorString, (ncclResult_t result))
NCCL_BOTH(const char *, GetLastError, (ncclComm_t comm))

#ifdef __cplusplus
}
#endif

#endif
