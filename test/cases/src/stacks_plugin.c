/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin whose call has a stack: the function NAMED calls, from a frame of ROOM bytes. */
#include <cuda_runtime_api.h>

__attribute__((noinline)) static void NAMED(size_t bytes)
{
    volatile char room[ROOM];
    void *memory;
    room[ROOM - 1] = 0;
    cudaMalloc(&memory, bytes);
    room[0] = room[ROOM - 1];
}

__attribute__((visibility("default"))) void plugin_call(size_t bytes);
void plugin_call(size_t bytes)
{
    NAMED(bytes);
    __asm__ volatile("" ::: "memory");
}
