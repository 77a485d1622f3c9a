/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables with which job launchers number their processes. */
#ifndef GPUPROF_FORMATS_RANK_H
#define GPUPROF_FORMATS_RANK_H

#include <stdbool.h>
#include <stdint.h>

#define RANK_NONE UINT64_MAX

/*
 * Most specific first (an mpirun inside one Slurm step has one SLURM_PROCID); terminated by NULL.
 */
extern const char *const rank_variables[];

/* The same for the number among a job's processes on one host; terminated by NULL. */
extern const char *const local_rank_variables[];

/* What the launcher with the rank variable `of` says about its job: it differs between two
 * simultaneous jobs. Terminated by a NULL name. */
struct job_variable {
    const char *name;
    const char *of;
    enum {
        JOB_WORD,
        JOB_ADDRESS,    /* address of a host; each host is a job of its own if it names itself */
        JOB_HOST_INDEX, /* a host named NAME-INDEX belongs to the job NAME (Kubernetes) */
    } kind;
};
extern const struct job_variable job_variables[];

/*
 * The number of ranks, as the launcher with the rank variable `of` tells each of them. Not
 * included: Slurm's SLURM_NTASKS, which belongs to an allocation that may run anything, and
 * Horovod's size, which may change while a process runs. Terminated by a NULL name.
 */
struct size_variable {
    const char *name, *of;
};
extern const struct size_variable size_variables[];

/* Returns the rank in a variable's text; RANK_NONE if it is NULL or not a number. */
uint64_t rank_number(const char *text);

#endif
