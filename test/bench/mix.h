/* SPDX-License-Identifier: Apache-2.0 */
/* A launch mix (training-step.mix says what one is), and its replay: the same calls in every step,
 * with new times. */
#ifndef GPUPROF_BENCH_MIX_H
#define GPUPROF_BENCH_MIX_H

#include <stdint.h>

#define MIX_CALLS_MAX   4096
#define MIX_KERNELS_MAX 256
#define MIX_WORDS_MAX   10

enum mix_kind { MIX_LAUNCH, MIX_COPY, MIX_SET, MIX_RECORD, MIX_WAIT, MIX_SYNC };

struct mix_call {
    enum mix_kind kind;
    double gap_ns; /* medians */
    double duration_ns;
    uint64_t words[MIX_WORDS_MAX]; /* the fields after the times, as they stand in the file */
};

struct mix {
    double gap_sigma;
    double duration_sigma;
    unsigned call_count;
    unsigned kernel_count;
    char *kernels[MIX_KERNELS_MAX];
    struct mix_call calls[MIX_CALLS_MAX];
    uint64_t random_state;
};

/* Reads the file; ends the program if it cannot. */
struct mix *mix_read(const char *path);

/* This step's time for a median of the mix. */
uint64_t mix_time(struct mix *m, double median_ns, double sigma);

/* The source address of a copy in this step. */
uint64_t mix_copy_source(const struct mix_call *c, uint64_t step);

#endif
