/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of `gpuprof doctor`: one function each, which looks at one thing and says what it
 * means for a recording. They change nothing, and none depends on another's answer.
 */
#ifndef GPUPROF_COLLECTOR_CHECKS_H
#define GPUPROF_COLLECTOR_CHECKS_H

#include <limits.h>
#include <stdbool.h>

#include "doctor/gpu_sight.h"
#include "doctor/program_text.h"
#include "doctor/start_sight.h"
#include "run/environment.h"
#include "run/program.h"
#include "settings.h"

#define CHECK_TEXT_BYTES 768

enum check_state {
    CHECK_OK,
    CHECK_LIMITED, /* something of what could be recorded will be missing */
    CHECK_BROKEN,  /* nothing will be recorded, or nothing that the program is about */
};

/* What a check has found. */
struct check_result {
    enum check_state state;
    char text[CHECK_TEXT_BYTES];
    char advice[CHECK_TEXT_BYTES]; /* one thing to do; "" with CHECK_OK */
};

/* Stands before /proc, /dev and other paths of the machine, in the tests of the checks. */
#define DOCTOR_ROOT_VARIABLE "GPUPROF_DOCTOR_ROOT"

/* What is known before the checks: gathered once, since some of it takes a while. */
struct patient {
    const char *root; /* "" or DOCTOR_ROOT_VARIABLE's */
    struct settings settings;
    char wrong_setting[CHECK_TEXT_BYTES]; /* the first that the library would refuse; "": none */
    char library[ENVIRONMENT_PATH_BYTES];
    char library_reason[ENVIRONMENT_REASON_BYTES]; /* "": it can be preloaded */
    struct gpu_sight gpu;
    char **argv;    /* the program and its arguments; NULL: none was named, as in all below */
    int find_error; /* of the program, an errno */
    struct program program;
    struct start_sight start;
    struct python_packages packages;
};

/* False: it has nothing to say here (the program is no Python, say). */
typedef bool check_fn(const struct patient *p, struct check_result *f);

/* Fills it: `advice` is NULL with CHECK_OK. Always true, as a check answers that has something to
 * say. (check_result.c) */
bool check_result_set(struct check_result *f, enum check_state state, const char *advice,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* machine_checks.c */
check_fn check_library, check_settings, check_kernel, check_libc, check_memory, check_live_folder,
    check_container;
/* gpu_checks.c */
check_fn check_driver, check_cupti, check_client, check_counters;
/* nvml_check.c: nothing to say without --device */
check_fn check_device;
/* program_checks.c: nothing to say without a program */
check_fn check_program, check_preload, check_runtime, check_sanitizer, check_python, check_torch;

#endif
