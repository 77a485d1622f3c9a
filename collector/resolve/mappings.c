/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/mappings.h"

#include <stdlib.h>

#include "base/array.h"
#include "error.h"

void mappings_release(struct mappings *m)
{
    free(m->list);
    *m = (struct mappings){0};
}

/* The last address of a range; false: it has none. */
static bool last_of(uint64_t address, uint64_t bytes, uint64_t *last)
{
    return bytes && !__builtin_add_overflow(address, bytes - 1, last);
}

int mappings_add(struct mappings *m, const struct mapping *added)
{
    uint64_t last;
    if (!last_of(added->address, added->bytes, &last) ||
        mappings_find(m, added->address, added->bytes))
        return GPUPROF_LIMIT;
    uint32_t at = ARRAY_UP_TO(m->list, m->count, address, last);
    int error = ARRAY_PUSH(m->list, m->count, NULL);
    if (error < 0)
        return error;
    memmove(&m->list[at + 1], &m->list[at], (m->count - 1 - at) * sizeof *m->list);
    m->list[at] = *added;
    return 0;
}

const struct mapping *mappings_find(const struct mappings *m, uint64_t address, uint64_t bytes)
{
    uint64_t last;
    uint32_t behind =
        last_of(address, bytes, &last) ? ARRAY_UP_TO(m->list, m->count, address, last) : 0;
    const struct mapping *found = behind ? &m->list[behind - 1] : NULL;
    return found && found->address + (found->bytes - 1) >= address ? found : NULL;
}

void mappings_remove(struct mappings *m, const struct mapping *found)
{
    uint32_t at = (uint32_t)(found - m->list);
    memmove(&m->list[at], &m->list[at + 1], (m->count - 1 - at) * sizeof *m->list);
    m->count--;
}
