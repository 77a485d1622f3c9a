/* SPDX-License-Identifier: Apache-2.0 */
#include "base/proc.h"

#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DIRECTORY_BYTES 512

struct directory_entry { /* layout that the kernel defines */
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

const char *proc_stat_field(const char *text, enum proc_stat_field field)
{
    const char *p = strrchr(text, ')'); /* the name may contain any character, also ')' */
    for (int i = 2; p && i < (int)field; i++) {
        p = strchr(p, ' ');
        p = p ? p + 1 : NULL;
    }
    return p;
}

void proc_each(int dir, bool (*visit)(int dir, const char *name, void *data), void *data)
{
    _Alignas(struct directory_entry) char entries[DIRECTORY_BYTES];
    long bytes;
    while ((bytes = syscall(SYS_getdents64, dir, entries, sizeof entries)) > 0)
        for (long at = 0; at < bytes;) {
            const struct directory_entry *e = (const void *)(entries + at);
            if (e->name[0] >= '0' && e->name[0] <= '9' && !visit(dir, e->name, data))
                return;
            at += e->bytes;
        }
}
