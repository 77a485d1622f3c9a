/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), as in iSCSI and ext4. Ours because
 * libgpuprof.so may not depend on any library but libc.
 */
#ifndef GPUPROF_FORMATS_CRC32C_H
#define GPUPROF_FORMATS_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 to start) over `length` bytes. crc32c(0, "123456789", 9) is 0xE3069283. */
uint32_t crc32c(uint32_t crc, const void *data, size_t length);

#endif
