/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which streams are capturing, followed from the calls alone, because hooks make no CUDA calls: a
 * stream captures from BeginCapture to EndCapture, or to its own end; an event recorded in a
 * capturing stream carries the capture to every stream that waits for it.
 */
#ifndef GPUPROF_INJECT_CAPTURE_H
#define GPUPROF_INJECT_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"

/* cudaErrorStreamCaptureWrongThread and its driver twin. */
#define CAPTURE_ERROR_WRONG_THREAD 908

/* After the call succeeded. */
void capture_note(enum api_capture role, unsigned code, uint64_t stream, uint64_t event);

/* True if the stream, as the function `code` means it, is capturing. */
bool capture_has_stream(unsigned code, uint64_t stream);

/*
 * A stream, or every stream of the process, is being destroyed, captures that it began with it: its
 * handle may soon mean another one. Costs one comparison while nothing is captured; errno is kept.
 */
void capture_drop_stream(uint64_t stream);
void capture_drop_all(void);

/* In the child of a fork: nothing is being captured. */
void capture_reset(void);

#endif
