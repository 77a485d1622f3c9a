/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of `gpuprof doctor`: one function each, which examines one thing and says what it
 * means for a recording. They change nothing, and do not depend on each other.
 */
#ifndef GPUPROF_COLLECTOR_CHECKS_H
#define GPUPROF_COLLECTOR_CHECKS_H

#include <limits.h>
#include <stdbool.h>

#include "cupti_places.h"
#include "run/program.h"
#include "settings.h"

#define CHECK_TEXT_BYTES    768
#define GPU_MODULE_BYTES    80
#define START_SECONDS       10
#define START_NAME_BYTES    256
#define TORCH_VERSION_BYTES 64

enum check_state {
    CHECK_OK,
    CHECK_LIMITED, /* something will be missing from recordings */
    CHECK_BROKEN,  /* nothing will be recorded, or nothing that matters */
};

/* Result of a check. */
struct check_result {
    enum check_state state;
    char text[CHECK_TEXT_BYTES];
    char advice[CHECK_TEXT_BYTES]; /* one action; "" with CHECK_OK */
};

/* Prefix of /proc, /dev and other system paths, in tests of the checks. */
#define DOCTOR_ROOT_VARIABLE "GPUPROF_DOCTOR_ROOT"

/* Answers of CUDA and CUPTI on this machine. */
struct gpu_probe {
    struct check_result driver, cupti;  /* cupti has no text if it was not tried */
    char module[GPU_MODULE_BYTES];      /* ", module 580.65.06"; "": not known */
    int driver_version;                 /* 12040: CUDA 12.4; 0: not known */
    char refused[CUPTI_PATH_BYTES_MAX]; /* path of the first that the driver refused; "": none */
};

/* Whether libgpuprof.so is loaded in the program, when started like `gpuprof run` does. */
struct start_probe {
    struct check_result preload;
    bool is_loaded;
    char path[PATH_MAX];        /* path of the last examined program */
    char via[START_NAME_BYTES]; /* programs that started it, in order: "sh, env"; "": none */
    unsigned python_minor; /* minor version of a CPython 3, by the names of its files; else 0 */
    struct cupti_places places; /* CUDA libraries that it has loaded */
};

/* Facts that are collected once before the checks, as some of it takes a while. */
struct target {
    const char *root; /* "" or DOCTOR_ROOT_VARIABLE's */
    struct settings settings;
    char wrong_setting[CHECK_TEXT_BYTES]; /* first setting that the library rejects; "": none */
    char library[ENVIRONMENT_PATH_BYTES];
    char library_reason[ENVIRONMENT_REASON_BYTES]; /* "": it can be preloaded */
    struct gpu_probe gpu;
    char **argv;    /* program and arguments; NULL: none, so all below is empty */
    int find_error; /* errno of finding the program */
    struct program program;
    struct start_probe start;
    char torch[TORCH_VERSION_BYTES]; /* PyTorch's version, from its version.py; "": none */
    char torch_folder[PATH_MAX];     /* folder of that */
};

/* A check. False: it does not apply (for example, the program is not Python). */
typedef bool check_fn(const struct target *p, struct check_result *f);

/* Fill the result and return true, as a check that applies does. (doctor.c) */
bool check_result_set(struct check_result *f, enum check_state state, const char *advice,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));
#define fine(f, ...)            check_result_set(f, CHECK_OK, NULL, __VA_ARGS__)
#define limited(f, advice, ...) check_result_set(f, CHECK_LIMITED, advice, __VA_ARGS__)
#define broken(f, advice, ...)  check_result_set(f, CHECK_BROKEN, advice, __VA_ARGS__)

/* checks.c; the last three do not apply without --sample, --gaps and --os */
check_fn check_library, check_settings, check_kernel, check_libc, check_memory, check_live_folder,
    check_container, check_sample, check_gaps, check_os;

/* gpu_checks.c; check_device does not apply without --device */
check_fn check_driver, check_cupti, check_client, check_counters, check_device;
/* Takes at most 20 seconds. */
void gpu_probe_take(struct target *p);

/* They do not apply without a program */
check_fn check_program, check_preload, check_runtime, check_sanitizer, check_python, check_torch;
/* Sets *minor if it is the file name of a CPython 3 or its library: "libpython3.13t.so.1.0". */
void program_python_version(const char *name, unsigned *minor);
/* Whether it is a Python, or its file names libcuda or libcudart. */
bool program_uses_cuda(const char *path);
/* Finds PyTorch and the libcudart of the Python: the program, that of its first line, or as seen.
 */
void program_packages_find(struct target *p);

/* start_probe.c: stops the program with ptrace at its first system call after the loader's,
 * examines and ends it: it has done nothing. Programs that start it (a shell script, env, nice ...)
 * do run up to there, since only they know what they start. Takes at most START_SECONDS. */
void start_probe_take(struct target *p);

#endif
