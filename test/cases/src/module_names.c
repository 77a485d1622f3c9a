/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches kernels whose handles come from listing a module and a library, from look-ups after
 * those have gone and handles are used again: module_names. Writes the name of each as launched.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
        if (result_) {                                                                             \
            fprintf(stderr, "%s: %d\n", #call, (int)result_);                                      \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

static void launch(CUfunction function)
{
    const char *name;
    CHECK(cuFuncGetName(&name, function));
    puts(name);
    CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CHECK(cuCtxSynchronize()); /* its record is there before the module goes */
}

int main(void)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUlibrary library;
    CUfunction function, functions[4];
    CUkernel kernels[4];
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, "an image"));
    CHECK(cuModuleGetFunction(&function, module, "looked_up"));
    launch(function);
    CHECK(cuModuleUnload(module));
    CHECK(cuModuleLoadData(&module, "functions listed also_listed"));
    CHECK(cuModuleEnumerateFunctions(functions, 4, module)); /* more than there are */
    launch(functions[0]);
    launch(functions[1]);
    CHECK(cuModuleUnload(module));
    CHECK(cuLibraryLoadData(&library, "functions of_library", NULL, NULL, 0, NULL, NULL, 0));
    CHECK(cuLibraryEnumerateKernels(kernels, 1, library));
    CHECK(cuKernelGetFunction(&function, kernels[0]));
    launch(function);
    launch((CUfunction)kernels[0]);
    CHECK(cuLibraryUnload(library));
    return 3;
}
