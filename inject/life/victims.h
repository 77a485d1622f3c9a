/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other processes that a signal is about to end, by kill() and the like. Such an end comes without
 * a word, and what the device has done last may still be in CUPTI's buffers. So the sender asks
 * first: the live file's head (live.h) has words for it, and the target's flushing thread answers.
 */
#ifndef GPUPROF_INJECT_VICTIMS_H
#define GPUPROF_INJECT_VICTIMS_H

#include <sys/types.h>

/*
 * Asks those that kill(pid, number) would end, without the calling process, and waits until they
 * have answered, for at most VICTIMS_WAIT_NS together. Only processes that record, of the same
 * effective user, whose action for the signal is the default. `number` is 1 to 31. By any thread;
 * async-signal-safe; errno is kept.
 */
void victims_ask(pid_t pid, int number);

#define VICTIMS_WAIT_NS 100000000u

#endif
