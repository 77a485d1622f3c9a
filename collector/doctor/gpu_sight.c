/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/gpu_sight.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "doctor/aside.h"

#define GPU_SIGHT_SECONDS 20
#define CUPTI_SUCCESS     0
#define CUPTI_HELD        39 /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */

/* As the library asks for them; the types are those of inject/cuda and inject/cupti. */
typedef int init_fn(unsigned flags);
typedef int number_fn(int *number);
typedef int error_name_fn(int result, const char **name);
typedef int cupti_version_fn(uint32_t *version);
typedef int cupti_subscribe_fn(void **subscriber, void *callback, void *data);
typedef int cupti_text_fn(int result, const char **text);

struct question {
    const struct cupti_places *places;
    const char *setting;
};

static void *function(void *library, const char *name)
{
    return dlsym(library, name);
}

static void path_of(void *address, char path[static CUPTI_PATH_BYTES_MAX])
{
    Dl_info info;
    if (dladdr(address, &info) && info.dli_fname)
        snprintf(path, CUPTI_PATH_BYTES_MAX, "%s", info.dli_fname);
}

__attribute__((format(printf, 2, 3))) static void say_why(struct gpu_sight *s, const char *format,
                                                          ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(s->reason, sizeof s->reason, format, list);
    va_end(list);
}

static bool ask_driver(struct gpu_sight *s)
{
    say_why(s, "libcuda.so.1 crashes when it is loaded");
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        say_why(s, "%s", why ? why : "libcuda.so.1 cannot be loaded");
        return false;
    }
    init_fn *init = (init_fn *)function(library, "cuInit");
    number_fn *version = (number_fn *)function(library, "cuDriverGetVersion");
    number_fn *count = (number_fn *)function(library, "cuDeviceGetCount");
    error_name_fn *error_name = (error_name_fn *)function(library, "cuGetErrorName");
    if (!init || !version || !count) {
        say_why(s, "libcuda.so.1 is a stub without cuInit");
        return false;
    }
    path_of((void *)init, s->driver);
    s->answer = GPU_NO_START;
    say_why(s, "cuInit did not return");
    if (version(&s->driver_version) != 0)
        s->driver_version = 0;
    int result = init(0);
    if (result != 0) {
        const char *name = NULL;
        if (error_name)
            error_name(result, &name);
        say_why(s, "cuInit fails with %d (%s)", result, name ? name : "an unknown error");
        return false;
    }
    if (count(&s->device_count) != 0)
        s->device_count = 0;
    return true;
}

/* Never called: nothing is enabled. */
static void on_callback(void)
{
}

/* The first that works is taken, as the library does; one that is held ends the search, too. */
static bool try_cupti(void *context, const char *name, enum cupti_place place)
{
    struct gpu_sight *s = context;
    uint32_t version = 0;
    void *subscriber = NULL, *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const char *why = library ? NULL : dlerror();
    if (!library) {
        if (place != CUPTI_PLACE_SONAME && !s->cupti[0])
            say_why(s, "%s", why ? why : name);
        return false;
    }
    cupti_version_fn *get_version = (cupti_version_fn *)function(library, "cuptiGetVersion");
    cupti_subscribe_fn *subscribe = (cupti_subscribe_fn *)function(library, "cuptiSubscribe");
    cupti_text_fn *result_text = (cupti_text_fn *)function(library, "cuptiGetResultString");
    if (!get_version || !subscribe || !function(library, "cuptiActivityEnable")) {
        say_why(s, "%s is no libcupti", name);
        return false;
    }
    path_of((void *)get_version, s->cupti);
    say_why(s, "%s crashes, or does not answer", s->cupti);
    int result = get_version(&version);
    if (result == CUPTI_SUCCESS)
        result = subscribe(&subscriber, (void *)on_callback, NULL);
    s->answer = result == CUPTI_SUCCESS ? GPU_WORKS
                : result == CUPTI_HELD  ? GPU_CUPTI_HELD
                                        : GPU_NO_CUPTI;
    if (result_text && result_text(result, &why) != 0)
        why = NULL;
    say_why(s, "%.*s does not work with this driver: error %d (%s)", SIGHT_TEXT_BYTES / 2, s->cupti,
            result, why ? why : "unknown");
    if (s->answer == GPU_NO_CUPTI && !s->refused[0])
        snprintf(s->refused, sizeof s->refused, "%s", s->cupti);
    return s->answer != GPU_NO_CUPTI;
}

static void ask(void *result, void *context)
{
    struct gpu_sight *s = result;
    const struct question *question = context;
    struct cupti_places places = *question->places;
    if (!ask_driver(s))
        return;
    s->answer = GPU_IN_QUESTION;
    say_why(s, "libcupti is not found");
    places.driver_major = (unsigned)s->driver_version / 1000;
    bool found = question->setting[0] ? try_cupti(s, question->setting, CUPTI_PLACE_FILE)
                                      : cupti_places_each(&places, try_cupti, s);
    if (!found)
        s->answer = GPU_NO_CUPTI;
}

void gpu_sight_take(struct gpu_sight *sight, const struct cupti_places *places, const char *setting)
{
    struct question question = {places, setting};
    *sight = (struct gpu_sight){.answer = GPU_NO_LIBRARY, .reason = "no process could be started"};
    aside_run(ask, sight, sizeof *sight, &question, GPU_SIGHT_SECONDS);
}
