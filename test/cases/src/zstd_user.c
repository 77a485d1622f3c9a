/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program and a plugin with a libzstd.so.1 of their own. -DLIBRARY: that libzstd, which defines a
 * name that the real one has not, and says so if somebody else's data comes to it. -DPLUGIN: linked
 * with it. Else the program: zstd_user PLUGIN.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined LIBRARY

size_t ZSTD_compressCCtx(void *context, void *out, size_t capacity, const void *data, size_t length,
                         int level);
void *ZSTD_createCCtx(void);
unsigned long long ZSTD_trace_compress_begin(const void *context);
int ZSTD_only_of_the_plugin(void);

size_t ZSTD_compressCCtx(void *context, void *out, size_t capacity, const void *data, size_t length,
                         int level)
{
    (void)context, (void)out, (void)capacity, (void)data, (void)length, (void)level;
    puts("the program's zstd was called");
    return 0;
}

void *ZSTD_createCCtx(void)
{
    puts("the program's zstd was called");
    return NULL;
}

unsigned long long ZSTD_trace_compress_begin(const void *context)
{
    (void)context;
    puts("the program's zstd was called");
    return 0;
}

int ZSTD_only_of_the_plugin(void)
{
    return 42;
}

#elif defined PLUGIN

int ZSTD_only_of_the_plugin(void);
int run(void);

int run(void)
{
    return ZSTD_only_of_the_plugin();
}

#else

#include "tiny_cudart.h"

int main(int argc, char **argv)
{
    for (size_t i = 1; i <= 1000; i++)
        cudaMemset(NULL, 0, i);
    usleep(200000); /* the writer has had time to compress something */
    void *plugin = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
    int (*run)(void) = plugin ? (int (*)(void))dlsym(plugin, "run") : NULL;
    if (!run) {
        printf("%s\n", dlerror());
        return 8;
    }
    printf("the plugin says %d\n", run());
    for (size_t i = 1001; i <= 2000; i++)
        cudaMemset(NULL, 0, i);
    return 3;
}

#endif
