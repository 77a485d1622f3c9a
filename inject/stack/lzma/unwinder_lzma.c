/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces liblzma for our copy of libunwind, which is linked with it for compressed symbol tables,
 * but is never asked for names. If we loaded the real one, it would satisfy the program's own need
 * of a liblzma, which may be another version.
 */
#include <stdint.h>

enum { LZMA_PROG_ERROR = 11 };

int lzma_index_buffer_decode(void);
int lzma_stream_buffer_decode(void);
int lzma_stream_footer_decode(void);
uint64_t lzma_index_size(void);
uint64_t lzma_index_uncompressed_size(void);
void lzma_index_end(void);

int lzma_index_buffer_decode(void)
{
    return LZMA_PROG_ERROR;
}

int lzma_stream_buffer_decode(void)
{
    return LZMA_PROG_ERROR;
}

int lzma_stream_footer_decode(void)
{
    return LZMA_PROG_ERROR;
}

uint64_t lzma_index_size(void)
{
    return 0;
}

uint64_t lzma_index_uncompressed_size(void)
{
    return 0;
}

void lzma_index_end(void)
{
}
