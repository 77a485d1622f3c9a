// SPDX-License-Identifier: Apache-2.0
// Launches that come by functions which are not where one looks for them: a line that ends with
// "at NAME" is to be told as the place, one that ends with "from NAME" as where that was called.
// What nvcc and clang make of kernel<<<...>>>() is imitated by the functions' names.
#include <cuda.h>
#include <unistd.h>

#define APART __attribute__((noinline))
#define ROUNDS 4

static CUfunction function;

static APART void launched()
{
    asm volatile("");
}

// Each launch is one of its caller's, with the device idle before it.
#define LAUNCH()                                                                                   \
    (usleep(1000), cuLaunchKernel(function, 100, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), launched())

// ---- nvcc, with its static runtime

static APART void libcudart_static_0a1b()
{
    LAUNCH();
}

extern "C" APART void __cudaLaunchKernel()
{
    libcudart_static_0a1b();
    launched();
}

static APART void __cudaLaunchKernel_helper(int)
{
    __cudaLaunchKernel();
    launched();
}

APART void __device_stub__Z5scalePff(float *, float)
{
    __cudaLaunchKernel_helper(1);
    launched();
}

APART void scale(float *values, float factor)
{
    __device_stub__Z5scalePff(values, factor);
    launched();
}

// A function of the user's, of the same name.
APART void scale(float *values)
{
    scale(values, 2); // at an overload
    launched();
}

static APART void __device_stub__ZN5outer5innerEPf(float *)
{
    LAUNCH();
}

namespace outer {
static APART void inner(float *values)
{
    __device_stub__ZN5outer5innerEPf(values);
    launched();
}
} // namespace outer

APART void __device_stub__Z5plainPf(float *)
{
    LAUNCH();
}

extern "C" APART void plain(float *values)
{
    __device_stub__Z5plainPf(values);
    launched();
}

static APART void __device_stub__Z7reverseIiEvPT_i(int *, int)
{
    LAUNCH();
}

template <typename T> APART void __wrapper__device_stub_reverse(T *&values, int &count)
{
    __device_stub__Z7reverseIiEvPT_i(values, count);
    launched();
}

template <typename T> APART void reverse(T *values, int count)
{
    __wrapper__device_stub_reverse<T>(values, count);
    launched();
}

// The kernel's function on the host is gone, as optimizing it away may leave things.
APART void __device_stub__Z3runPfi(float *, int)
{
    LAUNCH();
}

static APART void run(float *values)
{
    __device_stub__Z3runPfi(values, 1); // at no host side
    launched();
}

static APART void by_nvcc(float *values, int *numbers)
{
    scale(values, 3); // at a function
    scale(values);
    outer::inner(values); // at a namespace
    plain(values);        // at C
    reverse(numbers, 3);  // at a template
    run(values);
    launched();
}

// ---- clang

namespace outer {
APART void __device_stub__fill(float *)
{
    LAUNCH();
}
} // namespace outer

static APART void by_clang(float *values)
{
    outer::__device_stub__fill(values); // at clang
    launched();
}

// ---- the user's own

static APART void launch(int)
{
    LAUNCH(); // at a wrapper
}

static APART void first()
{
    launch(1); // from one
    launch(2); // from the next
    launched();
}

static APART void second()
{
    launch(3); // from another function
    launched();
}

static APART void deep()
{
    LAUNCH(); // at a wrapper of a wrapper
}

static APART void checked()
{
    deep();
    launched();
}

static inline __attribute__((always_inline)) void copied()
{
    LAUNCH(); // at what is inlined
}

static APART void only()
{
    LAUNCH(); // at a function with one caller
}

static APART void by_wrappers()
{
    first();
    second();
    checked(); // from here
    checked(); // from there
    copied();  // from where it is inlined
    only();
    launched();
}

int main()
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    float value;
    int number;
    cuInit(0);
    cuDeviceGet(&device, 0);
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxSetCurrent(context);
    cuModuleLoadData(&module, "simulated code");
    cuModuleGetFunction(&function, module, "gemm");
    for (int i = 0; i < ROUNDS; i++) {
        by_nvcc(&value, &number);
        by_clang(&value);
        by_wrappers();
    }
    return cuCtxSynchronize();
}
