/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of CUDA's driver, of CUPTI, and of who else wants that. */
#include "doctor/checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 256

/* The kernel module's, "580.65.06" of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06
 * ..." or of the open module's line; "": not known. */
static void module_version(const struct patient *p, char version[static LINE_BYTES])
{
    char path[PATH_MAX], line[LINE_BYTES], *rest = NULL;
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/version", p->root);
    FILE *file = fopen(path, "re");
    version[0] = '\0';
    if (file && fgets(line, sizeof line, file))
        for (char *word = strtok_r(line, " \t\n", &rest); word && !version[0];
             word = strtok_r(NULL, " \t\n", &rest))
            if (word[strspn(word, "0123456789.")] == '\0' && strchr(word, '.'))
                snprintf(version, LINE_BYTES, ", module %s", word);
    if (file)
        fclose(file);
}

bool check_driver(const struct patient *p, struct check_result *f)
{
    const struct gpu_sight *g = &p->gpu;
    char module[LINE_BYTES];
    module_version(p, module);
    switch (g->answer) {
    case GPU_NO_LIBRARY:
        return check_result_set(f, CHECK_BROKEN,
                                module[0]
                                    ? "install the driver's libraries; in a container: --gpus all"
                                    : "install NVIDIA's driver; in a container: --gpus all",
                                "no CUDA driver: %s%s", g->reason, module);
    case GPU_NO_START:
        return check_result_set(f, CHECK_BROKEN, "make nvidia-smi list a GPU here; then try again",
                                "CUDA does not start: %s (%s%s)", g->reason, g->driver, module);
    default: break;
    }
    if (g->device_count == 0)
        return check_result_set(f, CHECK_BROKEN, "make a GPU visible (CUDA_VISIBLE_DEVICES)",
                                "CUDA starts, and sees no GPU (%s%s)", g->driver, module);
    return check_result_set(f, CHECK_OK, NULL, "CUDA %d.%d, %d GPU%s (%s%s)",
                            g->driver_version / 1000, g->driver_version % 1000 / 10,
                            g->device_count, g->device_count == 1 ? "" : "s", g->driver, module);
}

bool check_cupti(const struct patient *p, struct check_result *f)
{
    const struct gpu_sight *g = &p->gpu;
    if (!p->settings.numbers[SETTING_GPU])
        return check_result_set(f, CHECK_LIMITED, "unset GPUPROF_GPU",
                                "no GPU rows: turned off by GPUPROF_GPU");
    switch (g->answer) {
    case GPU_NO_LIBRARY:
    case GPU_NO_START: return false; /* it is asked where CUDA starts only */
    case GPU_IN_QUESTION:
    case GPU_NO_CUPTI:
        return check_result_set(
            f, CHECK_LIMITED,
            "name one of the driver's CUDA version or an older one by GPUPROF_CUPTI "
            "(pip install nvidia-cuda-cupti-cu12, or a toolkit's extras/CUPTI)",
            "no GPU rows, host rows only: %s", g->reason);
    case GPU_CUPTI_HELD:
        return check_result_set(f, CHECK_LIMITED, "turn the other profiler off",
                                "no GPU rows, host rows only: another client has CUPTI (%s)",
                                g->cupti);
    case GPU_WORKS: break;
    }
    return check_result_set(f, CHECK_OK, NULL, "%s fits the driver%s%s", g->cupti,
                            g->refused[0] ? ", which refuses " : "", g->refused);
}

/* Who else is told to come into the program: they hold CUPTI, or make of it what they want. */
bool check_client(const struct patient *p, struct check_result *f)
{
    static const char *const variables[] = {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"};
    static const char *const tools[] = {"libToolsInjection", "libnvperf", "libscorep", "libtau",
                                        "libextrae",         "libhpcrun"};
    const char *preload = getenv("LD_PRELOAD");
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *path = getenv(variables[i]);
        if (path && *path && strcmp(path, p->library) != 0)
            return check_result_set(
                f, CHECK_LIMITED,
                "unset it, unless both are wanted: one of the two may get nothing",
                "%s names another tool, %s", variables[i], path);
    }
    for (size_t i = 0; preload && i < sizeof tools / sizeof tools[0]; i++)
        if (strstr(preload, tools[i]))
            return check_result_set(f, CHECK_LIMITED, "record with one profiler at a time",
                                    "LD_PRELOAD names another profiler: %s", preload);
    return check_result_set(f, CHECK_OK, NULL, "the environment names no other profiler");
}

/* gpuprof records none of them; who reads this may want to know whether others could. */
bool check_counters(const struct patient *p, struct check_result *f)
{
    char path[PATH_MAX], line[LINE_BYTES];
    int closed = -1;
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/params", p->root);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "RmProfilingAdminOnly: %d", &closed);
    if (file)
        fclose(file);
    return closed >= 0 &&
           check_result_set(
               f, CHECK_OK, NULL,
               closed ? "the GPU's hardware counters are for administrators only; gpuprof "
                        "needs none"
                      : "the GPU's hardware counters are open to all; gpuprof needs none");
}
