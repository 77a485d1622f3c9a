/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of calls as people read them. */
#ifndef GPUPROF_COLLECTOR_ARGUMENT_TEXT_H
#define GPUPROF_COLLECTOR_ARGUMENT_TEXT_H

#include <stdint.h>
#include <stdio.h>

/* Prints the value of an argument; `kind` is its enum arg_kind. */
void argument_print(unsigned kind, uint64_t value, FILE *out);

#endif
