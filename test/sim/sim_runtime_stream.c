/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_runtime.h"

/* Streams, events, and the semaphores of other APIs. */

RT(cudaStreamCreate, (cudaStream_t * stream),
   D(cuStreamCreate, cuStreamCreate, 2000)(stream, cudaStreamDefault), A_OUT("stream", stream))
RT(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags),
   D(cuStreamCreate, cuStreamCreate, 2000)(stream, flags), A_OUT("stream", stream), A_U(flags))
RT(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority),
   D(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050)(stream, flags, priority),
   A_OUT("stream", stream), A_U(flags), {"priority", 'd', (uint64_t)(int64_t)priority, 0, 0})
RT(cudaStreamDestroy, (cudaStream_t stream), D(cuStreamDestroy_v2, cuStreamDestroy, 4000)(stream),
   A_X(stream))
RT2(cudaStreamSynchronize, _ptsz, (cudaStream_t stream),
    D2(cuStreamSynchronize, cuStreamSynchronize, 2000, 7000)(stream), A_X(stream))
RT2(cudaStreamQuery, _ptsz, (cudaStream_t stream),
    D2(cuStreamQuery, cuStreamQuery, 2000, 7000)(stream), A_X(stream))
RT2(cudaStreamWaitEvent, _ptsz, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
    D2(cuStreamWaitEvent, cuStreamWaitEvent, 3020, 7000)(stream, event, flags), A_X(stream),
    A_X(event))
RT2(cudaStreamAddCallback, _ptsz,
    (cudaStream_t stream, cudaStreamCallback_t fn, void *data, unsigned flags),
    D2(cuStreamAddCallback, cuStreamAddCallback, 5000, 7000)(stream, (CUstreamCallback)(void *)fn,
                                                             data, flags),
    A_X(stream), A_KX("fn", fn))
RT2(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int *priority),
    D2(cuStreamGetPriority, cuStreamGetPriority, 5050, 7000)(stream, priority), A_X(stream))
RT2(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned *flags),
    D2(cuStreamGetFlags, cuStreamGetFlags, 5050, 7000)(stream, flags), A_X(stream))
RT2(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long *id),
    D2(cuStreamGetId, cuStreamGetId, 12000, 12000)(stream, id), A_X(stream))
RT2(cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int *device),
    D2(cuStreamGetDevice, cuStreamGetDevice, 12080, 12080)(stream, device), A_X(stream))
RT2(cudaStreamAttachMemAsync, _ptsz, (cudaStream_t stream, void *ptr, size_t bytes, unsigned flags),
    D2(cuStreamAttachMemAsync, cuStreamAttachMemAsync, 6000, 7000)(stream, (uintptr_t)ptr, bytes,
                                                                   flags),
    A_X(stream), A_X(ptr), A_U(bytes))
RT2(cudaStreamCopyAttributes, _ptsz, (cudaStream_t dst, cudaStream_t src),
    D2(cuStreamCopyAttributes, cuStreamCopyAttributes, 11000, 11000)(dst, src), A_X(dst), A_X(src))
RT2(cudaStreamGetAttribute, _ptsz,
    (cudaStream_t stream, cudaLaunchAttributeID id, cudaLaunchAttributeValue *value),
    D2(cuStreamGetAttribute, cuStreamGetAttribute, 11000, 11000)(stream, id, value), A_X(stream))
RT2(cudaStreamSetAttribute, _ptsz,
    (cudaStream_t stream, cudaLaunchAttributeID id, const cudaLaunchAttributeValue *value),
    D2(cuStreamSetAttribute, cuStreamSetAttribute, 11000, 11000)(stream, id, value), A_X(stream))

RT(cudaEventCreate, (cudaEvent_t * event),
   D(cuEventCreate, cuEventCreate, 2000)(event, cudaEventDefault), A_OUT("event", event))
RT(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags),
   D(cuEventCreate, cuEventCreate, 2000)(event, flags), A_OUT("event", event), A_U(flags))
RT(cudaEventDestroy, (cudaEvent_t event), D(cuEventDestroy_v2, cuEventDestroy, 4000)(event),
   A_X(event))
RT2(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream),
    D2(cuEventRecord, cuEventRecord, 2000, 7000)(event, stream), A_X(event), A_X(stream))
RT2(cudaEventRecordWithFlags, _ptsz, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
    D2(cuEventRecordWithFlags, cuEventRecordWithFlags, 11010, 11010)(event, stream, flags),
    A_X(event), A_X(stream), A_U(flags))
RT(cudaEventQuery, (cudaEvent_t event), D(cuEventQuery, cuEventQuery, 2000)(event), A_X(event))
RT(cudaEventSynchronize, (cudaEvent_t event),
   D(cuEventSynchronize, cuEventSynchronize, 2000)(event), A_X(event))
RT(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end),
   D(cuEventElapsedTime, cuEventElapsedTime, 2000)(ms, start, end), A_X(start), A_X(end))

RT(cudaImportExternalSemaphore,
   (cudaExternalSemaphore_t * out, const struct cudaExternalSemaphoreHandleDesc *desc),
   D(cuImportExternalSemaphore, cuImportExternalSemaphore,
     10000)((CUexternalSemaphore *)out, (const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *)desc),
   A_OUT("handle", out))
RT(cudaDestroyExternalSemaphore, (cudaExternalSemaphore_t handle),
   D(cuDestroyExternalSemaphore, cuDestroyExternalSemaphore, 10000)((CUexternalSemaphore)handle),
   A_X(handle))
RT2(cudaSignalExternalSemaphoresAsync, _ptsz,
    (const cudaExternalSemaphore_t *list, const struct cudaExternalSemaphoreSignalParams *params,
     unsigned count, cudaStream_t stream),
    D2(cuSignalExternalSemaphoresAsync, cuSignalExternalSemaphoresAsync, 10000,
       10000)((const CUexternalSemaphore *)list,
              (const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *)params, count, stream),
    A_U(count), A_X(stream))
RT2(cudaWaitExternalSemaphoresAsync, _ptsz,
    (const cudaExternalSemaphore_t *list, const struct cudaExternalSemaphoreWaitParams *params,
     unsigned count, cudaStream_t stream),
    D2(cuWaitExternalSemaphoresAsync, cuWaitExternalSemaphoresAsync, 10000,
       10000)((const CUexternalSemaphore *)list,
              (const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *)params, count, stream),
    A_U(count), A_X(stream))
