/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of the program that is named, and of what it will load. */
#include "doctor/checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "known_versions.h"

bool check_program(const struct patient *p, struct check_result *f)
{
    if (!p->argv)
        return false;
    if (p->find_error)
        return check_result_set(f, CHECK_BROKEN, "name the program's path", "%s: %s", p->argv[0],
                                strerror(p->find_error));
    if (p->program.obstacle)
        return check_result_set(
            f, CHECK_BROKEN,
            "build or start it otherwise: dynamically linked with glibc, with no "
            "more rights than its caller's",
            "%s: %s; nothing can be recorded", p->program.path, p->program.obstacle);
    return check_result_set(f, CHECK_OK, NULL, "%s", p->program.path);
}

/* Is there a program that can be looked at? */
static bool has_program(const struct patient *p)
{
    return p->argv && !p->find_error && !p->program.obstacle && !p->library_reason[0];
}

bool check_preload(const struct patient *p, struct check_result *f)
{
    const struct start_sight *s = &p->start;
    const char *by = s->via[0] ? ", started by " : "";
    if (!has_program(p))
        return false;
    switch (s->answer) {
    case START_LOADED:
        return check_result_set(f, CHECK_OK, NULL, "libgpuprof.so is loaded in %s%s%s", s->name, by,
                                s->via);
    case START_LOST:
        return check_result_set(
            f, CHECK_BROKEN, "put 'gpuprof run' inside, right before that program's name",
            "libgpuprof.so is not loaded in %s%s%s: %s", s->name, by, s->via, s->reason);
    case START_IN_HELPER:
        return check_result_set(
            f, CHECK_LIMITED, "look at the program itself: 'gpuprof doctor' with its name",
            "of what was started, one program cannot be recorded (%s), and none "
            "was seen that uses CUDA%s%s",
            s->reason, by, s->via);
    case START_NO_MORE:
        if (s->is_cut)
            return check_result_set(f, CHECK_LIMITED,
                                    "look at the program itself: 'gpuprof doctor' with its name",
                                    "within %d seconds nothing was started that uses CUDA (%s)",
                                    START_SECONDS, s->via[0] ? s->via : "nothing at all");
        if (!s->via[0])
            return check_result_set(
                f, CHECK_BROKEN,
                "start it without gpuprof: if it does not run then, a library of "
                "its own is missing",
                "%s ends before it begins: the loader refuses it", s->name);
        return check_result_set(
            f, CHECK_OK, NULL,
            "libgpuprof.so is loaded in all that was started (%s); none was seen "
            "that uses CUDA",
            s->via);
    case START_NOT_SEEN: break;
    }
    return check_result_set(f, CHECK_LIMITED,
                            "allow ptrace (docker run --cap-add=SYS_PTRACE), or record a short run",
                            "whether libgpuprof.so will be loaded cannot be seen: %s", s->reason);
}

/* The file that will use CUDA, as far as it is known. */
static const char *program_path(const struct patient *p)
{
    return p->start.answer == START_LOADED ? p->start.path : p->program.path;
}

bool check_runtime(const struct patient *p, struct check_result *f)
{
    if (!has_program(p) || !program_has_runtime(program_path(p)))
        return false;
    if (p->gpu.answer == GPU_WORKS && p->settings.numbers[SETTING_GPU])
        return check_result_set(f, CHECK_OK, NULL,
                                "the CUDA runtime is linked in: CUPTI tells of its calls");
    return check_result_set(
        f, CHECK_LIMITED, "link with -cudart=shared, or make CUPTI work",
        "the CUDA runtime is linked in: without CUPTI its calls show as those that "
        "it makes of the driver");
}

bool check_sanitizer(const struct patient *p, struct check_result *f)
{
    if (!has_program(p) || (!p->program.needs_asan && !p->program.has_tsan))
        return false;
    return check_result_set(f, CHECK_OK, NULL, "%s is in the program, and is told of gpuprof",
                            p->program.needs_asan ? "AddressSanitizer" : "ThreadSanitizer");
}

bool check_python(const struct patient *p, struct check_result *f)
{
    unsigned minor = p->start.python_minor;
    if (!has_program(p) || !minor)
        return false;
    if (p->start.is_free_threaded)
        return check_result_set(f, CHECK_LIMITED, "use the same Python with the GIL",
                                "stacks have no Python frames: Python 3.%u is free-threaded",
                                minor);
    if (minor < KNOWN_PYTHON_FIRST || minor > KNOWN_PYTHON_LAST)
        return check_result_set(f, CHECK_LIMITED, "use one of these, for its frames",
                                "stacks have no Python frames: Python 3.%u is not known "
                                "(" KNOWN_PYTHON_TEXT " are)",
                                minor);
    return check_result_set(f, CHECK_OK, NULL, "Python 3.%u: stacks have its frames", minor);
}

bool check_torch(const struct patient *p, struct check_result *f)
{
    unsigned major = 0, minor = 0;
    const char *version = p->packages.torch;
    if (!has_program(p) || !version[0])
        return false;
    if (sscanf(version, "%u.%u", &major, &minor) != 2 || major != 2 || minor < KNOWN_TORCH_FIRST ||
        minor > KNOWN_TORCH_LAST)
        return check_result_set(f, CHECK_LIMITED, "use one of these, for --pytorch=shapes",
                                "PyTorch %s (%s) is not known (" KNOWN_TORCH_TEXT " are): of its "
                                "operators there are names at most",
                                version, p->packages.folder);
    return check_result_set(f, CHECK_OK, NULL,
                            "PyTorch %s (%s): 'run --pytorch' records its operators", version,
                            p->packages.folder);
}
