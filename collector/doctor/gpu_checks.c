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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "nvml_results.h"

#define GPU_PROBE_SECONDS 20
#define NVML_SECONDS      10
#define CUPTI_HELD        39 /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
#define NVML_SONAME       "libnvidia-ml.so.1"
#define LINE_BYTES        256
#define REPAIR_ADVICE     "repair the driver until nvidia-smi lists a GPU here"
#define CUPTI_ADVICE                                                                               \
    "set GPUPROF_CUPTI to a libcupti no newer than the driver (pip install "                       \
    "nvidia-cuda-cupti-cu12, or a toolkit's extras/CUPTI)"
#define no_cupti(f, ...) limited(f, CUPTI_ADVICE, "no GPU rows, host rows only: " __VA_ARGS__)
#define no_power(f, ...)                                                                           \
    limited(f,                                                                                     \
            REPAIR_ADVICE "; in a container, NVIDIA_DRIVER_CAPABILITIES must include 'utility'",   \
            "no device counters: " __VA_ARGS__)

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

/* Returns whether CUDA starts. The result is set before each step that may crash or hang. */
static bool ask_driver(struct gpu_probe *s)
{
    struct check_result *f = &s->driver;
    const char *install = "install NVIDIA's driver; in a container: --gpus all";
    char path[CUPTI_PATH_BYTES_MAX] = "";
    int devices = 0;
    broken(f, install, "no CUDA driver: libcuda.so.1 crashes when it is loaded%s", s->module);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return !broken(f, install, "no CUDA driver: %s%s", dlerror(), s->module);
    init_fn *init = (init_fn *)dlsym(library, "cuInit");
    number_fn *version = (number_fn *)dlsym(library, "cuDriverGetVersion");
    number_fn *count = (number_fn *)dlsym(library, "cuDeviceGetCount");
    error_name_fn *error_name = (error_name_fn *)dlsym(library, "cuGetErrorName");
    if (!init || !version || !count)
        return !broken(f, install, "no CUDA driver: libcuda.so.1 is a stub without cuInit%s",
                       s->module);
    path_of((void *)init, path);
    broken(f, REPAIR_ADVICE, "CUDA does not start: cuInit did not return (%s%s)", path, s->module);
    if (version(&s->driver_version) != 0)
        s->driver_version = 0;
    int result = init(0);
    if (result != 0) {
        const char *name = NULL;
        if (error_name)
            error_name(result, &name);
        return !broken(f, REPAIR_ADVICE, "CUDA does not start: cuInit fails with %d (%s) (%s%s)",
                       result, name ? name : "an unknown error", path, s->module);
    }
    if (count(&devices) != 0 || devices == 0)
        return broken(f, "make a GPU visible (CUDA_VISIBLE_DEVICES)",
                      "CUDA starts but sees no GPU (%s%s)", path, s->module);
    return fine(f, "CUDA %d.%d, %d GPU%s (%s%s)", s->driver_version / 1000,
                s->driver_version % 1000 / 10, devices, plural_end((uint64_t)devices), path,
                s->module);
}

/* Never called, since nothing is enabled. */
static void on_callback(void)
{
}

/* Tries a libcupti. The first that works, or that another client holds, ends the search. */
static bool try_cupti(void *context, const char *name, enum cupti_place place)
{
    struct gpu_probe *s = context;
    struct check_result *f = &s->cupti;
    char path[CUPTI_PATH_BYTES_MAX] = "";
    uint32_t version = 0;
    void *subscriber = NULL, *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const char *why = NULL;
    if (!library)
        return place != CUPTI_PLACE_SONAME && !s->refused[0] && !no_cupti(f, "%s", dlerror());
    cupti_version_fn *get_version = (cupti_version_fn *)dlsym(library, "cuptiGetVersion");
    cupti_subscribe_fn *subscribe = (cupti_subscribe_fn *)dlsym(library, "cuptiSubscribe");
    cupti_text_fn *result_text = (cupti_text_fn *)dlsym(library, "cuptiGetResultString");
    if (!get_version || !subscribe || !dlsym(library, "cuptiActivityEnable"))
        return !no_cupti(f, "%s is not a libcupti", name);
    path_of((void *)get_version, path);
    no_cupti(f, "%s crashes, or does not answer", path);
    int result = get_version(&version);
    if (result == 0)
        result = subscribe(&subscriber, (void *)on_callback, NULL);
    if (result == 0)
        return fine(f, "%s fits the driver%s%s", path, s->refused[0] ? ", which refuses " : "",
                    s->refused);
    if (result == CUPTI_HELD)
        return limited(f, "turn the other profiler off",
                       "no GPU rows, host rows only: another client uses CUPTI (%s)", path);
    if (result_text && result_text(result, &why) != 0)
        why = NULL;
    no_cupti(f, "%.400s does not work with this driver: error %d (%s)", path, result,
             why ? why : "unknown");
    if (!s->refused[0])
        snprintf(s->refused, sizeof s->refused, "%s", path);
    return false;
}

static void ask_gpu(void *result, void *context)
{
    struct gpu_probe *s = result;
    const struct target *p = context;
    const char *setting = p->settings.texts[SETTING_CUPTI]; /* it precedes all other places */
    struct cupti_places places = p->start.places;
    if (!ask_driver(s)) /* CUPTI is tried only if CUDA starts */
        return;
    no_cupti(&s->cupti, "libcupti was not found");
    places.driver_major = (unsigned)s->driver_version / 1000;
    if (setting[0])
        try_cupti(s, setting, CUPTI_PLACE_FILE);
    else
        cupti_places_each(&places, try_cupti, s);
}

/* Finds the version of the kernel module, "580.65.06" in "NVRM version: NVIDIA UNIX x86_64 Kernel
 * Module 580.65.06 ..." or the open module's line; "": not known. */
static void module_version(const struct target *p, char version[static GPU_MODULE_BYTES])
{
    char path[PATH_MAX], line[LINE_BYTES], *rest = NULL;
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/version", p->root);
    if (file_first_line(path, line, sizeof line))
        for (char *word = strtok_r(line, " \t\n", &rest); word && !version[0];
             word = strtok_r(NULL, " \t\n", &rest))
            if (word[strspn(word, "0123456789.")] == '\0' && strchr(word, '.'))
                snprintf(version, GPU_MODULE_BYTES, ", module %s", word);
}

void gpu_probe_take(struct target *p)
{
    module_version(p, p->gpu.module);
    broken(&p->gpu.driver, REPAIR_ADVICE, "CUDA does not start: cannot start a process");
    aside_run(ask_gpu, &p->gpu, sizeof p->gpu, p, GPU_PROBE_SECONDS);
}

bool check_driver(const struct target *p, struct check_result *f)
{
    *f = p->gpu.driver;
    return true;
}

bool check_cupti(const struct target *p, struct check_result *f)
{
    if (!p->settings.numbers[SETTING_GPU])
        return limited(f, "unset GPUPROF_GPU", "no GPU rows: GPUPROF_GPU turns them off");
    *f = p->gpu.cupti;
    return f->text[0];
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

/* Types as in inject/device. */
static void ask_nvml(void *answer, void *context)
{
    struct check_result *f = answer;
    char driver[LINE_BYTES] = "of unknown version";
    unsigned devices = 0, readable = 0, milliwatts;
    int last_error = 0;
    (void)context;
    void *library = dlopen(NVML_SONAME, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        no_power(f, "%s", dlerror());
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
        no_power(f, NVML_SONAME " is a stub");
        return;
    }
    int begun = init(), error = begun ? begun : count(&devices);
    if (error) {
        no_power(f, "%s fails with %d (%s)", begun ? "nvmlInit_v2" : "nvmlDeviceGetCount_v2", error,
                 nvml_result_text(error));
        return;
    }
    version(driver, sizeof driver);
    for (unsigned i = 0; i < devices; i++) {
        void *device = NULL;
        error = handle(i, &device);
        error = error ? error : power(device, &milliwatts);
        last_error = error ? error : last_error;
        readable += error == 0;
    }
    if (!devices)
        no_power(f, "NVML sees no device");
    else if (readable < devices)
        limited(f, "run nvidia-smi -q -d POWER to see why; virtual GPUs report no power",
                "NVML reports the power of %u of %u device%s (error %d: %s; driver %s)", readable,
                devices, plural_end(devices), last_error, nvml_result_text(last_error), driver);
    else
        fine(f, "NVML reports the power of %u device%s (driver %s)", devices, plural_end(devices),
             driver);
}

bool check_device(const struct target *p, struct check_result *f)
{
    if (!p->settings.numbers[SETTING_DEVICE])
        return false;
    no_power(f, NVML_SONAME " crashes, or does not answer");
    aside_run(ask_nvml, f, sizeof *f, NULL, NVML_SECONDS);
    return true;
}
