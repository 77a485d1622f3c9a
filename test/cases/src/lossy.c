/* SPDX-License-Identifier: Apache-2.0 */
/* Asks for more than gpuprof keeps: lossy SCENARIO COUNT. */
#include "gpuprof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tiny_cudart.h"

#define NAME_BYTES 4000

/* Each name is kept for as long as its kernel may be launched. */
static void names(size_t count, size_t bytes)
{
    static char kernels[1 << 20];
    char *name = malloc(bytes + 1);
    memset(name, 'n', bytes);
    name[bytes] = '\0';
    for (size_t i = 0; i < count; i++) {
        snprintf(name, bytes, "%zu", i);
        name[strlen(name)] = 'n';
        __cudaRegisterFunction(NULL, &kernels[i], NULL, name, -1, NULL, NULL, NULL, NULL, NULL);
    }
    cudaLaunchKernelExC(kernels, kernels, NULL);
}

/* Captures that nobody ends. */
static void captures(size_t count)
{
    for (size_t i = 1; i <= count; i++)
        cudaStreamBeginCapture((void *)(0x100 * i), 0);
}

static void texts(size_t count)
{
    char text[5001];
    memset(text, 't', 5000);
    text[5000] = '\0';
    for (size_t i = 0; i < count; i++)
        gpuprof_mark(text);
}

/* Open before the recording begins. */
static void ranges(size_t count)
{
    for (size_t i = 0; i < count; i++)
        gpuprof_range_push("open");
}

static void calls(size_t count)
{
    for (size_t i = 1; i <= count; i++)
        cudaMemset(NULL, 0, i);
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 2 ? argv[1] : "";
    size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (strcmp(scenario, "ranges") == 0)
        ranges(count);
    cudaMemset(NULL, 0, 1);
    if (strcmp(scenario, "names") == 0)
        names(count, NAME_BYTES);
    else if (strcmp(scenario, "long-name") == 0)
        names(count, 2 * NAME_BYTES);
    else if (strcmp(scenario, "captures") == 0)
        captures(count);
    else if (strcmp(scenario, "texts") == 0)
        texts(count);
    else if (strcmp(scenario, "calls") == 0)
        calls(count);
    else if (strcmp(scenario, "slowly") == 0)
        for (size_t i = 0; i < count; i++)
            calls(100), usleep(10000);
    return 3;
}
