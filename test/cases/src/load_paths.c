/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_paths CALLER...: a call of CUDA's, then for each library CALLER, and for the program itself,
 * what dlopen finds for it by name, by $ORIGIN, by a path, and with a library that the found one
 * needs. With -DCALLER the library, with -DFOUND=function what is found: its name is its file's.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#ifdef FOUND
int FOUND(void);
#ifdef NEEDED
int NEEDED(void);
int FOUND(void)
{
    return NEEDED();
}
#else
int FOUND(void)
{
    return 1;
}
#endif
#else
void *load(const char *name);
__attribute__((noinline)) void *load(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}
#endif

#ifdef PROGRAM
#include "tiny_cudart.h"

static const char *const names[] = {"libplain.so", "$ORIGIN/one/libplain.so", "./one/libneeds.so",
                                    "libneeds.so", "libz-not-there.so",       NULL};

/* Its path; each is unloaded, so that the next is looked for anew. */
static void try_all(const char *who, void *(*its_load)(const char *))
{
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        struct link_map *map = its_load(names[i]);
        Lmid_t space = 0;
        if (map)
            dlinfo(map, RTLD_DI_LMID, &space);
        printf("%s %s: %s %ld\n", who, names[i] ? names[i] : "NULL", map ? map->l_name : "none",
               (long)space);
        for (struct link_map *m = map ? map->l_next : NULL; m && names[i]; m = m->l_next)
            if (strstr(m->l_name, "libplain"))
                printf("  needs %s\n", m->l_name);
        if (map)
            dlclose(map);
    }
}

int main(int argc, char **argv)
{
    void *p;
    cudaMalloc(&p, 1);
    try_all("program", load);
    for (int i = 1; i < argc; i++) {
        char path[256];
        snprintf(path, sizeof path, "./%s", argv[i]);
        void *caller = strcmp(argv[i], "libelsewhere.so") == 0
                           ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW)
                           : dlopen(path, RTLD_NOW);
        if (!caller) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        try_all(argv[i], (void *(*)(const char *))dlsym(caller, "load"));
    }
    return 0;
}
#endif
