/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "standin.h"

/* What stands for cuDNN: it says its version and gives handles; it has no algorithms. */

enum { SUCCESS = 0, BAD_PARAM = 2000, VERSION = 91900, CUDART_VERSION = 13000 };

struct handle {
    void *stream;
};

STANDIN size_t cudnnGetVersion(void)
{
    return VERSION;
}

STANDIN size_t cudnnGetCudartVersion(void)
{
    return CUDART_VERSION;
}

/* Of MAJOR_VERSION, MINOR_VERSION and PATCH_LEVEL. */
STANDIN int cudnnGetProperty(int which, int *value)
{
    const int parts[] = {VERSION / 10000, VERSION / 100 % 100, VERSION % 100};
    if (which < 0 || which > 2 || !value)
        return BAD_PARAM;
    *value = parts[which];
    return SUCCESS;
}

STANDIN int cudnnCreate(struct handle **handle)
{
    if (!handle)
        return BAD_PARAM;
    *handle = calloc(1, sizeof **handle);
    return *handle ? SUCCESS : BAD_PARAM;
}

STANDIN int cudnnDestroy(struct handle *handle)
{
    free(handle);
    return SUCCESS;
}

STANDIN int cudnnSetStream(struct handle *handle, void *stream)
{
    if (!handle)
        return BAD_PARAM;
    handle->stream = stream;
    return SUCCESS;
}

STANDIN int cudnnGetStream(struct handle *handle, void **stream)
{
    if (!handle || !stream)
        return BAD_PARAM;
    *stream = handle->stream;
    return SUCCESS;
}
