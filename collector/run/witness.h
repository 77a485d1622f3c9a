/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small helper process in the launcher's process group. It answers two questions that the
 * launcher cannot answer by itself:
 *  - was a signal sent to the whole group? Then the program has it already, and passing it on would
 *    deliver it twice. The witness gets what the group gets, and reports it when asked.
 *  - has the stopped program been continued while the launcher was stopped, too? Then the witness
 *    continues the launcher, which would otherwise never see the program's end.
 */
#ifndef GPUPROF_COLLECTOR_WITNESS_H
#define GPUPROF_COLLECTOR_WITNESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WITNESS_SEEN_MAX 16

struct witness_seen {
    int signal_number; /* 0 = a free place; in a report, its end */
    pid_t sender;
    int64_t time_ms; /* CLOCK_MONOTONIC */
};

struct witness {
    pid_t pid;   /* 0 = could not be started: every answer is "no" */
    int reports; /* read end */
    int orders;  /* write end */
    struct witness_seen seen[WITNESS_SEEN_MAX];
    unsigned seen_next;
};

/* Call with all signals blocked, SIGCHLD at its default. Never fails; see `pid`. */
void witness_init(struct witness *w);
void witness_release(struct witness *w);

/* Was the signal that `info` tells of sent to the whole group? Takes about 20 ms, at most 1 s. */
bool witness_saw(struct witness *w, const siginfo_t *info);

/* Watches over the launcher's stop: continue the launcher when `program` is no longer stopped. */
void witness_watch(struct witness *w, pid_t program);
void witness_unwatch(struct witness *w);

/*
 * Closes all files but stderr and two others (0: none), reading and writing /dev/null instead: a
 * pipe must see its end when the program closes it, not when the launcher or the witness ends.
 */
void witness_let_files_go(int one, int other);

#endif
