/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rank others waited for: the kernels of one collective on all ranks of a recording, of which
 * those that began earlier wait for the one that begins last. They are one collective if all of
 * them ran at one moment, when the last one began, and
 *
 * - have one number on their communicator, where the calls of NCCL are recorded
 *   (library_calls.h);
 *   kernels in between, of messages and groups, are counted from the last that has one;
 * - otherwise are the n-th of their communicator (by NCCL's ranges, nccl_call.h) or, where that is
 *   not known, of their name on ranks of one job. If ranks of one host, which has one clock, have
 *   not as many, those are one that ran together longer than with any other.
 *
 * Who comes last is whom the others waited for, unless it had waited on its host, and another rank
 * came behind half of that time: so do all that meet at a barrier of the host. Then it is the last
 * one of those that had not waited, and nobody is behind that one.
 *
 * A rank whose first kernel comes later, or that has no more, is not waited for; where it lacks one
 * in between nobody knows who was last, nor where ranks are not there at all: a communicator has
 * more than have such kernels, or, where its size is not known, some were left out, or have no file
 * (recording.h). In a piece all kernels are known, so that they meet as they do in the whole; a
 * collective is where the kernel is that began last, and waits are where the device waited.
 * Processes that have no rank, or one that another of their job has, too, are of no job that is
 * known; in a recording of one process nobody waits for another.
 *
 * Memory: 8 MiB for kernels, the times in which nothing else ran, and who waited, which lie in two
 * spools; 140 bytes a device; 250 for each communicator or name on each device, and up to 600 more
 * while it is found who met whom, IDLE_SEQUENCES_MAX of them. Nobody waits in those beyond.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_RANKS_H
#define GPUPROF_COLLECTOR_IDLE_RANKS_H

#include "analyse/rank_waits.h"
#include "base/key_map.h"
#include "base/span_stream.h"
#include "resolve/event_walk.h"

#define IDLE_SEQUENCES_MAX (1u << 19)

/* What numbers mean of kernels that another process of ours, or another run, has found. */
struct rank_numbers {
    uint32_t *kinds, *places; /* owned by who has this */
    uint32_t kind_count, place_count;
    bool has_failed; /* there is none of a number, or kernels are not what they should be */
};

/* Kernels, or times of a device, one behind the other. */
struct rank_spans {
    struct span_stream spans;
    struct packed_spans packed;   /* of a part; of none (.in is NULL) they are in the spool */
    struct rank_numbers *numbers; /* a view; NULL: they mean what they mean here */
};

/* The kernels of a communicator or name on a device, one behind the other. */
struct rank_sequence {
    uint64_t communicator; /* 0: by the name */
    const char *name;      /* a view */
    struct rank_spans kernels;
    uint32_t device;
    uint32_t ranks;   /* of its communicator; 0: not known */
    bool is_numbered; /* some of them are */
};

/* What of a kernel only arrivals.h knows. */
struct rank_kernel_facts {
    uint64_t idle_ns; /* that its device was idle for the longest since its last collective, ... */
    uint32_t idle_place; /* ... where, */
    uint32_t work_place; /* and what else took it longest; 0: nothing is known */
    uint32_t kind;
    bool is_hidden; /* it is not in the piece */
};

struct rank_kernel {
    uint64_t begin_ns, end_ns;
    struct rank_kernel_facts facts;
};

struct ranked_device {
    struct rank_spans alone; /* the times in which nothing else ran */
    uint64_t kernels;        /* that communicate, so far */
};

struct idle_ranks {
    struct rank_sequence *list; /* owned, and so are devices */
    uint32_t count;
    struct ranked_device *devices; /* by number */
    uint32_t device_count;
    struct key_map numbers; /* (device, communicator or name) -> place in list + 1 */
    struct spool spool;
    bool lacks_some; /* behind the last: of a communicator or name ranks are not there */
};

void idle_ranks_init(struct idle_ranks *r);
void idle_ranks_release(struct idle_ranks *r);

/* A kernel that communicates, on the device of that number; in the order of time. 0 or an error. */
int idle_ranks_kernel(struct idle_ranks *r, const struct slice *s, uint32_t device,
                      const struct kernel_name *name, const struct rank_kernel_facts *facts);

/* The place of a sequence + 1, which is made if it is new; 0: there is no room. `key` is what tells
 * names apart. 0 or GPUPROF_NO_MEMORY. */
int idle_ranks_sequence(struct idle_ranks *r, uint32_t device, uint64_t communicator,
                        const char *name, uint64_t key, uint32_t *sequence);

/* What is known of the device, and be it nothing. NULL: no memory. */
struct ranked_device *idle_ranks_device(struct idle_ranks *r, uint32_t device);

/* Nothing else ran on the device then; in the order of time. 0 or an error. */
int idle_ranks_alone(struct idle_ranks *r, uint32_t device, uint64_t begin_ns, uint64_t end_ns);

/* ---- behind the last ------------------------------------------------------------------------- */

/* Who devices are, by number. */
struct rank_device {
    uint32_t process; /* index */
    uint32_t host;
    uint32_t job; /* JOB_NONE: none that is known */
    uint64_t device;
    bool lacks_ranks; /* its job: some are not among the devices */
    bool loses_work;  /* its last kernels may be lost */
};

/* A collective that several devices took part in, together. */
struct rank_meeting {
    const struct rank_sequence *sequence; /* of the last one */
    struct rank_kernel last;
    uint64_t first_ns; /* begin of the kernel that began first */
    uint32_t last_device;
    uint32_t late_device;    /* whom the others waited for; RANK_NOT_KNOWN: nobody, ... */
    struct rank_kernel late; /* ... and its kernel; of nobody one that begins at first_ns */
    uint32_t count;
};

/* Why nobody knows who was last to a collective. */
enum rank_miss {
    RANK_MISS_KERNEL, /* a rank has no kernel of that number */
    RANK_MISS_NUMBER, /* a rank has not as many kernels as others, and they have no numbers */
    RANK_MISS_TIME,   /* they did not run at one moment: the clocks may be apart */
    RANK_MISS_PIECE,  /* some ranks are not there, or were left out */
    RANK_MISS_LOST, /* a rank's last kernels may be lost, and this is behind those that are known */
    RANK_MISSES
};

#define RANK_NOT_KNOWN UINT32_MAX
#define RANK_NOBODY    (UINT32_MAX - 1) /* who came last had waited on its host */

/* Who is told: of each device in each meeting, of each meeting, of each collective (a kernel of it)
 * that is none, all in the piece, and of each time in which a device did nothing but wait for
 * another one; where ranks are not there, until the last of those that are had come, and for
 * RANK_NOT_KNOWN. Meetings
 * are told of communicator by communicator, the same way whatever the order of devices; then times
 * device by device. `has_waited`: at that idle place, its number, a thread waited on the host. */
struct rank_listener {
    void *context;
    bool (*has_waited)(void *context, uint32_t place);
    void (*joined)(void *context, uint32_t device, const struct rank_meeting *m);
    int (*met)(void *context, const struct rank_meeting *m);
    void (*missed)(void *context, const struct rank_kernel *k, enum rank_miss why);
    rank_waited_fn *waited;
};

/* `leaves_out`: there may be ranks that are not among the devices. 0 or an error. */
int idle_ranks_tell(struct idle_ranks *r, const struct rank_device *devices, uint32_t device_count,
                    bool leaves_out, const struct rank_listener *listener);

#endif
