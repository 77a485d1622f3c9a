/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of `gpuprof doctor`: one function each, which looks at one thing and says what it
 * means for a recording. They change nothing, and none depends on another's answer.
 */
#ifndef GPUPROF_COLLECTOR_CHECKS_H
#define GPUPROF_COLLECTOR_CHECKS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "cupti_places.h"
#include "run/program.h"
#include "settings.h"

#define CHECK_TEXT_BYTES    768
#define KNOWN_TEXT_BYTES    400
#define START_SECONDS       10
#define START_NAME_BYTES    256
#define TORCH_VERSION_BYTES 64

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

enum gpu_answer {
    GPU_NO_LIBRARY,  /* libcuda.so.1 is not found, or cannot be loaded */
    GPU_NO_START,    /* cuInit fails */
    GPU_IN_QUESTION, /* CUDA starts; its process ended, or hung, while CUPTI was looked for */
    GPU_NO_CUPTI,    /* none is found, or none works with the driver */
    GPU_CUPTI_HELD,  /* another client has it */
    GPU_WORKS,
};

/* What CUDA and CUPTI answer here. */
struct gpu_probe {
    enum gpu_answer answer;
    char driver[CUPTI_PATH_BYTES_MAX]; /* path of libcuda; "": none */
    int driver_version;                /* 12040: CUDA 12.4; 0: not known */
    int device_count;
    char cupti[CUPTI_PATH_BYTES_MAX];   /* path of the libcupti that was asked last; "": none */
    char refused[CUPTI_PATH_BYTES_MAX]; /* of the first one that the driver refused; "": none */
    char reason[KNOWN_TEXT_BYTES];      /* of an answer other than GPU_WORKS */
};

enum start_answer {
    START_NOT_SEEN,  /* ptrace is not allowed, or nothing could be started: `reason` */
    START_LOADED,    /* in the program that was looked for */
    START_LOST,      /* not in `name`, by what was in its environment or because of what it is */
    START_NO_MORE,   /* all that was started has it; none of it looks like a program of CUDA's */
    START_IN_HELPER, /* the same, but for `name`, in which nothing can be loaded */
};

/* Whether the program, started as `gpuprof run` starts it, has libgpuprof.so in it. */
struct start_probe {
    enum start_answer answer;
    char path[PATH_MAX];         /* of the program that was looked at last */
    char name[START_NAME_BYTES]; /* its last part */
    char via[START_NAME_BYTES];  /* what started it, in turn: "sh, env"; "" nothing */
    char reason[START_NAME_BYTES];
    bool is_cut;                /* after START_SECONDS: more might have been started */
    unsigned python_minor;      /* of a CPython 3: as its file or its libpython is called; else 0 */
    struct cupti_places places; /* what it has of CUDA there already */
};

/* What is known before the checks: gathered once, since some of it takes a while. */
struct target {
    const char *root; /* "" or DOCTOR_ROOT_VARIABLE's */
    struct settings settings;
    char wrong_setting[CHECK_TEXT_BYTES]; /* the first that the library would refuse; "": none */
    char library[ENVIRONMENT_PATH_BYTES];
    char library_reason[ENVIRONMENT_REASON_BYTES]; /* "": it can be preloaded */
    struct gpu_probe gpu;
    char **argv;    /* the program and its arguments; NULL: none was named, as in all below */
    int find_error; /* of the program, an errno */
    struct program program;
    struct start_probe start;
    char torch[TORCH_VERSION_BYTES]; /* PyTorch's version, as its version.py has it; "": none */
    char torch_folder[PATH_MAX];     /* where that was found */
};

/* False: it has nothing to say here (the program is no Python, say). */
typedef bool check_fn(const struct target *p, struct check_result *f);

/* Fill it, and are true, as a check answers that has something to say. (checks.c) */
bool check_result_set(struct check_result *f, enum check_state state, const char *advice,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));
#define fine(f, ...)            check_result_set(f, CHECK_OK, NULL, __VA_ARGS__)
#define limited(f, advice, ...) check_result_set(f, CHECK_LIMITED, advice, __VA_ARGS__)
#define broken(f, advice, ...)  check_result_set(f, CHECK_BROKEN, advice, __VA_ARGS__)

/* machine_checks.c */
check_fn check_library, check_settings, check_kernel, check_libc, check_memory, check_live_folder,
    check_container;

/* host_checks.c: what --sample, --gaps and --os need; nothing to say without these */
check_fn check_sample, check_gaps, check_os;

/* gpu_checks.c; check_device has nothing to say without --device */
check_fn check_driver, check_cupti, check_client, check_counters, check_device;
/* Takes at most 20 seconds. */
void gpu_probe_take(struct target *p);

/* program_checks.c: nothing to say without a program */
check_fn check_program, check_preload, check_runtime, check_sanitizer, check_python, check_torch;
/*
 * Sets it if `name`, a file's last part, is that of a CPython 3 or its library: "python3.12",
 * "libpython3.13t.so.1.0".
 */
void program_python_version(const char *name, unsigned *minor);
/* Is it a Python, or does its file name libcuda or libcudart? */
bool program_uses_cuda(const char *path);
/* Finds PyTorch and the libcudart of its Python, as that was called, by its own first line, or as
 * it was seen. */
void program_packages_find(struct target *p);

/*
 * start_probe.c: the program is looked at by ptrace where its main function would begin, and ended
 * there: nothing of it has run. What starts it (a shell's script, env, nice ...) does run, up to
 * there, since nobody else knows what it will start. Takes at most START_SECONDS.
 */
void start_probe_take(struct target *p);

#endif
