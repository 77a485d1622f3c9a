/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes stream files and live files for tests, by the library's own encoder but without a process
 * to record. Ticks are nanoseconds unless the header's scale is changed. Everything stops the test
 * (abort) on failure.
 */
#ifndef GPUPROF_TEST_STREAM_BUILDER_H
#define GPUPROF_TEST_STREAM_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "block.h"
#include "live.h"
#include "stream.h"

#define BUILDER_THREADS_MAX 20000

struct stream_builder {
    struct stream_header header;
    uint8_t *data; /* the file so far */
    size_t length;
    size_t capacity;
    uint64_t sequence;
    uint64_t *positions; /* by thread */
    struct block_encoder *encoder;
    uint8_t *raw; /* of the records in the encoder */
    size_t raw_length;
    uint32_t thread; /* of the block being made */
    size_t *block_offsets;
    size_t block_count;
    bool header_written;
};

/* A header for process `number`; change b->header before the first record if need be. */
void builder_init(struct stream_builder *b, unsigned number);
void builder_release(struct stream_builder *b);

/* Adds a record to the current block; another thread or a full block begins a new one. */
void builder_add(struct stream_builder *b, uint32_t thread, const struct record *r);
void builder_flush(struct stream_builder *b);

/* The records of gpuprof itself: one API record per row of api.def, a META, an END. */
void builder_api(struct stream_builder *b);
void builder_text(struct stream_builder *b, unsigned type, unsigned code, const char *text);
void builder_meta(struct stream_builder *b, const char *text);
void builder_anchor(struct stream_builder *b, uint64_t ns, uint64_t monotonic_ns);
void builder_end(struct stream_builder *b);
void builder_thread(struct stream_builder *b, uint32_t thread, uint64_t begin, uint32_t tid,
                    const char *name);
void builder_name(struct stream_builder *b, uint32_t thread, uint64_t begin, uint64_t handle,
                  const char *name);

/* A call of `function` (enum api_code) with up to 10 arguments. */
void builder_call(struct stream_builder *b, uint32_t thread, unsigned function, uint64_t begin,
                  uint64_t duration, int32_t result, unsigned arg_count, const uint64_t *args);

/* The same with a correlation id. */
void builder_correlated(struct stream_builder *b, uint32_t thread, unsigned function,
                        uint64_t begin, uint64_t duration, uint32_t correlation);

/* Any record of up to 16 arguments; `text` may be NULL. */
void builder_record(struct stream_builder *b, uint32_t thread, unsigned type, uint64_t begin,
                    uint64_t duration, uint32_t correlation, unsigned arg_count,
                    const uint64_t *args, const char *text);

/* Flushes and writes the file. */
void builder_save(struct stream_builder *b, const char *path);

/* Ends the recording, writes the file, whose path is printed from `format`, and releases b. */
__attribute__((format(printf, 2, 3))) void builder_finish(struct stream_builder *b,
                                                          const char *format, ...);

void builder_write_file(const char *path, const void *data, size_t length);

struct live_builder {
    uint8_t *data;
    size_t length;
    uint32_t chunk_bytes;
    uint32_t chunk_count;
};

/* A live file of `h` with free chunks. */
void live_builder_init(struct live_builder *l, const struct stream_header *h, uint32_t chunk_bytes,
                       uint32_t chunk_count);
void live_builder_release(struct live_builder *l);
void live_builder_chunk(struct live_builder *l, uint32_t index, uint32_t state, uint32_t thread,
                        uint32_t tid, uint64_t position);
/* Appends a record (times in ticks); its size. */
size_t live_builder_add(struct live_builder *l, uint32_t index, const struct record *r);
void live_builder_open_call(struct live_builder *l, uint32_t index, unsigned function,
                            uint64_t begin, unsigned arg_count, const uint64_t *args);
void live_builder_counter(struct live_builder *l, unsigned index, uint64_t value);
void live_builder_save(struct live_builder *l, const char *path);

#endif
