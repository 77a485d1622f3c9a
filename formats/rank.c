/* SPDX-License-Identifier: Apache-2.0 */
#include "rank.h"

#include <stddef.h>

#define RANK_DIGITS_MAX 18 /* fits into 63 bits */

const char *const rank_variables[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID",
                                      NULL};

const char *const local_rank_variables[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                            "MPI_LOCALRANKID", "SLURM_LOCALID", NULL};

const struct job_variable job_variables[] = {{"TORCHELASTIC_RUN_ID", 0, false},
                                             {"TORCHELASTIC_RESTART_COUNT", 0, false},
                                             {"MASTER_ADDR", 0, true},
                                             {"MASTER_PORT", 0, false},
                                             {"SLURM_JOB_ID", 0, false},
                                             {"PMIX_NAMESPACE", 1, false},
                                             {"SLURM_JOB_ID", 2, false},
                                             {"SLURM_STEP_ID", 2, false},
                                             {"SLURM_JOB_ID", 3, false},
                                             {"SLURM_STEP_ID", 3, false},
                                             {NULL, 0, false}};

uint64_t rank_number(const char *text)
{
    uint64_t number = 0;
    unsigned digits = 0;
    for (; text && *text >= '0' && *text <= '9'; text++, digits++)
        number = 10 * number + (uint64_t)(*text - '0');
    return digits && digits <= RANK_DIGITS_MAX && !*text ? number : RANK_NONE;
}
