/* SPDX-License-Identifier: Apache-2.0 */
#include "run/environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "settings.h"

#define LIBRARY_NAME "libgpuprof.so"

static bool refuse(char reason[static ENVIRONMENT_REASON_BYTES], const char *what, const char *why)
{
    snprintf(reason, ENVIRONMENT_REASON_BYTES, "%s: %s", what, why);
    return false;
}

/* The folder where this executable is, with a final slash. 0 or an errno. */
static int own_folder(char *folder, size_t capacity)
{
    ssize_t length = readlink("/proc/self/exe", folder, capacity - 1);
    if (length < 0)
        return errno;
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (!slash || (size_t)length >= capacity - 1)
        return ENAMETOOLONG;
    slash[1] = '\0';
    return 0;
}

bool environment_library(char path[static ENVIRONMENT_PATH_BYTES],
                         char reason[static ENVIRONMENT_REASON_BYTES])
{
    int error = own_folder(path, PATH_MAX);
    if (error) {
        path[0] = '\0';
        return refuse(reason, "/proc/self/exe", strerror(error));
    }
    strcat(path, LIBRARY_NAME);
    if (access(path, R_OK) != 0)
        return refuse(reason, path, strerror(errno));
    if (strpbrk(path, " :"))
        return refuse(reason, path,
                      "the loader cannot preload from a folder with a space or a colon in its "
                      "name; move gpuprof");
    return true;
}

static bool set(const char *variable, const char *text, bool overwrite,
                char reason[static ENVIRONMENT_REASON_BYTES])
{
    return setenv(variable, text, overwrite) == 0 || refuse(reason, variable, strerror(errno));
}

/* NVTX and the driver are to load our library, unless somebody else has claimed that. */
static bool export_tool(const char *library, enum setting_index setting, const char *variable,
                        char reason[static ENVIRONMENT_REASON_BYTES])
{
    const char *text = getenv(setting_infos[setting].variable);
    struct settings settings;
    char wrong[160];
    settings_init(&settings);
    if (text && *text) /* what is wrong in it the library says */
        settings_set(&settings, setting, text, wrong, sizeof wrong);
    return !settings.numbers[setting] || set(variable, library, false, reason);
}

/* `text` before what the variable has, with a colon between. */
static bool put_before(const char *variable, const char *text,
                       char reason[static ENVIRONMENT_REASON_BYTES])
{
    const char *others = getenv(variable);
    char *list;
    if (asprintf(&list, "%s%s%s", text, others && *others ? ":" : "", others ? others : "") < 0)
        return refuse(reason, variable, strerror(errno));
    bool done = set(variable, list, true, reason);
    free(list);
    return done;
}

static bool preload(const char *library, char reason[static ENVIRONMENT_REASON_BYTES])
{
    const char *others = getenv("LD_PRELOAD");
    size_t length = strlen(library);
    if (others && strncmp(others, library, length) == 0 && strchr(" :", others[length]))
        return true; /* inside another gpuprof run; strchr finds the end of the text, too */
    return put_before("LD_PRELOAD", library, reason);
}

/*
 * ASan's library ends a program in which another one comes first, unless told not to look. (Were
 * it put before ours in LD_PRELOAD, each child of the program's had it, too, and reported leaks.)
 * The library says the same, but a program may have default options of its own.
 *
 * ThreadSanitizer ends a forked child that starts a thread, if its parent had several: gpuprof's is
 * one. Where clang has linked it in, no library of ours can tell it.
 *
 * Ours comes first: the program's user has the last word.
 */
bool environment_prepare(const struct program *program,
                         char reason[static ENVIRONMENT_REASON_BYTES])
{
    char library[ENVIRONMENT_PATH_BYTES];
    return environment_library(library, reason) &&
           export_tool(library, SETTING_NVTX, "NVTX_INJECTION64_PATH", reason) &&
           export_tool(library, SETTING_GPU, "CUDA_INJECTION64_PATH", reason) &&
           preload(library, reason) &&
           (!program->needs_asan ||
            put_before("ASAN_OPTIONS", "verify_asan_link_order=0", reason)) &&
           (!program->has_tsan || put_before("TSAN_OPTIONS", "die_after_fork=0", reason));
}
