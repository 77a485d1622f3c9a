/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of libraries that use CUDA (cuBLAS, cuDNN, NCCL): a record where one begins, and one where
 * it ends, so that CUDA's calls in between stay events of their own. Of a library that calls itself
 * the outermost call is the event. An inner one is known by two witnesses: who calls it is the
 * library, and the outer one's struct still lies on the stack; either alone is wrong of a call that
 * was left by longjmp or an exception, or which a signal handler has interrupted.
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
    uint8_t count;       /* of argument words */
    uint8_t family;      /* enum api_domain: whose calls inside of it are part of it */
    bool looks;          /* its words are to be looked for: cublas_looks.h */
    const uint8_t *late; /* 1: the argument is known only when the call has returned */
};

/* What the first argument of a function of the role LIBRARY_PLAN points to: the record has the
 * number of a LIBRARY_PLAN record in its place. */
struct library_plan {
    uint64_t (*number)(const struct library_plan *plan, struct thread *t); /* 0: not known */
    uintptr_t real; /* the function that is called: in the library that can be asked */
};

struct library_call {
    struct call call;   /* where it is, as of CUDA's calls */
    struct call *outer; /* of its family; one that this call is no part of */
    uint64_t epoch;     /* of the recording that its begin is in; EPOCH_NONE: in none */
    bool is_open;       /* it is no part of another */
    uint64_t made[4];   /* the first words of what makes communicators */
};

/*
 * Before the real function, which is returned, and after it; NULL: nothing that is loaded defines
 * it, and nothing comes after. `caller`: whose call it is. `words`: all arguments, those that are
 * not known yet, or any more, are 0; what looking for them finds is put in; NULL at the end: none
 * is known only then. errno is kept.
 */
void *library_begin(struct library_call *c, const struct library_site *site, uint64_t *words,
                    uintptr_t caller);
void library_end(struct library_call *c, const struct library_site *site, int result,
                 const uint64_t *words);

/* Features: describes functions that were called for the first time; none was in a fork's child. */
void library_describe(struct thread *writer, bool is_last);
void library_reset(void);

#endif
