/* SPDX-License-Identifier: Apache-2.0 */
/* How dump shows the arguments of records: numbers, 0x and hex for addresses and handles, x,y,z for
 * grids, and words for the kinds of copies and those that CUPTI and NVTX number. */
#ifndef GPUPROF_COLLECTOR_DUMP_RECORD_H
#define GPUPROF_COLLECTOR_DUMP_RECORD_H

#include <stdio.h>

#include "record.h"

/* Prints argument `index` of the record, without its label. A kind that has no word is a number. */
void dump_argument(const struct record *r, unsigned index, FILE *out);

/* Prints the frames of a STACK record, " frames=3+0x4f,python:7,0x7f00", innermost first. */
void dump_frames(const struct record *r, FILE *out);

#endif
