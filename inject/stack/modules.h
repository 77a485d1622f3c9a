/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object files in the process's memory, as stacks need them: a copy of the loader's list, made
 * again when an address is in none of them, or when the list has changed.
 *
 * Objects are unloaded only by dlclose, which is hooked (unload.c); an object with frames of a
 * running thread stays loaded. So the result for an address is valid until the next unload, which
 * increments modules_age: it is part of the key of everything cached by address. Frames stay valid
 * longer: a file with the same build id and name always has the same number, wherever and whenever
 * it is loaded.
 */
#ifndef GPUPROF_INJECT_MODULES_H
#define GPUPROF_INJECT_MODULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "stack/cfi.h"

struct thread;

extern _Atomic uint32_t modules_age; /* incremented by each unload */
/* incremented by each change of the list that was noticed */
extern _Atomic uint32_t modules_list_age;

/* Call these around the real dlclose, so that nobody uses the copy meanwhile. */
void modules_closing(void);
void modules_closed(void);

/* Has the loader's list changed since the copy was made? Increments the ages if so. Cheap if no
 * thread is in dlclose and `anyway` is false. */
void modules_check(bool anyway);

/* Finds the rule for the code at `address`; its flags are CFI_NONE if there is none. Returns false
 * if it is not possible now. */
bool modules_rule(uintptr_t address, struct cfi_rule *rule);

/*
 * modules_rule for a signal handler, which must not wait: uses the C library's own look-up, since
 * glibc 2.35. `is_once`: it does not matter whether the code is CUDA's. Returns false if this C
 * library lacks the look-up, or modules_find_now was not called.
 */
bool modules_rule_now(uintptr_t address, struct cfi_rule *rule, bool is_once);

/* Finds that look-up; call it before the first signal. */
void modules_find_now(void);

/* Converts return addresses to frames, in place, and writes the MODULE records that they need.
 * Returns false if one was dropped, or if it is not possible now. */
bool modules_frames(struct thread *t, uint64_t *frames, unsigned count);

/* Call it in the child of a fork. Returns false if a thread that is gone may hold the loader's lock
 * for ever. */
bool modules_reset(void);

#endif
