/* SPDX-License-Identifier: Apache-2.0 */
/* What the encoder and the decoder of payloads share. */
#ifndef GPUPROF_FORMATS_BLOCK_LAYOUT_H
#define GPUPROF_FORMATS_BLOCK_LAYOUT_H

#define BLOCK_PAYLOAD_VERSION 1

/* The columns that every record has, in their order in the payload. */
enum block_common_column {
    BLOCK_SHAPE,
    BLOCK_FLAGS,
    BLOCK_BEGIN,
    BLOCK_DURATION,
    BLOCK_RESULT,
    BLOCK_CORRELATION,
    BLOCK_STACK,
    BLOCK_WEIGHT,
    BLOCK_TEXT_LENGTH,
    BLOCK_COMMON_COLUMNS
};

#endif
