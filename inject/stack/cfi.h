/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information: how to get from a place in a function's code to its caller, read from the
 * object's .eh_frame as it lies in memory. Only what a compiler says of a place where a call is: a
 * frame that is described in any other way has no rule, and a stack ends there.
 *
 * For where libunwind cannot be used (unwinder.h), and to look for signal handlers before it is.
 * Its rules are small enough to be kept by address, and a handler may leave a walk by longjmp. The
 * C library's backtrace() allocates, and takes 10 us.
 */
#ifndef GPUPROF_INJECT_CFI_H
#define GPUPROF_INJECT_CFI_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
enum { CFI_FRAME_POINTER = 6, CFI_STACK_POINTER = 7, CFI_RETURN_ADDRESS = 16 };
#elif defined(__aarch64__)
enum { CFI_FRAME_POINTER = 29, CFI_STACK_POINTER = 31, CFI_RETURN_ADDRESS = 30 };
#else
#error "stacks are walked on x86_64 and aarch64"
#endif

/* Where a caller's register is. */
enum cfi_place {
    CFI_SAME,      /* where it was: unchanged */
    CFI_IN_FRAME,  /* stored at the frame's address (CFA) + offset */
    CFI_AT_BASE,   /* stored at the frame pointer + offset: the stack was aligned */
    CFI_UNDEFINED, /* lost; of the return address: this is the outermost frame */
};

enum cfi_flag {
    CFI_FROM_STACK = 1, /* the frame's address counts from the stack pointer, else frame pointer */
    CFI_LOADED = 2,     /* it is stored at that place, and cfa_further more than what is there */
    CFI_SIGNAL = 4,     /* the kernel made the frame, to run a signal handler */
    CFI_OURS = 8,       /* the code is in our own library (set by modules.c) */
    CFI_CUDA = 16,      /* ... in one of CUDA's */
    CFI_NONE = 32,      /* there is no rule: the stack ends here */
    CFI_STRANGE = 64,   /* there is one, which is not followed */
};

struct cfi_rule {
    uintptr_t low, high; /* the code that it is the rule of; 0: only the address asked for */
    uint8_t flags;       /* enum cfi_flag */
    uint8_t pointer_place;
    uint8_t return_place;
    int16_t cfa_further;
    int32_t cfa_offset;
    int32_t pointer_offset;
    int32_t return_offset;
};

/* What is read of an object: one readable segment, which has its .eh_frame_hdr and its .eh_frame */
struct cfi_object {
    uintptr_t low;
    uintptr_t high;
    uintptr_t index; /* the .eh_frame_hdr; 0 = none */
};

/*
 * The rule for the code at `address`. False if there is none: its flags say CFI_NONE, and
 * CFI_STRANGE if the object has information on the function that is not followed. Reads nothing
 * outside of the segment, whatever stands in it, and the time is bounded.
 */
bool cfi_find(const struct cfi_object *object, uintptr_t address, struct cfi_rule *rule);

#endif
