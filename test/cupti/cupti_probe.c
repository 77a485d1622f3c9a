/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and loads a libcupti as the library does, and prints what it learns, one "key value" a
 * line. Exits with 3 after "reason ..." if there is none.
 *
 *   cupti_probe [open=FILE]... [setting=FILE] [home=FOLDER] [home2=FOLDER] [refused=FILE]
 *               [driver=MAJOR] [start]
 *
 * open: loaded with RTLD_LOCAL before the search. start: also calls what needs a driver, and prints
 * the results.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cupti/cupti_callback_map.h"
#include "cupti/cupti_library.h"

static bool open_file(const char *path)
{
    if (dlopen(path, RTLD_NOW | RTLD_LOCAL))
        return true;
    printf("open %s\n", dlerror());
    return false;
}

static bool read_arguments(int count, char **arguments, struct cupti_search *search, bool *start)
{
    for (int i = 1; i < count; i++) {
        char *value = strchr(arguments[i], '=');
        value = value ? value + 1 : arguments[i] + strlen(arguments[i]);
        if (strncmp(arguments[i], "open=", 5) == 0) {
            if (!open_file(value))
                return false;
        } else if (strncmp(arguments[i], "setting=", 8) == 0) {
            search->setting = value;
        } else if (strncmp(arguments[i], "home=", 5) == 0) {
            search->homes[0] = value;
        } else if (strncmp(arguments[i], "home2=", 6) == 0) {
            search->homes[1] = value;
        } else if (strncmp(arguments[i], "refused=", 8) == 0) {
            static char refused[1][CUPTI_PATH_BYTES_MAX];
            snprintf(refused[0], sizeof refused[0], "%s", value);
            search->refused = refused;
            search->refused_count = 1;
        } else if (strncmp(arguments[i], "driver=", 7) == 0) {
            search->driver_major = (unsigned)strtoul(value, NULL, 10);
        } else if (strcmp(arguments[i], "start") == 0) {
            *start = true;
        } else {
            return false;
        }
    }
    return true;
}

static void print_functions(const struct cupti_library *l)
{
#define CUPTI_FUNCTION(name, required, returns, params)                                            \
    printf("function %s %d\n", #name, l->name != NULL);
#include "cupti/cupti_functions.def"
}

static void print_callbacks(const struct cupti_library *l)
{
    static struct cupti_callback_map map;
    printf("callbacks %u\n", cupti_callback_map_fill(&map, l->cuptiGetCallbackName));
    for (unsigned d = 1; d < CUPTI_API_DOMAINS; d++)
        for (unsigned cbid = 0; cbid < CUPTI_CBID_MAX; cbid++) {
            int api = cupti_callback_code(&map, (CUpti_CallbackDomain)d, cbid);
            const char *name = NULL;
            l->cuptiGetCallbackName((CUpti_CallbackDomain)d, cbid, &name);
            if (name)
                printf("callback %s %u %s %s\n",
                       d == CUPTI_CB_DOMAIN_RUNTIME_API ? "runtime" : "driver", cbid, name,
                       api < 0 ? "-" : api_functions[api].symbol);
        }
}

/* A buffer as CUPTI completes it: a kernel, a copy, a set; the kernel's name is printed. */
static void print_walk(const struct cupti_library *l)
{
    static const uint32_t kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                     CUPTI_ACTIVITY_KIND_MEMCPY,
                                     CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};
    static uint64_t words[512];
    static const char *const name = "saxpy";
    uint8_t *buffer = (uint8_t *)words;
    size_t valid = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        memcpy(buffer + valid, &kinds[i], sizeof kinds[i]);
        if (kinds[i] == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            memcpy(buffer + valid + cupti_field_rows[FIELD_KERNEL_NAME].offset, &name, sizeof name);
        valid += l->sizes.bytes[kinds[i]];
    }
    struct cupti_walk walk;
    struct cupti_view view;
    int more;
    cupti_walk_init(&walk, &l->sizes, l->cuptiActivityGetNextRecord, buffer, valid);
    while ((more = cupti_walk_next(&walk, &view)) > 0) {
        uint64_t value = 0;
        cupti_field(FIELD_KERNEL_NAME, view.record, view.bytes, &value);
        printf("record %u %zu %s\n", (unsigned)view.kind, view.bytes,
               view.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ? (char *)(uintptr_t)value : "-");
    }
    printf("end %d %d\n", more, (int)walk.result);
}

static void on_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                        const void *data)
{
    (void)user;
    (void)domain;
    (void)cbid;
    (void)data;
}

static void print_start(const struct cupti_library *l)
{
    CUpti_SubscriberHandle subscriber = NULL;
    const char *text = NULL;
    CUptiResult subscribed = l->cuptiSubscribe(&subscriber, on_callback, NULL);
    l->cuptiGetResultString(subscribed, &text);
    printf("subscribe %d %s\n", (int)subscribed, text ? text : "?");
    printf("enable %d\n", (int)l->cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
}

int main(int count, char **arguments)
{
    static struct cupti_library library;
    struct cupti_search search = {.find_symbol = dlsym};
    char reason[CUPTI_REASON_BYTES_MAX];
    bool start = false;
    if (!read_arguments(count, arguments, &search, &start))
        return 2;
    errno = EDOM;
    bool found = cupti_library_load(&library, &search, reason, sizeof reason);
    printf("errno %d\n", errno == EDOM);
    printf("dlerror %s\n", dlerror() ? "left" : "none");
    if (!found) {
        printf("reason %s\n", reason);
        return 3;
    }
    printf("path %s\nversion %u\n", library.path, library.version);
    for (unsigned kind = 0; kind < CUPTI_KIND_MAX; kind++)
        if (library.sizes.bytes[kind])
            printf("size %u %u\n", kind, library.sizes.bytes[kind]);
    print_functions(&library);
    print_callbacks(&library);
    print_walk(&library);
    if (start)
        print_start(&library);
    return 0;
}
