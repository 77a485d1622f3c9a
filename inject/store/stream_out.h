/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream file as it is written: created at the first recorded call, appended to by the writer
 * thread only. An I/O error leaves whole blocks behind.
 */
#ifndef GPUPROF_INJECT_STREAM_OUT_H
#define GPUPROF_INJECT_STREAM_OUT_H

#include <stdbool.h>

#include "store/block_sink.h"

/* Makes the data folder (0700) if need be. False: there is none (said). */
bool stream_out_prepare(void);

/* Creates the file and writes its header, gp.header. False: it cannot be (said). */
bool stream_out_create(void);

/* The file, for the writer. At an early end the counters go into the header, in place. */
extern struct block_sink stream_out;

/* How long it is; and shortens it to that again. False: errno. */
uint64_t stream_out_bytes(void);
bool stream_out_cut(uint64_t bytes);

/* Says so if the file is no more where it was made: nobody would look for it elsewhere. */
void stream_out_say_where(void);

/* Takes the file away again: nothing was recorded. */
void stream_out_remove(void);

/* In the child of a fork: lets go of the parent's file. */
void stream_out_forget(void);

#endif
