/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow. */
#ifndef GPUPROF_COLLECTOR_ARRAY_H
#define GPUPROF_COLLECTOR_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Room for one item more than `count` in `items`, malloc'ed memory for *capacity of them: the same
 * place, or a new one with *capacity doubled (`first` if it was 0). NULL: no memory, and `items` is
 * as before.
 */
void *array_room(void *items, uint32_t count, uint32_t *capacity, size_t item_bytes,
                 uint32_t first);

#endif
