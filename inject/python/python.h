/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python frames, read as raw memory: no call into the interpreter but a read of the thread's own
 * state, no GIL, no reference count. A thread's own frames do not change while it is inside C code,
 * and each keeps its code object alive. What is read is checked before anything follows from it, so
 * that a layout that is not what we think gives no frames, and never a fault.
 *
 * CPython 3.8 to 3.15, free-threaded builds too; any other version gives no frames, and the
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

/*
 * Looks for an interpreter among the objects loaded so far, if there are new ones. Not on the hot
 * path; any thread. One of which we know too little is said, once, and none is looked for any more.
 */
void python_look(void);

/* Before each dlclose: from here on signal handlers read nothing of it. */
void python_closing(void);

/* Forgets it if it was unloaded: after each dlclose. */
void python_refresh(void);

/* META record "python", when there is an interpreter, and again when there is more to say of it. */
void python_describe(struct thread *writer, bool is_last);

/* Is there one whose frames can be read? Anywhere, at the cost of a load. */
bool python_is_here(void);

/*
 * The calling thread's Python frames, innermost first; or, if it has none and another thread waits
 * for what this one does (autograd), that thread's, with *is_borrowed set. Returns their number (at
 * most `max`; *is_cut if there were more), 0 if there are none or they cannot be read.
 */
unsigned python_frames(struct python_frame *frames, unsigned max, bool *is_cut, bool *is_borrowed);

/*
 * Up to 3.10 a frame does not say where its loop lies on the stack, but each has one: the function
 * in [*low, *high). False: frames say it themselves.
 */
bool python_loop(uint64_t *low, uint64_t *high);

/*
 * The interpreter's states of the threads that the kernel knows by `tids`, in `states`: 0 where it
 * has none. For another thread than these, of which any may go on at any moment.
 */
#define PYTHON_TIDS_MAX 16u
void python_find_threads(const uint32_t *tids, unsigned count, uint64_t *states);

/* Is that still the state of the thread that the kernel knows by `tid`? */
bool python_is_thread(uint64_t state, uint32_t tid);

/* Where the lock of an interpreter (GIL) lies, and its two condition variables. */
struct python_gil_place {
    uint64_t low, high;
    uint64_t dropped; /* signalled when a thread gives it up; who wants it waits for that */
    uint64_t taken;   /* signalled when a thread has taken it */
};

/* That of the interpreter's threads. False: there is none, as in a free-threaded build, or it can't
 * be read. */
bool python_gil_find(struct python_gil_place *place);

/* Such a lock as it is at a moment. */
struct python_gil {
    struct python_gil_place place;
    uint64_t holder;     /* the state of the thread that has it; 0: nobody has */
    uint32_t holder_tid; /* the thread; if nobody has it, that which had it last; 0: not known */
};

/* The one that the thread with that state needs, looked at from another thread; as above. */
bool python_gil_look(uint64_t state, struct python_gil *gil);

/* Is it a free-threaded build, which stops all its threads together instead? */
bool python_has_stops(void);

/*
 * Was the calling thread stopped with all others while it was parked at `address`? CPython parks a
 * thread at the address of what it waits for, and a stopped one at its own state.
 */
bool python_was_stopped(uint64_t address);

/*
 * The frames of the thread with that state (0: it has none), as python_frames has its own. They are
 * right if that thread was in the same C code before and after; the caller knows.
 */
unsigned python_frames_of(uint64_t state, struct python_frame *frames, unsigned max, bool *is_cut,
                          bool *is_borrowed);

/*
 * Is it certain that the list object does not have that item, among its first 64? By checked reads;
 * the list must be kept. False when the interpreter ends.
 */
bool python_list_lacks(uint64_t list, uint64_t item);

/*
 * The calling thread's own frames, in a signal handler that has interrupted it anywhere: also where
 * the interpreter is just about to push or drop a frame. Never borrowed. Returns their number; 0 if
 * it has none; -1 if anything is not as it should be: the stack is torn, and `frames` is worth
 * nothing. No lock, no malloc, no call into the interpreter; errno is kept. [seen->low, seen->high)
 * is memory that the handler has found readable: its thread's stack. The rest of `seen` is of the
 * walk before, or zeroed. A system call for each other page that frames and code objects lie in
 * (about 6 for 10 frames).
 *
 * The code objects stay what they are until the handler returns, so python_location may follow:
 * between call_enter and call_leave (record/thread.h), and hurried (thread_hurry).
 */
int python_frames_interrupted(struct python_seen *seen, struct python_frame *frames, unsigned max,
                              bool *is_cut);

/* Before it, as early as can be: reads ahead what the walk before in `seen` looked at. */
void python_frames_ahead(const struct python_seen *seen);

/*
 * The frames of the thread with that state, which may be running: they are read until twice the
 * same is found, but for the innermost one's instruction, which is the first read's. Returns as
 * above; 0 also if the state is 0 or the interpreter ends; -1 if the thread was faster three times.
 * Any thread but that one.
 */
int python_frames_running(uint64_t state, struct python_frame *frames, unsigned max, bool *is_cut);

/*
 * python_location for a frame of those. At first sight of its place names are taken only if the
 * thread still has the frames when they have been read: else 0, as nothing else had kept the code
 * object alive.
 */
uint32_t python_location_running(struct thread *t, uint64_t state,
                                 const struct python_frame *frames, unsigned count, unsigned which);

/*
 * The number of the PYTHON record for the place that a frame is at; writes it at first sight. 0: no
 * room, or the code object cannot be read, or the thread is hurried while another one writes. On
 * the frame's own thread, or on one that borrows it.
 */
uint32_t python_location(struct thread *t, const struct python_frame *frame);

/*
 * python_location in a signal handler, of frames by python_frames_interrupted: the record of a new
 * place, whose names are read into `text`, goes to `keep`, which returns false if it has no room. 0
 * also if another thread adds a place just now. No lock is waited for.
 */
struct python_place;
typedef bool (*python_keep_fn)(const struct record *r);
uint32_t python_location_now(const struct python_frame *frame, struct python_place *text,
                             python_keep_fn keep);

/* In the child of a fork: its file has no PYTHON records yet. */
void python_reset(void);

#endif
