/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorded program as the launcher's child. It gets the launcher's terminal, process group,
 * files, signal mask and dispositions as the launcher found them; signals sent to the launcher
 * reach it exactly once; it does not outlive a launcher that is killed.
 */
#ifndef GPUPROF_COLLECTOR_CHILD_H
#define GPUPROF_COLLECTOR_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WITNESS_SEEN_MAX 16

struct witness_seen {
    int signal_number; /* 0 = a free place; in a report, its end */
    pid_t sender;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
};

/*
 * A small helper process in the launcher's process group. It answers two questions that the
 * launcher cannot answer by itself:
 *  - was a signal sent to the whole group? Then the program has it already, and passing it on would
 *    deliver it twice. The witness gets what the group gets, and reports it when asked.
 *  - has the stopped program been continued while the launcher was stopped, too? Then the witness
 *    continues the launcher, which would otherwise never see the program's end.
 */
struct witness {
    pid_t pid; /* 0 = could not be started: every answer is "no" */
    int fd;    /* a socket to it */
    struct witness_seen seen[WITNESS_SEEN_MAX];
    unsigned seen_next;
};

struct child {
    pid_t pid;
    sigset_t mask;             /* as the launcher was started with */
    struct sigaction on_child; /* SIGCHLD's action then */
    bool stopped;              /* as far as we know */
    bool continued;            /* by others than us, since it was stopped */
    struct witness witness;
    void (*tick)(void *context); /* about once a second while the program runs; NULL: none */
    void *context;
    pid_t helper; /* a process beside it, of child_begin_helper; 0: there is none, or it has ended
                   */
    int helper_status; /* then: its wait status */
};

/*
 * Starts `path` with `argv` and the current environment. From then on all signals are blocked in
 * the launcher, and its own files are closed except standard error. 0, or an errno: not started.
 */
int child_start(struct child *c, const char *path, char **argv);

/* Passes signals on, follows stops, and returns the program's wait status when it has ended. */
int child_wait(struct child *c);

/*
 * Does work(context) in a process of its own, with the signals that the launcher started with, for
 * at most `seconds`; an interrupt or a request to end (SIGINT, SIGTERM, SIGHUP, SIGQUIT) ends it
 * early. The work's result (0 to 255), or -1 if it was cut off or crashed.
 */
int child_aside(const struct child *c, int (*work)(void *), void *context, unsigned seconds);

/* Does work(context) in a process of its own, with the signals that the launcher started with,
 * while all goes on; there is none yet. False: it could not be made (its status says 127). */
bool child_begin_helper(struct child *c, int (*work)(void *), void *context);

/* Waits for it, after the program. False: an interrupt or a request to end came, and it was killed.
 */
bool child_await_helper(struct child *c);

/* Ends the launcher as the program ended: same exit code, or same signal (without a core file). */
_Noreturn void child_end_like(int status);

#endif
