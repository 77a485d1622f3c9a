/* SPDX-License-Identifier: Apache-2.0 */
/* What programs do to find out whether there is a GPU; none of it is recorded. */
#include <cuda.h>

int main(void)
{
    int count = 0, version = 0;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&count) != CUDA_SUCCESS || count < 1 ||
        cuDriverGetVersion(&version) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
        cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
        cuCtxSetCurrent(context) != CUDA_SUCCESS || cuStreamCreate(&stream, 0) != CUDA_SUCCESS ||
        cuStreamDestroy(stream) != CUDA_SUCCESS || cuDevicePrimaryCtxReset(device) != CUDA_SUCCESS)
        return 1;
    return 3;
}
