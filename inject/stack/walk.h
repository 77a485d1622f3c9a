/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread's own stack: by libunwind where that is safe (unwinder.h), else frame by frame
 * by the rules of cfi.h, which are kept by address. In the latter nothing is allocated, and no
 * memory is read but the stack, of which each page is tried once before it is read; the usual frame
 * costs a look into a table and two loads. By a setting these come first, and libunwind walks the
 * stacks with a frame that they do not follow.
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
    bool is_cut;                    /* there were more */
    bool is_short;                  /* there were more, which are not followed by our rules */
    bool is_signal;                 /* a signal handler's frame is among them */
    bool is_borrowed;               /* its Python frames are another thread's; splice.c */
    bool has_ends;                  /* `begin` and `ends` are known: not to libunwind */
    uint64_t begin;                 /* of the first one's stack; it grows downwards */
    uint64_t ends[WALK_FRAMES_MAX]; /* of each one's, where its caller's begins */
    /* Return addresses, innermost first; and room for those of ours, which are left out. */
    uint64_t frames[WALK_FRAMES_MAX + WALK_INNER_MAX];
};

/*
 * All return addresses by libunwind, those of ours among them, if it is to walk and can: enough to
 * know a stack again, at less than half the cost of what follows.
 */
bool walk_whole(struct thread *t, struct walk *w, unsigned max);

/*
 * Fills `w` with at most `max` frames, from the program's own call of CUDA outwards: those of ours
 * and of CUDA's libraries inside of it are left out. May wait for a lock, within a bound.
 */
void walk_stack(struct thread *t, struct walk *w, unsigned max);

/*
 * Where the code goes on that called the function [low, high), of those that lead here from code
 * beside it that is neither ours nor CUDA's: 0 if that is not on the stack, or not near. By our own
 * reader; any thread, recording or not.
 */
uintptr_t walk_caller_of(uintptr_t low, uintptr_t high);

/* What walks by the same handler have found, for the next one: zeroed, or left as it is. */
#define WALK_PAST_RULES 8u
struct walk_past {
    uint64_t age; /* of the modules: key_of(0) then */
    unsigned next;
    struct cfi_rule rules[WALK_PAST_RULES]; /* of code that was interrupted */
    uintptr_t low, high;                    /* of its stack, what the last walk found readable */
};

/*
 * For a signal handler: fills `w` from the code on that it interrupted, with the frames of CUDA's
 * libraries, without ours; the first frame is as if that code had made a call there. Waits for
 * nobody, allocates nothing. w->is_signal: a handler of the program's was interrupted, and the
 * frames outside of it are not known. Of the walk before in `w` its frames are read ahead:
 * most stay the same.
 */
void walk_interrupted(const ucontext_t *context, struct walk_past *past, struct walk *w,
                      unsigned max);

/* Was it interrupted at the end of a system call? */
bool walk_is_in_kernel(const ucontext_t *context);

#endif
