/* SPDX-License-Identifier: Apache-2.0 */
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define HIGH_FD 200

int descriptor_move_high(int fd)
{
    int high = -1;
    for (int low = HIGH_FD; fd >= 0 && high < 0 && low >= 3; low /= 2)
        high = fcntl(fd, F_DUPFD_CLOEXEC, low);
    if (high < 0 && fd >= 3)
        return fd;
    int error = high < 0 && fd >= 0 ? EMFILE : errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return high;
}

bool descriptor_is(int fd, dev_t device, ino_t inode)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}
