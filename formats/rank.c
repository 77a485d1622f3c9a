/* SPDX-License-Identifier: Apache-2.0 */
#include "rank.h"

#include <stddef.h>

#define RANK_DIGITS_MAX 18 /* fits into 63 bits */

const char *const rank_variables[] = {
    "RANK",         "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK",  "PMI_RANK",
    "HOROVOD_RANK", "SLURM_PROCID",         "JOB_COMPLETION_INDEX", NULL};

const char *const local_rank_variables[] = {"LOCAL_RANK",
                                            "OMPI_COMM_WORLD_LOCAL_RANK",
                                            "MV2_COMM_WORLD_LOCAL_RANK",
                                            "MPI_LOCALRANKID",
                                            "PMI_LOCAL_RANK",
                                            "HOROVOD_LOCAL_RANK",
                                            "SLURM_LOCALID",
                                            NULL};

const struct job_variable job_variables[] = {
    {"TORCHELASTIC_RUN_ID", "RANK", JOB_WORD},
    {"TORCHELASTIC_RESTART_COUNT", "RANK", JOB_WORD},
    {"MASTER_ADDR", "RANK", JOB_ADDRESS},
    {"MASTER_PORT", "RANK", JOB_WORD},
    {"SLURM_JOB_ID", "RANK", JOB_WORD},
    {"PMIX_NAMESPACE", "OMPI_COMM_WORLD_RANK", JOB_WORD},
    {"SLURM_JOB_ID", "MV2_COMM_WORLD_RANK", JOB_WORD},
    {"SLURM_STEP_ID", "MV2_COMM_WORLD_RANK", JOB_WORD},
    {"SLURM_JOB_ID", "PMI_RANK", JOB_WORD},
    {"SLURM_STEP_ID", "PMI_RANK", JOB_WORD},
    {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_RANK", JOB_ADDRESS},
    {"HOROVOD_GLOO_RENDEZVOUS_PORT", "HOROVOD_RANK", JOB_WORD},
    {"SLURM_JOB_ID", "SLURM_PROCID", JOB_WORD},
    {"SLURM_STEP_ID", "SLURM_PROCID", JOB_WORD},
    {"JOB_COMPLETION_INDEX", "JOB_COMPLETION_INDEX", JOB_HOST_INDEX},
    {NULL, NULL, JOB_WORD}};

const struct size_variable size_variables[] = {{"WORLD_SIZE", "RANK"},
                                               {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                               {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
                                               {"PMI_SIZE", "PMI_RANK"},
                                               {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
                                               {NULL, NULL}};

uint64_t rank_number(const char *text)
{
    uint64_t number = 0;
    unsigned digits = 0;
    for (; text && *text >= '0' && *text <= '9'; text++, digits++)
        number = 10 * number + (uint64_t)(*text - '0');
    return digits && digits <= RANK_DIGITS_MAX && !*text ? number : RANK_NONE;
}
