/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other processes that a signal is about to end, through kill() and the like. They get no notice,
 * and the latest device records may still be in CUPTI's buffers. So the sender asks first: the live
 * file's head (live.h) has words for it, and the target's flushing thread answers.
 */
#ifndef GPUPROF_INJECT_VICTIMS_H
#define GPUPROF_INJECT_VICTIMS_H

#include <sys/types.h>

/*
 * Asks the processes that kill(pid, number) would end, except the caller, to store their records,
 * and waits for their answers, at most VICTIMS_WAIT_NS in total. Only recording processes of the
 * same effective user whose action for the signal is the default. `number` is 1 to 31. Any thread;
 * async-signal-safe; keeps errno.
 */
void victims_ask(pid_t pid, int number);

#define VICTIMS_WAIT_NS 100000000u

#endif
