/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/system_calls.h"

#include <stddef.h>
#include <sys/syscall.h>

#define CALL(name, class)                                                                          \
    {                                                                                              \
        SYS_##name, class, #name                                                                   \
    }

static const struct system_call calls[] = {
    CALL(read, 0),
    CALL(readv, 0),
    CALL(write, 0),
    CALL(writev, 0),
    CALL(futex, OS_FUTEX),
    CALL(pread64, OS_FILE),
    CALL(pwrite64, OS_FILE),
    CALL(openat, OS_FILE),
    CALL(fsync, OS_FILE),
    CALL(fdatasync, OS_FILE),
    CALL(recvfrom, OS_SOCKET),
    CALL(recvmsg, OS_SOCKET),
    CALL(sendto, OS_SOCKET),
    CALL(sendmsg, OS_SOCKET),
    CALL(connect, OS_SOCKET),
    CALL(accept, OS_SOCKET),
    CALL(accept4, OS_SOCKET),
#ifdef SYS_poll
    CALL(poll, OS_POLL),
    CALL(select, OS_POLL),
    CALL(epoll_wait, OS_POLL),
#endif
    CALL(ppoll, OS_POLL),
    CALL(pselect6, OS_POLL),
    CALL(epoll_pwait, OS_POLL),
    CALL(nanosleep, OS_SLEEP),
    CALL(clock_nanosleep, OS_SLEEP),
    CALL(wait4, OS_PROCESS),
    CALL(waitid, OS_PROCESS),
    CALL(mmap, OS_MEMORY),
    CALL(munmap, OS_MEMORY),
    CALL(mprotect, OS_MEMORY),
    CALL(madvise, OS_MEMORY),
    CALL(brk, OS_MEMORY),
    CALL(ioctl, OS_DEVICE),
};

const struct system_call *system_call_of(int32_t number)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].number == number)
            return &calls[i];
    return NULL;
}
