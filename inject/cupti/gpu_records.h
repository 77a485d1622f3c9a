/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's activity records as records of ours. */
#ifndef GPUPROF_INJECT_GPU_RECORDS_H
#define GPUPROF_INJECT_GPU_RECORDS_H

#include "cupti/cupti_record.h"
#include "record/thread.h"

/* Appends what one activity record says; kinds that are not recorded are passed over. */
void gpu_record(struct thread *me, const struct cupti_view *view);

#endif
