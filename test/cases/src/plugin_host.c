/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens plugins as Python opens its extensions, and runs each with the same arguments:
 *   plugin_host PLUGIN[,PLUGIN...] ARGUMENTS...
 * -DDEEP: with RTLD_DEEPBIND, so that what the plugins call goes past every preload.
 * -DGLOBAL: with RTLD_GLOBAL, so that what they bring is there for all.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef DEEP
#define FLAGS (RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)
#elif defined(GLOBAL)
#define FLAGS (RTLD_NOW | RTLD_GLOBAL)
#else
#define FLAGS (RTLD_NOW | RTLD_LOCAL)
#endif

int main(int argc, char **argv)
{
    int status = 0;
    (void)argc;
    for (char *at = strtok(argv[1], ","); at; at = strtok(NULL, ",")) {
        void *plugin = dlopen(at, FLAGS);
        int (*run)(int, char **) = plugin ? (int (*)(int, char **))dlsym(plugin, "run") : NULL;
        if (!run) {
            fprintf(stderr, "%s\n", dlerror());
            return 8;
        }
        status = run(argc - 1, argv + 1);
        fflush(stdout);
    }
    return status;
}
