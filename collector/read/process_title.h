/* SPDX-License-Identifier: Apache-2.0 */
/* The names under which processes and threads are shown. */
#ifndef GPUPROF_COLLECTOR_PROCESS_TITLE_H
#define GPUPROF_COLLECTOR_PROCESS_TITLE_H

#include <stdbool.h>
#include <stddef.h>

struct process;
struct thread;

/* "rank 3: train.py --x (host, pid 12)". `with_pid`: use it if the viewer does not add the pid
 * itself, or adds one that is not real. Returns `text`. */
char *process_title(const struct process *p, bool with_pid, char *text, size_t capacity);

/* "train.py --x": the same for all processes of a program, so a rank in "--local-rank=3" is
 * removed. Returns `text`. */
char *process_program(const struct process *p, char *text, size_t capacity);

/* The title in two parts: "rank 3: " ("rank 3 of job 1: " with several jobs) or "", in
 * RANK_TITLE_BYTES, and the rest. */
#define RANK_TITLE_BYTES 48
char *process_rank_title(const struct process *p, char *text);
char *process_command_title(const struct process *p, bool with_pid, char *text, size_t capacity);

/* "rank 3", "rank 3 of job 1" with several jobs, or else "process 4711". Returns `text`. */
char *process_who(const struct process *p, char text[static RANK_TITLE_BYTES]);

/* "thread 13 (loader) of rank 3: train.py --x (host, pid 12)". Returns `text`. */
char *thread_title(const struct process *p, const struct thread *t, char *text, size_t capacity);

#endif
