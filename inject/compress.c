/* SPDX-License-Identifier: Apache-2.0 */
#include "compress.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "dlsym_filter.h"
#include "objects.h"
#include "say.h"
#include "state.h"
#include "zframe.h"

#define ZSTD_SONAME "libzstd.so.1"

/* The three functions of zstd.h that are used, with its types. */
static struct {
    void *(*create_context)(void);
    size_t (*compress)(void *context, void *out, size_t capacity, const void *data, size_t length,
                       int level);
    unsigned (*is_error)(size_t code);
    void *context;
} zstd;

static void *open_beside_us(void)
{
    struct object us;
    char path[STREAM_PATH_BYTES_MAX];
    if (!object_at((uintptr_t)&zstd, &us))
        return NULL;
    const char *slash = strrchr(us.path, '/');
    int length =
        slash ? snprintf(path, sizeof path, "%.*s/%s", (int)(slash - us.path), us.path, ZSTD_SONAME)
              : -1;
    return length > 0 && (size_t)length < sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

void compress_load(void)
{
    void *library = open_beside_us();
    if (!library)
        library = dlopen(ZSTD_SONAME, RTLD_NOW | RTLD_LOCAL);
    dlsym_find_real();
    if (library && real_dlsym) {
        zstd.create_context = (void *(*)(void))real_dlsym(library, "ZSTD_createCCtx");
        zstd.compress = (size_t(*)(void *, void *, size_t, const void *, size_t, int))real_dlsym(
            library, "ZSTD_compressCCtx");
        zstd.is_error = (unsigned (*)(size_t))real_dlsym(library, "ZSTD_isError");
    }
    if (zstd.create_context && zstd.compress && zstd.is_error)
        zstd.context = zstd.create_context();
    if (!zstd.context)
        say(SAY_ZSTD, "%s not found: the recording is stored uncompressed", ZSTD_SONAME);
}

void compress_forget(void)
{
    zstd.context = NULL;
}

size_t compress_bytes_max(size_t length)
{
    /* zstd's own bound: length + length / 256 + a margin that shrinks to nothing at 128 KiB. */
    size_t bound =
        length + (length >> 8) + (length < (128u << 10) ? ((128u << 10) - length) >> 11 : 0);
    size_t stored = zframe_bytes_max(length);
    return bound > stored ? bound : stored;
}

size_t compress_frame(const uint8_t *data, size_t length, uint8_t *out, size_t capacity)
{
    if (zstd.context) {
        size_t bytes = zstd.compress(zstd.context, out, capacity, data, length,
                                     (int)gp.settings.numbers[SETTING_LEVEL]);
        if (!zstd.is_error(bytes))
            return bytes;
    }
    return zframe_write(data, length, out, capacity);
}
