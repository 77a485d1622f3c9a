/* SPDX-License-Identifier: Apache-2.0 */
#include "read/foreign.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file_at.h"
#include "base/message.h"
#include "bytes.h"

#define SQLITE_MAGIC "SQLite format 3"

const char *foreign_advice(const char *path)
{
    uint8_t head[sizeof SQLITE_MAGIC] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t got = fd < 0 ? -1 : file_read_at(fd, 0, head, sizeof head);
    if (fd >= 0)
        close(fd);
    if (got == sizeof head && load_u64(head) == PART_MAGIC)
        return ", but a part of a report: 'gpuprof report --combine' adds parts up";
    if (got == sizeof head && memcmp(head, SQLITE_MAGIC, sizeof head) == 0)
        return ", but a database: it is for SQL, such as with sqlite3; reports are made of the "
               "recording";
    return RECORDING_ADVICE;
}
