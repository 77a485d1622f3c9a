/* SPDX-License-Identifier: Apache-2.0 */
#include "life/fatal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/futex.h"
#include "base/objects.h"
#include "life/finish.h"
#include "life/victims.h"
#include "record/feature.h"
#include "record/thread.h"
#include "record/wake.h"

/* FATAL(symbol, parameters' types): the functions that are hooked here. */
#define FATAL_LIST                                                                                 \
    FATAL(abort, (void))                                                                           \
    FATAL(__assert_fail, (const char *, const char *, unsigned, const char *))                     \
    FATAL(__assert_perror_fail, (int, const char *, unsigned, const char *))                       \
    FATAL(raise, (int))                                                                            \
    FATAL(kill, (pid_t, int))                                                                      \
    FATAL(killpg, (pid_t, int))                                                                    \
    FATAL(sigqueue, (pid_t, int, const union sigval))                                              \
    FATAL(tgkill, (pid_t, pid_t, int))                                                             \
    FATAL(pthread_kill, (pthread_t, int))

enum fatal {
#define FATAL(symbol, types) FATAL_##symbol,
    FATAL_LIST
#undef FATAL
        FATAL_COUNT
};

static const char *const symbols[FATAL_COUNT] = {
#define FATAL(symbol, types) #symbol,
    FATAL_LIST
#undef FATAL
};

#define FATAL(symbol, types) typedef int(*symbol##_fn) types;
FATAL_LIST
#undef FATAL

/* set by any thread that looks one up, always to the same value */
static _Atomic(void *) reals[FATAL_COUNT];

void fatal_load(void)
{
    objects_next(symbols, reals, FATAL_COUNT);
}

static void *real(enum fatal f)
{
    if (unlikely(!atomic_load_explicit(&reals[f], memory_order_relaxed)))
        fatal_load(); /* another library's constructor runs before ours */
    return atomic_load_explicit(&reals[f], memory_order_relaxed);
}

#define REAL(symbol) ((symbol##_fn)real(FATAL_##symbol))

/* Signals whose default action does not end the process. */
#define HARMLESS                                                                                   \
    (1ull << SIGCHLD | 1ull << SIGCONT | 1ull << SIGURG | 1ull << SIGWINCH | 1ull << SIGSTOP |     \
     1ull << SIGTSTP | 1ull << SIGTTIN | 1ull << SIGTTOU)

/* Would it end the process, since there is no handler for it? Uses the system call: the C library's
 * function may be a sanitizer's. */
static bool is_deadly(int number)
{
    struct {
        void (*handler)(int); /* first member of the kernel's structure */
        uint64_t rest[7];
    } action = {SIG_IGN, {0}};
    return number > 0 && number < NSIG && !(number < 64 && HARMLESS >> number & 1) &&
           syscall(SYS_rt_sigaction, number, NULL, &action, sizeof(uint64_t)) == 0 &&
           action.handler == SIG_DFL;
}

static bool is_blocked(int number)
{
    uint64_t mask = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof mask);
    return mask >> (number - 1) & 1;
}

/* The process may be about to end; `is_certain`: it will. Not on our threads, which others would
 * wait for, and not while CUPTI is starting, whose lock this thread may hold. */
static void fatal_flush(bool is_certain)
{
    uint64_t ns = gp.settings.numbers[SETTING_EXIT_WAIT];
    int error = errno;
    if (this_thread.inside == CALL_FOR_GOOD)
        return;
    FEATURES_DO(dies, (is_certain, ns));
    writer_flush(0, ns); /* the live file goes with the container */
    errno = error;
}

/*
 * A signal is about to be sent; `own`: to this process; `is_here`: to this thread, or to any. If
 * the receiver may block the signal, flushes only once: programs may signal threads that wait for
 * it (sigwait) any number of times.
 */
static void flush_before(bool own, bool is_here, int number)
{
    static _Atomic uint64_t survived; /* one bit for each signal that did not end the process */
    if (!own || !is_deadly(number))
        return;
    /* A namespace's first process is not ended by its own signals. */
    bool is_certain = is_here && getpid() != 1 && !is_blocked(number);
    uint64_t bit = 1ull << (number - 1);
    if (is_certain || !(atomic_fetch_or(&survived, bit) & bit))
        fatal_flush(is_certain);
}

static bool is_own_group(pid_t group)
{
    return group == 0 || group == getpgrp();
}

/* -1: all processes except the caller. */
static bool fatal_is_own(pid_t pid)
{
    return pid == getpid() || (pid <= 0 && pid != -1 && is_own_group(-pid));
}

/* The signal goes to other processes, too; -1: all. This process may record or not. */
static void flush_others_before(pid_t pid, int number)
{
    if (number > 0 && number < 32 && !(HARMLESS >> number & 1) && pid != getpid() && !gp.off)
        victims_ask(pid, number);
}

/* The program's handler may leave abort by longjmp. */
static void flush_before_abort(void)
{
    if (finish_is_recorder())
        fatal_flush(is_deadly(SIGABRT));
}

EXPORT _Noreturn void abort(void)
{
    flush_before_abort();
    REAL(abort)();
    __builtin_unreachable();
}

EXPORT _Noreturn void __assert_fail(const char *text, const char *file, unsigned line,
                                    const char *function);
EXPORT _Noreturn void __assert_fail(const char *text, const char *file, unsigned line,
                                    const char *function)
{
    flush_before_abort();
    REAL(__assert_fail)(text, file, line, function);
    __builtin_unreachable();
}

EXPORT _Noreturn void __assert_perror_fail(int error, const char *file, unsigned line,
                                           const char *function);
EXPORT _Noreturn void __assert_perror_fail(int error, const char *file, unsigned line,
                                           const char *function)
{
    flush_before_abort();
    REAL(__assert_perror_fail)(error, file, line, function);
    __builtin_unreachable();
}

EXPORT int raise(int number)
{
    flush_before(finish_is_recorder(), true, number);
    return REAL(raise)(number);
}

EXPORT int kill(pid_t pid, int number)
{
    flush_others_before(pid, number);
    flush_before(finish_is_recorder() && fatal_is_own(pid), true, number);
    return REAL(kill)(pid, number);
}

EXPORT int killpg(pid_t group, int number)
{
    flush_others_before(-group, number);
    flush_before(finish_is_recorder() && is_own_group(group), true, number);
    return REAL(killpg)(group, number);
}

EXPORT int sigqueue(pid_t pid, int number, const union sigval value)
{
    flush_others_before(pid, number);
    flush_before(finish_is_recorder() && pid == getpid(), true, number);
    return REAL(sigqueue)(pid, number, value);
}

EXPORT int tgkill(pid_t pid, pid_t thread, int number)
{
    flush_before(finish_is_recorder() && pid == getpid(), (uint32_t)thread == thread_id(), number);
    return REAL(tgkill)(pid, thread, number);
}

EXPORT int pthread_kill(pthread_t thread, int number)
{
    flush_before(finish_is_recorder(), thread == pthread_self(), number);
    return REAL(pthread_kill)(thread, number);
}
