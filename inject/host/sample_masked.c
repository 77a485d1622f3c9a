/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hides the signal of samples from the program: asking for its action finds none, and sets of
 * signals to wait for do not contain it. A program that wants this number gets it, and sampling
 * uses another.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/signalfd.h>
#include <time.h>

#include "base/compiler.h"
#include "base/objects.h"
#include "host/sample_signal.h"
#include "host/sampling.h"

/* HIDE(returns, symbol, parameters' types): the functions that are hooked here. */
#define HIDE_LIST                                                                                  \
    HIDE(int, sigaction, (int, const struct sigaction *, struct sigaction *))                      \
    HIDE(sighandler_t, signal, (int, sighandler_t))                                                \
    HIDE(int, sigwait, (const sigset_t *, int *))                                                  \
    HIDE(int, sigwaitinfo, (const sigset_t *, siginfo_t *))                                        \
    HIDE(int, sigtimedwait, (const sigset_t *, siginfo_t *, const struct timespec *))              \
    HIDE(int, signalfd, (int, const sigset_t *, int))                                              \
    HIDE(int, sigpending, (sigset_t *))

#define HIDE(returns, symbol, types) typedef returns(*symbol##_fn) types;
HIDE_LIST
#undef HIDE

enum hidden {
#define HIDE(returns, symbol, types) HIDE_##symbol,
    HIDE_LIST
#undef HIDE
        HIDE_COUNT
};

static const char *const symbols[HIDE_COUNT] = {
#define HIDE(returns, symbol, types) #symbol,
    HIDE_LIST
#undef HIDE
};

/* set by any thread that looks one up, always to the same value */
static _Atomic(void *) reals[HIDE_COUNT];

static void *real(enum hidden which)
{
    if (unlikely(!atomic_load_explicit(&reals[which], memory_order_relaxed)))
        objects_next(symbols, reals, HIDE_COUNT);
    return atomic_load_explicit(&reals[which], memory_order_relaxed);
}

#define REAL(symbol) ((symbol##_fn)real(HIDE_##symbol))

/* The action that the program believes is set for our number: the default, with its flags and mask.
 * Changed by threads that call sigaction, which the program must order. */
static struct sigaction seen;

EXPORT int sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    int ours = sample_signal_number();
    if (likely(number != ours) || !ours)
        return REAL(sigaction)(number, new, old);
    struct sigaction before = seen;
    if (new &&new->sa_handler != SIG_DFL) {
        sampling_give_up(number);
        if (REAL(sigaction)(number, new, NULL) < 0)
            return -1;
        before.sa_handler = SIG_DFL;
    } else if (new) {
        seen = *new;
    }
    if (old)
        *old = before;
    return 0;
}

/* Which flags to set only the C library knows: siginterrupt() changes them. */
EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    if (likely(number != sample_signal_number()) || handler == SIG_ERR)
        return REAL(signal)(number, handler);
    struct sigaction new = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    sigemptyset(&new.sa_mask);
    sigaddset(&new.sa_mask, number);
    return sigaction(number, &new, &old) < 0 ? SIG_ERR : old.sa_handler;
}

/* Returns the set without our number, unless the program waits for just that one: sets of all or
 * most signals contain its neighbours, too. */
static const sigset_t *without(const sigset_t *set, sigset_t *copy)
{
    int ours = sample_signal_number();
    if (!ours || !set || sigismember(set, ours) != 1)
        return set;
    if (sigismember(set, ours - 1) != 1 && sigismember(set, ours + 1) != 1) {
        sampling_give_up(ours);
        return set;
    }
    *copy = *set;
    sigdelset(copy, ours);
    return copy;
}

EXPORT int sigwait(const sigset_t *restrict set, int *restrict number)
{
    sigset_t copy;
    return REAL(sigwait)(without(set, &copy), number);
}

EXPORT int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
    sigset_t copy;
    return REAL(sigwaitinfo)(without(set, &copy), info);
}

EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                        const struct timespec *restrict time)
{
    sigset_t copy;
    return REAL(sigtimedwait)(without(set, &copy), info, time);
}

EXPORT int signalfd(int fd, const sigset_t *set, int flags)
{
    sigset_t copy;
    return REAL(signalfd)(fd, without(set, &copy), flags);
}

EXPORT int sigpending(sigset_t *set)
{
    int result = REAL(sigpending)(set), ours = sample_signal_number();
    if (result == 0 && ours)
        sigdelset(set, ours);
    return result;
}
