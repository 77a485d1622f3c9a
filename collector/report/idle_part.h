/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tables of ranks and arrivals are made of, in a part: of each device its times, each of
 * its collectives' kernels, by communicator and in their order, and the times in which nothing else
 * ran there. Which kernels met, and who waited, comes out of all parts together, as it does of all
 * recordings. Some 20 bytes a kernel, and 5 for each of these times.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_PART_H
#define GPUPROF_COLLECTOR_IDLE_PART_H

#include "find/idle.h"
#include "report/part_file.h"

/* `d` may be NULL. 0, or an error of its spools. */
int idle_part_put(struct idle *d, struct part *p);

/* The parts that are added to one. */
struct idle_parts {
    struct added_part *list; /* owned */
    uint32_t count;
    uint32_t capacity;
    struct idle_stream *streams; /* owned: of all devices */
    uint32_t stream_count;
    uint32_t stream_capacity;
};

/* Adds what is in the part, which must stay, and of whose `processes` there are so many. 0 or an
 * error; that it is damaged the part says. */
int idle_part_add(struct idle_parts *a, struct idle *d, struct part *p,
                  struct process *const *processes, uint32_t process_count);

/* After the last part: who met whom. 0 or an error. */
int idle_part_add_end(struct idle_parts *a, struct idle *d);
void idle_parts_release(struct idle_parts *a);

#endif
