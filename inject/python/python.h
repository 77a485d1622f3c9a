/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads Python frames as raw memory: without the GIL or reference counts, and without calls into
 * the interpreter except to read the thread's own state. A thread's own frames do not change while
 * it is in C code, and each keeps its code object alive. Everything read is checked before it is
 * used, so that an unexpected layout gives no frames, and never a fault.
 *
 * Supports CPython 3.8 to 3.15, also free-threaded builds. Other versions give no frames, and the
 * recording says so.
 */
#ifndef GPUPROF_INJECT_PYTHON_H
#define GPUPROF_INJECT_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

#include "python/python_frame.h"

struct python_seen;
struct record;
struct thread;

/* Searches newly loaded objects for an interpreter. Not for the hot path; any thread. One with an
 * unknown layout is reported once, and ends the search. */
void python_look(void);

/* Call it before each dlclose: from here on signal handlers read nothing of the interpreter. */
void python_closing(void);

/* Call it after each dlclose: forgets the interpreter if it was unloaded. */
void python_refresh(void);

/* Writes the META record "python" when there is an interpreter, and again when its text changes. */
void python_describe(struct thread *writer, bool is_last);

/* Is there an interpreter whose frames can be read? Any thread; costs one load. */
bool python_is_here(void);

/*
 * Reads the calling thread's Python frames, innermost first. If it has none, and another thread
 * waits for its work (autograd), reads that thread's frames and sets *is_borrowed. Returns the
 * number (at most `max`; *is_cut if there were more); 0: none, or not readable.
 */
unsigned python_frames(struct python_frame *frames, unsigned max, bool *is_cut, bool *is_borrowed);

/* Up to 3.10 a frame does not tell where its evaluation loop is on the stack, but each has one: the
 * function in [*low, *high). Returns false if frames have that information. */
bool python_loop(uint64_t *low, uint64_t *high);

/* Fills `states` with the interpreter's thread states of the kernel's thread ids `tids`; 0: none.
 * Called on another thread than these, which may run at any moment. */
#define PYTHON_TIDS_MAX 16u
void python_find_threads(const uint32_t *tids, unsigned count, uint64_t *states);

/* Is this still the state of the thread with that tid? */
bool python_is_thread(uint64_t state, uint32_t tid);

/* Addresses of an interpreter's lock (GIL) and of its two condition variables. */
struct python_gil_place {
    uint64_t low, high;
    /* signalled when a thread releases the lock; threads that want it wait for this */
    uint64_t dropped;
    uint64_t taken; /* signalled when a thread has taken the lock */
};

/* Finds the lock of the interpreter's threads. Returns false if there is none, as in free-threaded
 * builds, or if it cannot be read. */
bool python_gil_find(struct python_gil_place *place);

/* State of the lock at one moment. */
struct python_gil {
    struct python_gil_place place;
    uint64_t holder;     /* thread state of the holder; 0: not held */
    uint32_t holder_tid; /* the holder's tid, or the last one's; 0: not known */
};

/* Reads the lock that the thread with that state needs, from another thread. Returns false as
 * above. */
bool python_gil_look(uint64_t state, struct python_gil *gil);

/* Is it a free-threaded build, which stops all threads together instead? */
bool python_has_stops(void);

/* Was the calling thread stopped with all others while it was parked at `address`? CPython parks a
 * thread at the address of what it waits for, and a stopped thread at its own state. */
bool python_was_stopped(uint64_t address);

/*
 * Reads the frames of the thread with that state (0: none), as python_frames does for the caller.
 * They are right if that thread was in the same C code before and after, which the caller must
 * know.
 */
unsigned python_frames_of(uint64_t state, struct python_frame *frames, unsigned max, bool *is_cut,
                          bool *is_borrowed);

/* Is it certain that the list object does not contain that item among its first 64? Uses checked
 * reads; the caller keeps the list alive. Returns false while the interpreter is finalizing. */
bool python_list_lacks(uint64_t list, uint64_t item);

/*
 * Reads the calling thread's own frames in a signal handler that may have interrupted it anywhere,
 * even while the interpreter pushes or drops a frame. Never borrows. Returns the number; 0: none;
 * -1: something is inconsistent, and `frames` must not be used. No lock, no malloc, no call into
 * the interpreter; keeps errno. [seen->low, seen->high) is memory that the handler knows to be
 * readable: its thread's stack. The rest of `seen` comes from the previous walk, or is zeroed. It
 * makes one system call for each other page with frames and code objects (about 6 for 10 frames).
 *
 * The code objects do not change until the handler returns, so python_location may follow: between
 * call_enter and call_leave (record/thread.h), and hurried (thread_hurry).
 */
int python_frames_interrupted(struct python_seen *seen, struct python_frame *frames, unsigned max,
                              bool *is_cut);

/* Call it early before that: reads ahead what the previous walk in `seen` used. */
void python_frames_ahead(const struct python_seen *seen);

/*
 * Reads the frames of the thread with that state, which may be running: repeats until two reads
 * agree, except for the innermost frame's instruction, which is that of the first read. Returns as
 * above; 0 also if the state is 0 or the interpreter is finalizing; -1 if three attempts differed.
 * Any other thread.
 */
int python_frames_running(uint64_t state, struct python_frame *frames, unsigned max, bool *is_cut);

/*
 * python_location for such a frame. When its place is first used, the names are kept only if the
 * thread still has the frames after they were read, since nothing else keeps the code object alive;
 * otherwise returns 0.
 */
uint32_t python_location_running(struct thread *t, uint64_t state,
                                 const struct python_frame *frames, unsigned count, unsigned which);

/*
 * Returns the number of the PYTHON record for the frame's place, and writes the record on first
 * use. 0: no space, the code object is unreadable, or the thread is hurried while another one
 * writes. On the frame's own thread, or on one that borrows it.
 */
uint32_t python_location(struct thread *t, const struct python_frame *frame);

/*
 * python_location in a signal handler, for frames of python_frames_interrupted. The record of a new
 * place, whose names are read into `text`, is passed to `keep`, which returns false if it has no
 * space. Also returns 0 if another thread is adding a place. Does not wait for a lock.
 */
struct python_place;
typedef bool (*python_keep_fn)(const struct record *r);
uint32_t python_location_now(const struct python_frame *frame, struct python_place *text,
                             python_keep_fn keep);

/* Call it in the child of a fork: its file has no PYTHON records yet. */
void python_reset(void);

#endif
