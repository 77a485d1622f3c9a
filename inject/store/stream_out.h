/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the stream file: created at the first recorded call; only the writer thread appends. After
 * an I/O error it ends with complete blocks. */
#ifndef GPUPROF_INJECT_STREAM_OUT_H
#define GPUPROF_INJECT_STREAM_OUT_H

#include <stdbool.h>

#include "store/block_sink.h"

/* Creates the data folder (0700) if needed. Returns false, after a message, on failure. */
bool stream_out_prepare(void);

/* Creates the file and writes its header, gp.header. Returns false, after a message, on failure. */
bool stream_out_create(void);

/* The file, as the writer's sink. If the recording ends early, the counters are written into the
 * header. */
extern struct block_sink stream_out;

/* Returns its length; and truncates it to that length. Return false with errno set on failure. */
uint64_t stream_out_bytes(void);
bool stream_out_cut(uint64_t bytes);

/* Reports it if the file is no longer at its original path, since nobody would look for it
 * elsewhere. */
void stream_out_say_where(void);

/* Removes the file: nothing was recorded. */
void stream_out_remove(void);

/* Call it in the child of a fork: drops the parent's file. */
void stream_out_forget(void);

#endif
