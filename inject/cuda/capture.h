/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks which streams are capturing, from the calls alone, since hooks make no CUDA calls. A
 * stream captures from BeginCapture to EndCapture, or until it is destroyed. An event recorded in a
 * capturing stream extends the capture to every stream that waits for it.
 */
#ifndef GPUPROF_INJECT_CAPTURE_H
#define GPUPROF_INJECT_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"

/* Value of cudaErrorStreamCaptureWrongThread and of the driver's equivalent. */
#define CAPTURE_ERROR_WRONG_THREAD 908

/* Call it after the call succeeded. */
void capture_note(enum api_capture role, unsigned code, uint64_t stream, uint64_t event);

/* Returns whether the stream, as function `code` interprets the handle, is capturing. */
bool capture_has_stream(unsigned code, uint64_t stream);

/* One stream, or every stream of the process, is being destroyed, and so are the captures it began;
 * its handle may be reused. Costs one comparison while nothing is captured. Keeps errno. */
void capture_drop_stream(uint64_t stream);
void capture_drop_all(void);

/* Call it in the child of a fork: nothing is captured there. */
void capture_reset(void);

#endif
