// SPDX-License-Identifier: Apache-2.0
// Exceptions that are thrown inside a CUDA call and caught above it.
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include "tiny_cudart.h"

static void throw_inside(const char *symbol, uint64_t argument)
{
    if (std::strcmp(symbol, "cudaStreamSynchronize") == 0)
        throw std::runtime_error("from inside " + std::to_string(argument));
}

struct Guard {
    ~Guard()
    {
        cudaFree(reinterpret_cast<void *>(0x42));
    }
};

__attribute__((noinline)) static void deeper(int depth)
{
    volatile char *frame = static_cast<char *>(__builtin_alloca(2000)); // not written to
    if (depth > 0)
        deeper(depth - 1);
    else
        cudaMalloc(nullptr, 9);
    frame[0] = 2;
}

int main()
{
    tiny_during = throw_inside;
    cudaMalloc(nullptr, 1000);
    for (uint64_t i = 1; i <= 3; i++) {
        try {
            Guard guard; // its destructor calls while the exception is on its way
            cudaStreamSynchronize(reinterpret_cast<void *>(i));
        } catch (const std::runtime_error &error) {
            std::printf("caught: %s\n", error.what());
            cudaMemset(nullptr, 0, i);
        }
        deeper(static_cast<int>(i));
    }
    cudaDeviceSynchronize();
    return 3;
}
