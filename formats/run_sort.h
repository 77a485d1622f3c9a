/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stable sort of an index. What comes to be sorted is a few sequences in order, one behind the
 * other or one between the other's items (batches of several devices, streams, calls that returned
 * after nested ones): they are taken apart, and merged where they overlap, in a tree that is
 * balanced whatever they are (as in powersort).
 */
#ifndef GPUPROF_FORMATS_RUN_SORT_H
#define GPUPROF_FORMATS_RUN_SORT_H

#include <stdint.h>

#define RUN_SORT_MAX 65536 /* numbers of 16 bits */

/*
 * The order of `count` items, first by `first`, then by `second`, then as they come: fills `order`
 * with their numbers, with `room` for as many beside it. Returns how often it moved one: 0, with
 * `order` untouched, if they are in order; at most count * log2(4 * count).
 */
uint64_t run_sort(const uint64_t *first, const uint64_t *second, uint32_t count, uint16_t *order,
                  uint16_t *room);

#endif
