/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_MEMORY_KINDS_H
#define SIM_MEMORY_KINDS_H

/* Sets of kinds of memory, for calls that take some kinds and refuse others. */

#include "sim_driver.h"

#define KINDS_DEVICE (1u << MEMORY_DEVICE | 1u << MEMORY_MANAGED | 1u << MEMORY_ASYNC)
#define KINDS_ASYNC (1u << MEMORY_ASYNC | 1u << MEMORY_DEVICE)
#define KINDS_HOST (1u << MEMORY_HOST)
#define KINDS_REGISTERED (1u << MEMORY_REGISTERED)
#define KINDS_IPC (1u << MEMORY_IPC)
#define KINDS_VIRTUAL (1u << MEMORY_VIRTUAL)

/* Makes memory that we did not allocate known. */
CUresult memory_register(uint64_t address, size_t bytes, enum memory_kind kind, unsigned flags);

#endif
