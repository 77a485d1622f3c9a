// SPDX-License-Identifier: Apache-2.0
// stacks_throw THREADS ROUNDS: calls before, within and after exceptions that go through the frames
// that were walked. Prints how many were caught.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#define HERE __asm__ volatile("" ::: "memory") // what comes before it is no tail call

static std::atomic<long> caught;

__attribute__((noinline)) static void call_of(size_t bytes)
{
    void *memory;
    if (cudaMalloc(&memory, bytes) != cudaSuccess)
        std::abort();
    HERE;
}

struct Guard {
    __attribute__((noinline)) ~Guard()
    {
        call_of(1); // the exception is on its way
    }
};

__attribute__((noinline)) static void fail(int depth)
{
    Guard guard;
    if (depth == 0) {
        call_of(2);
        throw std::runtime_error("failed");
    }
    fail(depth - 1);
    HERE;
}

__attribute__((noinline)) static void attempt(int depth)
{
    try {
        fail(depth);
    } catch (const std::runtime_error &) {
        caught++;
        call_of(3);
    }
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? std::atoi(argv[1]) : 0, rounds = argc > 2 ? std::atoi(argv[2]) : 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < count; i++)
        threads.emplace_back([rounds] {
            for (int k = 0; k < rounds; k++)
                attempt(k % 4);
        });
    for (std::thread &thread : threads)
        thread.join();
    std::printf("%ld\n", caught.load());
    return 0;
}
