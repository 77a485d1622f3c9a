/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays a launch mix through the real block encoder and zstd, as the writer thread does, without
 * the program around it: encode_mix MIX CALLS [OUT [LEVEL [RECORDS]]], or
 * encode_mix MIX LAUNCHES kernels
 *
 * Prints "bytes B encode E compress Z blocks N calls C": stored bytes per call, nanoseconds of CPU
 * time per call in the encoder and in zstd. With OUT it writes a whole recording there (a stream
 * file with its header, function table, names and clock anchors), for the collector's benches.
 * RECORDS ends blocks early, at that many.
 *
 * With "kernels" only the launches are stored, each with the record of its kernel, and "bytes" are
 * those of both. The other calls pass, and take their time and their correlation ids. A kernel's
 * times are not the mix's: it begins some us after its call or when the one before it on its stream
 * has ended, takes a time of its own, and the device's clock ticks every 32 ns; a synchronisation
 * waits for all of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

#include "api/api.h"
#include "block.h"
#include "crc32c.h"
#include "mix.h"
#include "stream.h"

#define RECORD_WORDS   24
#define DEVICE_TICK_NS 32
#define LATENCY_NS     4000 /* from a call's end to its kernel, if the device is idle */
#define NEXT_NS        900  /* from one kernel to the next */
#define STREAMS        2
#define PIECE_BYTES    8192
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

/* As compress.c does it. */
static size_t compress(const uint8_t *data, size_t length, uint8_t *out, size_t capacity)
{
    ZSTD_inBuffer from = {.src = data};
    ZSTD_outBuffer to = {.dst = out, .size = capacity};
    ZSTD_CCtx_reset(b.zstd, ZSTD_reset_session_only);
    ZSTD_CCtx_setPledgedSrcSize(b.zstd, length);
    bool last = false;
    while (!last) {
        last = length - from.size <= PIECE_BYTES;
        from.size = last ? length : from.size + PIECE_BYTES;
        if (ZSTD_compressStream2(b.zstd, &to, &from, last ? ZSTD_e_end : ZSTD_e_flush) != 0)
            abort();
    }
    return to.pos;
}

/* Times are ns already: ticks of one ns. */
static void store_block(uint32_t thread)
{
    struct block_encoder *e = &b.encoder;
    uint64_t begin = cpu_ns();
    for (uint32_t i = 0; i < b.record_count; i++)
        if (block_encoder_add(e, (const uint8_t *)b.records[i], sizeof b.records[i]) <= 0)
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
    size_t bytes =
        compress(b.payload, b.block.payload_bytes, frame, sizeof b.stored - BLOCK_HEADER_BYTES);
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
        return API_CODE_cudaLaunchKernel;
    case MIX_COPY:
        memcpy(words, f, 5 * sizeof *words);
        words[1] = mix_copy_source(c, step);
        return API_CODE_cudaMemcpyAsync;
    case MIX_SET: memcpy(words, f, 4 * sizeof *words); return API_CODE_cudaMemsetAsync;
    case MIX_RECORD: memcpy(words, f, 2 * sizeof *words); return API_CODE_cudaEventRecord;
    case MIX_WAIT:
        words[0] = f[1];
        words[1] = f[0];
        words[2] = 0;
        return API_CODE_cudaStreamWaitEvent;
    default: words[0] = f[0]; return API_CODE_cudaStreamSynchronize;
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

struct kernel {
    const struct mix_call *call;
    uint32_t correlation;
    uint64_t begin_ns;
    uint64_t end_ns;
};

/* When the device runs it: `free_ns` is when its stream has ended what came before. */
static struct kernel make_kernel(const struct mix_call *c, uint32_t id, uint64_t call_end_ns,
                                 uint64_t *free_ns)
{
    struct mix *m = b.mix;
    uint64_t begin = call_end_ns + mix_time(m, LATENCY_NS, m->gap_sigma);
    uint64_t next = *free_ns + mix_time(m, NEXT_NS, m->gap_sigma);
    double ns = 2000 + 1700.0 * (double)(c->words[0] * 7 % 23);
    begin = (begin > next ? begin : next) / DEVICE_TICK_NS * DEVICE_TICK_NS;
    *free_ns = (begin + mix_time(m, ns, 0.05)) / DEVICE_TICK_NS * DEVICE_TICK_NS;
    return (struct kernel){c, id, begin, *free_ns};
}

static void add_kernel(const struct kernel *k)
{
    const uint64_t *f = k->call->words;
    uint64_t *record = b.records[b.record_count++];
    const uint64_t args[] = {0,
                             1,
                             f[8] ? 13 : 7,
                             1 + f[0],
                             dim3_word(f + 1),
                             dim3_word(f + 4),
                             32 + f[0] % 200,
                             f[0] % 5 * 1024,
                             f[7],
                             f[0] % 3 * 65536,
                             0,
                             0,
                             0,
                             0,
                             dim3_word((const uint64_t[]){0, 0, 0}),
                             f[8] ? 9 : 8};
    const unsigned count = sizeof args / sizeof args[0];
    record[0] = record_word0(RECORD_KERNEL, 0, RECORD_HEAD_WORDS + count, 0, count);
    record[1] = k->begin_ns;
    record[2] = k->end_ns - k->begin_ns;
    record[3] = (uint64_t)k->correlation << 32;
    memcpy(record + RECORD_HEAD_WORDS, args, sizeof args);
}

/* As CUPTI delivers them, more or less. */
static int compare_ends(const void *left, const void *right)
{
    const struct kernel *a = left, *other = right;
    return (a->end_ns > other->end_ns) - (a->end_ns < other->end_ns);
}

/* Launches and their kernels, as the threads of the program and of the device have them. */
static void encode_pairs(uint64_t launches)
{
    struct kernel *kernels = calloc(launches, sizeof *kernels);
    uint64_t now = 1000000, free_ns[STREAMS] = {0}, made = 0, position;
    uint32_t id = 0;
    for (uint64_t step = 0; kernels && made < launches; step++)
        for (unsigned i = 0; i < b.mix->call_count && made < launches; i++) {
            const struct mix_call *c = &b.mix->calls[i];
            if (b.record_count == b.records_max)
                store_block(1);
            add_call(c, step, &now);
            uint64_t *record = b.records[b.record_count - 1];
            id++;
            for (unsigned s = 0; s < STREAMS && c->kind == MIX_SYNC; s++)
                now = now > free_ns[s] ? now : free_ns[s];
            if (c->kind != MIX_LAUNCH) {
                b.record_count--;
                continue;
            }
            record[3] = (uint64_t)id << 32;
            kernels[made++] = make_kernel(c, id, now, &free_ns[c->words[8] != 0]);
        }
    store_block(1);
    if (kernels)
        qsort(kernels, launches, sizeof *kernels, compare_ends);
    position = b.block.position_end;
    b.block.position_end = 0;
    for (uint64_t i = 0; kernels && i < launches; i++) {
        if (b.record_count == BLOCK_TEXT_BYTES_MAX / (8 * RECORD_WORDS))
            store_block(2);
        add_kernel(&kernels[i]);
    }
    store_block(2);
    b.block.position_end = position;
    free(kernels);
}

static void add_text(uint8_t **at, struct record r, const char *text)
{
    r.bytes = (const uint8_t *)text;
    r.byte_count = (uint32_t)strlen(text);
    int bytes = record_write(&r, *at, (size_t)(b.texts + sizeof b.texts - *at));
    if (bytes < 0 || block_encoder_add(&b.encoder, *at, (size_t)bytes) <= 0)
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
                          arg_kind_name(f->args[a].kind), f->args[a].label);
        add_text(&at, (struct record){.type = RECORD_API, .code = (uint16_t)i}, text);
        if (b.encoder.shape_count > BLOCK_SHAPES_MAX - 8)
            store_block(0);
    }
    struct record anchor = {.type = RECORD_ANCHOR, .arg_count = 2};
    anchor.args[0] = b.header.monotonic_zero_ns;
    anchor.args[1] = b.header.realtime_zero_ns;
    bytes = record_write(&anchor, at, 64);
    if (block_encoder_add(&b.encoder, at, (size_t)bytes) <= 0)
        abort();
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
    bool pairs = argc > 3 && strcmp(argv[3], "kernels") == 0;
    b.level = argc > 4 ? atoi(argv[4]) : 1;
    b.records_max = argc > 5 ? (uint32_t)atoi(argv[5]) : BLOCK_RECORDS_MAX;
    b.zstd = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(b.zstd, ZSTD_c_compressionLevel, b.level);
    b.header.scale = (struct clock_scale){.mult = 1ull << CLOCK_SCALE_SHIFT};
    if (argc > 3 && argv[3][0] && !pairs)
        write_head(argv[3]);
    b.encode_ns = b.compress_ns = b.bytes = b.blocks = 0;
    uint64_t now = 1000000;
    if (pairs)
        encode_pairs(calls);
    for (uint64_t i = 0, step = 0; i < calls && !pairs; step++) {
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
