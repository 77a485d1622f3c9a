/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays a launch mix through the real block encoder and zstd, as the writer thread does, without
 * the program around it: encode_mix MIX CALLS [OUT [LEVEL [RECORDS]]]
 *
 * Prints "bytes B encode E compress Z blocks N calls C": stored bytes per call, nanoseconds of CPU
 * time per call in the encoder and in zstd. With OUT it writes a whole recording there (a stream
 * file with its header, function table, names and clock anchors), for the collector's benches.
 * RECORDS ends blocks early, at that many.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

#include "api.h"
#include "block.h"
#include "crc32c.h"
#include "mix.h"
#include "stream.h"

#define RECORD_WORDS   16
#define HANDLE(kernel) (0x55D0C4000000ull + 16 * (kernel))

static struct {
    struct mix *mix;
    struct block_encoder encoder;
    uint64_t records[BLOCK_RECORDS_MAX][RECORD_WORDS];
    uint8_t texts[1u << 20]; /* raw records of thread 0 */
    uint8_t payload[BLOCK_PAYLOAD_BYTES_MAX];
    uint8_t stored[BLOCK_STORED_BYTES_MAX + BLOCK_HEADER_BYTES];
    struct stream_header header;
    struct block_header block;
    ZSTD_CCtx *zstd;
    int level;
    uint32_t records_max;
    FILE *out;
    uint32_t record_count; /* made, and not yet in the encoder */
    uint64_t encode_ns, compress_ns, bytes, blocks;
} b;

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Times are ns already: ticks of one ns. */
static void store_block(uint32_t thread)
{
    struct block_encoder *e = &b.encoder;
    uint64_t begin = cpu_ns();
    for (uint32_t i = 0; i < b.record_count; i++)
        if (!block_encoder_add(e, (const uint8_t *)b.records[i]))
            abort();
    b.record_count = 0;
    if (!e->record_count)
        return;
    b.block.thread = thread;
    b.block.position_begin = b.block.position_end;
    b.block.position_end += e->raw_bytes;
    if (block_encode(e, &b.header.scale, b.payload, sizeof b.payload, &b.block) < 0)
        abort();
    uint64_t encoded = cpu_ns();
    uint8_t *frame = b.stored + BLOCK_HEADER_BYTES;
    size_t bytes = ZSTD_compressCCtx(b.zstd, frame, sizeof b.stored - BLOCK_HEADER_BYTES, b.payload,
                                     b.block.payload_bytes, b.level);
    if (ZSTD_isError(bytes))
        abort();
    b.compress_ns += cpu_ns() - encoded;
    b.block.stored_bytes = (uint32_t)bytes;
    b.block.stored_crc = crc32c(0, frame, bytes);
    block_header_write(&b.block, b.stored);
    b.block.sequence++;
    b.blocks++;
    b.bytes += BLOCK_HEADER_BYTES + bytes;
    if (b.out && fwrite(b.stored, 1, BLOCK_HEADER_BYTES + bytes, b.out) == 0)
        abort();
    block_encoder_reset(e);
    b.encode_ns += encoded - begin;
}

static uint64_t dim3_word(const uint64_t *xyz)
{
    return xyz[0] | xyz[1] << 32 | xyz[2] << 48;
}

/* The argument words in the order of the function's row; its index. */
static unsigned call_words(const struct mix_call *c, uint64_t step, uint64_t *words)
{
    const uint64_t *f = c->words;
    switch (c->kind) {
    case MIX_LAUNCH:
        words[0] = HANDLE(f[0]);
        words[1] = dim3_word(f + 1);
        words[2] = dim3_word(f + 4);
        words[3] = f[7];
        words[4] = f[8];
        return API_INDEX_cudaLaunchKernel;
    case MIX_COPY:
        memcpy(words, f, 5 * sizeof *words);
        words[1] = mix_copy_source(c, step);
        return API_INDEX_cudaMemcpyAsync;
    case MIX_SET: memcpy(words, f, 4 * sizeof *words); return API_INDEX_cudaMemsetAsync;
    case MIX_RECORD: memcpy(words, f, 2 * sizeof *words); return API_INDEX_cudaEventRecord;
    case MIX_WAIT:
        words[0] = f[1];
        words[1] = f[0];
        words[2] = 0;
        return API_INDEX_cudaStreamWaitEvent;
    default: words[0] = f[0]; return API_INDEX_cudaStreamSynchronize;
    }
}

static void add_call(const struct mix_call *c, uint64_t step, uint64_t *now)
{
    struct mix *m = b.mix;
    uint64_t *record = b.records[b.record_count++];
    unsigned code = call_words(c, step, record + RECORD_HEAD_WORDS);
    unsigned count = api_functions[code].arg_count;
    *now += mix_time(m, c->gap_ns, m->gap_sigma);
    record[0] = record_word0(RECORD_CALL, 0, RECORD_HEAD_WORDS + count, code, count);
    record[1] = *now;
    record[2] = mix_time(m, c->duration_ns, m->duration_sigma);
    record[3] = 0;
    *now += record[2];
}

static void add_text(uint8_t **at, struct record r, const char *text)
{
    r.bytes = (const uint8_t *)text;
    r.byte_count = (uint32_t)strlen(text);
    int bytes = record_write(&r, *at, (size_t)(b.texts + sizeof b.texts - *at));
    if (bytes < 0 || !block_encoder_add(&b.encoder, *at))
        abort();
    *at += bytes;
}

/* What a recording begins with: who it was, the function table, the kernels' names, an anchor. */
static void write_head(const char *path)
{
    uint8_t head[STREAM_HEADER_BYTES_MAX];
    b.out = fopen(path, "we");
    memcpy(b.header.process_id, "bench process 01", 16);
    b.header.pid = 4242;
    b.header.parent_pid = 1;
    b.header.start_time = 1000;
    b.header.api_crc = api_table_crc();
    b.header.monotonic_zero_ns = 1000000000u;
    b.header.realtime_zero_ns = 1700000000000000000u;
    strcpy(b.header.host, "bench");
    int bytes = stream_header_write(&b.header, head, sizeof head);
    if (!b.out || bytes < 0 || fwrite(head, 1, (size_t)bytes, b.out) == 0)
        abort();
    uint8_t *at = b.texts;
    add_text(&at, (struct record){.type = RECORD_META}, "exe=/bench/train");
    for (unsigned i = 0; i < API_FUNCTION_COUNT; i++) {
        const struct api_function *f = &api_functions[i];
        char text[512];
        int n = snprintf(text, sizeof text, "%s|%s|%s|", f->symbol, api_domain_name(f->domain),
                         api_class_name(f->class));
        for (unsigned a = 0; a < f->arg_count; a++)
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%s:%s", a ? "," : "",
                          api_arg_kind_name(f->args[a].kind), f->args[a].label);
        add_text(&at, (struct record){.type = RECORD_API, .code = (uint16_t)i}, text);
        if (b.encoder.shape_count > BLOCK_SHAPES_MAX - 8)
            store_block(0);
    }
    struct record anchor = {.type = RECORD_ANCHOR, .arg_count = 2};
    anchor.args[0] = b.header.monotonic_zero_ns;
    anchor.args[1] = b.header.realtime_zero_ns;
    bytes = record_write(&anchor, at, 64);
    block_encoder_add(&b.encoder, at);
    at += bytes;
    store_block(0);
    b.block.position_end = 0;
    for (unsigned k = 0; k < b.mix->kernel_count; k++)
        add_text(&at, (struct record){.type = RECORD_NAME, .arg_count = 2, .args = {HANDLE(k), 1}},
                 b.mix->kernels[k]);
    store_block(1);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    b.mix = mix_read(argv[1]);
    uint64_t calls = strtoull(argv[2], NULL, 10);
    b.level = argc > 4 ? atoi(argv[4]) : 1;
    b.records_max = argc > 5 ? (uint32_t)atoi(argv[5]) : BLOCK_RECORDS_MAX;
    b.zstd = ZSTD_createCCtx();
    b.header.scale = (struct clock_scale){.mult = 1ull << CLOCK_SCALE_SHIFT};
    if (argc > 3 && argv[3][0])
        write_head(argv[3]);
    b.encode_ns = b.compress_ns = b.bytes = b.blocks = 0;
    uint64_t now = 1000000;
    for (uint64_t i = 0, step = 0; i < calls; step++) {
        for (unsigned c = 0; c < b.mix->call_count && i < calls; c++, i++) {
            if (b.record_count == b.records_max)
                store_block(1);
            add_call(&b.mix->calls[c], step, &now);
        }
    }
    store_block(1);
    if (b.out && fclose(b.out) != 0)
        abort();
    printf("bytes %.4f encode %.2f compress %.2f blocks %llu calls %llu\n",
           (double)b.bytes / (double)calls, (double)b.encode_ns / (double)calls,
           (double)b.compress_ns / (double)calls, (unsigned long long)b.blocks,
           (unsigned long long)calls);
    return 0;
}
