/* SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"

#include <string.h>

#include "bytes.h"
#include "crc32c.h"
#include "error.h"

static void stream_put_string(struct byte_writer *w, const char *text, size_t bytes_max)
{
    size_t length = strnlen(text, bytes_max);
    put_u16(w, (uint16_t)length);
    put_bytes(w, text, length);
}

static void get_string(struct byte_reader *r, char *text, size_t bytes_max)
{
    size_t length = get_u16(r);
    if (length > bytes_max)
        r->failed = true;
    const uint8_t *p = r->failed ? NULL : get_space(r, length);
    if (p)
        memcpy(text, p, length);
    text[p ? length : 0] = '\0';
}

int stream_header_write(const struct stream_header *h, uint8_t *out, size_t capacity)
{
    struct byte_writer w = byte_writer(out, capacity);
    put_u32(&w, STREAM_FRAME_MAGIC);
    put_u32(&w, 0); /* replaced by the size below */
    put_u64(&w, STREAM_MAGIC);
    put_u16(&w, STREAM_VERSION);
    put_u16(&w, 0);
    put_u32(&w, h->api_crc);
    put_bytes(&w, h->process_id, sizeof h->process_id);
    put_bytes(&w, h->boot_id, sizeof h->boot_id);
    put_u64(&w, h->pid_namespace);
    put_u64(&w, h->start_time);
    put_u32(&w, h->pid);
    put_u32(&w, h->parent_pid);
    put_u32(&w, h->scale.source);
    put_u64(&w, h->scale.ticks_zero);
    put_u64(&w, h->scale.mult);
    put_u64(&w, h->monotonic_zero_ns);
    put_u64(&w, h->realtime_zero_ns);
    stream_put_string(&w, h->host, STREAM_HOST_BYTES_MAX);
    stream_put_string(&w, h->live_path, STREAM_PATH_BYTES_MAX);
    put_u64(&w, (uint64_t)h->monotonic_shift_ns);
    put_u16(&w, COUNTER_COUNT);
    for (unsigned i = 0; i < COUNTER_COUNT; i++)
        put_u64(&w, h->counters[i]);
    if (w.failed || w.length + 4 > w.capacity || w.length + 4 > STREAM_HEADER_BYTES_MAX)
        return GPUPROF_LIMIT;
    store_u32(out + 4, (uint32_t)(w.length + 4 - 8));
    put_u32(&w, crc32c(0, out, w.length));
    return (int)w.length;
}

/* Reads what early writers of this version did not write. A later one may have more counters. */
static void get_further(struct byte_reader *r, struct stream_header *h)
{
    h->monotonic_shift_ns = 0;
    memset(h->counters, 0, sizeof h->counters);
    if (r->position == r->length)
        return;
    h->monotonic_shift_ns = (int64_t)get_u64(r);
    unsigned count = get_u16(r);
    for (unsigned i = 0; i < count && i < COUNTER_COUNT; i++)
        h->counters[i] = get_u64(r);
}

int stream_header_read(struct stream_header *h, const uint8_t *data, size_t length)
{
    if (!length)
        return GPUPROF_EMPTY;
    struct byte_reader r = byte_reader(data, length);
    uint32_t frame_magic = get_u32(&r);
    size_t size = (size_t)get_u32(&r) + 8;
    uint64_t magic = get_u64(&r);
    uint16_t version = get_u16(&r);
    if (r.failed || frame_magic != STREAM_FRAME_MAGIC || magic != STREAM_MAGIC)
        return length < 18 && frame_magic == STREAM_FRAME_MAGIC ? GPUPROF_TRUNCATED
                                                                : GPUPROF_NOT_OURS;
    if (version != STREAM_VERSION)
        return GPUPROF_VERSION;
    if (size > STREAM_HEADER_BYTES_MAX)
        return GPUPROF_DAMAGED;
    if (size > length)
        return GPUPROF_TRUNCATED;
    if (size < r.position + 4)
        return GPUPROF_DAMAGED;
    r.length = size - 4;
    get_u16(&r);
    h->api_crc = get_u32(&r);
    for (int i = 0; i < 2; i++) {
        const uint8_t *id = get_space(&r, 16);
        if (id)
            memcpy(i ? h->boot_id : h->process_id, id, 16);
    }
    h->pid_namespace = get_u64(&r);
    h->start_time = get_u64(&r);
    h->pid = get_u32(&r);
    h->parent_pid = get_u32(&r);
    h->scale.source = get_u32(&r);
    h->scale.ticks_zero = get_u64(&r);
    h->scale.mult = get_u64(&r);
    h->monotonic_zero_ns = get_u64(&r);
    h->realtime_zero_ns = get_u64(&r);
    get_string(&r, h->host, STREAM_HOST_BYTES_MAX);
    get_string(&r, h->live_path, STREAM_PATH_BYTES_MAX);
    get_further(&r, h);
    if (r.failed || h->scale.mult == 0 || load_u32(data + size - 4) != crc32c(0, data, size - 4))
        return GPUPROF_DAMAGED;
    return (int)size;
}
