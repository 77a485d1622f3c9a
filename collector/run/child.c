/* SPDX-License-Identifier: Apache-2.0 */
#include "run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

#define CHILD_LOST_EXIT 127 /* not seen: the launcher is gone, or knows the reason */

/* The kernel signals the members of a group one after another, possibly with delays. */
#define WITNESS_SETTLE_NS 20000000
#define WITNESS_ANSWER_NS 1000000000u
#define WITNESS_KEEP_NS   1000000000u
#define WITNESS_SEEN_MAX  16
#define WITNESS_QUESTION  SIGRTMAX /* the kernel delivers it after all other pending signals */

/* ---- the witness ----------------------------------------------------------------------------- */

struct witness_notes {
    _Atomic int answered; /* number of the last question; all signals before it are noted */
    unsigned next;
    struct witness_seen {
        int signal_number; /* 0: unused */
        pid_t sender;
        uint64_t time_ns; /* CLOCK_MONOTONIC */
    } seen[WITNESS_SEEN_MAX];
};

/* Closes all files except stderr, and connects stdin and stdout to /dev/null. A pipe must see its
 * end when the program closes it, not when the launcher or the witness ends. */
static void let_files_go(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
    }
    close_range(STDERR_FILENO + 1, ~0u, 0);
}

/* The witness process; all signals are blocked. */
static _Noreturn void be_witness(struct witness_notes *notes, pid_t launcher)
{
    siginfo_t info;
    sigset_t all;
    let_files_go();
    sigfillset(&all);
    prctl(PR_SET_NAME, "gpuprof-witness");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == launcher) {
        if (sigwaitinfo(&all, &info) < 0 || info.si_code == SI_KERNEL)
            continue; /* from the terminal: the launcher never needs these */
        if (info.si_signo == WITNESS_QUESTION && info.si_pid == launcher)
            notes->answered = info.si_value.sival_int;
        else
            notes->seen[notes->next++ % WITNESS_SEEN_MAX] =
                (struct witness_seen){info.si_signo, info.si_pid, monotonic_ns()};
    }
    _exit(0);
}

/* Starts the witness. All signals are blocked, and SIGCHLD has its default action. */
static void start_witness(struct witness *w)
{
    void *notes =
        mmap(NULL, sizeof *w->notes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *w = (struct witness){.notes = notes};
    if (notes == MAP_FAILED)
        return;
    pid_t launcher = getpid(), pid = fork();
    if (pid == 0)
        be_witness(notes, launcher);
    w->pid = pid > 0 ? pid : 0;
}

static void end_witness(struct witness *w)
{
    if (w->pid <= 0)
        return;
    kill(w->pid, SIGKILL);
    waitpid(w->pid, NULL, 0);
    w->pid = 0;
}

/* Whether the witness noted that signal. Two pending signals of one kind merge, possibly for one
 * process only. So a note stays valid while another one is pending for the launcher. */
static bool take_seen(struct witness *w, const siginfo_t *info, uint64_t now)
{
    bool found = false;
    sigset_t waiting;
    sigpending(&waiting);
    for (unsigned i = 0; i < WITNESS_SEEN_MAX; i++) {
        struct witness_seen *seen = &w->notes->seen[i];
        if (seen->signal_number != info->si_signo || seen->sender != info->si_pid)
            continue;
        found |= now - seen->time_ns < WITNESS_KEEP_NS;
        if (!sigismember(&waiting, info->si_signo))
            seen->signal_number = 0;
    }
    return found;
}

/* Whether the signal was sent to the whole group. Takes about 20 ms; a witness that does not answer
 * within a second is given up. */
static bool witness_saw(struct witness *w, const siginfo_t *info)
{
    const struct timespec settle = {0, WITNESS_SETTLE_NS}, tick = {0, WITNESS_SETTLE_NS / 20};
    if (w->pid <= 0)
        return false;
    nanosleep(&settle, NULL);
    kill(w->pid, SIGCONT); /* it may have been stopped with the group */
    uint64_t end_ns = monotonic_ns() + WITNESS_ANSWER_NS;
    bool asks = sigqueue(w->pid, WITNESS_QUESTION, (union sigval){.sival_int = ++w->asked}) == 0;
    while (asks && w->notes->answered != w->asked && monotonic_ns() < end_ns)
        nanosleep(&tick, NULL);
    if (w->notes->answered != w->asked)
        end_witness(w);
    return take_seen(w, info, monotonic_ns());
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Runs the program once the launcher has sent a byte: only then does a witness see signals. */
static _Noreturn void become_program(const struct child *c, pid_t launcher, const char *path,
                                     char **argv, int fd)
{
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher || read(fd, &byte, 1) < 0)
        _exit(CHILD_LOST_EXIT); /* the launcher was killed before prctl */
    sigaction(SIGCHLD, &c->on_child, NULL);
    sigprocmask(SIG_SETMASK, &c->mask, NULL);
    execvp(path, argv); /* the path has a slash: no search, but a script without #! runs in sh */
    int error = errno;
    if (write(fd, &error, sizeof error) < 0)
        _exit(CHILD_LOST_EXIT);
    _exit(CHILD_LOST_EXIT);
}

int child_start(struct child *c, const char *path, char **argv)
{
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t all;
    int ends[2], error = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return errno;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &c->mask);
    sigaction(SIGCHLD, &standard, &c->on_child); /* if ignored, the kernel would reap the program */
    pid_t launcher = getpid();
    c->pid = fork();
    if (c->pid == 0)
        become_program(c, launcher, path, argv, ends[1]);
    if (c->pid < 0)
        error = errno;
    close(ends[1]);
    c->witness = (struct witness){0};
    if (c->pid > 0) {
        start_witness(&c->witness);
        if (write(ends[0], "", 1) < 0)
            error = errno;
        if (read(ends[0], &error, sizeof error) == (ssize_t)sizeof error)
            waitpid(c->pid, NULL, 0);
    }
    if (error) {
        end_witness(&c->witness);
        close(ends[0]);
        return error;
    }
    let_files_go();
    return 0;
}

/* Whether the terminal driver sent it to its foreground group, so that the program has it. After a
 * hang-up, SIGHUP and SIGCONT go to the session leader only, and to the group when the leader ends.
 */
static bool is_from_terminal(const siginfo_t *info)
{
    return info->si_code == SI_KERNEL && info->si_signo != SIGALRM &&
           !(info->si_signo == SIGHUP && getsid(0) == getpid());
}

static bool has_program(struct child *c, const siginfo_t *info)
{
    if (info->si_pid == getpid() || info->si_pid == c->pid)
        return true; /* from the launcher itself, or from the program to its parent */
    return info->si_pid == c->witness.pid || witness_saw(&c->witness, info);
}

static void pass_on(struct child *c, const siginfo_t *info)
{
    bool from_kernel = info->si_code == SI_KERNEL; /* such as an alarm set before the launcher */
    bool from_process =
        info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL;
    if (info->si_signo == SIGCONT || is_from_terminal(info) || !(from_kernel || from_process))
        return;
    if (from_process && has_program(c, info))
        return;
    if (info->si_code == SI_QUEUE)
        sigqueue(c->pid, info->si_signo, info->si_value);
    else
        kill(c->pid, info->si_signo);
}

/* Stops the launcher, too, since the job control of the shell watches it. If a SIGCONT to the
 * launcher alone ends that, the program gets one. It has its own if it has gone on or stopped again
 * since. */
static void stop_too(const struct child *c)
{
    const struct timespec settle = {0, WITNESS_SETTLE_NS};
    siginfo_t seen = {.si_pid = 0};
    raise(SIGSTOP); /* cannot be blocked */
    nanosleep(&settle, NULL);
    waitid(P_PID, (id_t)c->pid, &seen, WSTOPPED | WCONTINUED | WEXITED | WNOHANG | WNOWAIT);
    if (seen.si_pid == 0)
        kill(c->pid, SIGCONT);
}

/* Handles children. True when the program has ended, with its status; also reaps other children. */
static bool look_at_children(struct child *c, int *status)
{
    int seen;
    pid_t pid;
    while ((pid = waitpid(-1, &seen, WNOHANG | WUNTRACED)) > 0) {
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
        if (WIFSTOPPED(seen) && WSTOPSIG(seen) != SIGSTOP)
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
        ; /* signals that arrived with the program's end were meant for it */
    end_witness(&c->witness);
    return status;
}

/* Starts a process as for child_aside. Returns its pid; -1: none. */
static pid_t child_begin(const struct child *c, int (*work)(void *), void *context)
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
    pid_t pid = child_begin(c, work, context);
    c->helper = pid > 0 ? pid : 0;
    c->helper_status = pid > 0 ? 0 : 127 << 8;
    return pid > 0;
}

/* Waits for the process; kills it after `seconds`, or on a request to end. False: requested. */
static bool await(pid_t pid, double seconds, int *status)
{
    const struct timespec tick = {0, 100000000};
    double end = monotonic_seconds() + seconds;
    bool is_asked = false;
    sigset_t all;
    sigfillset(&all);
    while (waitpid(pid, status, WNOHANG) == 0) {
        int number = sigtimedwait(&all, NULL, &tick);
        is_asked |= number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
        if (is_asked || monotonic_seconds() > end)
            kill(pid, SIGKILL);
    }
    return !is_asked;
}

bool child_await_helper(struct child *c)
{
    pid_t pid = c->helper;
    c->helper = 0;
    return pid <= 0 || await(pid, INFINITY, &c->helper_status);
}

int child_aside(const struct child *c, int (*work)(void *), void *context, unsigned seconds)
{
    int status = -1;
    pid_t pid = child_begin(c, work, context);
    if (pid > 0)
        await(pid, seconds, &status);
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
    prctl(PR_SET_DUMPABLE, 0); /* a piped core_pattern ignores the limit */
    fflush(NULL);
    sigaction(signal_number, &standard, NULL);
    sigemptyset(&only);
    sigaddset(&only, signal_number);
    raise(signal_number);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    exit(128 + signal_number); /* process 1 of a container cannot die by a signal */
}
