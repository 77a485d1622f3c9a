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
 * Memory: 250 bytes a kind of call (library_calls.h) and device, KINDS_MAX at most, and 150 bytes a
 * kernel of one, LIBRARY_PAIRS_MAX at most, beyond which it is not known whether tensor cores were
 * used; 8 MiB for collectives that ranks are still to come to; 64 MiB for those of a part, which
 * wait there for other parts.
 */
#ifndef GPUPROF_COLLECTOR_LIBRARY_REPORT_H
#define GPUPROF_COLLECTOR_LIBRARY_REPORT_H

#include "query/sums.h"
#include "resolve/event_walk.h"
#include "resolve/graph_origins.h"
#include "resolve/kernel_class.h"

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
    LIBRARY_LEAST_DEVICE,   /* the least and the most of device_peaks_number */
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

struct library_report {
    struct walk *walk;
    struct sums *sums;    /* library_waits_sums and library_sums; while the walk lasts, rows of the
                             latter are by kind, process and one more than the device that worked */
    struct sums pairs;    /* time of kernels that calls of a kind made; kind 0: that none did */
    struct key_map waits; /* (communicator, sequence, text of the kind) -> wait_value */
    struct graph_origins graphs;
    bool is_part;       /* what waits for other ranks goes into a part */
    bool is_refused;    /* that it has forgotten ends the walk with an error */
    bool has_forgotten; /* collectives that wait for other parts: there was no room */
    bool has_more;      /* there was more than it could keep */
    uint64_t all_ns;    /* of all work */
    uint64_t own_ns;    /* of it, of a library's call */
};

#endif
