/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_NCCL_H
#define SIM_NCCL_H

/*
 * The simulated NCCL (README.md). Ranks are processes or threads; those of a communicator meet in
 * its board, a file that all map. Nothing here comes from gpuprof's own rows.
 */

#include <nccl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define NCCL_EXPORT __attribute__((visibility("default")))

enum {
    RANKS_MAX = 16,
    COLLECTIVES_MAX = 32768, /* of a communicator */
    PAIRS_MAX = 4096,        /* messages from one rank to another */
    CHOICES_MAX = 256,       /* splits and shrinks of a communicator */
};

/* Sparse: what nobody touches takes no room. 0: nobody was there yet. */
struct board {
    uint32_t arrived[RANKS_MAX];
    uint64_t start_ns[COLLECTIVES_MAX][RANKS_MAX];
    uint64_t message_ns[RANKS_MAX][RANKS_MAX][PAIRS_MAX][2]; /* from, to; sent and received */
    struct choice {
        int color, key;
        uint32_t is_made;
    } choices[CHOICES_MAX][RANKS_MAX];
};

struct ncclComm {
    uint64_t magic;
    int rank, rank_count, device;
    unsigned depth; /* 0: made of a unique id; that of its parent and 1 */
    bool is_blocking;
    uint64_t hash; /* the same on all ranks */
    struct board *board;
    uint64_t collective_count;
    uint64_t sent_count[RANKS_MAX], received_count[RANKS_MAX];
    unsigned choice_count;
    int state;         /* ncclResult_t, atomic: ncclInProgress while a thread of ours is at it */
    ncclComm_t parent; /* until it is ready: of a split or shrink */
    int is_kept_count; /* of a shrink: the ranks of the parent that are in it */
    int kept[RANKS_MAX];
};

/* What NCCL's ranges carry: schema number, and the words behind the communicator's hash. */
struct payload {
    int schema; /* 0: none */
    uint64_t words[3];
    unsigned bytes;
};

/* sim_nccl_log.c: the range in domain "NCCL", and a line in the log, as it begins and ends. */
void entry_begin(const char *name, const struct payload *payload, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
ncclResult_t entry_end(const char *name, ncclResult_t result);

/* sim_nccl_comm.c */
bool comm_is(ncclComm_t comm);
ncclResult_t comm_ready(ncclComm_t comm); /* ncclSuccess, or why no operation may begin */
void comm_set(ncclComm_t comm, ncclResult_t state);
void comm_arrive(ncclComm_t comm);
ncclResult_t comm_join(ncclComm_t comm); /* returns when every rank has arrived */

/* sim_nccl_group.c */
enum op_kind { OP_JOIN, OP_COLLECTIVE, OP_SEND, OP_RECEIVE };

struct op {
    enum op_kind kind;
    const char *kernel; /* of a collective: which */
    ncclComm_t comm;
    int peer;
    cudaStream_t stream;
    uint64_t number; /* of its kind, on its communicator or between its two ranks */
};

/* Queued if a group is open on this thread, else done. */
ncclResult_t group_take(const struct op *op);

#endif
