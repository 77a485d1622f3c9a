/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a row of the report's csv is: the words of its column `kind`, in one table, of which the
 * manual is made and against which a test reads the GUIDE.
 */
#ifndef GPUPROF_COLLECTOR_CSV_KIND_H
#define GPUPROF_COLLECTOR_CSV_KIND_H

enum csv_kind {
    CSV_FUNCTION,
    CSV_KERNEL,
    CSV_COPY,
    CSV_GRAPH,
    CSV_SYNC,
    CSV_LAUNCH,
    CSV_RANGE,
    CSV_GPU_RANGE,
    CSV_RANGE_DOMAIN,
    CSV_GPU_RANGE_DOMAIN,
    CSV_OP,
    CSV_OP_SELF,
    CSV_OP_GPU,
    CSV_OP_GPU_SELF,
    CSV_OP_BACKWARD,
    CSV_OP_BACKWARD_GPU,
    CSV_OP_FLOPS,
    CSV_OP_COUNTER_FLOPS,
    CSV_OP_NONE,
    CSV_LABEL,
    CSV_LABEL_GPU,
    CSV_MODULE,
    CSV_MODULE_GPU,
    CSV_MODULE_BACKWARD,
    CSV_MODULE_BACKWARD_GPU,
    CSV_MODULE_FLOPS,
    CSV_LIBRARY,
    CSV_LIBRARY_GPU,
    CSV_LIBRARY_FLOPS,
    CSV_STEP_STAT,
    CSV_STEP_PART,
    CSV_STEP,
    CSV_STEP_GPU,
    CSV_STEP_PARTIAL,
    CSV_STEP_WAITED,
    CSV_PHASE,
    CSV_PHASE_GPU,
    CSV_OVERHEAD,
    CSV_DEVICE,
    CSV_GPU_TIME,
    CSV_GPU_IDLE,
    CSV_IDLE,
    CSV_RANK,
    CSV_RANK_LATE,
    CSV_ARRIVAL,
    CSV_CLOCK,
    CSV_CLOCK_BEHIND,
    CSV_DEVICE_COUNTERS,
    CSV_DEVICE_POWER,
    CSV_ENERGY,
    CSV_MEMORY,
    CSV_HOST_KERNEL,
    CSV_HOST_COPY,
    CSV_THREAD,
    CSV_STACK,
    CSV_PYTHON_LINE,
    CSV_PYTHON_LINE_ALL,
    CSV_SOURCE_LINE,
    CSV_SOURCE_LINE_ALL,
    CSV_COST,
    CSV_COST_UNMEASURED,
    CSV_FINDING,
    CSV_OPEN_CALL,
    CSV_UNFINISHED,
    CSV_COLLECTIVE,
    CSV_ERROR,
    CSV_STEP_DOWN,
    CSV_DUMP,
    CSV_MEMORY_PEAK,
    CSV_MEMORY_END,
    CSV_MEMORY_OWNER,
    CSV_MEMORY_OWNER_END,
    CSV_MEMORY_LEAK,
    CSV_MEMORY_HIDDEN,
    CSV_MEMORY_KIND,
    CSV_MEMORY_STEP,
    CSV_MEMORY_RANGE,
    CSV_MEMORY_RESIDENT,
    CSV_MEMORY_CURVE,
    CSV_MEMORY_FAILED,
    CSV_DAMAGE,
    CSV_LOSS,
    CSV_NOTE,
    CSV_KIND_COUNT
};

struct csv_kind_info {
    const char *name;
    const char *meaning; /* "a row for ..." */
};

extern const struct csv_kind_info csv_kinds[CSV_KIND_COUNT];

#endif
