/* SPDX-License-Identifier: Apache-2.0 */
#include "run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILD_LOST_EXIT 127 /* seen by nobody: the launcher is gone, or knows the reason */

/* When `go` has a byte: before that there is no witness of a signal to the group. */
static _Noreturn void become_program(const struct child *c, pid_t launcher, const char *path,
                                     char **argv, int go, int failed)
{
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher || read(go, &byte, 1) < 0)
        _exit(CHILD_LOST_EXIT); /* it was killed before the line above */
    sigaction(SIGCHLD, &c->on_child, NULL);
    sigprocmask(SIG_SETMASK, &c->mask, NULL);
    execvp(path, argv); /* with a slash in it: no search, but a script without #! goes to sh */
    int error = errno;
    if (write(failed, &error, sizeof error) < 0)
        _exit(CHILD_LOST_EXIT);
    _exit(CHILD_LOST_EXIT);
}

int child_start(struct child *c, const char *path, char **argv)
{
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t all;
    int failed[2], go[2];
    int error = 0;
    if (pipe2(failed, O_CLOEXEC) != 0)
        return errno;
    if (pipe2(go, O_CLOEXEC) != 0) {
        error = errno;
        close(failed[0]);
        close(failed[1]);
        return error;
    }
    c->witness = (struct witness){0};
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &c->mask);
    sigaction(SIGCHLD, &standard, &c->on_child); /* ignored, it would reap the program */
    pid_t launcher = getpid();
    c->pid = fork();
    if (c->pid == 0)
        become_program(c, launcher, path, argv, go[0], failed[1]);
    if (c->pid < 0)
        error = errno;
    close(failed[1]);
    if (c->pid > 0)
        witness_init(&c->witness);
    if (c->pid > 0 && write(go[1], "", 1) < 0)
        error = errno;
    if (c->pid > 0 && read(failed[0], &error, sizeof error) == (ssize_t)sizeof error)
        waitpid(c->pid, NULL, 0);
    if (error) {
        witness_release(&c->witness);
        close(failed[0]);
        close(go[0]);
        close(go[1]);
        return error;
    }
    witness_let_files_go(c->witness.reports, c->witness.orders);
    return 0;
}

/*
 * Sent by the terminal driver to its foreground group: the program has it already. A hang-up goes
 * to the session's leader alone, SIGHUP and SIGCONT; when the leader ends, to the group.
 */
static bool is_from_terminal(const siginfo_t *info)
{
    if (info->si_code != SI_KERNEL)
        return false;
    switch (info->si_signo) {
    case SIGHUP:
    case SIGCONT: return getsid(0) != getpid();
    case SIGINT:
    case SIGQUIT:
    case SIGTSTP:
    case SIGWINCH:
    case SIGTTIN:
    case SIGTTOU: return true;
    default: return false;
    }
}

/*
 * A SIGCONT that reached the group has continued the program; the witness may have lost its own,
 * because the next control-Z takes a pending SIGCONT away. Passing it on would undo that control-Z.
 */
static bool is_continued(struct child *c)
{
    siginfo_t seen = {.si_pid = 0};
    if (waitid(P_PID, (id_t)c->pid, &seen, WCONTINUED | WNOHANG) == 0 && seen.si_pid == c->pid)
        c->continued = c->stopped;
    bool continued = c->continued;
    c->stopped = c->continued = false;
    return continued;
}

static bool has_program(struct child *c, const siginfo_t *info)
{
    if (info->si_pid == getpid() || info->si_pid == c->pid)
        return true; /* the launcher itself, or the program's word to its parent */
    bool seen = info->si_pid == c->witness.pid || witness_saw(&c->witness, info);
    return (info->si_signo == SIGCONT && is_continued(c)) || seen;
}

static void pass_on(struct child *c, const siginfo_t *info)
{
    bool from_kernel = info->si_code == SI_KERNEL; /* such as an alarm set before the launcher */
    bool from_process =
        info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL;
    if (is_from_terminal(info) || !(from_kernel || from_process))
        return;
    if (from_process && has_program(c, info))
        return;
    if (info->si_code == SI_QUEUE)
        sigqueue(c->pid, info->si_signo, info->si_value);
    else
        kill(c->pid, info->si_signo);
}

/* Whoever controls the job must see it stopped: it looks at the launcher. */
static void stop_too(struct child *c)
{
    witness_watch(&c->witness, c->pid);
    raise(SIGSTOP); /* not blockable; a SIGCONT for the group or the witness ends it */
    witness_unwatch(&c->witness);
}

/* True when the program has ended, with its status. Other children are reaped on the way. */
static bool look_at_children(struct child *c, int *status)
{
    int seen;
    pid_t pid;
    while ((pid = waitpid(-1, &seen, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        bool ended = WIFEXITED(seen) || WIFSIGNALED(seen);
        if (pid == c->witness.pid && ended)
            c->witness.pid = 0;
        if (pid == c->helper && ended) {
            c->helper = 0;
            c->helper_status = seen;
        }
        if (pid != c->pid)
            continue;
        if (ended) {
            *status = seen;
            return true;
        }
        c->continued = WIFCONTINUED(seen) && c->stopped;
        c->stopped = WIFSTOPPED(seen);
        if (c->stopped)
            stop_too(c);
    }
    return false;
}

int child_wait(struct child *c)
{
    const struct timespec second = {1, 0};
    sigset_t all;
    siginfo_t info;
    int status = 0;
    sigfillset(&all);
    while (!look_at_children(c, &status)) {
        int signal_number = c->tick ? sigtimedwait(&all, &info, &second) : sigwaitinfo(&all, &info);
        if (c->tick && signal_number < 0 && errno == EAGAIN)
            c->tick(c->context);
        if (signal_number < 0)
            continue;
        if (info.si_signo != SIGCHLD || info.si_code <= 0)
            pass_on(c, &info);
    }
    const struct timespec none = {0, 0};
    while (sigtimedwait(&all, NULL, &none) > 0)
        ; /* what came with the program's end was meant for the program */
    witness_release(&c->witness);
    return status;
}

static bool is_request_to_end(int signal_number)
{
    return signal_number == SIGINT || signal_number == SIGTERM || signal_number == SIGHUP ||
           signal_number == SIGQUIT;
}

/* A process of ours; as child_aside. -1: none. */
static pid_t begin(const struct child *c, int (*work)(void *), void *context)
{
    pid_t launcher = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher)
        _exit(CHILD_LOST_EXIT);
    sigprocmask(SIG_SETMASK, &c->mask, NULL);
    int result = work(context);
    fflush(NULL);
    _exit(result);
}

bool child_begin_helper(struct child *c, int (*work)(void *), void *context)
{
    pid_t pid = begin(c, work, context);
    c->helper = pid > 0 ? pid : 0;
    c->helper_status = pid > 0 ? 0 : 127 << 8;
    return pid > 0;
}

bool child_await_helper(struct child *c)
{
    const struct timespec tick = {0, 100000000};
    sigset_t all;
    bool is_asked_to_end = false;
    sigfillset(&all);
    while (c->helper > 0 && waitpid(c->helper, &c->helper_status, WNOHANG) == 0)
        if (is_request_to_end(sigtimedwait(&all, NULL, &tick))) {
            is_asked_to_end = true;
            kill(c->helper, SIGKILL);
        }
    c->helper = 0;
    return !is_asked_to_end;
}

int child_aside(const struct child *c, int (*work)(void *), void *context, unsigned seconds)
{
    const struct timespec tick = {0, 100000000};
    struct timespec start, now;
    sigset_t all;
    int status;
    pid_t pid = begin(c, work, context);
    if (pid < 0)
        return -1;
    sigfillset(&all);
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        int signal_number = sigtimedwait(&all, NULL, &tick);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (is_request_to_end(signal_number) || now.tv_sec - start.tv_sec > (time_t)seconds)
            kill(pid, SIGKILL);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void child_end_like(int status)
{
    if (WIFEXITED(status))
        exit(WEXITSTATUS(status));
    const struct rlimit no_core = {0, 0};
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    int signal_number = WTERMSIG(status);
    sigset_t only;
    setrlimit(RLIMIT_CORE, &no_core);
    prctl(PR_SET_DUMPABLE, 0); /* a piped core_pattern does not look at the limit */
    fflush(NULL);
    sigaction(signal_number, &standard, NULL);
    sigemptyset(&only);
    sigaddset(&only, signal_number);
    raise(signal_number);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    exit(128 + signal_number); /* the first process of a container cannot die by a signal */
}
