/* SPDX-License-Identifier: Apache-2.0 */
/* The report's table of threads (--by=thread): what each one called, and what the devices did for
 * it. Memory: 80 bytes a thread. */
#ifndef GPUPROF_COLLECTOR_THREAD_REPORT_H
#define GPUPROF_COLLECTOR_THREAD_REPORT_H

#include "model/event_walk.h"
#include "table/table.h"

struct thread_row {
    const struct process *process; /* NULL: the thread made no call */
    const struct thread *thread;
    uint64_t calls;
    uint64_t recorded; /* calls that this is known from */
    uint64_t errors;
    uint64_t total_ns; /* of calls that are not nested in another */
    uint64_t max_ns;
    uint64_t work;   /* of the devices, that they made */
    uint64_t gpu_ns; /* of that work */
};

struct thread_report {
    struct thread_row *rows; /* owned; by thread index, and once complete the longest first */
    uint32_t count;
    uint32_t shown; /* that have a process */
    uint64_t total_ns;
};

/* 0 or GPUPROF_NO_MEMORY; thread_report_release in both cases. */
int thread_report_init(struct thread_report *r, const struct recording *rec);
void thread_report_release(struct thread_report *r);

/* `has_work`: the recording has, or should have, work of devices. */
struct consumer thread_report_consumer(struct thread_report *r, bool has_work);

/* Of a struct thread_report; NULL: not there. */
extern const struct table_info threads_table;

#endif
