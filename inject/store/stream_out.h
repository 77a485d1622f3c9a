/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream file as it is written: created at the first recorded call, appended to by the writer
 * thread only. An I/O error ends the recording with one message and leaves whole blocks behind.
 */
#ifndef GPUPROF_INJECT_STREAM_OUT_H
#define GPUPROF_INJECT_STREAM_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes the data folder (0700) if need be. False: there is none (said). */
bool stream_out_prepare(void);

/* Creates the file and writes its header, gp.header. False: it cannot be (said). */
bool stream_out_create(void);

/* Appends a whole block. False: it is not there, and recording has ended (said). */
bool stream_out_append(const uint8_t *data, size_t bytes);

/*
 * Of a recording that ended before its process: writes the counters into the header, in place,
 * and `lost` records more as not written. A file that cannot grow has room for nothing else.
 */
void stream_out_tell_end(uint64_t lost);

/* Takes the file away again: nothing was recorded. */
void stream_out_remove(void);

/* In the child of a fork: lets go of the parent's file. */
void stream_out_forget(void);

#endif
