/* SPDX-License-Identifier: Apache-2.0 */
/* Of PyTorch's libc10, what its allocators tell a profiler, as C; -DSIGNED_TOTALS: as before 2.1.
 */
#ifndef C10_H
#define C10_H

#include <stdint.h>

#ifdef SIGNED_TOTALS
#define c10_usage   _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE
#define c10_failure _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE
#else
#define c10_usage   _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#define c10_failure _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE
#endif

struct c10_device {
    signed char type, index;
};

void c10_usage(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,
               struct c10_device device);
void c10_failure(int64_t bytes, uint64_t allocated, uint64_t reserved, struct c10_device device);

/* What the two were told so far: calls, and a sum of all that they were given. */
struct c10_told {
    unsigned long calls;
    uint64_t sum;
};
struct c10_told c10_told(void);

#endif
