/* SPDX-License-Identifier: Apache-2.0 */
#include "store/compress.h"

#include <stdbool.h>
#include <stdint.h>

/* for a context in our own memory; we are linked with the static library */
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "base/pages.h"
#include "base/say.h"
#include "record/state.h"
#include "zframe.h"

/* zstd gathers statistics per piece, and a payload's planes, of at most 8192 bytes, differ in kind.
 * So this is smaller by a tenth than zstd's own pieces of 128 KiB, and takes little more time. */
#define PIECE_BYTES 8192

/* Used by the writer from its start on. The child of a fork, which has no writer yet, drops it. */
static struct {
    ZSTD_CCtx *context; /* in the workspace; never allocates */
    void *workspace;
    size_t workspace_bytes;
} zstd;

/* zstd has weak references to these two, for tracing: otherwise, in a program with its own traced
 * zstd, our writer would call that program's functions. */
unsigned long long ZSTD_trace_compress_begin(const ZSTD_CCtx *context);
void ZSTD_trace_compress_end(unsigned long long trace, const void *what);

unsigned long long ZSTD_trace_compress_begin(const ZSTD_CCtx *context)
{
    (void)context;
    return 0; /* not traced */
}

void ZSTD_trace_compress_end(unsigned long long trace, const void *what)
{
    (void)trace;
    (void)what;
}

void compress_start(void)
{
    int level = (int)gp.settings.numbers[SETTING_LEVEL];
    /* The first estimate includes buffers, the second one tables for any frame size. */
    size_t bytes = ZSTD_estimateCStreamSize(level) + ZSTD_estimateCCtxSize(level);
    void *p = pages_map(bytes);
    if (p) {
        zstd.workspace = p;
        zstd.workspace_bytes = bytes;
        zstd.context = ZSTD_initStaticCCtx(p, bytes);
    }
    if (zstd.context)
        ZSTD_CCtx_setParameter(zstd.context, ZSTD_c_compressionLevel, level);
    if (!zstd.context)
        note(SAY_ZSTD, "the recording is stored uncompressed: cannot allocate memory for zstd");
}

void compress_stop(void)
{
    if (zstd.workspace)
        munmap(zstd.workspace, zstd.workspace_bytes);
    zstd.workspace = NULL;
    zstd.context = NULL;
}

size_t compress_bytes_max(size_t length)
{
    size_t bound = ZSTD_COMPRESSBOUND(length) + 8 * (length / PIECE_BYTES);
    size_t stored = zframe_bytes_max(length);
    return bound > stored ? bound : stored;
}

/* Returns 0 on failure. */
static size_t compress_pieces(const uint8_t *data, size_t length, uint8_t *out, size_t capacity)
{
    ZSTD_inBuffer from = {.src = data};
    ZSTD_outBuffer to = {.dst = out, .size = capacity};
    ZSTD_CCtx_reset(zstd.context, ZSTD_reset_session_only);
    if (ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(zstd.context, length)))
        return 0;
    bool last = false;
    while (!last) {
        last = length - from.size <= PIECE_BYTES;
        from.size = last ? length : from.size + PIECE_BYTES;
        /* Returns what is left to flush, or an error; there is space for all of it, so it must be
         * 0. */
        if (ZSTD_compressStream2(zstd.context, &to, &from, last ? ZSTD_e_end : ZSTD_e_flush) != 0)
            return 0;
    }
    return to.pos;
}

size_t compress_frame(const uint8_t *data, size_t length, uint8_t *out, size_t capacity)
{
    if (zstd.context) {
        size_t bytes = compress_pieces(data, length, out, capacity);
        if (bytes)
            return bytes;
    }
    return zframe_write(data, length, out, capacity);
}
