/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object files in the process's memory, as stacks need them: a copy of what the loader's list
 * says, taken anew when an address is in none of them or when the list has changed since.
 *
 * Objects go only by dlclose, which is hooked (unload.c); an object in which a thread's own frames
 * are cannot go meanwhile. So what is found for an address holds until the next unload, which
 * raises modules_age: part of the key of everything that is kept by address. Frames outlive it: a
 * file of the same build and name has the same number wherever, and whenever, it is loaded.
 */
#ifndef GPUPROF_INJECT_MODULES_H
#define GPUPROF_INJECT_MODULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "stack/cfi.h"

struct thread;

extern _Atomic uint32_t modules_age;      /* raised by each unload */
extern _Atomic uint32_t modules_list_age; /* raised by each change of the list that was seen */

/* Around the real dlclose, so that nobody trusts the copy meanwhile. */
void modules_closing(void);
void modules_closed(void);

/*
 * Has the loader's list changed since the copy? Raises the ages if so. Cheap if nobody is in
 * dlclose and `anyway` is false.
 */
void modules_check(bool anyway);

/* The rule for the code at `address`; its flags say CFI_NONE if there is none. False: not now. */
bool modules_rule(uintptr_t address, struct cfi_rule *rule);

/*
 * modules_rule for a signal handler, which waits for nobody: by the C library's own look-up, from
 * glibc 2.35 on. `is_once`: whether it is CUDA's code is of no interest. False: not by this C
 * library, or modules_find_now was not called.
 */
bool modules_rule_now(uintptr_t address, struct cfi_rule *rule, bool is_once);

/* Looks for that look-up; before the first signal. */
void modules_find_now(void);

/*
 * Turns return addresses into frames, in place, and writes the MODULE records that they need. False
 * if one was dropped, or not now.
 */
bool modules_frames(struct thread *t, uint64_t *frames, unsigned count);

/* In the child of a fork. False: the loader's list may be locked for ever, by a thread that is gone
 */
bool modules_reset(void);

#endif
