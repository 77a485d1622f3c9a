/* SPDX-License-Identifier: Apache-2.0 */
#include "base/signals.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* By system call: the C library's function leaves out the signals that it uses itself. */
uint64_t block_signals(void)
{
    uint64_t all = UINT64_MAX, old = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof all);
    return old;
}

void restore_signals(uint64_t mask)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
}
