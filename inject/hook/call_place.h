/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a call by itself: its function, and by its struct on the stack whether it may
 * come back, and as what.
 */
#ifndef GPUPROF_INJECT_CALL_PLACE_H
#define GPUPROF_INJECT_CALL_PLACE_H

#include <string.h>

#include "api/api.h"
#include "record/thread.h"

enum call_mode {
    CALL_PASS,     /* not an event */
    CALL_OWNER,    /* the usual: no other call is open */
    CALL_ON_TOP,   /* another one waits below it */
    CALL_NESTED,   /* the same, and it is CUDA's own */
    CALL_LOST,     /* an event that found no room: dropped, and counted */
    CALL_PASSED,   /* an event that is passed by, and counted; pass_by.h */
    CALL_LEFT_OUT, /* calls are off: no event, nor is what CUDA calls inside it, if they go on */
};

/* What a wrapper knows of its function when it is compiled, so that none of it costs at run time.
 */
struct call_site {
    unsigned code;        /* enum api_code */
    unsigned count;       /* of argument words */
    const uint8_t *kinds; /* of the arguments, enum arg_kind */
    const uint8_t *late;  /* 1: the argument is known only when the call has returned */
    uint8_t class;        /* enum api_class */
    int pending;          /* a result that is no failure, as 0 is not: enum api_pending */
    uint8_t capture;      /* enum api_capture */
    uint8_t cost;         /* enum cost_class */
    bool is_piece;        /* it copies one piece: content.h */
    bool waits;           /* it is there to wait for the device */
    bool only_ends;       /* it only ends what there is: by itself it begins no recording */
    uint8_t memory;       /* enum api_memory */
};

/* CUDA's own frames between an outer and an inner call stay far below this. */
#define CALL_STACK_BYTES_MAX (256u << 10)

/* And usually below this, which is so little that no other stack ends in between. */
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

/* Is it one that only CUPTI's callbacks saw? */
static inline bool call_is_seen(const struct thread *t, const struct call *c)
{
    return (uintptr_t)c - (uintptr_t)t->seen < sizeof t->seen;
}

/* As call_is_live, wherever `outer` lies. */
bool call_is_live_afar(const struct call *outer, const struct call *inner);

/*
 * May `outer`, a call found open, come back? Not if its frame is gone, as seen from `inner`, or
 * something else lies there by now. Reads the memory directly only where the stack that `inner`
 * stands on must be mapped.
 */
static inline bool call_is_live(const struct call *outer, const struct call *inner)
{
    if (likely((uintptr_t)outer - (uintptr_t)inner - 1 < CALL_NEAR_BYTES))
        return call_has_mark(outer, *(const volatile uintptr_t *)&outer->mark);
    return call_is_live_afar(outer, inner);
}

/* Its library's "not ready yet" is what queries are asked for. */
static inline __attribute__((always_inline)) bool call_has_failed(const struct call_site *site,
                                                                  int result)
{
    const int pending = site->pending; /* first: the compiler then tests for both at once */
    return result != 0 && result != pending;
}

/* Completes a call's record; what `words` has of late ones goes in. */
static inline __attribute__((always_inline)) void call_complete(uint64_t *record,
                                                                const struct call_site *site,
                                                                uint64_t end, int result,
                                                                const uint64_t *words)
{
    record[2] = end - record[1];
    memcpy(&record[3], &result, sizeof result); /* the low half */
#pragma GCC unroll 16
    for (unsigned i = 0; i < API_ARGS_MAX; i++)
        if (i < site->count && site->late[i])
            record[RECORD_HEAD_WORDS + i] = words[i];
}

#endif
