/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One trace file per process, as HTA and TensorBoard want them: rank_N with the format's ending for
 * the process that is rank N, and in a folder of their own, which those two do not look into, the
 * processes that share a rank with it or have none. Of several jobs each has a folder, job_N.
 */
#ifndef GPUPROF_COLLECTOR_RANK_FILES_H
#define GPUPROF_COLLECTOR_RANK_FILES_H

#include "read/recording.h"

#define RANK_FILE_BYTES 96

struct rank_file {
    struct process *process;
    uint64_t rank;              /* as the file says it */
    bool other;                 /* in the folder of the others */
    uint32_t stem;              /* so many bytes of `name` are without the ending */
    char name[RANK_FILE_BYTES]; /* with its folders, without .gz */
};

/* One file per process, in the order in which they are shown; the caller frees. NULL: no memory.
 * `cycle`: the number in their names of the window that they show; 0: none. */
struct rank_file *rank_files_make(const struct recording *rec, const char *ending, uint64_t cycle);

#endif
