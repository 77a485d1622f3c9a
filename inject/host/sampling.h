/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples the code that runs on the CPU. Each thread of the program has a timer on its own CPU
 * time, whose signal takes the stack of the code that it interrupts. A waiting thread uses no CPU
 * time and gets no signal, so no system call of the program ends early because of us.
 *
 * The handler puts the stack into a ring (sample_ring.h). The thread of host_thread.h numbers the
 * stack and writes the SAMPLE record with the thread's tid. Before the first recorded call only the
 * first thread has a timer; its samples come first in the file, if there ever is one.
 */
#ifndef GPUPROF_INJECT_SAMPLING_H
#define GPUPROF_INJECT_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* Called by the constructor: samples the first thread from here on, if --sample is on. */
void sampling_load(void);

/* A recording begins: the same for the thread that starts it. */
void sampling_start(void);

/* A host_pulse of host_thread.h: finds threads that have started or ended, and writes records. */
uint64_t sampling_pulse(struct thread *me, uint64_t now_ns);

/* The thread of host_thread.h ends: removes the timers and writes what is left. */
void sampling_end(struct thread *me);

/* Call it in the child of a fork, which has no timers. */
void sampling_forget(void);

/* A stack taken before its thread takes part; count 0: none. */
#define KEPT_FRAMES_MAX 250
struct kept_stack {
    uint32_t age; /* version of the modules that the frames are in */
    uint16_t count;
    bool is_cut;
    uint64_t frames[KEPT_FRAMES_MAX];
};

/* Takes the calling thread's stack with Python frames; empty if sampling is off. Called inside our
 * code, under the rules of a handler: no lock, no malloc. */
void sampling_keep_stack(struct kept_stack *k);

/* Returns its number in the recording, or 0. */
uint32_t sampling_number(struct thread *t, const struct kept_stack *k);

/* The program wants that signal: sampling uses another, if one is free. Any thread. */
void sampling_give_up(int number);

/*
 * Call these around fork(). Older kernels restart a fork when a signal arrives: that of a large
 * process would never end. The child of a recording process (`is_recorded`) is sampled, and records
 * when it has used some CPU time (sample_child.h). The first returns the signal that it has
 * `blocked`, or 0.
 */
int sampling_before_fork(void);
void sampling_after_fork(bool is_child, bool is_recorded, int blocked);

#endif
