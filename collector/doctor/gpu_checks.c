/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of CUDA's driver, CUPTI, other CUPTI clients, and NVML. A child process loads the
 * libraries: without a driver some libcupti crash at any call, a driver may be slow, and neither
 * can be unloaded.
 */
#include "base/file_at.h"
#include "base/workers.h"
#include "doctor/checks.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "nvml_results.h"

#define GPU_PROBE_SECONDS  20
#define NVML_SECONDS       10
#define CUPTI_SUCCESS      0
#define CUPTI_HELD         39 /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
#define NVML_SONAME        "libnvidia-ml.so.1"
#define NVML_VERSION_BYTES 80
#define LINE_BYTES         256

/* The functions that the library looks up; types as in inject/cuda and inject/cupti. */
typedef int init_fn(unsigned flags);
typedef int number_fn(int *number);
typedef int error_name_fn(int result, const char **name);
typedef int cupti_version_fn(uint32_t *version);
typedef int cupti_subscribe_fn(void **subscriber, void *callback, void *data);
typedef int cupti_text_fn(int result, const char **text);

static void path_of(void *address, char path[static CUPTI_PATH_BYTES_MAX])
{
    Dl_info info;
    if (dladdr(address, &info) && info.dli_fname)
        snprintf(path, CUPTI_PATH_BYTES_MAX, "%s", info.dli_fname);
}

/* Writes the reason. Always returns false. */
__attribute__((format(printf, 2, 3))) static bool say_why(char reason[static KNOWN_TEXT_BYTES],
                                                          const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(reason, KNOWN_TEXT_BYTES, format, list);
    va_end(list);
    return false;
}

static bool ask_driver(struct gpu_probe *s)
{
    say_why(s->reason, "libcuda.so.1 crashes when it is loaded");
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return say_why(s->reason, "%s", dlerror());
    init_fn *init = (init_fn *)dlsym(library, "cuInit");
    number_fn *version = (number_fn *)dlsym(library, "cuDriverGetVersion");
    number_fn *count = (number_fn *)dlsym(library, "cuDeviceGetCount");
    error_name_fn *error_name = (error_name_fn *)dlsym(library, "cuGetErrorName");
    if (!init || !version || !count)
        return say_why(s->reason, "libcuda.so.1 is a stub without cuInit");
    path_of((void *)init, s->driver);
    s->answer = GPU_NO_START;
    say_why(s->reason, "cuInit did not return");
    if (version(&s->driver_version) != 0)
        s->driver_version = 0;
    int result = init(0);
    if (result != 0) {
        const char *name = NULL;
        if (error_name)
            error_name(result, &name);
        return say_why(s->reason, "cuInit fails with %d (%s)", result,
                       name ? name : "an unknown error");
    }
    if (count(&s->device_count) != 0)
        s->device_count = 0;
    return true;
}

/* Never called, since nothing is enabled. */
static void on_callback(void)
{
}

/* Tries a libcupti. The first that works, or that another client holds, ends the search. */
static bool try_cupti(void *context, const char *name, enum cupti_place place)
{
    struct gpu_probe *s = context;
    uint32_t version = 0;
    void *subscriber = NULL, *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const char *why = NULL;
    if (!library)
        return place != CUPTI_PLACE_SONAME && !s->cupti[0] && say_why(s->reason, "%s", dlerror());
    cupti_version_fn *get_version = (cupti_version_fn *)dlsym(library, "cuptiGetVersion");
    cupti_subscribe_fn *subscribe = (cupti_subscribe_fn *)dlsym(library, "cuptiSubscribe");
    cupti_text_fn *result_text = (cupti_text_fn *)dlsym(library, "cuptiGetResultString");
    if (!get_version || !subscribe || !dlsym(library, "cuptiActivityEnable"))
        return say_why(s->reason, "%s is not a libcupti", name);
    path_of((void *)get_version, s->cupti);
    say_why(s->reason, "%s crashes, or does not answer", s->cupti);
    int result = get_version(&version);
    if (result == CUPTI_SUCCESS)
        result = subscribe(&subscriber, (void *)on_callback, NULL);
    s->answer = result == CUPTI_SUCCESS ? GPU_WORKS
                : result == CUPTI_HELD  ? GPU_CUPTI_HELD
                                        : GPU_NO_CUPTI;
    if (result_text && result_text(result, &why) != 0)
        why = NULL;
    say_why(s->reason, "%.*s does not work with this driver: error %d (%s)", KNOWN_TEXT_BYTES / 2,
            s->cupti, result, why ? why : "unknown");
    if (s->answer == GPU_NO_CUPTI && !s->refused[0])
        snprintf(s->refused, sizeof s->refused, "%s", s->cupti);
    return s->answer != GPU_NO_CUPTI;
}

static void ask_gpu(void *result, void *context)
{
    struct gpu_probe *s = result;
    const struct target *p = context;
    const char *setting = p->settings.texts[SETTING_CUPTI]; /* it precedes all other places */
    struct cupti_places places = p->start.places;
    if (!ask_driver(s))
        return;
    s->answer = GPU_NO_CUPTI;
    say_why(s->reason, "libcupti was not found");
    places.driver_major = (unsigned)s->driver_version / 1000;
    if (setting[0])
        try_cupti(s, setting, CUPTI_PLACE_FILE);
    else
        cupti_places_each(&places, try_cupti, s);
}

void gpu_probe_take(struct target *p)
{
    p->gpu = (struct gpu_probe){.answer = GPU_NO_LIBRARY, .reason = "cannot start a process"};
    aside_run(ask_gpu, &p->gpu, sizeof p->gpu, p, GPU_PROBE_SECONDS);
}

/* Finds the version of the kernel module, "580.65.06" in "NVRM version: NVIDIA UNIX x86_64 Kernel
 * Module 580.65.06 ..." or the open module's line; "": not known. */
static void module_version(const struct target *p, char version[static LINE_BYTES])
{
    char path[PATH_MAX], line[LINE_BYTES], *rest = NULL;
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/version", p->root);
    version[0] = '\0';
    if (file_first_line(path, line, sizeof line))
        for (char *word = strtok_r(line, " \t\n", &rest); word && !version[0];
             word = strtok_r(NULL, " \t\n", &rest))
            if (word[strspn(word, "0123456789.")] == '\0' && strchr(word, '.'))
                snprintf(version, LINE_BYTES, ", module %s", word);
}

bool check_driver(const struct target *p, struct check_result *f)
{
    const struct gpu_probe *g = &p->gpu;
    char module[LINE_BYTES];
    module_version(p, module);
    switch (g->answer) {
    case GPU_NO_LIBRARY:
        return broken(f,
                      module[0] ? "install the driver's libraries; in a container: --gpus all"
                                : "install NVIDIA's driver; in a container: --gpus all",
                      "no CUDA driver: %s%s", g->reason, module);
    case GPU_NO_START:
        return broken(f, "repair the driver until nvidia-smi lists a GPU here",
                      "CUDA does not start: %s (%s%s)", g->reason, g->driver, module);
    default: break;
    }
    if (g->device_count == 0)
        return broken(f, "make a GPU visible (CUDA_VISIBLE_DEVICES)",
                      "CUDA starts but sees no GPU (%s%s)", g->driver, module);
    return fine(f, "CUDA %d.%d, %d GPU%s (%s%s)", g->driver_version / 1000,
                g->driver_version % 1000 / 10, g->device_count,
                plural_end((uint64_t)g->device_count), g->driver, module);
}

bool check_cupti(const struct target *p, struct check_result *f)
{
    const struct gpu_probe *g = &p->gpu;
    if (!p->settings.numbers[SETTING_GPU])
        return limited(f, "unset GPUPROF_GPU", "no GPU rows: GPUPROF_GPU turns them off");
    switch (g->answer) {
    case GPU_NO_LIBRARY:
    case GPU_NO_START: return false; /* CUPTI is tried only if CUDA starts */
    case GPU_NO_CUPTI:
        return limited(f,
                       "set GPUPROF_CUPTI to a libcupti no newer than the driver (pip install "
                       "nvidia-cuda-cupti-cu12, or a toolkit's extras/CUPTI)",
                       "no GPU rows, host rows only: %s", g->reason);
    case GPU_CUPTI_HELD:
        return limited(f, "turn the other profiler off",
                       "no GPU rows, host rows only: another client uses CUPTI (%s)", g->cupti);
    case GPU_WORKS: break;
    }
    return fine(f, "%s fits the driver%s%s", g->cupti, g->refused[0] ? ", which refuses " : "",
                g->refused);
}

/* Finds other tools that will be loaded: they hold CUPTI, or change how it works. */
bool check_client(const struct target *p, struct check_result *f)
{
    static const char *const variables[] = {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"};
    static const char *const tools[] = {"libToolsInjection", "libnvperf", "libscorep", "libtau",
                                        "libextrae",         "libhpcrun"};
    const char *preload = getenv("LD_PRELOAD");
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *path = getenv(variables[i]);
        if (path && *path && strcmp(path, p->library) != 0)
            return limited(f,
                           "unset it, unless you want both tools: one of them may record nothing",
                           "%s names another tool, %s", variables[i], path);
    }
    for (size_t i = 0; preload && i < sizeof tools / sizeof tools[0]; i++)
        if (strstr(preload, tools[i]))
            return limited(f, "record with one profiler at a time",
                           "LD_PRELOAD names another profiler: %s", preload);
    return fine(f, "the environment names no other profiler");
}

/* Reports who may read hardware counters, which other tools need and gpuprof does not. */
bool check_counters(const struct target *p, struct check_result *f)
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
           fine(f,
                closed
                    ? "only administrators may read the GPU's hardware counters; gpuprof does not "
                      "need them"
                    : "all users may read the GPU's hardware counters; gpuprof does not need them");
}

struct nvml_probe {
    char reason[KNOWN_TEXT_BYTES]; /* "": it works */
    char version[NVML_VERSION_BYTES];
    unsigned device_count;
    unsigned readable_count; /* devices with a readable power */
    int error;               /* error of the last other device */
};

/* Types as in inject/device. */
static void ask_nvml(void *result, void *context)
{
    struct nvml_probe *s = result;
    unsigned milliwatts;
    (void)context;
    void *library = dlopen(NVML_SONAME, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        say_why(s->reason, "%s", dlerror());
        return;
    }
    int (*init)(void) = (int (*)(void))dlsym(library, "nvmlInit_v2");
    int (*version)(char *, unsigned) =
        (int (*)(char *, unsigned))dlsym(library, "nvmlSystemGetDriverVersion");
    int (*count)(unsigned *) = (int (*)(unsigned *))dlsym(library, "nvmlDeviceGetCount_v2");
    int (*handle)(unsigned, void **) =
        (int (*)(unsigned, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    int (*power)(void *, unsigned *) =
        (int (*)(void *, unsigned *))dlsym(library, "nvmlDeviceGetPowerUsage");
    if (!init || !version || !count || !handle || !power) {
        say_why(s->reason, NVML_SONAME " is a stub");
        return;
    }
    const char *function = "nvmlInit_v2";
    int error = init();
    if (error == 0) {
        if (version(s->version, sizeof s->version) != 0)
            snprintf(s->version, sizeof s->version, "of unknown version");
        function = "nvmlDeviceGetCount_v2";
        error = count(&s->device_count);
    }
    if (error) {
        say_why(s->reason, "%s fails with %d (%s)", function, error, nvml_result_text(error));
        return;
    }
    for (unsigned i = 0; i < s->device_count; i++) {
        void *device = NULL;
        error = handle(i, &device);
        if (error == 0)
            error = power(device, &milliwatts);
        s->error = error ? error : s->error;
        s->readable_count += error == 0;
    }
    s->reason[0] = '\0';
}

bool check_device(const struct target *p, struct check_result *f)
{
    struct nvml_probe s = {.reason = NVML_SONAME " crashes, or does not answer"};
    if (!p->settings.numbers[SETTING_DEVICE])
        return false;
    aside_run(ask_nvml, &s, sizeof s, NULL, NVML_SECONDS);
    const char *plural = plural_end(s.device_count);
    if (s.reason[0] || s.device_count == 0)
        return limited(f,
                       "repair the driver until nvidia-smi lists a GPU here; in a container, "
                       "NVIDIA_DRIVER_CAPABILITIES must include 'utility'",
                       "no device counters: %s", s.reason[0] ? s.reason : "NVML sees no device");
    if (s.readable_count < s.device_count)
        return limited(f, "run nvidia-smi -q -d POWER to see why; virtual GPUs report no power",
                       "NVML reports the power of %u of %u device%s (error %d: %s; driver %s)",
                       s.readable_count, s.device_count, plural, s.error, nvml_result_text(s.error),
                       s.version);
    return fine(f, "NVML reports the power of %u device%s (driver %s)", s.device_count, plural,
                s.version);
}
