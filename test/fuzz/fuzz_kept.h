/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are kept of a recording (resolve/kept_rows.h), for fuzzing. */
#ifndef GPUPROF_TEST_FUZZ_KEPT_H
#define GPUPROF_TEST_FUZZ_KEPT_H

#include <stddef.h>
#include <stdint.h>

/* `data` is a stream file behind its length (u32), and the file of rows, whose key and checksums
 * are put right. They lie in `folder`; `how` says of which piece, and which tables. */
void fuzz_kept(const char *folder, uint8_t *data, size_t size, unsigned how);

#endif
