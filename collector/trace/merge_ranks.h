/* SPDX-License-Identifier: Apache-2.0 */
/* A trace for each rank, in a folder. */
#ifndef GPUPROF_COLLECTOR_MERGE_RANKS_H
#define GPUPROF_COLLECTOR_MERGE_RANKS_H

#include "trace/merge_trace.h"
#include "trace/rank_files.h"

/* A file per process, by as many workers as the recording may have. What was found in them is then
 * in m->walk. */
enum exit_code merge_write_folder(struct merge *m, const char *folder,
                                  const struct rank_file *files);

#endif
