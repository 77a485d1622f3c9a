/* SPDX-License-Identifier: Apache-2.0 */
/* How dump shows stacks. */
#ifndef GPUPROF_COLLECTOR_DUMP_RECORD_H
#define GPUPROF_COLLECTOR_DUMP_RECORD_H

#include <stdio.h>

#include "record.h"

/* Prints the frames of a STACK record, " frames=3+0x4f,python:7,0x7f00", innermost first. */
void dump_frames(const struct record *r, FILE *out);

#endif
