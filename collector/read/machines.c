/* SPDX-License-Identifier: Apache-2.0 */
#include "read/machines.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

#define BOOT_ID_BYTES 16

static int compare_boots(const struct machine_claim *a, const struct machine_claim *b)
{
    return memcmp(a->boot_id, b->boot_id, BOOT_ID_BYTES);
}

static int by_offset(const void *left, const void *right)
{
    const struct machine_claim *a = *(struct machine_claim *const *)left;
    const struct machine_claim *b = *(struct machine_claim *const *)right;
    return compare_boots(a, b) ?: ORDER(a->offset, b->offset);
}

static int compare_hosts(const struct machine_claim *a, const struct machine_claim *b)
{
    int order = compare_boots(a, b);
    return order ? order : strcmp(a->host, b->host);
}

/* Those of a host in the order of its monotonic clock. */
static int by_host(const void *left, const void *right)
{
    const struct machine_claim *a = *(struct machine_claim *const *)left;
    const struct machine_claim *b = *(struct machine_claim *const *)right;
    uint64_t x = a->begin_ns - a->offset, y = b->begin_ns - b->offset;
    return compare_hosts(a, b) ?: ORDER(x, y) ?: ORDER(a->machine, b->machine);
}

static bool is_known(const struct machine_claim *c)
{
    static const uint8_t unknown[BOOT_ID_BYTES];
    return memcmp(c->boot_id, unknown, sizeof unknown) != 0;
}

static uint32_t root_of(uint32_t *roots, uint32_t machine)
{
    while (roots[machine] != machine)
        machine = roots[machine] = roots[roots[machine]];
    return machine;
}

/* A host's clock that was set is one, whatever it said before: all of its are one machine, unless
 * the same ones come again. `seen`: for each machine the host, + 1, in which it was met. */
static void join_host(struct machine_claim **host, uint32_t count, uint32_t number, uint32_t *seen,
                      uint32_t *roots)
{
    bool comes_again = false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t machine = host[i]->machine;
        comes_again |= seen[machine] == number + 1 && host[i - 1]->machine != machine;
        seen[machine] = number + 1;
    }
    for (uint32_t i = 1; i < count && !comes_again; i++)
        roots[root_of(roots, host[i]->machine)] = root_of(roots, host[0]->machine);
}

int machines_find(struct machine_claim *claims, uint32_t count)
{
    struct machine_claim **order = calloc(count + 1u, sizeof(struct machine_claim *));
    uint32_t *roots = calloc(count + 1u, sizeof *roots), *seen = calloc(count + 1u, sizeof *seen);
    int error = order && roots && seen ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        order[i] = &claims[i];
        roots[i] = i;
    }
    if (error == 0 && count)
        qsort(order, count, sizeof *order, by_offset);
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        const struct machine_claim *before = i ? order[i - 1] : NULL;
        bool is_same = before && is_known(order[i]) && compare_boots(before, order[i]) == 0 &&
                       order[i]->offset - before->offset < MACHINE_APART_NS;
        order[i]->machine = is_same ? before->machine : i;
    }
    if (error == 0 && count)
        qsort(order, count, sizeof *order, by_host);
    for (uint32_t i = 0, next; error == 0 && i < count; i = next) {
        for (next = i + 1; next < count && compare_hosts(order[i], order[next]) == 0; next++)
            ;
        if (is_known(order[i]))
            join_host(order + i, next - i, i, seen, roots);
    }
    for (uint32_t i = 0; error == 0 && i < count; i++)
        claims[i].machine = root_of(roots, claims[i].machine);
    free(order);
    free(roots);
    free(seen);
    return error;
}
