/* SPDX-License-Identifier: Apache-2.0 */
/* A trace for each rank, in one archive. */
#ifndef GPUPROF_COLLECTOR_MERGE_ARCHIVE_H
#define GPUPROF_COLLECTOR_MERGE_ARCHIVE_H

#include "trace/merge_trace.h"
#include "trace/rank_files.h"

enum exit_code merge_write_archive(struct merge *m, const char *path,
                                   const struct rank_file *files);

#endif
