/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs make of a folder of recordings, for fuzzing. */
#ifndef GPUPROF_TEST_FUZZ_OUTPUTS_H
#define GPUPROF_TEST_FUZZ_OUTPUTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/message.h"
#include "base/options.h"

#define FUZZ_OUTPUTS 15 /* numbers, of four bits with another one: each is a way or several */

/* Reads `folder` in the way of that number, from 0 on; what is made goes nowhere, or into it. */
void fuzz_output(unsigned number, char *folder);

/* Runs the verb with these words, which it must take; what it prints goes nowhere. */
void fuzz_run(const struct verb *verb, int argc, char **argv);

void fuzz_write(const char *path, const uint8_t *data, size_t size);

#endif
