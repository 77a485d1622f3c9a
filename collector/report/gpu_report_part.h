/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of devices and ranges in a part: sums, which add up by the names of rows. */
#ifndef GPUPROF_COLLECTOR_GPU_REPORT_PART_H
#define GPUPROF_COLLECTOR_GPU_REPORT_PART_H

#include "analyse/gpu_report.h"
#include "query/part_file.h"

/* Puts what was found into the part. `libraries` tells which calls made kernels; or NULL. */
void gpu_report_put(struct gpu_report *g, struct part *part,
                    const struct library_report *libraries);

/* Adds what is in the part, of whose `processes` there are so many. 0 or GPUPROF_NO_MEMORY; that
 * it is damaged the part says. */
int gpu_report_add(struct gpu_report *g, struct part *part, struct process *const *processes,
                   uint32_t process_count);

/* After the last part. 0 or GPUPROF_NO_MEMORY. */
int gpu_report_add_end(struct gpu_report *g);

#endif
