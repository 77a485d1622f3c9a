/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of libraries (cuBLAS, cuDNN, NCCL): by function and how much there was to do, how often
 * each was called, how long, and how long the GPU worked on what was launched in it; its floating
 * point operations and bytes, and how fast that was. Work is that of the innermost call that was
 * open on its launch's thread and of those around it; that of a graph belongs to those that
 * captured it (graph_origins.h).
 *
 * The bandwidth of a collective is by its shortest kernel among the ranks, since the others wait
 * for the last to arrive: only of those of which all ranks are in the recording, as
 * nccl-tests' PERFORMANCE.md has it.
 *
 * Memory: 250 bytes a kind of call (library_calls.h) and 64 to 128 bytes a kernel of one,
 * LIBRARY_PAIRS_MAX at most, beyond which it is not known whether tensor cores were used; 8 MiB for
 * collectives that ranks are still to come to; 64 MiB for those of a part, which wait there for
 * other parts.
 */
#ifndef GPUPROF_COLLECTOR_LIBRARY_REPORT_H
#define GPUPROF_COLLECTOR_LIBRARY_REPORT_H

#include "model/event_walk.h"
#include "model/graph_origins.h"
#include "model/kernel_class.h"
#include "query/sums.h"

#define LIBRARY_PAIRS_MAX (1u << 18)
#define LIBRARY_WAITS_MAX (1u << 17)

/* What a row adds up ... */
enum library_value {
    LIBRARY_SEEN, /* a call or work is of it */
    LIBRARY_CALLS,
    LIBRARY_ERRORS,
    LIBRARY_HOST,
    LIBRARY_GPU,
    LIBRARY_WORKS,
    LIBRARY_EXECUTED,       /* calls whose work was seen, and replays of those that were captured */
    LIBRARY_TENSOR,         /* time, by enum tensor_use */
    LIBRARY_BUS_CALLS = 10, /* collectives of which all ranks were seen */
    LIBRARY_BUS_NS,         /* their shortest kernels */
    LIBRARY_FLOPS_NS,       /* of the GPU, with FLOPs that are known */
    LIBRARY_ALL_NS,         /* of all work, in a row that is not shown */
    LIBRARY_OWN_NS,         /* of it, of a library's call; likewise */
    LIBRARY_LEAST_DEVICE,   /* the least and the most of library_device */
    LIBRARY_DEVICE,
    LIBRARY_DOUBLE, /* one of these multiplies f64 on tensor cores */
    /* ... and what all calls of the name have in common. */
    LIBRARY_DOMAIN,
    LIBRARY_M,
    LIBRARY_N,
    LIBRARY_K,
    LIBRARY_BATCH,
    LIBRARY_MESSAGE, /* bytes of one */
    LIBRARY_RANKS,
    LIBRARY_COMPUTE,
    LIBRARY_TYPE,       /* cudaDataType: what is shown ... */
    LIBRARY_FACTOR,     /* ... and that of both factors */
    LIBRARY_IS_PRODUCT, /* its FLOPs are known */
    LIBRARY_IS_VECTOR,
    LIBRARY_HAS_BYTES,
    LIBRARY_BYTES, /* that must be moved at least */
    LIBRARY_VALUES
};

/* What is known of a kind. */
struct library_row {
    bool is_seen;
    bool is_mixed;                 /* devices of other names did work, too */
    const struct process *process; /* of the first device that did work; NULL: there is none */
    uint64_t device;
    uint64_t values[LIBRARY_VALUES];
};

/* Keys of the time of kernels of one name that calls of a kind made; kind 0: that none did. */
enum { PAIR_KIND, PAIR_PROCESS, PAIR_KERNEL };

struct library_report {
    struct walk *walk;
    struct sums *sums;        /* library_waits_sums and library_sums */
    struct library_row *rows; /* owned; of kind n rows[n - 1] */
    uint32_t count;
    uint32_t capacity;
    struct sums pairs;
    struct key_map makers; /* complete: struct kernel_name -> kind that makes it */
    struct key_map waits;  /* (communicator, sequence, text of the kind) -> wait_value */
    struct graph_origins graphs;
    bool is_part;       /* what waits for other ranks goes into a part */
    bool is_refused;    /* that it has forgotten ends the walk with an error */
    bool has_forgotten; /* collectives that wait for other parts: there was no room */
    uint64_t all_ns;    /* of all work */
    uint64_t own_ns;    /* of it, of a library's call */
};

/* There was more than it could keep. */
bool library_report_has_more(const struct library_report *l);

/* After the walk: which calls of libraries launched the kernels of a name. Of two the larger one
 * holds. */
enum kernel_maker {
    MAKER_UNKNOWN, /* of no kernel it is known */
    MAKER_KIND,    /* calls of one function and shape */
    MAKER_FUNCTION,
    MAKER_SEVERAL, /* functions */
    MAKER_NONE     /* some or all were launched in no call */
};

struct kernel_made {
    enum kernel_maker maker;
    const struct library_kind *kind; /* NULL: neither one kind nor one function */
};

struct kernel_made library_report_made(const struct library_report *l,
                                       const struct kernel_name *kernel);

/* A collective that some of the ranks have come to: how many, and the shortest of their kernels. */
#define WAIT_NS_BITS 44
#define WAIT_NS_MAX  ((1ull << WAIT_NS_BITS) - 1)

static inline uint64_t library_wait_value(uint64_t seen, uint64_t ns)
{
    return seen << WAIT_NS_BITS | (ns < WAIT_NS_MAX ? ns : WAIT_NS_MAX);
}

/* ---- library_report_rows.c ---- */

/* Behind the walk: fills the tables. 0 or an error. */
int library_report_complete(struct library_report *l);

#endif
