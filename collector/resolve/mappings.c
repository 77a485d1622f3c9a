/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/mappings.h"

#include <search.h>
#include <stdlib.h>

#include "error.h"

/* Overlapping ranges compare equal, so a range finds any mapping that it overlaps. */
static int mappings_compare(const void *left, const void *right)
{
    const struct mapping *a = left, *b = right;
    if (a->address + (a->bytes - 1) < b->address)
        return -1;
    return b->address + (b->bytes - 1) < a->address;
}

void mappings_release(struct mappings *m)
{
    tdestroy(m->root, free);
    *m = (struct mappings){0};
}

static int is_range(uint64_t address, uint64_t bytes)
{
    uint64_t last;
    return bytes && !__builtin_add_overflow(address, bytes - 1, &last);
}

int mappings_add(struct mappings *m, const struct mapping *added)
{
    if (!is_range(added->address, added->bytes))
        return GPUPROF_LIMIT;
    struct mapping *copy = malloc(sizeof *copy);
    if (!copy)
        return GPUPROF_NO_MEMORY;
    *copy = *added;
    struct mapping **there = tsearch(copy, &m->root, mappings_compare);
    if (there && *there == copy) {
        m->count++;
        return 0;
    }
    free(copy);
    return there ? GPUPROF_LIMIT : GPUPROF_NO_MEMORY;
}

const struct mapping *mappings_find(const struct mappings *m, uint64_t address, uint64_t bytes)
{
    struct mapping wanted = {.address = address, .bytes = bytes};
    if (!is_range(address, bytes))
        return NULL;
    struct mapping *const *there = tfind(&wanted, &m->root, mappings_compare);
    return there ? *there : NULL;
}

struct visit {
    int (*each)(void *context, const struct mapping *found);
    void *context;
    int error;
};

/* Visits each node between its left and its right subtree. */
static void mappings_visit(const void *node, VISIT when, void *closure)
{
    struct visit *v = closure;
    if (v->error == 0 && (when == postorder || when == leaf))
        v->error = v->each(v->context, *(struct mapping *const *)node);
}

int mappings_each(const struct mappings *m, int (*each)(void *context, const struct mapping *found),
                  void *context)
{
    struct visit v = {each, context, 0};
    twalk_r(m->root, mappings_visit, &v);
    return v.error;
}

void mappings_remove(struct mappings *m, const struct mapping *found)
{
    tdelete(found, &m->root, mappings_compare);
    free((void *)found); /* memory of the tree; `found` is a view of it */
    m->count--;
}
