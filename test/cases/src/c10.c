/* SPDX-License-Identifier: Apache-2.0 */
/* A libc10.so: what PyTorch's allocators tell of, added up. */
#include "c10.h"

static unsigned long calls;
static uint64_t sum;

static void add(uint64_t word)
{
    __atomic_fetch_add(&sum, word * 0x9E3779B97F4A7C15u, __ATOMIC_RELAXED);
}

static void told(uint64_t address, int64_t bytes, uint64_t allocated, uint64_t reserved,
                 struct c10_device device)
{
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    add(address);
    add((uint64_t)bytes + 1);
    add(allocated + 2);
    add(reserved + 3);
    add((uint64_t)(uint8_t)device.type << 8 | (uint8_t)device.index);
}

void c10_usage(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,
               struct c10_device device)
{
    told((uintptr_t)address, bytes, allocated, reserved, device);
}

void c10_failure(int64_t bytes, uint64_t allocated, uint64_t reserved, struct c10_device device)
{
    told(0, bytes, allocated, reserved, device);
}

struct c10_told c10_told(void)
{
    return (struct c10_told){calls, sum};
}
