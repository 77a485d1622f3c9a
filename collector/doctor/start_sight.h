/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a program, started as `gpuprof run` starts it, has libgpuprof.so in it. It is looked at
 * by ptrace where its main function would begin, and ended there: nothing of it has run. What
 * starts it (a shell's script, env, nice ...) does run, up to there, since nobody else knows what
 * it will start.
 */
#ifndef GPUPROF_COLLECTOR_START_SIGHT_H
#define GPUPROF_COLLECTOR_START_SIGHT_H

#include <limits.h>
#include <stdbool.h>

#include "cupti_places.h"
#include "run/program.h"

#define START_SECONDS    10
#define START_NAME_BYTES 256
#define START_VIA_BYTES  256

enum start_answer {
    START_NOT_SEEN,  /* ptrace is not allowed, or nothing could be started: `reason` */
    START_LOADED,    /* in the program that was looked for */
    START_LOST,      /* not in `name`, by what was in its environment or because of what it is */
    START_NO_MORE,   /* all that was started has it; none of it looks like a program of CUDA's */
    START_IN_HELPER, /* the same, but for `name`, in which nothing can be loaded */
};

struct start_sight {
    enum start_answer answer;
    char path[PATH_MAX];         /* of the program that was looked at last */
    char name[START_NAME_BYTES]; /* its last part */
    char via[START_VIA_BYTES];   /* what started it, in turn: "sh, env"; "" nothing */
    char reason[START_NAME_BYTES];
    bool is_cut;                /* after START_SECONDS: more might have been started */
    unsigned python_minor;      /* of a CPython 3: as its file or its libpython is called; else 0 */
    bool is_free_threaded;      /* likewise */
    struct cupti_places places; /* what it has of CUDA there already */
};

/* Takes at most START_SECONDS. `argv` has the program's arguments, its name first. */
void start_sight_take(struct start_sight *sight, const struct program *program, char **argv);

#endif
