/* SPDX-License-Identifier: Apache-2.0 */
/* The variables by which the launchers of jobs number their processes. */
#ifndef GPUPROF_FORMATS_RANK_H
#define GPUPROF_FORMATS_RANK_H

#include <stdbool.h>
#include <stdint.h>

#define RANK_NONE UINT64_MAX

/* Most telling first (an mpirun inside one Slurm step has one SLURM_PROCID); ended by NULL. */
extern const char *const rank_variables[];

/* Likewise which of those on its host a process is; ended by NULL. */
extern const char *const local_rank_variables[];

/* What the launcher that has the rank variable `of` says of its job: two jobs at one time differ in
 * it. Ended by a name that is NULL. */
struct job_variable {
    const char *name;
    const char *of;
    enum {
        JOB_WORD,
        JOB_ADDRESS,    /* of one host; each has a job of its own where it names itself */
        JOB_HOST_INDEX, /* a host of the name NAME-INDEX is of the job NAME (Kubernetes') */
    } kind;
};
extern const struct job_variable job_variables[];

/* Of how many ranks the job is, as the launcher that has the rank variable `of` says to each.
 * Slurm's SLURM_NTASKS is of an allocation, in which anything may run, and Horovod's size may
 * change while a process goes on: neither is one. Ended by a name that is NULL. */
struct size_variable {
    const char *name, *of;
};
extern const struct size_variable size_variables[];

/* The rank that a variable's text says; RANK_NONE if it is NULL or no number. */
uint64_t rank_number(const char *text);

#endif
