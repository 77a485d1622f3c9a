/* SPDX-License-Identifier: Apache-2.0 */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"

void spool_init(struct spool *s, size_t item_bytes)
{
    *s = (struct spool){.item_bytes = item_bytes, .fd = -1, .usable = SPOOL_SLOTS};
    s->block_items = (uint32_t)(SPOOL_BLOCK_BYTES / item_bytes);
}

void spool_release(struct spool *s)
{
    for (unsigned i = 0; i < SPOOL_SLOTS; i++)
        free(s->slots[i].data);
    if (s->fd >= 0)
        close(s->fd);
    *s = (struct spool){.fd = -1};
}

int spool_file(void)
{
    /* Where the file system has none without a name, one whose name is gone. */
    const char *folder = getenv("TMPDIR");
    char path[4096];
    if (!folder || !folder[0])
        folder = "/tmp";
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    if (snprintf(path, sizeof path, "%s/gpuprof-XXXXXX", folder) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

static int save(struct spool *s, const struct spool_slot *slot)
{
    size_t done = 0;
    if (s->fd < 0 && (s->fd = spool_file()) < 0)
        return GPUPROF_IO;
    while (done < SPOOL_BLOCK_BYTES) {
        ssize_t put = pwrite(s->fd, slot->data + done, SPOOL_BLOCK_BYTES - done,
                             (off_t)(slot->block * SPOOL_BLOCK_BYTES + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return GPUPROF_IO;
        done += (size_t)put;
    }
    return 0;
}

static int load(struct spool *s, struct spool_slot *slot)
{
    size_t done = 0;
    while (done < SPOOL_BLOCK_BYTES && s->fd >= 0) {
        ssize_t got = pread(s->fd, slot->data + done, SPOOL_BLOCK_BYTES - done,
                            (off_t)(slot->block * SPOOL_BLOCK_BYTES + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return GPUPROF_IO;
        if (got == 0)
            break; /* a new block */
        done += (size_t)got;
    }
    memset(slot->data + done, 0, SPOOL_BLOCK_BYTES - done);
    return 0;
}

void *spool_at(struct spool *s, uint64_t index, bool change, int *error)
{
    uint64_t block = index / s->block_items;
    struct spool_slot *slot = &s->slots[block % s->usable];
    if (!slot->filled || slot->block != block) {
        if (!slot->data && !(slot->data = malloc(SPOOL_BLOCK_BYTES))) {
            *error = GPUPROF_NO_MEMORY;
            return NULL;
        }
        if (slot->filled && slot->changed && (*error = save(s, slot)) < 0)
            return NULL;
        slot->filled = false;
        slot->changed = false;
        slot->block = block;
        if ((*error = load(s, slot)) < 0)
            return NULL;
        slot->filled = true;
    }
    slot->changed |= change;
    return slot->data + index % s->block_items * s->item_bytes;
}

int spool_append(struct spool *s, const void *item)
{
    int error = 0;
    void *place = spool_at(s, s->count, true, &error);
    if (!place)
        return error;
    memcpy(place, item, s->item_bytes);
    s->count++;
    return 0;
}
