/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorded program as the launcher's child. It gets the launcher's terminal, process group,
 * files, and original signal mask and dispositions. Signals sent to the launcher reach it exactly
 * once. It ends when the launcher is killed.
 */
#ifndef GPUPROF_COLLECTOR_CHILD_H
#define GPUPROF_COLLECTOR_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct witness_notes;

/* A small process in the launcher's process group, which notes the signals that it gets. They were
 * sent to the whole group, so the program has them, and the launcher must not pass them on again.
 */
struct witness {
    pid_t pid;                   /* 0: not started, so the answer is "no" */
    struct witness_notes *notes; /* memory shared with it */
    int asked;                   /* number of the last question */
};

struct child {
    pid_t pid;
    sigset_t mask;             /* signal mask with which the launcher was started */
    struct sigaction on_child; /* SIGCHLD's action at that time */
    struct witness witness;
    void (*tick)(void *context); /* about once a second while the program runs; NULL: none */
    void *context;
    pid_t helper;      /* process of child_begin_helper; 0: none, or it has ended */
    int helper_status; /* its wait status, once it has ended */
};

/* Starts the program with the current environment. Afterwards all signals are blocked in the
 * launcher, and its files are closed, except standard error. Returns 0 or an errno. */
int child_start(struct child *c, const char *path, char **argv);

/* Passes signals on, follows stops, and returns the program's wait status when it has ended. */
int child_wait(struct child *c);

/* Runs work(context) in a child process with the launcher's original signal mask, for at most
 * `seconds`; a signal that asks to end does so. Returns its result (0 to 255), or -1 if it was cut
 * off or crashed. */
int child_aside(const struct child *c, int (*work)(void *), void *context, unsigned seconds);

/* Starts the same beside the program; only one at a time. False: it could not be started (its
 * status says 127). */
bool child_begin_helper(struct child *c, int (*work)(void *), void *context);

/* Waits for the helper, after the program. False: the user interrupted it, and it was killed. */
bool child_await_helper(struct child *c);

/* Ends the launcher like the program: same exit code, or same signal (without a core file). */
_Noreturn void child_end_like(int status);

#endif
