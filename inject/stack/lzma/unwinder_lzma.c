/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for liblzma beside our copy of libunwind, which links with it to read compressed tables
 * of names, and is never asked for a name. The real one, loaded by us, would answer the program's
 * own need of a liblzma, of which it may have brought another version.
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
