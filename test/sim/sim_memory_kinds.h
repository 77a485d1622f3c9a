/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_MEMORY_KINDS_H
#define SIM_MEMORY_KINDS_H

/* Sets of kinds of memory, for calls that take some kinds and refuse others. */

#include "sim_driver.h"

#define KINDS_DEVICE     (1u << MEMORY_DEVICE | 1u << MEMORY_MANAGED | 1u << MEMORY_ASYNC)
#define KINDS_ASYNC      (1u << MEMORY_ASYNC | 1u << MEMORY_DEVICE)
#define KINDS_HOST       (1u << MEMORY_HOST)
#define KINDS_REGISTERED (1u << MEMORY_REGISTERED)
#define KINDS_IPC        (1u << MEMORY_IPC)
#define KINDS_VIRTUAL    (1u << MEMORY_VIRTUAL)

/* Makes memory that we did not allocate known. */
CUresult memory_map(uint64_t address, size_t bytes, struct sim_device *device);
CUresult memory_register(uint64_t address, size_t bytes, enum memory_kind kind, unsigned flags);

/* What the forms of CUDA 2 share with the present ones; entry points never call one another. */
CUresult allocate_host(void **ptr, size_t bytes, unsigned flags);
CUresult memory_info(size_t *free_bytes, size_t *total);
CUresult array_create(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc);
CUresult array_create_2d(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc);
CUresult array_array(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes,
                     int pt);

#endif
