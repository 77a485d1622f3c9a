// SPDX-License-Identifier: Apache-2.0
// The program's frames in stress.c's stacks: that program is gpuprof itself, whose own frames are
// left out.
#include <stdexcept>

#define HERE __asm__ volatile("" ::: "memory") // what comes before it is no tail call

extern "C" __attribute__((noinline)) void through(void (*call)(void *), void *data, unsigned depth)
{
    if (depth == 0)
        call(data);
    else
        through(call, data, depth - 1);
    HERE;
}

__attribute__((noinline)) static void fail(void (*call)(void *), void *data, unsigned depth)
{
    if (depth == 0) {
        call(data);
        throw std::runtime_error("failed");
    }
    fail(call, data, depth - 1);
    HERE;
}

extern "C" void throwing(void (*call)(void *), void *data, unsigned depth)
{
    try {
        fail(call, data, depth);
    } catch (const std::runtime_error &) {
        call(data);
    }
}
