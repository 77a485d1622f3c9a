/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information: finds the caller of a place in a function's code, from the object's
 * .eh_frame in memory. Supports only what compilers write for places with calls: a frame described
 * in another way has no rule, and the stack ends there.
 *
 * Used where libunwind cannot be (unwinder.h), and to look for signal handlers before it is. Its
 * rules are small enough to be cached by address, and a handler may leave a walk by longjmp. The C
 * library's backtrace() allocates, and takes 10 us.
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
    CFI_SAME,      /* unchanged */
    CFI_IN_FRAME,  /* stored at the frame's address (CFA) + offset */
    CFI_AT_BASE,   /* stored at the frame pointer + offset: the stack was aligned */
    CFI_UNDEFINED, /* lost; for the return address: this is the outermost frame */
};

enum cfi_flag {
    /* the CFA is relative to the stack pointer, otherwise to the frame pointer */
    CFI_FROM_STACK = 1,
    CFI_LOADED = 2,   /* the CFA is stored at that place; cfa_further is added to it */
    CFI_SIGNAL = 4,   /* the kernel made the frame, for a signal handler */
    CFI_OURS = 8,     /* the code is in our own library (set by modules.c) */
    CFI_CUDA = 16,    /* ... in one of CUDA's */
    CFI_NONE = 32,    /* there is no rule: the stack ends here */
    CFI_STRANGE = 64, /* there is one that we do not support */
};

struct cfi_rule {
    uintptr_t low, high; /* the code that the rule is for; 0: only the address asked for */
    uint8_t flags;       /* enum cfi_flag */
    uint8_t pointer_place;
    uint8_t return_place;
    int16_t cfa_further;
    int32_t cfa_offset;
    int32_t pointer_offset;
    int32_t return_offset;
};

/* The part of an object that is read: one readable segment with its .eh_frame_hdr and .eh_frame. */
struct cfi_object {
    uintptr_t low;
    uintptr_t high;
    uintptr_t index; /* the .eh_frame_hdr; 0: none */
};

/*
 * Finds the rule for the code at `address`. Returns false if there is none: its flags are CFI_NONE,
 * and CFI_STRANGE if the object describes the function in an unsupported way. Reads nothing outside
 * the segment, whatever it contains, and takes bounded time.
 */
bool cfi_find(const struct cfi_object *object, uintptr_t address, struct cfi_rule *rule);

#endif
