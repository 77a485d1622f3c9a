/* SPDX-License-Identifier: Apache-2.0 */
#include "run/witness.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The kernel signals a group's members one after another, and a machine may rest meanwhile. */
#define WITNESS_SETTLE_NS  20000000
#define WITNESS_ANSWER_MS  1000
#define WITNESS_LOOK_MS    50
#define WITNESS_KEEP_MS    1000
#define WITNESS_STAT_BYTES 512
#define WITNESS_REPORT     -1 /* an order; others are the process to watch, 0 = none */

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Without /proc nothing counts as stopped. */
static bool is_stopped(pid_t pid)
{
    char name[32];
    char text[WITNESS_STAT_BYTES];
    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return false;
    text[length] = '\0';
    const char *state = strrchr(text, ')'); /* the name before it may contain anything */
    return state && state[1] == ' ' && state[2] == 'T';
}

/* All signals received since the last report, and the end mark. False if nobody reads it. */
static bool report_signals(int signals, int reports)
{
    struct signalfd_siginfo info;
    struct witness_seen seen = {0, 0, 0};
    while (read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_code == SI_KERNEL)
            continue; /* the terminal's: nobody asks about them */
        seen = (struct witness_seen){(int)info.ssi_signo, (pid_t)info.ssi_pid, now_ms()};
        if (write(reports, &seen, sizeof seen) < 0)
            return false;
    }
    seen.signal_number = 0;
    return write(reports, &seen, sizeof seen) > 0;
}

void witness_let_files_go(int one, int other)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
    }
    unsigned first = STDERR_FILENO + 1, low = (unsigned)(one < other ? one : other);
    unsigned high = (unsigned)(one < other ? other : one);
    if (low > first)
        close_range(first, low - 1, 0);
    if (low >= first)
        first = low + 1;
    if (high > first)
        close_range(first, high - 1, 0);
    if (high >= first)
        first = high + 1;
    close_range(first, ~0u, 0);
}

static _Noreturn void witness_main(int reports, int orders, pid_t launcher)
{
    sigset_t all;
    witness_let_files_go(reports, orders);
    sigfillset(&all);
    int signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    prctl(PR_SET_NAME, "gpuprof-witness");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (signals < 0 || getppid() != launcher)
        _exit(1);
    for (pid_t order = 0, watched = 0;;) {
        struct pollfd poll_orders = {orders, POLLIN, 0};
        if (poll(&poll_orders, 1, watched ? WITNESS_LOOK_MS : -1) > 0) {
            if (read(orders, &order, sizeof order) != (ssize_t)sizeof order)
                _exit(0); /* the launcher has gone */
            if (order != WITNESS_REPORT)
                watched = order;
            else if (!report_signals(signals, reports))
                _exit(0);
        }
        if (watched && is_stopped(launcher) && !is_stopped(watched))
            kill(launcher, SIGCONT);
    }
}

void witness_init(struct witness *w)
{
    int reports[2];
    int orders[2];
    memset(w, 0, sizeof *w);
    if (pipe2(reports, O_CLOEXEC) != 0)
        return;
    if (pipe2(orders, O_CLOEXEC) != 0)
        goto no_orders;
    pid_t launcher = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        witness_main(reports[1], orders[0], launcher);
    }
    close(reports[1]);
    close(orders[0]);
    if (pid > 0) {
        w->pid = pid;
        w->reports = reports[0];
        w->orders = orders[1];
        return;
    }
    close(orders[1]);
    close(reports[0]);
    return;
no_orders:
    close(reports[0]);
    close(reports[1]);
}

void witness_release(struct witness *w)
{
    if (w->pid <= 0)
        return;
    kill(w->pid, SIGKILL);
    waitpid(w->pid, NULL, 0);
    close(w->reports);
    close(w->orders);
    w->pid = 0;
}

/*
 * What is one signal for the one may be two for the other: while a further one waits for the
 * launcher, what the witness has seen counts for that, too, and after it no more.
 */
static bool take_seen(struct witness *w, const siginfo_t *info, int64_t now)
{
    bool found = false;
    sigset_t waiting;
    sigpending(&waiting);
    for (unsigned i = 0; i < WITNESS_SEEN_MAX; i++) {
        struct witness_seen *seen = &w->seen[i];
        if (seen->signal_number != info->si_signo || seen->sender != info->si_pid)
            continue;
        found |= now - seen->time_ms < WITNESS_KEEP_MS;
        if (!sigismember(&waiting, info->si_signo))
            seen->signal_number = 0;
    }
    return found;
}

static void give_order(struct witness *w, pid_t program)
{
    if (w->pid > 0 && write(w->orders, &program, sizeof program) < 0)
        w->pid = 0; /* killed: go on without */
}

static void give_up(struct witness *w)
{
    kill(w->pid, SIGKILL); /* reaped by whoever waits for the program */
    w->pid = 0;
}

/* Asks for the report and reads it. A witness that does not answer is given up. */
static void read_report(struct witness *w)
{
    struct witness_seen seen = {1, 0, 0};
    give_order(w, WITNESS_REPORT);
    while (w->pid > 0 && seen.signal_number != 0) {
        struct pollfd answer = {w->reports, POLLIN, 0};
        if (poll(&answer, 1, WITNESS_ANSWER_MS) <= 0 ||
            read(w->reports, &seen, sizeof seen) != (ssize_t)sizeof seen)
            give_up(w);
        else if (seen.signal_number != 0)
            w->seen[w->seen_next++ % WITNESS_SEEN_MAX] = seen;
    }
}

bool witness_saw(struct witness *w, const siginfo_t *info)
{
    const struct timespec settle = {0, WITNESS_SETTLE_NS};
    if (w->pid <= 0)
        return false;
    nanosleep(&settle, NULL);
    kill(w->pid, SIGCONT); /* it may have been stopped with the group */
    read_report(w);
    return take_seen(w, info, now_ms());
}

void witness_watch(struct witness *w, pid_t program)
{
    give_order(w, program);
}

void witness_unwatch(struct witness *w)
{
    give_order(w, 0);
}
