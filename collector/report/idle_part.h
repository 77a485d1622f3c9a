/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tables of devices' time, of idle time, ranks and arrivals are made of, in a part: of
 * each device its times, what its idle time is charged to, each of its collectives' kernels, by
 * communicator and in their order, and the times in which nothing else ran there. Which kernels
 * met, and who waited, comes out of all parts together, as it does of all recordings. Some 20 bytes
 * a kernel, and 5 for each of these times. Places are texts: a part knows their lines.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_PART_H
#define GPUPROF_COLLECTOR_IDLE_PART_H

#include "find/idle.h"
#include "query/part_file.h"

/* `d` may be NULL. The devices go before all that is of one. 0, or an error of its spools. */
void idle_part_put_devices(struct idle *d, struct part *p);
int idle_part_put(struct idle *d, struct part *p);

/* The parts that are added to one. */
struct idle_parts {
    struct added_part *list; /* owned */
    uint32_t count;
    uint32_t capacity;
    struct told_place **told; /* owned, and so are they */
    uint32_t told_count;
    uint32_t told_capacity;
    bool has_more; /* rows for which there was no room, here or in a part */
};

/* A place with that text, at `where` (NULL: it is not known), of the thread with that id (0: of
 * none), whose share of the work that is (idle_row_work_share); the texts must stay. 0 or
 * GPUPROF_NO_MEMORY. */
int idle_parts_tell(struct idle_parts *a, const char *text, const char *where, uint32_t tid,
                    uint32_t work_share, struct idle_place *place);

/* First the devices of all parts, in their order, which are put into order then. 0 or an error. */
int idle_part_add_devices(struct idle_parts *a, struct idle *d, struct part *p,
                          struct process *const *processes, uint32_t process_count);
int idle_parts_order(struct idle_parts *a, struct idle *d);

/* The number in all of them of a device of part `of`; IDLE_NONE, and failed: there is none. */
uint32_t idle_parts_device(const struct idle_parts *a, uint32_t of, uint32_t device);

/* Adds what else is in part `of`, which must stay, and of whose `processes` there are so many. 0 or
 * an error; that it is damaged the part says. */
int idle_part_add(struct idle_parts *a, struct idle *d, uint32_t of,
                  struct process *const *processes, uint32_t process_count);

/* After the last part: who met whom. 0 or an error. */
int idle_part_add_end(struct idle_parts *a, struct idle *d);
void idle_parts_release(struct idle_parts *a);

#endif
