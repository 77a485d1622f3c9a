/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rank others waited for: the kernels of one collective on all ranks of a recording, of which
 * those that began earlier wait for the one that begins last. They are one collective if they are
 * the n-th of their communicator (by NCCL's ranges, nccl_call.h, or by the calls of NCCL that are
 * recorded) or, where that is not known, the n-th of their name on ranks of one job; and if all of
 * them ran at one moment, when the last one began. Processes that have no rank, or one that another
 * of their job has, too, are of no job that is known; in a recording of one process nobody waits
 * for another.
 *
 * Memory: 12 MiB for kernels and the times in which nothing else ran, which lie in spools; for each
 * communicator or name on each device 80 bytes, IDLE_SEQUENCES_MAX of them, and 64 a launch of
 * NCCL's whose kernel has not come, up to as many. Nobody waits in those beyond.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_RANKS_H
#define GPUPROF_COLLECTOR_IDLE_RANKS_H

#include "base/key_map.h"
#include "base/spool.h"
#include "model/event_walk.h"

#define IDLE_SEQUENCES_MAX (1u << 19)

/* The kernels of a communicator or name on a device, one behind the other. */
struct rank_sequence {
    uint64_t communicator; /* 0: by the name */
    const char *name;      /* a view */
    uint64_t first, last;  /* places of kernels + 1 */
    uint32_t device;
};

/* What of a kernel only arrivals.h knows. */
struct rank_kernel_facts {
    uint64_t idle_ns; /* that its device was idle for the longest since its last collective, ... */
    uint32_t idle_place; /* ... where, */
    uint32_t work_place; /* and what else took it longest; 0: nothing is known */
    uint32_t kind;
};

struct rank_kernel {
    uint64_t begin_ns, end_ns;
    uint64_t next;       /* of its sequence, + 1; 0: none */
    uint64_t next_there; /* of its device, likewise */
    uint64_t until_ns;   /* when the last one began, for whom it waited; 0: it did not */
    uint32_t waited_for; /* device */
    uint32_t sequence;
    struct rank_kernel_facts facts;
};

struct rank_span {
    uint64_t begin_ns, end_ns;
    uint32_t device;
};

struct idle_ranks {
    struct rank_sequence *list; /* owned */
    uint32_t count;
    uint32_t capacity;
    struct key_map communicators; /* (process, correlation id of a launch) -> communicator */
    struct key_map handles;       /* (process, handle of NCCL's) -> communicator */
    struct key_map numbers;       /* (device, communicator or name) -> place in list + 1 */
    struct spool kernels;
    struct spool alone;   /* struct rank_span */
    struct spool devices; /* by number: its first and last kernel */
};

void idle_ranks_init(struct idle_ranks *r);
void idle_ranks_release(struct idle_ranks *r);

/* What a thread is about to do on a communicator, from calls of NCCL's. */
struct rank_talk {
    uint64_t communicator; /* of all calls so far; 0: none, or several */
    uint32_t depth;        /* of groups */
    bool is_mixed;
};

/* A record of a communicator, the begin or the end of a library's call. 0 or GPUPROF_NO_MEMORY. */
int idle_ranks_library(struct idle_ranks *r, struct rank_talk *t, const struct event *e);

/* Any call. 0 or GPUPROF_NO_MEMORY. */
int idle_ranks_call(struct idle_ranks *r, const struct rank_talk *t, const struct slice *s);

/* A kernel that communicates, on the device of that number; in the order of time. 0 or an error. */
int idle_ranks_kernel(struct idle_ranks *r, const struct slice *s, uint32_t device,
                      const struct kernel_name *name, const struct rank_kernel_facts *facts);

/* The same of what is known: the place of its sequence + 1; 0: there is no room. `key` is what
 * tells names apart. */
int idle_ranks_sequence(struct idle_ranks *r, uint32_t device, uint64_t communicator,
                        const char *name, uint64_t key, uint32_t *sequence);
int idle_ranks_add(struct idle_ranks *r, const struct rank_kernel *kernel);

/* The first kernel of a device, + 1; 0: none. 0 or an error in *error. */
uint64_t idle_ranks_first(struct idle_ranks *r, uint32_t device, int *error);

/* Nothing else ran on the device then; in the order of time. 0 or an error. */
int idle_ranks_alone(struct idle_ranks *r, uint32_t device, uint64_t begin_ns, uint64_t end_ns);

/* ---- behind the last ------------------------------------------------------------------------- */

/* Who devices are, by number. */
struct rank_device {
    uint32_t process; /* index */
    uint32_t job;     /* JOB_NONE: none that is known */
    uint64_t device;
};

/* A collective that several devices took part in, together. */
struct rank_meeting {
    const struct rank_sequence *sequence; /* of the last one */
    struct rank_kernel last;
    uint64_t first_ns; /* begin of the kernel that began first */
    uint32_t last_device;
    uint32_t count;
};

/* Who is told: of each device in each meeting, of each meeting, and of each time in which a device
 * did nothing but wait for another one. Meetings are told of communicator by communicator, the same
 * way whatever the order of devices. */
struct rank_listener {
    void *context;
    void (*joined)(void *context, uint32_t device, const struct rank_meeting *m);
    int (*met)(void *context, const struct rank_meeting *m);
    int (*waited)(void *context, uint32_t device, uint32_t waited_for, bool is_new,
                  uint64_t begin_ns, uint64_t end_ns);
};

/* 0 or an error. */
int idle_ranks_tell(struct idle_ranks *r, const struct rank_device *devices, uint32_t device_count,
                    const struct rank_listener *listener);

#endif
