/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which code runs on the CPU: each thread of the program has a timer on its own CPU time, whose
 * signal takes the stack of what it interrupts. A thread that waits uses no CPU time and is never
 * signalled, so no system call of the program's ends early because of us.
 *
 * The handler puts what it found aside (sample_ring.h); the thread of host_thread.h numbers the
 * stack, and writes the SAMPLE record with the tid of the thread it is of. Before the first
 * recorded call only the first thread has a timer; what is put aside then comes first in the file,
 * if there ever is one.
 */
#ifndef GPUPROF_INJECT_SAMPLING_H
#define GPUPROF_INJECT_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* By the constructor: the first thread is sampled from here on, if that is asked for. */
void sampling_load(void);

/* A recording begins: the same of the thread that begins it. */
void sampling_start(void);

/* As host_pulse of host_thread.h: finds threads that have begun or ended, and writes records. */
uint64_t sampling_pulse(struct thread *me, uint64_t now_ns);

/* The thread of host_thread.h ends: no more timers; writes what there is. */
void sampling_end(struct thread *me);

/* In the child of a fork, which has no timers. */
void sampling_forget(void);

/* A stack taken before its thread takes part; count 0: there is none. */
#define KEPT_FRAMES_MAX 250
struct kept_stack {
    uint32_t age; /* of the modules that the frames are in */
    uint16_t count;
    bool is_cut;
    uint64_t frames[KEPT_FRAMES_MAX];
};

/* The calling thread's, Python's frames among it; none where nothing is sampled. Inside our code,
 * and like a handler: no lock, no malloc. */
void sampling_keep_stack(struct kept_stack *k);

/* Its number in the recording, or 0. */
uint32_t sampling_number(struct thread *t, const struct kept_stack *k);

/* The program wants that signal: samples take another, if there is one. Any thread. */
void sampling_give_up(int number);

/*
 * Around fork(). Older kernels begin a fork anew when a signal comes in between: that of a large
 * process would never end. The child of a process that records (`is_recorded`) is sampled, and
 * records when it has used some processor time (sample_child.h). The first returns the signal that
 * it has `blocked`, or 0.
 */
int sampling_before_fork(void);
void sampling_after_fork(bool is_child, bool is_recorded, int blocked);

#endif
