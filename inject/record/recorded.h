/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is recorded now: everything that nobody has turned off. Each part that may turn things off
 * (enum asker) has a word of bits (enum off_bits). Features follow the union of these words, each
 * with its `turn` function (feature.h), and the stream has a record of each change with its asker
 * and time. A bit that two askers have set is cleared when both have cleared it.
 *
 * The thread that changes a setting also applies it: the program's own thread for the program's
 * requests, since gpuprof_stop() must be in effect when it returns; otherwise our thread, or the
 * other client's, that has detected the change. No thread waits for another asker: a thread that
 * comes late applies the newest union.
 */
#ifndef GPUPROF_INJECT_RECORDED_H
#define GPUPROF_INJECT_RECORDED_H

#include <stdbool.h>
#include <stdint.h>

#include "record/state.h"

struct record;
struct thread;

/*
 * Sets what `asker` turns off from now on. Called inside our own code; `t` is the calling thread if
 * it takes part in a recording, else NULL. `says`: the record of the change, if not the asker's
 * usual one; its time is set here, before anything goes off, or after everything is on. The
 * program's signal handlers do not run meanwhile. Returns false if nothing changes.
 */
bool recorded_ask(struct thread *t, enum asker asker, uint32_t off, const struct record *says);

/* The same for a thread that must not wait: calls follow at once, the features when the writer gets
 * to it. */
bool recorded_ask_soon(struct thread *t, enum asker asker, uint32_t off, const struct record *says);

static inline _Atomic uint64_t *recorded_word(enum asker asker)
{
    return asker < ASKER_LASTING_COUNT ? &gp.asked[asker]
                                       : &fork_page.asked[asker - ASKER_LASTING_COUNT];
}

/* The union of all askers' bits. While some are being turned on, recorded_off() still has them. */
static inline uint32_t recorded_asked(void)
{
    uint32_t off = 0;
    for (unsigned i = 0; i < ASKER_COUNT; i++)
        off |= (uint32_t)atomic_load(recorded_word((enum asker)i));
    return off;
}

/* Calls are off, also before any recording: makes it visible where calls check first. */
void recorded_publish(void);

/* Called by the constructor: how the program wants to start (--start-paused). */
void recorded_load(void);

/* A recording begins; in a child, with the requests of the parent's program. */
void recorded_start(void);

/* Writes records of requests made before the recording, and applies those that need not wait. */
void recorded_describe(struct thread *writer, bool is_last);

#endif
