/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for host recording besides calls: samples, waits, calls of the C library. */
#include "doctor/checks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sample_signals.h"

static bool is_sampled(const struct target *p)
{
    return p->settings.numbers[SETTING_SAMPLE] != SETTING_OFF;
}

/* A signal that the library can use; ignored signals are inherited. 0: none. */
static int free_signal(const struct target *p)
{
    int n = SAMPLE_SIGNAL_LAST, dump = (int)p->settings.numbers[SETTING_DUMP_SIGNAL];
    struct sigaction found;
    for (; n >= SAMPLE_SIGNAL_FIRST; n--)
        if (n != dump && sigaction(n, NULL, &found) == 0 && found.sa_handler == SIG_DFL)
            return n;
    return 0;
}

/* Creates a timer of CPU time like the library. Returns 0, or an errno. */
static int try_timer(int number)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                             .sigev_signo = number,
                             ._sigev_un._tid = (pid_t)syscall(SYS_gettid)};
    int timer;
    if (syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &timer) < 0)
        return errno;
    syscall(SYS_timer_delete, timer);
    return 0;
}

bool check_sample(const struct target *p, struct check_result *f)
{
    int number = free_signal(p), error = try_timer(number ? number : SAMPLE_SIGNAL_LAST);
    if (!is_sampled(p))
        return false;
    if (error)
        return limited(
            f, "allow timer_create in the container, or use --gaps=on, which does not need it",
            "no CPU samples: cannot create a timer on a thread's CPU time: %s", strerror(error));
    if (!number)
        return limited(f, "start it where real-time signals are not ignored, or use --gaps=on",
                       "no CPU samples: no real-time signal is free");
    return fine(f, "signal %d is free for samples, and timers on a thread's CPU time work", number);
}

bool check_gaps(const struct target *p, struct check_result *f)
{
    static const char *const files[] = {"stat", "syscall", "schedstat"};
    uint64_t gaps = p->settings.numbers[SETTING_GAPS];
    if (gaps == GAPS_OFF || (gaps == GAPS_AUTO && !is_sampled(p)))
        return false;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[PATH_MAX], text[8];
        snprintf(path, sizeof path, "%s/proc/self/task/%ld/%s", p->root,
                 p->root[0] ? 1 : (long)syscall(SYS_gettid), files[i]);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t bytes = file < 0 ? -1 : read(file, text, sizeof text);
        int error = errno;
        if (file >= 0)
            close(file);
        if (bytes <= 0)
            return limited(f, "mount the /proc of a real Linux kernel, not of an emulated one",
                           "the recording will not say %s: %s: %s",
                           i == 0   ? "what waiting threads do"
                           : i == 1 ? "in which system call threads wait"
                                    : "how long waiting threads ran",
                           path, bytes < 0 ? strerror(error) : "the file is empty");
    }
    return fine(f, "waiting threads can be observed");
}

bool check_os(const struct target *p, struct check_result *f)
{
    char path[ENVIRONMENT_PATH_BYTES], reason[ENVIRONMENT_REASON_BYTES];
    if (p->settings.numbers[SETTING_OS] == SETTING_OFF || p->library_reason[0])
        return false;
    if (!environment_os_library(p->library, path, reason))
        return broken(f, "reinstall gpuprof with all its files in one folder",
                      "'gpuprof run --os' will not start: %s", reason);
    return fine(f, "%s can be preloaded", path);
}
