/* SPDX-License-Identifier: Apache-2.0 */
/* Converts CUPTI's activity records to our records. */
#ifndef GPUPROF_INJECT_GPU_RECORDS_H
#define GPUPROF_INJECT_GPU_RECORDS_H

#include "cupti/cupti_record.h"
#include "record/thread.h"

/* Appends the record for one activity record; ignores kinds that are not recorded. */
void gpu_record(struct thread *me, const struct cupti_view *view);

#endif
