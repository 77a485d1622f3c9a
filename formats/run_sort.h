/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stable sort of indexes. The input usually consists of a few sorted sequences, one after another
 * or interleaved (batches of several devices, streams, calls that returned after nested ones). They
 * are separated, and merged where they overlap, in a tree that is always balanced (as in
 * powersort).
 */
#ifndef GPUPROF_FORMATS_RUN_SORT_H
#define GPUPROF_FORMATS_RUN_SORT_H

#include <stdint.h>

#define RUN_SORT_MAX 65536 /* indexes of 16 bits */

/*
 * Sorts `count` items by `first`, then by `second`, stably: fills `order` with their indexes, using
 * `room` of the same size. Returns the number of moves: 0, with `order` unchanged, if they are
 * sorted already; at most count * log2(4 * count).
 */
uint64_t run_sort(const uint64_t *first, const uint64_t *second, uint32_t count, uint16_t *order,
                  uint16_t *room);

#endif
