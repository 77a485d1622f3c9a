/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of libraries that use CUDA (cuBLAS, cuDNN, NCCL): a record at the begin and one at the end,
 * so that CUDA's calls in between stay events of their own. If a library calls itself, the
 * outermost call is the event. An inner call is recognized by two signs: the library makes it, and
 * the outer call's struct is still on the stack. Either alone would be wrong for a call left by
 * longjmp or an exception, or interrupted by a signal handler.
 */
#ifndef GPUPROF_INJECT_LIBRARY_CALL_H
#define GPUPROF_INJECT_LIBRARY_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "hook/call_place.h"
#include "hook/resolve.h"

struct library_site {
    uint16_t code;       /* enum api_code */
    uint8_t role;        /* enum api_role */
    uint8_t count;       /* number of argument words */
    uint8_t family;      /* enum api_domain: calls of this family inside it are part of it */
    bool looks;          /* its words are to be replaced: cublas_looks.h */
    const uint8_t *late; /* 1: the argument is known only after the call */
};

/* What the first argument of a LIBRARY_PLAN function points to; the record has the number of a
 * LIBRARY_PLAN record instead. */
struct library_plan {
    uint64_t (*number)(const struct library_plan *plan, struct thread *t); /* 0: not known */
    uintptr_t real; /* the function called, in the library that can be queried */
};

struct library_call {
    struct call call;   /* its place on the stack, as for CUDA calls */
    struct call *outer; /* the outer call of its family; NULL if it is not inside one */
    uint64_t epoch;     /* epoch of the recording that has its begin; EPOCH_NONE: none */
    bool is_open;       /* it is not part of another call */
    uint64_t made[4];   /* the first words of a call that creates communicators */
};

/*
 * Called before the real function, which it returns (NULL: no loaded object defines it, and nothing
 * follows), and after it. `caller`: return address of the call. `words`: all arguments; those not
 * known yet, or no longer, are 0, and found ones are inserted; NULL at the end: none is known only
 * then. Keeps errno.
 */
void *library_begin(struct library_call *c, const struct library_site *site, uint64_t *words,
                    uintptr_t caller);
void library_end(struct library_call *c, const struct library_site *site, int result,
                 const uint64_t *words);

/* Features: describes functions called for the first time; in a fork's child none was called. */
void library_describe(struct thread *writer, bool is_last);
void library_reset(void);

#endif
