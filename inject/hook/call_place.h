/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about a single call: its function, and whether it may still return, which follows from the
 * place of its struct on the stack. */
#ifndef GPUPROF_INJECT_CALL_PLACE_H
#define GPUPROF_INJECT_CALL_PLACE_H

#include <string.h>

#include "api/api.h"
#include "record/thread.h"

enum call_mode {
    CALL_PASS,   /* not an event */
    CALL_OWNER,  /* the usual case: no other call is open */
    CALL_ON_TOP, /* another call is open below it */
    CALL_NESTED, /* the same, and CUDA made it inside that call */
    CALL_LOST,   /* an event without space: dropped, and counted */
    CALL_PASSED, /* an event that is passed by and only counted; pass_by.h */
    /* calls are off: not an event, and neither are calls that CUDA makes inside it, even if
     * recording resumes */
    CALL_LEFT_OUT,
};

/* What a wrapper knows about its function at compile time, so that it costs nothing at run time. */
struct call_site {
    unsigned code;        /* enum api_code */
    unsigned count;       /* number of argument words */
    const uint8_t *kinds; /* enum arg_kind of each argument */
    const uint8_t *late;  /* 1: the argument is known only after the call */
    uint8_t class;        /* enum api_class */
    int pending;          /* a result that is not a failure, besides 0: enum api_pending */
    uint8_t capture;      /* enum api_capture */
    uint8_t cost;         /* enum cost_class */
    bool is_piece;        /* it copies one contiguous block: content.h */
    bool waits;           /* its purpose is to wait for the device */
    bool only_ends;       /* it only releases something: it does not start a recording */
    uint8_t memory;       /* enum api_memory */
};

/* Far more stack than CUDA uses between an outer and an inner call. */
#define CALL_STACK_BYTES_MAX (256u << 10)

/* The usual distance is below this, and no other stack ends within so few bytes. */
#define CALL_NEAR_BYTES 8192u

#define CALL_MODE_MASK ((uintptr_t)7)

static inline uintptr_t call_mark(const struct call *c, enum call_mode mode)
{
    return ~(uintptr_t)c ^ (uintptr_t)mode;
}

static inline enum call_mode call_mode(const struct call *c)
{
    return (enum call_mode)((c->mark ^ ~(uintptr_t)c) & CALL_MODE_MASK);
}

static inline bool call_has_mark(const struct call *c, uintptr_t mark)
{
    return (mark ^ ~(uintptr_t)c) <= CALL_MODE_MASK;
}

/* Returns whether only CUPTI's callbacks saw the call. */
static inline bool call_is_seen(const struct thread *t, const struct call *c)
{
    return (uintptr_t)c - (uintptr_t)t->seen < sizeof t->seen;
}

/* Like call_is_live, at any distance of `outer`. */
bool call_is_live_afar(const struct call *outer, const struct call *inner);

/*
 * Returns whether the open call `outer` may still return. It may not if its frame is gone, as seen
 * from `inner`, or if something else is there now. Reads the memory directly only where the stack
 * of `inner` must be mapped.
 */
static inline bool call_is_live(const struct call *outer, const struct call *inner)
{
    if (likely((uintptr_t)outer - (uintptr_t)inner - 1 < CALL_NEAR_BYTES))
        return call_has_mark(outer, *(const volatile uintptr_t *)&outer->mark);
    return call_is_live_afar(outer, inner);
}

/* A library's "not ready yet" is the normal answer to a query. */
static inline __attribute__((always_inline)) bool call_has_failed(const struct call_site *site,
                                                                  int result)
{
    const int pending = site->pending; /* read first: the compiler then tests both at once */
    return result != 0 && result != pending;
}

/* Completes a call's record with the late arguments in `words`. */
static inline __attribute__((always_inline)) void call_complete(uint64_t *record,
                                                                const struct call_site *site,
                                                                uint64_t end, int result,
                                                                const uint64_t *words)
{
    record[2] = end - record[1];
    memcpy(&record[3], &result, sizeof result); /* into the low half */
#pragma GCC unroll 16
    for (unsigned i = 0; i < API_ARGS_MAX; i++)
        if (i < site->count && site->late[i])
            record[RECORD_HEAD_WORDS + i] = words[i];
}

#endif
