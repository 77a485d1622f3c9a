/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `doctor`: says what would be recorded here or of a program, what not, and why. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json_text.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/options.h"
#include "doctor/checks.h"
#include "output/output.h"

static const char *const state_names[] = {"ok", "limited", "broken"};

/* In the order of printing. */
static const struct check {
    const char *id;
    check_fn *look;
    const char *what;
} checks[] = {
    {"library", check_library, "gpuprof's library"},
    {"settings", check_settings, "settings in the environment"},
    {"kernel", check_kernel, "kernel version"},
    {"libc", check_libc, "the C library"},
    {"memory", check_memory, "Python frames in stacks"},
    {"sample", check_sample, "CPU samples (--sample)"},
    {"gaps", check_gaps, "waiting threads (--gaps)"},
    {"os", check_os, "blocking calls of the C library (--os)"},
    {"live", check_live_folder, "folder for the live file"},
    {"container", check_container, "container settings"},
    {"driver", check_driver, "CUDA driver"},
    {"cupti", check_cupti, "libcupti in use"},
    {"client", check_client, "other profilers"},
    {"counters", check_counters, "access to hardware counters"},
    {"device", check_device, "device counters (--device)"},
    {"program", check_program, "the program's file"},
    {"preload", check_preload, "whether the library is loaded in the program"},
    {"runtime", check_runtime, "statically linked CUDA runtime"},
    {"sanitizer", check_sanitizer, "sanitizer in the program"},
    {"python", check_python, "its Python"},
    {"pytorch", check_torch, "its PyTorch"},
};

#define CHECK_COUNT (sizeof checks / sizeof checks[0])

/* Options besides the settings of `gpuprof run`. */
struct doctor_options {
    bool json;
    bool is_ignored;
    const char *ignored;
};

struct doctor {
    struct target target;
    struct check_result results[CHECK_COUNT]; /* of checks that apply */
    const struct check *checks[CHECK_COUNT];  /* which made them */
    unsigned count;
    enum check_state worst;
};

/* Reads settings like the library: an option wins over the variable. */
static void read_settings(struct target *p, const char *const *values)
{
    settings_init(&p->settings);
    for (int i = 0; i < SETTING_COUNT; i++) {
        const char *text = values[i] ? values[i] : getenv(setting_infos[i].variable);
        char reason[160];
        if (text && *text &&
            settings_set(&p->settings, (enum setting_index)i, text, reason, sizeof reason) != 0 &&
            !p->wrong_setting[0])
            snprintf(p->wrong_setting, sizeof p->wrong_setting, "%s: %s", setting_infos[i].variable,
                     reason);
    }
}

static void doctor_gather(struct target *p, const char *const *values)
{
    const char *root = getenv(DOCTOR_ROOT_VARIABLE);
    p->root = root ? root : "";
    read_settings(p, values);
    if (environment_library(p->library, p->library_reason))
        p->library_reason[0] = '\0';
    p->find_error = p->argv ? program_find(&p->program, p->argv[0]) : 0;
    if (p->argv && !p->find_error && !p->program.obstacle && !p->library_reason[0]) {
        start_probe_take(p);
        program_packages_find(p);
    }
    p->start.places.homes[0] = getenv("CUDA_HOME");
    p->start.places.homes[1] = "/usr/local/cuda";
    p->start.places.library_path = getenv("LD_LIBRARY_PATH");
    gpu_probe_take(p);
}

static void examine(struct doctor *d)
{
    for (size_t i = 0; i < CHECK_COUNT; i++) {
        struct check_result *f = &d->results[d->count];
        if (!checks[i].look(&d->target, f))
            continue;
        d->worst = f->state > d->worst ? f->state : d->worst;
        d->checks[d->count++] = &checks[i];
    }
}

static void print_text(const struct doctor *d)
{
    unsigned counts[3] = {0};
    for (unsigned i = 0; i < d->count; i++) {
        const struct check_result *f = &d->results[i];
        char *text = json_line(f->text); /* paths and variables can contain anything */
        counts[f->state]++;
        printf("%-8s %-10s %s\n", state_names[f->state], d->checks[i]->id, text);
        if (f->advice[0])
            printf("%-19s do: %s\n", "", f->advice);
        free(text);
    }
    printf("\n%u ok, %u limited, %u broken\n", counts[CHECK_OK], counts[CHECK_LIMITED],
           counts[CHECK_BROKEN]);
}

static void doctor_print_json(const struct doctor *d)
{
    printf("{\"state\": \"%s\", \"checks\": [", state_names[d->worst]);
    for (unsigned i = 0; i < d->count; i++) {
        const struct check_result *f = &d->results[i];
        fputs(i ? "," : "", stdout);
        json_printf(stdout,
                    "\n {\"id\": %s, \"state\": %s, \"what\": %s,\n  \"text\": %s, \"advice\": %s}",
                    d->checks[i]->id, state_names[f->state], d->checks[i]->what, f->text,
                    f->advice[0] ? f->advice : NULL);
    }
    printf("\n]}\n");
}

static enum exit_code doctor_run(const struct options *options)
{
    const struct doctor_options *own = options->own;
    if (standard_files_fill() < 0)
        return EXIT_ENVIRONMENT;
    struct doctor *d = memory_new(1, sizeof *d);
    d->target.argv = options->path_count ? options->paths : NULL;
    doctor_gather(&d->target, options->settings);
    examine(d);
    (own->json ? doctor_print_json : print_text)(d);
    enum exit_code code = standard_output_end();
    if (code == EXIT_OK && d->worst == CHECK_BROKEN)
        code = EXIT_UNFIT;
    free(d);
    return code;
}

static const struct option own_options[] = {
    {OPTIONS_OF(program_options, 0)},
    {0, "json", NULL, OPTION_FLAG(struct doctor_options, json), "Print JSON instead of lines"},
    /* Options of run, not in help, so that its command line works with only the verb changed. */
    {0, "quiet", NULL, OPTION_FLAG(struct doctor_options, is_ignored), NULL},
    {0, "exec", NULL, OPTION_FLAG(struct doctor_options, is_ignored), NULL},
    {0, "on-cycle", "COMMAND", OPTION_TEXT(struct doctor_options, ignored), NULL},
    {0},
};

VERB_IS(doctor, doctor_run, own_options, VERB_OWN(struct doctor_options, 0), TAKES_PROGRAM,
        "[[--] PROGRAM [ARGUMENTS]]",
        "check what gpuprof can record here or of a program, and how to fix what it cannot",
        {PART_EXAMPLE, "gpuprof doctor", "check this machine"},
        {PART_EXAMPLE, "gpuprof doctor python train.py",
         "check what can be recorded of a program, without running its main function"},
        {PART_VARIABLE, "GPUPROF_...", "the settings; an option wins"},
        {PART_VARIABLE, "PATH", "where the program is looked for"},
        {PART_VARIABLE, "CUDA_HOME", "a toolkit, in which libcupti is looked for, too"},
        {PART_VARIABLE,
         "LD_LIBRARY_PATH, PYTHONPATH, NVIDIA_DRIVER_CAPABILITIES, NVIDIA_VISIBLE_DEVICES",
         "read as the program and its container will read them"},
        {PART_FILE, "/proc, /dev/shm, site-packages/torch/version.py", "read; nothing is written"},
        {PART_STATUS, "0", "nothing is broken"},
        {PART_STATUS, "4",
         "something is broken: nothing, or nothing that matters, would be "
         "recorded"});

/* ---- results --------------------------------------------------------------------------------- */

bool check_result_set(struct check_result *f, enum check_state state, const char *advice,
                      const char *format, ...)
{
    va_list list;
    f->state = state;
    va_start(list, format);
    vsnprintf(f->text, sizeof f->text, format, list);
    va_end(list);
    snprintf(f->advice, sizeof f->advice, "%s", advice ? advice : "");
    return true;
}
