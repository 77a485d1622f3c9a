/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plugins that take turns, each with a runtime of its own, in the same addresses: reload PLUGIN
 * PLUGIN ROUNDS. -DRUNTIME=1 or 2: two runtimes of the same size with their function in different
 * places, and a trap where the other's is. -DPLUGIN: linked with one of them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tiny_cudart.h"

#if defined RUNTIME

#if defined __x86_64__
#define FILL "ud2\nud2\n"
#else
#define FILL "udf #0\n"
#endif
#define FILLED(name)                                                                               \
    __asm__(".text\n.balign 64\n" #name ":\n.rept 1024\n" FILL ".endr\n.balign 64\n")

#if RUNTIME == 2
FILLED(before);
#endif

int cudaMemset(void *memory, int value, size_t bytes)
{
    (void)memory, (void)value, (void)bytes;
    return 700 + RUNTIME;
}

#if RUNTIME == 1
FILLED(after);
#endif

#elif defined PLUGIN

int run(size_t bytes);

int run(size_t bytes)
{
    return cudaMemset(NULL, 0, bytes);
}

#else

int main(int argc, char **argv)
{
    int rounds = argc > 3 ? atoi(argv[3]) : 0;
    uintptr_t last = 0;
    unsigned reused = 0;
    for (int i = 0; i < rounds; i++) {
        void *plugin = dlopen(argv[1 + i % 2], RTLD_NOW | RTLD_LOCAL);
        struct link_map *map = plugin;
        int (*run)(size_t) = plugin ? (int (*)(size_t))dlsym(plugin, "run") : NULL;
        if (!run) {
            printf("%s\n", dlerror());
            return 8;
        }
        int result = run((size_t)i + 1);
        if (result != 701 + i % 2)
            printf("round %d: %d\n", i, result);
        reused += map->l_addr == last;
        last = map->l_addr;
        errno = 12345;
        if (dlclose(plugin) != 0 || errno != 12345 || dlerror())
            printf("round %d: dlclose, errno %d\n", i, errno);
        void *gone = dlopen(argv[1 + i % 2], RTLD_NOW | RTLD_NOLOAD);
        if (gone)
            printf("round %d: still there\n", i);
    }
    errno = 12345;
    static char none[4096]; /* looks like an object that nobody has opened */
    char *text = dlclose(none) == 0 ? NULL : dlerror();
    printf("dlclose of nothing: %s, errno %d\n", text && strstr(text, "not open") ? "error" : "?",
           errno);
    return reused > 0 ? 3 : 4;
}

#endif
