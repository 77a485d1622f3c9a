/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is recorded now: all that nobody has asked to leave out. Each who may ask (enum asker) has a
 * word of bits (enum off_bits); the features follow their sum, each by its `turn` (feature.h), and
 * the stream says of each change who made it and when. A bit that two have asked for goes when both
 * have taken it back.
 *
 * Whoever asks also turns: the program's own thread for what the program says, since it may rely on
 * that when gpuprof_stop() returns; else the thread of ours, or of the other client's, that has
 * found out. Nobody waits for another asker: who comes late sees to it that the newest sum holds.
 */
#ifndef GPUPROF_INJECT_RECORDED_H
#define GPUPROF_INJECT_RECORDED_H

#include <stdbool.h>
#include <stdint.h>

#include "record/state.h"

struct record;
struct thread;

/*
 * From now on `asker` leaves out `off`. From inside our own code; `t` is the calling thread, if it
 * takes part in a recording, else NULL. `says`: the record that states it, if another than the
 * asker's usual one; its time is set here: not after anything goes off, nor before all is on. No
 * signal handler of the program's runs meanwhile. False: it was so already.
 */
bool recorded_ask(struct thread *t, enum asker asker, uint32_t off, const struct record *says);

/* The same by a thread that must not wait: for calls at once, and the features follow when the
 * writer comes to it. */
bool recorded_ask_soon(struct thread *t, enum asker asker, uint32_t off, const struct record *says);

static inline _Atomic uint64_t *recorded_word(enum asker asker)
{
    return asker < ASKER_LASTING_COUNT ? &gp.asked[asker]
                                       : &fork_page.asked[asker - ASKER_LASTING_COUNT];
}

/* All askers' bits. While some are turned on, recorded_off() has them until that is done. */
static inline uint32_t recorded_asked(void)
{
    uint32_t off = 0;
    for (unsigned i = 0; i < ASKER_COUNT; i++)
        off |= (uint32_t)atomic_load(recorded_word((enum asker)i));
    return off;
}

/* Calls are off, also where nothing has begun yet: says so where they look first. */
void recorded_publish(void);

/* By the constructor: how the program wants to begin (--start-paused). */
void recorded_load(void);

/* A recording begins: in a child, with what the parent's program had asked for. */
void recorded_start(void);

/* States in the stream what was asked for while there was none; what was asked for soon is done. */
void recorded_describe(struct thread *writer, bool is_last);

#endif
