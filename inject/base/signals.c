/* SPDX-License-Identifier: Apache-2.0 */
#include "base/signals.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The C library's internal signals, which signal.h does not name: they cancel a thread, and change
 * its user or group id. */
#define SIGNAL_BIT(number) (UINT64_C(1) << ((number)-1))
#define LIBC_CANCEL        SIGNAL_BIT(32)
#define LIBC_SETXID        SIGNAL_BIT(33)

/* Uses the system call: the C library's function leaves out its internal signals. */
uint64_t block_signals(void)
{
    uint64_t mask = ~LIBC_SETXID, old = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &old, sizeof mask);
    return old;
}

void block_program_signals(void)
{
    restore_signals(~(LIBC_CANCEL | LIBC_SETXID));
}

void restore_signals(uint64_t mask)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
}

void drop_pending(const sigset_t *signals)
{
    const struct timespec no_time = {0};
    while (syscall(SYS_rt_sigtimedwait, signals, NULL, &no_time, sizeof(uint64_t)) > 0)
        ;
}

size_t signal_stack_bytes(void)
{
    int saved = errno;
    stack_t handlers;
    int is_on = sigaltstack(NULL, &handlers) == 0 && handlers.ss_flags & SS_ONSTACK;
    errno = saved;
    return is_on ? handlers.ss_size : 0;
}
