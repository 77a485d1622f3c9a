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

#include "analyse/gpu_stats.h"
#include "model/event_walk.h"
#include "model/graph_origins.h"
#include "model/kernel_class.h"
#include "table/table.h"

#define LIBRARY_PAIRS_MAX (1u << 18)
#define LIBRARY_WAITS_MAX (1u << 17)

/* What is known of a kind; then, when complete, of all that are called the same. */
struct library_row {
    uint32_t kind;                 /* the first of them */
    const struct library_kind *of; /* complete: likewise */
    const struct kernel_name *text;
    uint64_t calls;
    uint64_t errors;
    uint64_t host_ns;
    uint64_t gpu_ns;
    uint64_t works;
    uint64_t executed; /* calls whose work was seen, and replays of those that were captured */
    uint64_t tensor_ns[TENSOR_USES];
    struct library_work work;      /* of one call */
    uint64_t bus_calls;            /* collectives of which all ranks were seen */
    uint64_t bus_ns;               /* their shortest kernels */
    const struct process *process; /* of the first device that did work; NULL: there is none */
    uint64_t device;
    bool is_mixed;      /* others of other names did some */
    bool is_seen;       /* a call or work is of it */
    uint32_t peak;      /* GFLOP/s that the device could do; 0: not known */
    uint32_t bandwidth; /* GB/s of its memory, likewise */
    bool is_eligible;   /* for tensor cores */
};

/* Kernels of one name that calls of a kind made; kind 0: that none did. */
struct library_pair {
    uint32_t kind;
    const struct process *process; /* that has the number of the kernel's name */
    uint64_t kernel;
    uint64_t ns;
};

struct library_report {
    struct walk *walk;
    struct library_row *rows; /* owned; of kind n rows[n - 1]; complete: in their order */
    uint32_t count;
    uint32_t capacity;
    struct library_pair *pairs; /* owned: of a kind and a kernel */
    uint32_t pair_count;
    uint32_t pair_capacity;
    struct key_map pair_places; /* (kind, process, kernel) -> place + 1 */
    struct key_map makers;      /* complete: struct kernel_name -> kind that makes it */
    struct key_map waits;       /* (communicator, sequence, text of the kind) -> wait_value */
    struct graph_origins graphs;
    bool is_part;            /* its rows go into a part as they are: library_part.h */
    bool is_refused;         /* that it has forgotten ends the walk with an error */
    bool has_forgotten;      /* collectives that wait for other parts: there was no room */
    uint64_t gpu_ns;         /* of all work */
    uint64_t gpu_library_ns; /* of it, of a library's call */
    uint64_t flops_ns;       /* of it, with FLOPs that are known */
};

/* `walk` must stay. */
void library_report_init(struct library_report *l, struct walk *walk);
void library_report_release(struct library_report *l);

/* `has_work`: the recording has, or should have, work of devices. */
struct consumer library_report_consumer(struct library_report *l, bool has_work);

/*
 * After the walk: the call that all of a kernel's launches were made in, "cublasGemmEx
 * 4096x4096x4096 bf16", or its function if they were of several shapes; NULL: no call, several
 * functions, or not known.
 */
const char *library_report_maker(const struct library_report *l, const struct kernel_name *kernel);

/* The same for parts, and what it is called. Views. */
struct kernel_made library_report_made(const struct library_report *l,
                                       const struct kernel_name *kernel);
const char *library_maker_text(const struct kernel_made *made);

/* FLOP for each byte that must be moved at least, and TFLOP/s; 0: not known. */
double library_row_intensity(const struct library_row *row);
double library_row_tflops(const struct library_row *row);

/* Bytes a nanosecond, GB/s, that each link of the ranks carried; 0: not known. */
double library_row_bus(const struct library_row *row);

/* A collective that some of the ranks have come to: how many, and the shortest of their kernels. */
#define WAIT_NS_BITS 44
#define WAIT_NS_MAX  ((1ull << WAIT_NS_BITS) - 1)

static inline uint64_t library_wait_value(uint64_t seen, uint64_t ns)
{
    return seen << WAIT_NS_BITS | (ns < WAIT_NS_MAX ? ns : WAIT_NS_MAX);
}

/* The row of that kind; NULL: no memory. */
struct library_row *library_row_of(struct library_report *l, uint32_t kind);

/* ---- library_report_rows.c ---- */

/* That device did work for it. Of several a row has the numbers of the first one, by process, if
 * all have the same name. */
void library_row_see(const struct library_report *l, struct library_row *row,
                     const struct process *process, uint64_t device);

/* A kernel of that name was of a call of that kind. 0 or GPUPROF_NO_MEMORY. */
int library_pair_add(struct library_report *l, uint32_t kind, const struct process *process,
                     uint64_t kernel, uint64_t ns);

/* Behind the walk: names the rows, and orders those that are not of a part. 0 or an error. */
int library_report_complete(struct library_report *l);

/* Rows that have their texts and work become complete, those of one name one. */
void library_rows_order(struct library_report *l);

/* ---- library_report_print.c ---- */

/* Of a struct library_report. */
extern const struct table_info library_table;

#endif
