/* SPDX-License-Identifier: Apache-2.0 */
// Stacks of C++: functions that are inlined, destructors while an exception passes, its handler.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <stdexcept>

namespace work
{
static inline __attribute__((always_inline)) void innermost(size_t bytes)
{
    void *memory;
    cudaMalloc(&memory, bytes);
    __asm__ volatile("" ::: "memory");
}

template <typename T> struct Tensor {
    __attribute__((always_inline)) void allocate(size_t count)
    {
        innermost(count * sizeof(T));
    }
};

struct Guard {
    __attribute__((noinline)) ~Guard()
    {
        innermost(200);
    }
};

__attribute__((noinline)) void fill()
{
    Tensor<double> tensor;
    tensor.allocate(100);
}

__attribute__((noinline)) void fail(int depth)
{
    Guard guard;
    if (depth == 0)
        throw std::runtime_error("as planned");
    fail(depth - 1);
    __asm__ volatile("" ::: "memory");
}
} // namespace work

int main()
{
    work::fill();
    for (int i = 0; i < 100; i++) {
        try {
            work::fail(3);
        } catch (const std::runtime_error &error) {
            work::innermost(300);
            if (i == 99)
                std::puts(error.what());
        }
    }
    return 0;
}
