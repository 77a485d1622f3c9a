/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of things of two sides that have the same key: in their order where there are as many of
 * the one as of the other, else in the order that makes their durations differ least. */
#ifndef GPUPROF_COLLECTOR_PAIRING_H
#define GPUPROF_COLLECTOR_PAIRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAIRING_CELLS_MAX (1u << 18) /* of one key; beyond: in their order */

struct pairing_entry {
    uint64_t key[3];
    uint32_t side;  /* 0 or 1 */
    uint32_t index; /* the owner's; decides where `order` is the same */
    uint64_t order;
    double ns; /* of one launch */
};

/* Puts the entries in order of key, side and `order`. */
void pairing_sort(struct pairing_entry *list, uint32_t count);

/* Where the entries of list[from]'s key begin on the other side, and end. Of a sorted list. */
void pairing_run(const struct pairing_entry *list, uint32_t count, uint32_t from, uint32_t *middle,
                 uint32_t *end);

typedef int pairing_found_fn(void *context, const struct pairing_entry *base,
                             const struct pairing_entry *other);

/*
 * Sorts the list and hands each pair to `found`, in the order of keys; `only_single`: only where a
 * key has one entry on either side. 0, the first error of `found`, or GPUPROF_NO_MEMORY.
 */
int pairing_make(struct pairing_entry *list, uint32_t count, bool only_single,
                 pairing_found_fn *found, void *context);

/* A text that is to be numbered. */
struct numbered {
    const char *text; /* NULL: its number is 0 */
    size_t length;
    uint32_t *number;
};

/* Gives equal texts equal numbers, from 1 on; changes the list's order. */
void number_texts(struct numbered *list, uint32_t count);

#endif
