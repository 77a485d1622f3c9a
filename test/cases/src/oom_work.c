/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oom_work abort|exit|go: gets memory until there is not enough, and then ends as programs do: by
 * SIGABRT, as an exception that nobody catches does, with exit code 1, or well.
 */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

static void *held[3];

__attribute__((noinline)) static int get_large(void)
{
    return (int)cudaMalloc(&held[0], (size_t)3 << 20);
}

__attribute__((noinline)) static int get_too_much(void)
{
    return (int)cudaMalloc(&held[2], (size_t)1 << 50);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "go";
    if (get_large() || cudaMalloc(&held[1], (size_t)1 << 20))
        return 9;
    if (get_too_much() != cudaErrorMemoryAllocation)
        return 8;
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "exit") == 0)
        exit(1);
    return 0;
}
