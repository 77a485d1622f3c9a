/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the CUDA ABI that the rows of formats/api/api.def use: type names, the structures
 * that travel by value, and of the structures behind pointers only those whose fields a row reads.
 * It lets gpuprof build without a CUDA toolkit, and one binary serve CUDA 11.8 to 13.x: nothing
 * here differs between those versions. test/abi compares every size, offset, constant and prototype
 * with the real headers. Never include it together with them.
 *
 * Fields named `opaque...` stand for parts that no row reads. The inline helpers at the end are
 * what the expressions of the rows call; they read their arguments and nothing else. What is the
 * thread's own is in current_device.h.
 */
#ifndef GPUPROF_INJECT_CUDA_ABI_H
#define GPUPROF_INJECT_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "cuda/current_device.h"

/* Results: only the values that a hook itself returns or compares with. */

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorInitializationError = 3,
    cudaErrorSharedObjectSymbolNotFound = 302,
    cudaErrorSymbolNotFound = 500,
    cudaErrorNotReady = 600,
    cudaErrorNotSupported = 801,
    cudaErrorUnknown = 999
} cudaError_t;

typedef enum cudaError_enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_UNKNOWN = 999
} CUresult;

/* Handles. Most of the runtime's are the driver's under another name. */

typedef struct CUctx_st *CUcontext;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef struct CUexecAffinityParam_st CUexecAffinityParam;
typedef struct CUctxCreateParams_st CUctxCreateParams;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUextMemory_st *CUexternalMemory;
typedef struct CUextSemaphore_st *CUexternalSemaphore;

typedef struct CUlib_st *cudaLibrary_t;
typedef struct CUfunc_st *cudaFunction_t;
typedef struct CUkern_st *cudaKernel_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
typedef struct CUexternalMemory_st *cudaExternalMemory_t;
typedef struct CUexternalSemaphore_st *cudaExternalSemaphore_t;
typedef struct cudaArray *cudaArray_t;
typedef const struct cudaArray *cudaArray_const_t;
typedef struct cudaMipmappedArray *cudaMipmappedArray_t;
typedef struct cudaExecutionContext_st *cudaExecutionContext_t;

/* Numeric types. CUdeviceptr_v1 is the 32-bit pointer of functions without _v2. */

typedef unsigned int CUdeviceptr_v1;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef int CUdevice;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;

/* Enumerations. All are unsigned int in C; only the constants in use are listed. */

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};

typedef enum CUmemorytype_enum {
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_MEMORYTYPE_ARRAY = 3,
    CU_MEMORYTYPE_UNIFIED = 4
} CUmemorytype;

typedef enum CUarray_format_enum {
    CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
    CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
    CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
    CU_AD_FORMAT_SIGNED_INT8 = 0x08,
    CU_AD_FORMAT_SIGNED_INT16 = 0x09,
    CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
    CU_AD_FORMAT_HALF = 0x10,
    CU_AD_FORMAT_FLOAT = 0x20
} CUarray_format;

typedef enum CUdevice_attribute_enum {
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR = 106
} CUdevice_attribute;

enum cudaMemLocationType { cudaMemLocationTypeInvalid = 0, cudaMemLocationTypeDevice = 1 };
enum cudaMemcpy3DOperandType { cudaMemcpyOperandTypePointer = 1, cudaMemcpyOperandTypeArray = 2 };
enum cudaMemAllocationType { cudaMemAllocationTypePinned = 1 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal = 0 };
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess = 0 };
typedef enum CUmemAllocationType_enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1 } CUmemAllocationType;
typedef enum CUmemAllocationHandleType_enum {
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1
} CUmemAllocationHandleType;
typedef enum CUstreamCaptureMode_enum { CU_STREAM_CAPTURE_MODE_GLOBAL = 0 } CUstreamCaptureMode;
typedef enum CUgraphRecaptureStatus_enum { CU_GRAPH_RECAPTURE_ERROR = 2 } CUgraphRecaptureStatus;
typedef enum CUdriverProcAddressQueryResult_enum {
    CU_GET_PROC_ADDRESS_SUCCESS = 0,
    CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1
} CUdriverProcAddressQueryResult;

/* Flags that expressions test. */
#define cudaArrayLayered 0x01
#define cudaArrayCubemap 0x04

/* Structures passed by value. */

typedef struct dim3 {
    unsigned int x, y, z;
} dim3;

struct cudaExtent {
    size_t width, height, depth;
};

struct cudaPitchedPtr {
    void *ptr;
    size_t pitch, xsize, ysize;
};

struct cudaMemLocation {
    enum cudaMemLocationType type;
    int id;
};
typedef struct cudaMemLocation CUmemLocation;

typedef struct cudaIpcMemHandle_st {
    char reserved[64];
} cudaIpcMemHandle_t;
typedef struct CUipcMemHandle_st {
    char reserved[64];
} CUipcMemHandle;

/* Structures passed by pointer whose fields expressions read. */

typedef struct cudaLaunchConfig_st {
    dim3 gridDim;
    dim3 blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    void *opaque_attrs;
    unsigned int opaque_attr_count;
} cudaLaunchConfig_t;

typedef struct CUlaunchConfig_st {
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    void *opaque_attrs;
    unsigned int opaque_attr_count;
} CUlaunchConfig;

struct cudaLaunchParams {
    void *func;
    dim3 gridDim;
    dim3 blockDim;
    void **args;
    size_t sharedMem;
    cudaStream_t stream;
};

typedef struct CUDA_LAUNCH_PARAMS_st {
    CUfunction function;
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    void **kernelParams;
} CUDA_LAUNCH_PARAMS;

struct cudaChannelFormatDesc {
    int x, y, z, w;
    unsigned int opaque_kind;
};

struct cudaMemcpy3DParms {
    cudaArray_t srcArray;
    size_t opaque_src_pos[3];
    struct cudaPitchedPtr srcPtr;
    cudaArray_t dstArray;
    size_t opaque_dst_pos[3];
    struct cudaPitchedPtr dstPtr;
    struct cudaExtent extent;
    enum cudaMemcpyKind kind;
};

struct cudaMemcpy3DPeerParms {
    cudaArray_t srcArray;
    size_t opaque_src_pos[3];
    struct cudaPitchedPtr srcPtr;
    int srcDevice;
    cudaArray_t dstArray;
    size_t opaque_dst_pos[3];
    struct cudaPitchedPtr dstPtr;
    int dstDevice;
    struct cudaExtent extent;
};

struct cudaMemcpy3DOperand {
    enum cudaMemcpy3DOperandType type;
    size_t opaque_op[4];
};

struct cudaMemcpy3DBatchOp {
    struct cudaMemcpy3DOperand src;
    struct cudaMemcpy3DOperand dst;
    struct cudaExtent extent;
    unsigned int opaque_order;
    unsigned int opaque_flags;
};
typedef struct cudaMemcpy3DBatchOp CUDA_MEMCPY3D_BATCH_OP;

struct cudaMemPoolProps {
    unsigned int opaque_types[2];
    struct cudaMemLocation location;
    void *opaque_security;
    char opaque_rest[64];
};
typedef struct cudaMemPoolProps CUmemPoolProps;

/* These two grew after CUDA 11. Only the fields of all versions are declared; they are only passed
 * by pointer. */
struct cudaExternalMemoryHandleDesc {
    unsigned int opaque_type;
    void *opaque_handle[2];
    unsigned long long size;
    unsigned int opaque_flags;
};
typedef struct cudaExternalMemoryHandleDesc CUDA_EXTERNAL_MEMORY_HANDLE_DESC;

struct cudaExternalMemoryBufferDesc {
    unsigned long long opaque_offset;
    unsigned long long size;
    unsigned int opaque_flags;
};
typedef struct cudaExternalMemoryBufferDesc CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

struct cudaMemAllocNodeParams {
    struct cudaMemPoolProps poolProps;
    const void *opaque_descs;
    size_t opaque_desc_count;
    size_t bytesize;
    void *dptr;
};
typedef struct CUDA_MEM_ALLOC_NODE_PARAMS_v1_st {
    CUmemPoolProps poolProps;
    const void *opaque_descs;
    size_t opaque_desc_count;
    size_t bytesize;
    CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef struct CUmemAllocationProp_st {
    unsigned int opaque_types[2];
    CUmemLocation location;
    void *opaque_security;
    char opaque_flags[8];
} CUmemAllocationProp;

typedef struct CUmulticastObjectProp_st {
    unsigned int numDevices;
    size_t size;
    unsigned long long opaque_rest[2];
} CUmulticastObjectProp;

typedef struct CUmemDecompressParams_st {
    size_t srcNumBytes;
    size_t dstNumBytes;
    void *opaque_pointers[3];
    char opaque_rest[24];
} CUmemDecompressParams;

typedef struct CUDA_MEMCPY2D_v1_st {
    unsigned int opaque_src_pos[2];
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr_v1 srcDevice;
    CUarray srcArray;
    unsigned int opaque_src_pitch;
    unsigned int opaque_dst_pos[2];
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr_v1 dstDevice;
    CUarray dstArray;
    unsigned int opaque_dst_pitch;
    unsigned int WidthInBytes;
    unsigned int Height;
} CUDA_MEMCPY2D_v1;

typedef struct CUDA_MEMCPY2D_st {
    size_t opaque_src_pos[2];
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    size_t opaque_src_pitch;
    size_t opaque_dst_pos[2];
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    size_t opaque_dst_pitch;
    size_t WidthInBytes;
    size_t Height;
} CUDA_MEMCPY2D;

typedef struct CUDA_MEMCPY3D_v1_st {
    unsigned int opaque_src_pos[4];
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr_v1 srcDevice;
    CUarray srcArray;
    void *opaque_src;
    unsigned int opaque_src_pitch[2];
    unsigned int opaque_dst_pos[4];
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr_v1 dstDevice;
    CUarray dstArray;
    void *opaque_dst;
    unsigned int opaque_dst_pitch[2];
    unsigned int WidthInBytes;
    unsigned int Height;
    unsigned int Depth;
} CUDA_MEMCPY3D_v1;

typedef struct CUDA_MEMCPY3D_st {
    size_t opaque_src_pos[4];
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    void *opaque_src;
    size_t opaque_src_pitch[2];
    size_t opaque_dst_pos[4];
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    void *opaque_dst;
    size_t opaque_dst_pitch[2];
    size_t WidthInBytes;
    size_t Height;
    size_t Depth;
} CUDA_MEMCPY3D;

typedef struct CUDA_MEMCPY3D_PEER_st {
    size_t opaque_src_pos[4];
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    CUcontext srcContext;
    size_t opaque_src_pitch[2];
    size_t opaque_dst_pos[4];
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    CUcontext dstContext;
    size_t opaque_dst_pitch[2];
    size_t WidthInBytes;
    size_t Height;
    size_t Depth;
} CUDA_MEMCPY3D_PEER;

typedef struct CUDA_ARRAY_DESCRIPTOR_v1_st {
    unsigned int Width, Height;
    CUarray_format Format;
    unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR_v1;

typedef struct CUDA_ARRAY_DESCRIPTOR_st {
    size_t Width, Height;
    CUarray_format Format;
    unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct CUDA_ARRAY3D_DESCRIPTOR_v1_st {
    unsigned int Width, Height, Depth;
    CUarray_format Format;
    unsigned int NumChannels;
    unsigned int Flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;

typedef struct CUDA_ARRAY3D_DESCRIPTOR_st {
    size_t Width, Height, Depth;
    CUarray_format Format;
    unsigned int NumChannels;
    unsigned int Flags;
} CUDA_ARRAY3D_DESCRIPTOR;

/* Structures that are only passed on by pointer. */

struct cudaExternalMemoryMipmappedArrayDesc;
struct cudaExternalSemaphoreSignalParams;
struct cudaExternalSemaphoreWaitParams;
struct cudaGraphRecaptureCallbackData;
struct cudaMemPoolPtrExportData;
struct cudaMemcpyAttributes;
typedef struct cudaGraphEdgeData_st cudaGraphEdgeData;
typedef struct cudaGraphInstantiateParams_st cudaGraphInstantiateParams;
typedef struct uint3 uint3;
typedef struct CUarrayMapInfo_st CUarrayMapInfo;
typedef struct CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_st
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC;
typedef struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS;
typedef struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS;
typedef struct CUDA_FABRIC_COPY_BATCH_OP_st CUDA_FABRIC_COPY_BATCH_OP;
typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS_st CUDA_GRAPH_INSTANTIATE_PARAMS;
typedef struct CUgraphEdgeData_st CUgraphEdgeData;
typedef struct CUgraphNodeParams_st CUgraphNodeParams;
typedef struct CUmemPoolPtrExportData_st CUmemPoolPtrExportData;
typedef struct CUmemcpyAttributes_st CUmemcpyAttributes;
typedef struct CUstreamCigCaptureParams_st CUstreamCigCaptureParams;
typedef union CUstreamBatchMemOpParams_union CUstreamBatchMemOpParams;

/* Callbacks. */

typedef void (*cudaHostFn_t)(void *data);
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *data);
typedef void (*CUhostFn)(void *data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *data);
typedef CUresult (*CUgraphRecaptureCallback)(void *data, CUgraphNode node,
                                             const CUgraphNodeParams *original,
                                             const CUgraphNodeParams *recaptured,
                                             CUgraphRecaptureStatus status);

/* Helpers for the expressions in the rows. */

/* The word of an ARG_DIM3 argument: x | y << 32 | z << 48, y and z saturated at 65535. */
static inline uint64_t api_dim3(uint32_t x, uint32_t y, uint32_t z)
{
    if (__builtin_expect((y | z) > UINT16_MAX, 0)) { /* larger than any device supports */
        y = y < UINT16_MAX ? y : UINT16_MAX;
        z = z < UINT16_MAX ? z : UINT16_MAX;
    }
    return x | (uint64_t)y << 32 | (uint64_t)z << 48;
}

#define API_DIM3_XYZ(x, y, z) api_dim3(x, y, z)
#define API_DIM3_WORD(dim)    api_dim3((dim).x, (dim).y, (dim).z)
/* The grid of a structure whose fields have the driver's names (CUlaunchConfig, ...). */
#define API_DIM3_GRID(p)  api_dim3((p)->gridDimX, (p)->gridDimY, (p)->gridDimZ)
#define API_DIM3_BLOCK(p) api_dim3((p)->blockDimX, (p)->blockDimY, (p)->blockDimZ)

/* Device ordinal of a location; -1 (as cudaCpuDeviceId) for any host memory. */
#define API_LOCATION_DEVICE(location)                                                              \
    ((location).type == cudaMemLocationTypeDevice ? (int64_t)(location).id : -1)

static inline uint64_t api_sum_sizes(const size_t *sizes, size_t count)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += sizes[i];
    return sum;
}

static inline uint64_t api_decompressed_bytes(const CUmemDecompressParams *params, size_t count)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += params[i].dstNumBytes;
    return sum;
}

/*
 * Bytes of the runtime's 3D copies. If an array takes part, the extent is in elements of that
 * array, whose size is not known without a CUDA call. Such a copy counts as 0 here; CUPTI's record
 * has its bytes.
 */
#define API_EXTENT_BYTES(extent) ((uint64_t)(extent).width * (extent).height * (extent).depth)
#define API_COPY3D_HAS_ARRAY(p)  ((p)->srcArray || (p)->dstArray)
#define API_COPY3D_BYTES(p)      (API_COPY3D_HAS_ARRAY(p) ? 0 : API_EXTENT_BYTES((p)->extent))
#define API_COPY3D_DST(p)        ((p)->dstArray ? (void *)(p)->dstArray : (p)->dstPtr.ptr)
#define API_COPY3D_SRC(p)        ((p)->srcArray ? (void *)(p)->srcArray : (p)->srcPtr.ptr)

static inline uint64_t api_copy3d_batch_bytes(const struct cudaMemcpy3DBatchOp *ops, size_t count)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        if (ops[i].src.type == cudaMemcpyOperandTypePointer &&
            ops[i].dst.type == cudaMemcpyOperandTypePointer)
            sum += API_EXTENT_BYTES(ops[i].extent);
    return sum;
}

/* Bytes of the driver's 2D and 3D copies, whose structures use the same field names. */
#define API_COPY_END(type, host, device, array)                                                    \
    ((type) == CU_MEMORYTYPE_HOST    ? (uint64_t)(uintptr_t)(host)                                 \
     : (type) == CU_MEMORYTYPE_ARRAY ? (uint64_t)(uintptr_t)(array)                                \
                                     : (uint64_t)(device))
#define API_COPY_DST(p)                                                                            \
    API_COPY_END((p)->dstMemoryType, (p)->dstHost, (p)->dstDevice, (p)->dstArray)
#define API_COPY_SRC(p)                                                                            \
    API_COPY_END((p)->srcMemoryType, (p)->srcHost, (p)->srcDevice, (p)->srcArray)
#define API_COPY_BYTES_2D(p) ((uint64_t)(p)->WidthInBytes * (p)->Height)
#define API_COPY_BYTES_3D(p) ((uint64_t)(p)->WidthInBytes * (p)->Height * (p)->Depth)
#define API_COPY_KIND(p)     api_copy_kind((p)->srcMemoryType, (p)->dstMemoryType)

static inline enum cudaMemcpyKind api_copy_kind(CUmemorytype src, CUmemorytype dst)
{
    if (src == CU_MEMORYTYPE_UNIFIED || dst == CU_MEMORYTYPE_UNIFIED)
        return cudaMemcpyDefault;
    if (src == CU_MEMORYTYPE_HOST)
        return dst == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    return dst == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

/* Bytes of an array without the driver's padding; a height or depth of 0 means that the dimension
 * does not exist. Returns 0 for a format of unknown element size. */
static inline uint64_t api_array_bytes(uint64_t element_bytes, uint64_t width, uint64_t height,
                                       uint64_t depth)
{
    return element_bytes * width * (height ? height : 1) * (depth ? depth : 1);
}

/* The same with mipmap levels. Each level halves every dimension, except the depth if it counts
 * layers or faces. Both APIs use the same two flags for that. */
static inline uint64_t api_mipmap_bytes(uint64_t element_bytes, uint64_t width, uint64_t height,
                                        uint64_t depth, unsigned int levels, unsigned int flags)
{
    uint64_t sum = 0;

    for (unsigned int i = 0; i < levels && i < 64; i++) {
        sum += api_array_bytes(element_bytes, width, height, depth);
        width = width > 1 ? width / 2 : width;
        height = height > 1 ? height / 2 : height;
        if (!(flags & (cudaArrayLayered | cudaArrayCubemap)))
            depth = depth > 1 ? depth / 2 : depth;
    }
    return sum;
}

#define API_CHANNEL_BYTES(desc) ((uint64_t)((desc)->x + (desc)->y + (desc)->z + (desc)->w) / 8)
#define API_ELEMENT_BYTES(desc) (api_format_bytes((desc)->Format) * (desc)->NumChannels)

static inline uint64_t api_format_bytes(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4;
    }
    return 0;
}

/* Types that rows need and declare beside themselves. */
#define API_TYPE(...) __VA_ARGS__
#include "api/api.def"

#endif
