/* SPDX-License-Identifier: Apache-2.0 */
#include "store/resident.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/ticks.h"
#include "record/start.h"
#include "record/thread.h"

#define TEXT_BYTES 128 /* seven numbers */

void resident_tick(struct thread *writer)
{
    char text[TEXT_BYTES], *rest = text;
    int fd =
        gp.settings.numbers[SETTING_MEMORY] ? open("/proc/self/statm", O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return;
    text[length] = '\0';
    (void)strtoull(text, &rest, 10); /* size of the address space */
    uint64_t pages = strtoull(rest, NULL, 10);
    struct record r = {
        RECORD_WITH(RESIDENT, [RESIDENT_BYTES] = pages * (uint64_t)sysconf(_SC_PAGESIZE)),
        .begin = ticks_now()};
    if (pages)
        thread_append(writer, &r);
}
