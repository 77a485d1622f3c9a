/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs make of a folder of recordings, for fuzzing. */
#ifndef GPUPROF_TEST_FUZZ_OUTPUTS_H
#define GPUPROF_TEST_FUZZ_OUTPUTS_H

#define FUZZ_OUTPUTS 15 /* numbers, of four bits with another one: each is a way or several */

/* Reads `folder` in the way of that number, from 0 on; what is made goes nowhere, or into it. */
void fuzz_output(unsigned number, char *folder);

#endif
