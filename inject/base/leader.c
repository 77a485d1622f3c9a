/* SPDX-License-Identifier: Apache-2.0 */
#include "base/leader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/proc.h"

#define STAT_BYTES 512

/*
 * A living thread has memory that the kernel can read; a zombie has none. The test needs no file
 * descriptor, which the program might close. Returns false if the thread is not alive, or if
 * reading is forbidden here.
 */
static bool leader_is_alive(void)
{
    char from = 0, to;
    struct iovec local = {&to, 1}, remote = {&from, 1};
    long pid = syscall(SYS_getpid);
    return syscall(SYS_process_vm_readv, pid, &local, 1ul, &remote, 1ul, 0ul) == 1;
}

bool leader_has_ended(uint32_t *thread_count)
{
    char text[STAT_BYTES];
    int saved = errno;
    bool ended = false;
    if (leader_is_alive()) {
        errno = saved;
        return false;
    }
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    const char *state = proc_stat_field(text, PROC_STAT_STATE);
    if (state && *state == 'Z') {
        const char *count = proc_stat_field(text, PROC_STAT_THREAD_COUNT);
        ended = count != NULL;
        if (ended && thread_count)
            *thread_count = (uint32_t)strtoul(count, NULL, 10);
    }
    errno = saved;
    return ended;
}
