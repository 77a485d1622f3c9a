/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus.h"

#include <stdio.h>

#define CALLS 12

const char *corpus_folder;

void corpus_save_bytes(const char *name, const void *data, size_t length)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", corpus_folder, name);
    builder_write_file(path, data, length);
}

void corpus_begin(struct stream_builder *b)
{
    builder_init(b, 0);
    b->header.api_crc = 0; /* not this build's table, whichever that is */
    builder_text(b, RECORD_API, 0, "cudaMalloc|runtime|alloc|address:ptr,bytes:bytes");
    builder_text(b, RECORD_API, 1, "cudaLaunchKernel|runtime|launch|kernel:kernel,dim3:grid");
    builder_text(b, RECORD_META, 0, "cmdline=train");
    builder_flush(b);
}

void corpus_add_calls(struct stream_builder *b)
{
    for (uint64_t i = 0; i < CALLS; i++) {
        uint64_t args[2] = {0x1000 * i, 64};
        builder_call(b, 1 + i / 6, 0, 1000 + 100 * i, 50, i == 3 ? 2 : 0, 2, args);
        if (i % 3 == 2)
            builder_flush(b);
    }
}

void corpus_save(struct stream_builder *b, const char *name)
{
    builder_end(b);
    builder_flush(b);
    corpus_save_bytes(name, b->data, b->length);
}
