/* SPDX-License-Identifier: Apache-2.0 */
/* The variables by which the launchers of jobs number their processes. */
#ifndef GPUPROF_FORMATS_RANK_H
#define GPUPROF_FORMATS_RANK_H

#include <stdint.h>

#define RANK_NONE UINT64_MAX

/* Most telling first (an mpirun inside one Slurm step has one SLURM_PROCID); ended by NULL. */
extern const char *const rank_variables[];

/* The rank that a variable's text says; RANK_NONE if it is NULL or no number. */
uint64_t rank_number(const char *text);

#endif
