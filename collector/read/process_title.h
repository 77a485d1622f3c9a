/* SPDX-License-Identifier: Apache-2.0 */
/* What a process is called where it is shown. */
#ifndef GPUPROF_COLLECTOR_PROCESS_TITLE_H
#define GPUPROF_COLLECTOR_PROCESS_TITLE_H

#include <stdbool.h>
#include <stddef.h>

struct process;
struct thread;

/*
 * "rank 3: train.py --x (host, pid 12)". Viewers put the pid that a trace gives to a process behind
 * its name: `with_pid` is for where nobody does, or where that one is not the real one. Returns
 * `text`.
 */
char *process_title(const struct process *p, bool with_pid, char *text, size_t capacity);

/*
 * "train.py --x": what the processes of one program have alike, so without the rank in
 * "--local-rank=3", either. Returns `text`.
 */
char *process_program(const struct process *p, char *text, size_t capacity);

/* Its two parts: "rank 3: " ("rank 3 of job 1: " where there are several), or nothing, in
 * RANK_TITLE_BYTES; and what is behind it. */
#define RANK_TITLE_BYTES 48
char *process_rank_title(const struct process *p, char *text);
char *process_command_title(const struct process *p, bool with_pid, char *text, size_t capacity);

/* "rank 3", "rank 3 of job 1" where there are several, or else "process 4711". Returns `text`. */
char *process_who(const struct process *p, char text[static RANK_TITLE_BYTES]);

/* "thread 13 (loader) of rank 3: train.py --x (host, pid 12)". Returns `text`. */
char *thread_title(const struct process *p, const struct thread *t, char *text, size_t capacity);

#endif
