/* SPDX-License-Identifier: Apache-2.0 */
#include "compress.h"

#include <stdint.h>

#define ZSTD_STATIC_LINKING_ONLY /* a context in memory of ours; we are linked with the archive */
#include <zstd.h>

#include "pages.h"
#include "say.h"
#include "state.h"
#include "zframe.h"

static struct {
    ZSTD_CCtx *context; /* lies in the workspace, and never allocates */
    void *workspace;
    size_t workspace_bytes;
} zstd;

/*
 * zstd refers weakly to these two, for a program that traces it: a program with a traced zstd of
 * its own would be called from our writer.
 */
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
    size_t bytes = ZSTD_estimateCCtxSize((int)gp.settings.numbers[SETTING_LEVEL]);
    void *p = pages_map(bytes);
    if (p) {
        zstd.workspace = p;
        zstd.workspace_bytes = bytes;
        zstd.context = ZSTD_initStaticCCtx(p, bytes);
    }
    if (!zstd.context)
        say(SAY_ZSTD, "no memory to compress in: the recording is stored uncompressed");
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
    size_t bound = ZSTD_COMPRESSBOUND(length);
    size_t stored = zframe_bytes_max(length);
    return bound > stored ? bound : stored;
}

size_t compress_frame(const uint8_t *data, size_t length, uint8_t *out, size_t capacity)
{
    if (zstd.context) {
        size_t bytes = ZSTD_compressCCtx(zstd.context, out, capacity, data, length,
                                         (int)gp.settings.numbers[SETTING_LEVEL]);
        if (!ZSTD_isError(bytes))
            return bytes;
    }
    return zframe_write(data, length, out, capacity);
}
