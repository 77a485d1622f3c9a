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
#include <string.h>

/* cudaErrorStreamCaptureWrongThread and its driver twin. */
#define CAPTURE_ERROR_WRONG_THREAD 908

enum capture_role {
    CAPTURE_NONE,
    CAPTURE_BEGIN,
    CAPTURE_FINISH,
    CAPTURE_EVENT_RECORD,
    CAPTURE_EVENT_WAIT,
};

/* What a function means for captures. Folds to a constant for a constant symbol. */
static inline __attribute__((always_inline)) enum capture_role capture_role(const char *symbol)
{
    const char *name = symbol + (strncmp(symbol, "cuda", 4) == 0 ? 4 : 2);
    if (strncmp(name, "StreamBeginCapture", 18) == 0)
        return CAPTURE_BEGIN;
    if (strncmp(name, "StreamEndCapture", 16) == 0)
        return CAPTURE_FINISH;
    if (strncmp(name, "EventRecord", 11) == 0)
        return CAPTURE_EVENT_RECORD;
    if (strncmp(name, "StreamWaitEvent", 15) == 0)
        return CAPTURE_EVENT_WAIT;
    return CAPTURE_NONE;
}

/* Does the function begin or end a capture? Folds like capture_role. */
static inline __attribute__((always_inline)) bool capture_starts_or_ends(const char *symbol)
{
    enum capture_role role = capture_role(symbol);
    return role == CAPTURE_BEGIN || role == CAPTURE_FINISH;
}

/* After the call succeeded. */
void capture_note(enum capture_role role, unsigned code, uint64_t stream, uint64_t event);

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
