/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of libraries (cuBLAS, cuDNN, NCCL), by function and amount of work: how often each was
 * called, its time on the host and on the GPU, its floating point operations and bytes, and their
 * rates. Work belongs to the innermost call open on its launch's thread, and to the calls around
 * that. Work of a graph belongs to the calls that captured it (graph_origins.h).
 *
 * The bandwidth of a collective follows its shortest kernel among the ranks, since the others wait
 * for the last to arrive. It needs all ranks in the recording, as in nccl-tests' PERFORMANCE.md.
 *
 * Memory: 250 bytes a kind of call (library_calls.h) and device, KINDS_MAX at most; 150 bytes a
 * kernel of one, LIBRARY_PAIRS_MAX at most, beyond which the use of tensor cores is not known; 8
 * MiB for collectives that still lack ranks; 64 MiB for those of a part that wait for other parts.
 */
#ifndef GPUPROF_COLLECTOR_LIBRARY_REPORT_H
#define GPUPROF_COLLECTOR_LIBRARY_REPORT_H

#include "query/sums.h"
#include "resolve/event_walk.h"
#include "resolve/graph_origins.h"
#include "resolve/kernel_class.h"

#define LIBRARY_PAIRS_MAX (1u << 18)
#define LIBRARY_WAITS_MAX (1u << 17)

/* The values of a row: sums ... */
enum library_value {
    LIBRARY_SEEN, /* a call or work belongs to it */
    LIBRARY_CALLS,
    LIBRARY_ERRORS,
    LIBRARY_HOST,
    LIBRARY_GPU,
    LIBRARY_WORKS,
    LIBRARY_EXECUTED,       /* calls with recorded work, and replays of captured ones */
    LIBRARY_TENSOR,         /* time, by enum tensor_use */
    LIBRARY_BUS_CALLS = 10, /* collectives with all ranks recorded */
    LIBRARY_BUS_NS,         /* their shortest kernels */
    LIBRARY_FLOPS_NS,       /* GPU time of work with known FLOPs */
    LIBRARY_ALL_NS,         /* of all work; in a row that is not shown */
    LIBRARY_OWN_NS,         /* of work of a library's call; likewise */
    LIBRARY_LEAST_DEVICE,   /* least and most device_peaks_number */
    LIBRARY_DEVICE,
    LIBRARY_DOUBLE, /* one of the devices multiplies f64 on tensor cores */
    /* ... and attributes that all calls of the name share. */
    LIBRARY_DOMAIN,
    LIBRARY_M,
    LIBRARY_N,
    LIBRARY_K,
    LIBRARY_BATCH,
    LIBRARY_MESSAGE, /* bytes of one */
    LIBRARY_RANKS,
    LIBRARY_COMPUTE,
    LIBRARY_TYPE,       /* cudaDataType: the one shown ... */
    LIBRARY_FACTOR,     /* ... and that of both factors */
    LIBRARY_IS_PRODUCT, /* its FLOPs are known */
    LIBRARY_IS_VECTOR,
    LIBRARY_HAS_BYTES,
    LIBRARY_BYTES, /* minimum to move */
    LIBRARY_VALUES
};

struct library_report {
    struct walk *walk;
    struct sums *sums; /* library_waits_sums and library_sums; during the walk the latter's rows are
                          keyed by kind, process and device + 1 */
    struct sums pairs; /* time of kernels by kind of call; kind 0: no call */
    struct key_map waits; /* (communicator, sequence, text of the kind) -> ranks and ns, packed */
    struct graph_origins graphs;
    bool is_part;       /* collectives that wait for other ranks go into a part */
    bool is_refused;    /* forgotten collectives end the walk with an error */
    bool has_forgotten; /* collectives that wait for other parts were dropped for lack of room */
    bool has_more;      /* rows were dropped for lack of room */
    uint64_t all_ns;    /* of all work */
    uint64_t own_ns;    /* of work of a library's call */
};

#endif
