/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranks of a job have no file here: it was lost, lies on another host, or cannot be read, or
 * the process made no call of CUDA's. Known where launchers say of how many ranks a job is
 * (rank.h), if all of its processes say the same, and of ranks that lie below others that are here.
 * Nothing is known where some processes were not looked at, since they were not asked for, or are
 * in another share.
 *
 * Memory: 24 bytes a process, meanwhile; 200 a job.
 */
#ifndef GPUPROF_COLLECTOR_MISSING_RANKS_H
#define GPUPROF_COLLECTOR_MISSING_RANKS_H

#include <stdbool.h>
#include <stdint.h>

#define MISSING_SPANS_MAX   8 /* that are kept of a job: the first ones */
#define MISSING_RANKS_BYTES 512

struct recording;

struct missing_ranks {
    uint32_t job;
    uint32_t here;                        /* ranks of it that have one */
    uint64_t size;                        /* ranks of the job; 0: not known */
    uint64_t count;                       /* of those that have none */
    uint64_t spans[MISSING_SPANS_MAX][2]; /* first and last of each */
    uint32_t span_count;                  /* also of those that are not kept */
};

/* Once jobs are known: fills in rec->missing, by job. 0 or GPUPROF_NO_MEMORY. */
int missing_ranks_find(struct recording *rec);

/* Those of a job; NULL: all of it are here, for all that is known. */
const struct missing_ranks *missing_ranks_of(const struct recording *rec, uint32_t job);

/* Is it a job of several processes for sure? One alone may have its variables from a shell, and
 * nothing to do with other ranks. */
static inline bool missing_ranks_are_sure(const struct missing_ranks *m)
{
    return m->size && m->here > 1;
}

/* "ranks 2, 5-7 of 8"; returns `text`. */
char *missing_ranks_text(const struct missing_ranks *m, char text[static MISSING_RANKS_BYTES]);

#endif
