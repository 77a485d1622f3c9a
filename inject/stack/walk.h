/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the calling thread's stack: with libunwind where that is safe (unwinder.h), otherwise frame
 * by frame with the rules of cfi.h, cached by address. The latter allocates nothing, and reads no
 * memory except the stack, of which each page is tested once before it is read; a usual frame costs
 * a table look-up and two loads. A setting makes it come first; libunwind then walks only the
 * stacks with a frame that it does not support.
 */
#ifndef GPUPROF_INJECT_WALK_H
#define GPUPROF_INJECT_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "stack/cfi.h"

struct thread;

#define WALK_FRAMES_MAX 512
#define WALK_INNER_MAX  64 /* frames of ours and of CUDA's */

struct walk {
    unsigned count;
    bool is_cut;      /* there were more */
    bool is_short;    /* there were more, which our rules do not support */
    bool is_signal;   /* one of them is a signal handler's frame */
    bool is_borrowed; /* its Python frames belong to another thread; splice.c */
    /* `begin` and `ends` are known, which libunwind does not provide */
    bool has_ends;
    uint64_t begin;                 /* lowest address of the first frame's stack */
    uint64_t ends[WALK_FRAMES_MAX]; /* end of each frame's stack, where its caller's begins */
    /* Return addresses, innermost first; with space for those of ours, which are removed. */
    uint64_t frames[WALK_FRAMES_MAX + WALK_INNER_MAX];
};

/* Takes all return addresses with libunwind, including ours, if it is to walk and can: enough to
 * recognize a stack, at less than half the cost of what follows. */
bool walk_whole(struct thread *t, struct walk *w, unsigned max);

/* Fills `w` with at most `max` frames, from the program's own CUDA call outwards: frames of ours
 * and of CUDA's libraries inside it are left out. May wait for a lock, with a time limit. */
void walk_stack(struct thread *t, struct walk *w, unsigned max);

/*
 * Returns the address after the call of the function [low, high), on the way here, by code that is
 * neither ours nor CUDA's; 0: it is not on the stack, or not near. Uses our own reader; any thread,
 * recording or not.
 */
uintptr_t walk_caller_of(uintptr_t low, uintptr_t high);

/* What previous walks in the same handler have found: zeroed, or left unchanged. */
#define WALK_PAST_RULES 8u
struct walk_past {
    uint64_t age; /* of the modules: key_of(0) at that time */
    unsigned next;
    struct cfi_rule rules[WALK_PAST_RULES]; /* for interrupted code */
    /* the part of its stack that the last walk found readable */
    uintptr_t low, high;
};

/*
 * For a signal handler: fills `w` from the interrupted code on, with the frames of CUDA's
 * libraries, without ours; the first frame is as if that code had made a call there. Does not wait
 * or allocate. w->is_signal: a handler of the program was interrupted, and the frames outside it
 * are not known. The frames of the previous walk in `w` are read ahead, since most stay the same.
 */
void walk_interrupted(const ucontext_t *context, struct walk_past *past, struct walk *w,
                      unsigned max);

/* Was the code interrupted at the end of a system call? */
bool walk_is_in_kernel(const ucontext_t *context);

#endif
