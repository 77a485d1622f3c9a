/* SPDX-License-Identifier: Apache-2.0 */
#include "rank.h"

#include <stddef.h>

#define RANK_DIGITS_MAX 18 /* fits into 63 bits */

const char *const rank_variables[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID",
                                      NULL};

uint64_t rank_number(const char *text)
{
    uint64_t number = 0;
    unsigned digits = 0;
    for (; text && *text >= '0' && *text <= '9'; text++, digits++)
        number = 10 * number + (uint64_t)(*text - '0');
    return digits && digits <= RANK_DIGITS_MAX && !*text ? number : RANK_NONE;
}
