/* SPDX-License-Identifier: Apache-2.0 */
#include "witness.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WITNESS_ANSWER_MS  20
#define WITNESS_LOOK_MS    50
#define WITNESS_KEEP_MS    1000 /* two quick signals may be one for the launcher: forget the rest */
#define WITNESS_STAT_BYTES 512

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

static void report_signals(int signals, int reports)
{
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
        struct witness_seen seen = {(int)info.ssi_signo, (pid_t)info.ssi_pid, now_ms()};
        if (info.ssi_code == SI_KERNEL)
            continue; /* the terminal's: nobody asks about them */
        if (write(reports, &seen, sizeof seen) < 0)
            return; /* full or closed: the launcher then passes the signal on */
    }
}

static _Noreturn void witness_main(int reports, int orders, pid_t launcher)
{
    sigset_t all;
    sigfillset(&all);
    int signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    prctl(PR_SET_NAME, "gpuprof-witness");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (signals < 0 || getppid() != launcher)
        _exit(1);
    for (pid_t watched = 0;;) {
        struct pollfd polls[2] = {{signals, POLLIN, 0}, {orders, POLLIN, 0}};
        poll(polls, 2, watched ? WITNESS_LOOK_MS : -1);
        report_signals(signals, reports);
        if (polls[1].revents && read(orders, &watched, sizeof watched) != (ssize_t)sizeof watched)
            _exit(0); /* the launcher has gone */
        if (watched && is_stopped(launcher) && !is_stopped(watched))
            kill(launcher, SIGCONT);
    }
}

void witness_init(struct witness *w)
{
    int reports[2];
    int orders[2];
    memset(w, 0, sizeof *w);
    if (pipe2(reports, O_CLOEXEC | O_NONBLOCK) != 0)
        return;
    if (pipe2(orders, O_CLOEXEC) != 0)
        goto no_orders;
    pid_t launcher = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        close(reports[0]);
        close(orders[1]);
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

static void read_reports(struct witness *w)
{
    struct witness_seen seen;
    while (read(w->reports, &seen, sizeof seen) == (ssize_t)sizeof seen)
        w->seen[w->seen_next++ % WITNESS_SEEN_MAX] = seen;
}

static bool take_seen(struct witness *w, const siginfo_t *info, int64_t now)
{
    for (unsigned i = 0; i < WITNESS_SEEN_MAX; i++) {
        struct witness_seen *seen = &w->seen[i];
        if (seen->signal_number == info->si_signo && seen->sender == info->si_pid &&
            now - seen->time_ms < WITNESS_KEEP_MS) {
            seen->signal_number = 0;
            return true;
        }
    }
    return false;
}

bool witness_saw(struct witness *w, const siginfo_t *info)
{
    if (w->pid <= 0)
        return false;
    int64_t start = now_ms();
    for (int64_t now = start; now - start < WITNESS_ANSWER_MS; now = now_ms()) {
        struct pollfd answer = {w->reports, POLLIN, 0};
        read_reports(w);
        if (take_seen(w, info, now))
            return true;
        poll(&answer, 1, (int)(WITNESS_ANSWER_MS - (now - start)));
        if (answer.revents & ~POLLIN)
            break; /* the witness is gone */
    }
    return false;
}

static void give_order(struct witness *w, pid_t program)
{
    if (w->pid > 0 && write(w->orders, &program, sizeof program) < 0)
        w->pid = 0; /* killed: go on without */
}

void witness_watch(struct witness *w, pid_t program)
{
    give_order(w, program);
}

void witness_unwatch(struct witness *w)
{
    give_order(w, 0);
}
