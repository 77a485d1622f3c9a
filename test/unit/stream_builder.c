/* SPDX-License-Identifier: Apache-2.0 */
#include "stream_builder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "api/api.h"
#include "bytes.h"
#include "crc32c.h"

#define RAW_BYTES_MAX (BLOCK_TEXT_BYTES_MAX + 8 * RECORD_WORDS_MAX)

static void *need(void *memory)
{
    if (!memory) {
        perror("stream_builder");
        abort();
    }
    return memory;
}

static void append(struct stream_builder *b, const void *data, size_t length)
{
    if (b->length + length > b->capacity) {
        b->capacity = 2 * (b->length + length);
        b->data = need(realloc(b->data, b->capacity));
    }
    memcpy(b->data + b->length, data, length);
    b->length += length;
}

void builder_init(struct stream_builder *b, unsigned number)
{
    *b = (struct stream_builder){0};
    struct stream_header *h = &b->header;
    memset(h->boot_id, 0xb0, sizeof h->boot_id);
    store_u32(h->process_id, number + 1);
    h->process_id[15] = 0xed;
    h->pid = 1000 + number;
    h->parent_pid = 1;
    h->start_time = 100 + number;
    h->api_crc = api_table_crc();
    h->scale.mult = 1ull << CLOCK_SCALE_SHIFT;
    h->monotonic_zero_ns = 5000000000u;
    h->realtime_zero_ns = 1700000000000000000u;
    strcpy(h->host, "testhost");
    b->positions = need(calloc(BUILDER_THREADS_MAX, sizeof *b->positions));
    b->encoder = need(malloc(sizeof *b->encoder));
    block_encoder_reset(b->encoder);
    b->raw = need(malloc(RAW_BYTES_MAX));
}

void builder_release(struct stream_builder *b)
{
    free(b->data);
    free(b->positions);
    free(b->encoder);
    free(b->raw);
    free(b->block_offsets);
}

static void write_header(struct stream_builder *b)
{
    uint8_t header[STREAM_HEADER_BYTES_MAX];
    int size = stream_header_write(&b->header, header, sizeof header);
    if (size < 0)
        abort();
    append(b, header, (size_t)size);
    b->header_written = true;
}

void builder_flush(struct stream_builder *b)
{
    if (!b->header_written)
        write_header(b);
    if (!b->encoder->record_count)
        return;
    struct block_header h = {.thread = b->thread, .sequence = b->sequence++};
    size_t capacity = block_encode_bytes_max(b->encoder);
    uint8_t *payload = need(malloc(capacity));
    h.flags = api_calls_are_plain(b->encoder) ? BLOCK_PLAIN_CALLS : 0;
    if (block_encode(b->encoder, &b->header.scale, payload, capacity, &h) < 0)
        abort();
    size_t bound = ZSTD_compressBound(h.payload_bytes);
    uint8_t *stored = need(malloc(bound));
    size_t size = ZSTD_compress(stored, bound, payload, h.payload_bytes, 1);
    if (ZSTD_isError(size))
        abort();
    h.stored_bytes = (uint32_t)size;
    h.stored_crc = crc32c(0, stored, size);
    h.position_begin = b->positions[b->thread];
    h.position_end = b->positions[b->thread] += b->raw_length;
    uint8_t head[BLOCK_HEADER_BYTES];
    block_header_write(&h, head);
    b->block_offsets = need(realloc(b->block_offsets, (b->block_count + 1) * sizeof(size_t)));
    b->block_offsets[b->block_count++] = b->length;
    append(b, head, sizeof head);
    append(b, stored, size);
    free(payload);
    free(stored);
    block_encoder_reset(b->encoder);
    b->raw_length = 0;
}

void builder_add(struct stream_builder *b, uint32_t thread, const struct record *r)
{
    if (thread >= BUILDER_THREADS_MAX)
        abort();
    if (thread != b->thread)
        builder_flush(b);
    b->thread = thread;
    uint8_t raw[8 * RECORD_WORDS_MAX];
    int size = record_write(r, raw, sizeof raw);
    if (size < 0)
        abort();
    if (b->raw_length + (size_t)size > RAW_BYTES_MAX)
        builder_flush(b);
    memcpy(b->raw + b->raw_length, raw, (size_t)size);
    if (block_encoder_add(b->encoder, b->raw + b->raw_length, (size_t)size) <= 0) {
        builder_flush(b);
        memcpy(b->raw, raw, (size_t)size);
        if (block_encoder_add(b->encoder, b->raw, (size_t)size) <= 0)
            abort();
    }
    b->raw_length += (size_t)size;
}

void builder_text(struct stream_builder *b, unsigned type, unsigned code, const char *text)
{
    struct record r = {.type = (uint8_t)type,
                       .code = (uint16_t)code,
                       .bytes = (const uint8_t *)text,
                       .byte_count = (uint32_t)strlen(text)};
    builder_add(b, 0, &r);
}

void builder_api(struct stream_builder *b)
{
    for (unsigned i = 0; i < API_FUNCTION_COUNT; i++) {
        const struct api_function *f = &api_functions[i];
        if (api_libraries[f->domain].layer != API_OWNER)
            continue; /* as in a recording: when one is called */
        char text[1024];
        int at = snprintf(text, sizeof text, "%s|%s|%s|", f->symbol, api_domain_name(f->domain),
                          api_class_name(f->class));
        for (unsigned k = 0; k < f->arg_count; k++)
            at += snprintf(text + at, sizeof text - (size_t)at, "%s%s:%s", k ? "," : "",
                           arg_kind_name(f->args[k].kind), f->args[k].label);
        builder_text(b, RECORD_API, i, text);
    }
}

void builder_meta(struct stream_builder *b, const char *text)
{
    builder_text(b, RECORD_META, 0, text);
}

void builder_anchor(struct stream_builder *b, uint64_t ns, uint64_t monotonic_ns)
{
    struct record r = {.type = RECORD_ANCHOR, .begin = ns, .arg_count = 2, .args = {monotonic_ns}};
    builder_add(b, 0, &r);
}

void builder_end(struct stream_builder *b)
{
    struct record r = {.type = RECORD_END, .arg_count = 1, .args = {END_EXIT}};
    builder_add(b, 0, &r);
}

void builder_thread(struct stream_builder *b, uint32_t thread, uint64_t begin, uint32_t tid,
                    const char *name)
{
    struct record r = {.type = RECORD_THREAD,
                       .begin = begin,
                       .arg_count = 1,
                       .args = {tid},
                       .bytes = (const uint8_t *)name,
                       .byte_count = (uint32_t)strlen(name)};
    builder_add(b, thread, &r);
}

void builder_name(struct stream_builder *b, uint32_t thread, uint64_t begin, uint64_t handle,
                  const char *name)
{
    struct record r = {.type = RECORD_NAME,
                       .begin = begin,
                       .arg_count = 2,
                       .args = {handle, 0},
                       .bytes = (const uint8_t *)name,
                       .byte_count = (uint32_t)strlen(name)};
    builder_add(b, thread, &r);
}

void builder_call(struct stream_builder *b, uint32_t thread, unsigned function, uint64_t begin,
                  uint64_t duration, int32_t result, unsigned arg_count, const uint64_t *args)
{
    struct record r = {.type = RECORD_CALL,
                       .code = (uint16_t)function,
                       .begin = begin,
                       .duration = duration,
                       .result = result,
                       .arg_count = (uint8_t)arg_count};
    if (arg_count)
        memcpy(r.args, args, arg_count * sizeof *args);
    builder_add(b, thread, &r);
}

void builder_record(struct stream_builder *b, uint32_t thread, unsigned type, uint64_t begin,
                    uint64_t duration, uint32_t correlation, unsigned arg_count,
                    const uint64_t *args, const char *text)
{
    struct record r = {.type = (uint8_t)type,
                       .begin = begin,
                       .duration = duration,
                       .correlation = correlation,
                       .arg_count = (uint8_t)arg_count,
                       .bytes = (const uint8_t *)text,
                       .byte_count = text ? (uint32_t)strlen(text) : 0};
    if (arg_count)
        if (arg_count)
            memcpy(r.args, args, arg_count * sizeof *args);
    builder_add(b, thread, &r);
}

void builder_correlated(struct stream_builder *b, uint32_t thread, unsigned function,
                        uint64_t begin, uint64_t duration, uint32_t correlation)
{
    struct record r = {.type = RECORD_CALL,
                       .code = (uint16_t)function,
                       .begin = begin,
                       .duration = duration,
                       .correlation = correlation};
    builder_add(b, thread, &r);
}

void builder_write_file(const char *path, const void *data, size_t length)
{
    remove(path); /* a file that is cut to nothing is written to the disk at once, and waited for */
    FILE *file = fopen(path, "we");
    if (!file) {
        fprintf(stderr, "%s: %s; name a folder that there is\n", path, strerror(errno));
        exit(EXIT_FAILURE);
    }
    if (fwrite(data, 1, length, file) != length || fclose(file) != 0)
        abort();
}

void builder_save(struct stream_builder *b, const char *path)
{
    builder_flush(b);
    builder_write_file(path, b->data, b->length);
}

void builder_finish(struct stream_builder *b, const char *format, ...)
{
    char path[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof path, format, args);
    va_end(args);
    builder_end(b);
    builder_save(b, path);
    builder_release(b);
}

void live_builder_init(struct live_builder *l, const struct stream_header *h, uint32_t chunk_bytes,
                       uint32_t chunk_count)
{
    l->chunk_bytes = chunk_bytes;
    l->chunk_count = chunk_count;
    l->length = LIVE_HEAD_BYTES + (size_t)chunk_bytes * chunk_count;
    l->data = need(calloc(1, l->length));
    if (stream_header_write(h, l->data, STREAM_HEADER_BYTES_MAX) < 0)
        abort();
    store_u32(l->data + LIVE_OFFSET_VERSION, LIVE_VERSION);
    store_u32(l->data + LIVE_OFFSET_CHUNK_BYTES, chunk_bytes);
    store_u32(l->data + LIVE_OFFSET_CHUNK_COUNT, chunk_count);
    store_u32(l->data + LIVE_OFFSET_CHUNKS, LIVE_HEAD_BYTES);
    store_u64(l->data + LIVE_OFFSET_MAGIC, LIVE_MAGIC);
}

void live_builder_release(struct live_builder *l)
{
    free(l->data);
}

static uint8_t *chunk_at(struct live_builder *l, uint32_t index)
{
    return l->data + LIVE_HEAD_BYTES + (size_t)index * l->chunk_bytes;
}

void live_builder_chunk(struct live_builder *l, uint32_t index, uint32_t state, uint32_t thread,
                        uint32_t tid, uint64_t position)
{
    uint8_t *chunk = chunk_at(l, index);
    store_u32(chunk + LIVE_CHUNK_STATE, state);
    store_u32(chunk + LIVE_CHUNK_THREAD, thread);
    store_u32(chunk + LIVE_CHUNK_TID, tid);
    store_u64(chunk + LIVE_CHUNK_POSITION, position);
}

size_t live_builder_add(struct live_builder *l, uint32_t index, const struct record *r)
{
    uint8_t *chunk = chunk_at(l, index);
    uint64_t committed = load_u64(chunk + LIVE_CHUNK_COMMITTED);
    int size = record_write(r, chunk + LIVE_CHUNK_HEAD_BYTES + committed,
                            l->chunk_bytes - LIVE_CHUNK_HEAD_BYTES - committed);
    if (size < 0)
        abort();
    store_u64(chunk + LIVE_CHUNK_COMMITTED, committed + (uint64_t)size);
    return (size_t)size;
}

void live_builder_open_call(struct live_builder *l, uint32_t index, unsigned function,
                            uint64_t begin, unsigned arg_count, const uint64_t *args)
{
    uint8_t *chunk = chunk_at(l, index);
    uint64_t committed = load_u64(chunk + LIVE_CHUNK_COMMITTED);
    struct record r = {.type = RECORD_CALL,
                       .code = (uint16_t)function,
                       .begin = begin,
                       .duration = UINT64_MAX, /* what lay there */
                       .arg_count = (uint8_t)arg_count};
    if (arg_count)
        memcpy(r.args, args, arg_count * sizeof *args);
    if (record_write(&r, chunk + LIVE_CHUNK_HEAD_BYTES + committed,
                     l->chunk_bytes - LIVE_CHUNK_HEAD_BYTES - committed) < 0)
        abort();
    store_u64(chunk + LIVE_CHUNK_COMMITTED, committed + 1);
}

void live_builder_counter(struct live_builder *l, unsigned index, uint64_t value)
{
    store_u64(l->data + LIVE_OFFSET_COUNTERS + 8 * index, value);
}

void live_builder_save(struct live_builder *l, const char *path)
{
    builder_write_file(path, l->data, l->length);
}
