/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a report (report --partial), for fuzzing. */
#ifndef GPUPROF_TEST_FUZZ_PARTS_H
#define GPUPROF_TEST_FUZZ_PARTS_H

#include <stddef.h>
#include <stdint.h>

/* `data` is parts, each behind its length (u32); their headers are put right, so that what they say
 * of themselves is reached, unless `how` has bit 2. Their files lie in `folder`; bits 0 and 1 say
 * in which form the report of them is printed. Bit 3: they are read as part_report.h has them,
 * and the last one is what was found about memory. */
void fuzz_parts(const char *folder, uint8_t *data, size_t size, unsigned how);

#endif
