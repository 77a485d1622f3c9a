/* SPDX-License-Identifier: Apache-2.0 */
#include "store/flight_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "base/pages.h"
#include "base/say.h"
#include "base/ticks.h"
#include "block.h"
#include "bytes.h"
#include "crc32c.h"
#include "record/pool.h"
#include "record/thread.h"
#include "store/compress.h"
#include "store/flight_state.h"
#include "store/meta.h"
#include "store/stream_out.h"

#define STATE_BYTES_MAX ((size_t)32 << 20) /* raw records that blocks need from earlier ones */
#define COPY_BYTES      ((size_t)1 << 20)
/* of a pass, spent on a dump: other threads wait for chunks meanwhile */
#define PUMP_NS         50000000u
#define HOUR_NS         3600000000000u
#define OFFSET_UNIT     65536u /* the largest page size */
#define TEXT_BYTES      256
#define NS_TICKS        (1 + (2ull << CLOCK_SCALE_SHIFT) / gp.header.scale.mult)
#define BLOCK_BYTES_MAX ((size_t)BLOCK_HEADER_BYTES + BLOCK_STORED_BYTES_MAX)

struct segment {
    uint64_t number; /* 0: it is empty, or not complete yet */
    uint64_t bytes, state_bytes;
    uint64_t begin_ticks;
    uint64_t first; /* number of its first block after its state */
};

/* What a dump of the segments must contain, and its progress. */
struct cursor {
    unsigned index, last;
    uint64_t at, last_bytes;
};

/* Used by the thread that starts a recording, then by the writer. */
static struct {
    bool is_on;
    bool is_over; /* the last dump is written: later blocks go into the stream file */
    struct flight keeps;
    uint64_t base; /* offset in the live file: the page, then the segments */
    uint64_t segment_bytes;
    uint8_t *page; /* mapped */
    struct segment segments[FLIGHT_SEGMENTS];
    unsigned current;
    uint64_t number;
    uint64_t turned_ns;     /* CLOCK_MONOTONIC: when the current segment began */
    uint64_t next_sequence; /* of the next block */
    struct block_encoder *encoder;
    uint8_t *payload;
    uint8_t *block;
    uint8_t *copy;
    bool has_failed; /* it could not be written */
    bool is_short;   /* there was not enough storage for all that it may keep */

    bool is_asked;
    struct dump asked;
    char text[TEXT_BYTES];

    bool is_dumping;
    struct cursor cursor;
    uint64_t dump_ticks;    /* when the dump began, which is where it ends, ... */
    uint64_t dump_sequence; /* ... before the block with this number */
    uint64_t dump_mark;     /* mark of the state */
    uint64_t dumps;
    /* of the stream file with complete dumps only */
    uint64_t stream_bytes;
    uint64_t dumped_ticks, resume_number, resume_at; /* where the last dump ended */
    uint64_t hour_ns, hour_dumps;
    uint64_t refused, refused_reported;
} f;

bool flight_is_on(void)
{
    return f.is_on;
}

bool flight_is_busy(void)
{
    return f.is_asked || f.is_dumping || (f.is_on && flight_watch_waits());
}

uint64_t flight_dump_count(void)
{
    return f.dumps;
}

/* ---- the live file --------------------------------------------------------------------------- */

static void flight_sink_set(unsigned offset, uint64_t value)
{
    chunk_set_u64(f.page, offset, value);
}

static void publish(unsigned index)
{
    const struct segment *s = &f.segments[index];
    unsigned offset = FLIGHT_OFFSET_SEGMENTS + index * FLIGHT_SEGMENT_ENTRY;
    flight_sink_set(offset + FLIGHT_SEGMENT_STATE_BYTES, s->state_bytes);
    flight_sink_set(offset + FLIGHT_SEGMENT_BEGIN_NS,
                    clock_scale_ns(&gp.header.scale, s->begin_ticks));
    flight_sink_set(offset + FLIGHT_SEGMENT_FIRST, s->first);
    flight_sink_set(offset + FLIGHT_SEGMENT_BYTES, s->bytes);
    flight_sink_set(offset + FLIGHT_SEGMENT_NUMBER, s->number);
}

static off_t segment_offset(unsigned index)
{
    return (off_t)(f.base + FLIGHT_PAGE_BYTES + index * f.segment_bytes);
}

static void empty(int fd, unsigned index)
{
    f.segments[index] = (struct segment){0};
    flight_sink_set(FLIGHT_OFFSET_SEGMENTS + index * FLIGHT_SEGMENT_ENTRY + FLIGHT_SEGMENT_NUMBER,
                    0); /* first */
    publish(index);
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, segment_offset(index),
              (off_t)f.segment_bytes);
}

static bool write_whole(int fd, const uint8_t *data, size_t bytes, off_t offset)
{
    while (bytes) {
        ssize_t n = pwrite(fd, data, bytes, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        bytes -= (size_t)n;
        offset += n;
    }
    return true;
}

static bool pump(uint64_t until_ns);

/* Returns the oldest segment except the current one; FLIGHT_SEGMENTS: there is none. */
static unsigned oldest(void)
{
    for (unsigned i = 1; i < FLIGHT_SEGMENTS; i++) {
        unsigned index = (f.current + i) % FLIGHT_SEGMENTS;
        if (f.segments[index].number)
            return index;
    }
    return FLIGHT_SEGMENTS;
}

/* Drops a segment. A dump that is not past it copies it first. */
static void flight_sink_give_up(int fd, unsigned index)
{
    while (f.is_dumping && f.cursor.index == index && pump(UINT64_MAX))
        ;
    empty(fd, index);
}

/* Appends to the current segment. If there is no storage, drops the oldest one, then the next.
 * Returns false with errno set if only this segment is left. */
static bool flight_sink_put(const uint8_t *data, size_t bytes)
{
    struct segment *s = &f.segments[f.current];
    int fd = pool_open_file();
    bool good = false;
    if (fd < 0)
        return false;
    errno = ENOSPC;
    while (bytes <= f.segment_bytes - s->bytes &&
           !(good = write_whole(fd, data, bytes, segment_offset(f.current) + (off_t)s->bytes)) &&
           errno == ENOSPC) {
        if (!f.is_short)
            note(SAY_FLIGHT_ROOM, "--flight keeps less than its limit: the live file's folder is "
                                  "full; point GPUPROF_LIVE at a folder with more space");
        f.is_short = true;
        if (oldest() == FLIGHT_SEGMENTS) {
            errno = ENOSPC;
            break;
        }
        flight_sink_give_up(fd, oldest());
    }
    int error = errno;
    close(fd);
    s->bytes += good ? bytes : 0;
    errno = error;
    return good;
}

/* ---- blocks of our own ----------------------------------------------------------------------- */

/* Makes a block of what is in the encoder, in f.block. Returns 0 if that fails. */
static size_t make_block(struct block_encoder *e, struct block_header *h)
{
    size_t bytes = 0;
    if (block_encode(e, &gp.header.scale, f.payload, BLOCK_PAYLOAD_BYTES_MAX, h) == 0) {
        uint8_t *frame = f.block + BLOCK_HEADER_BYTES;
        bytes = compress_frame(f.payload, h->payload_bytes, frame,
                               compress_bytes_max(BLOCK_PAYLOAD_BYTES_MAX));
        h->sequence = f.next_sequence;
        h->stored_bytes = (uint32_t)bytes;
        h->stored_crc = crc32c(0, frame, bytes);
        block_header_write(h, f.block);
        bytes += BLOCK_HEADER_BYTES;
    }
    block_encoder_reset(e);
    return bytes;
}

static bool put_state(struct block_encoder *e, struct block_header *h)
{
    size_t bytes = make_block(e, h);
    return !bytes || flight_sink_put(f.block, bytes);
}

/* Do all segments but one contain what is to be kept? */
static bool turn_is_due(uint64_t now_ns)
{
    return f.keeps.ns && now_ns - f.turned_ns >= f.keeps.ns / (FLIGHT_SEGMENTS - 1);
}

/* Begins the next segment, with what its blocks need from earlier ones. */
static void flight_sink_turn(void)
{
    unsigned next = (f.current + 1) % FLIGHT_SEGMENTS;
    int fd = pool_open_file();
    if (fd < 0)
        return; /* the next append reports it */
    flight_sink_give_up(fd, next);
    close(fd);
    f.current = next;
    struct segment *s = &f.segments[next];
    s->begin_ticks = ticks_now();
    s->first = f.next_sequence;
    if (!flight_state_write(f.encoder, put_state))
        note(SAY_FLIGHT_ROOM,
             "--flight: the name table is full; point GPUPROF_LIVE at a folder with more space");
    s->state_bytes = s->bytes;
    s->number = ++f.number;
    publish(next);
    f.turned_ns = clock_ns(CLOCK_MONOTONIC);
}

static bool flight_sink_append(struct block_sink *sink, const uint8_t *block, size_t bytes)
{
    struct block_header h;
    if (f.is_over)
        return stream_out.append(sink, block, bytes);
    if (f.has_failed) {
        errno = ENOSPC;
        return false;
    }
    bool good = flight_sink_put(block, bytes);
    if (!good && errno == ENOSPC) {
        /*
         * the current segment has only records that are new or needed: it may be dropped now, too
         */
        flight_sink_turn();
        errno = ENOSPC;
        good = flight_sink_put(block, bytes);
    }
    if (!good) {
        if (errno != ENOSPC)
            return false;
        if (block_header_read(&h, block, bytes) > 0)
            counter_add(COUNTER_WRITE_LOST, h.record_count);
    } else {
        publish(f.current);
    }
    f.next_sequence++;
    if (f.segments[f.current].bytes + BLOCK_BYTES_MAX > f.segment_bytes)
        flight_sink_turn();
    return true;
}

/* Most records are successful calls or device work, which later ones do not need. The program can
 * overwrite records, so each word is read once. */
static bool is_passed(const uint8_t *record)
{
    uint64_t head = load_u64(record);
    uint8_t type = (uint8_t)head, flags = (uint8_t)(head >> 8);
    uint16_t code = (uint16_t)(head >> 32);
    if (type == RECORD_KERNEL || type == RECORD_COPY || type == RECORD_SET)
        return flight_watch_pass_work();
    if (type != RECORD_CALL || code >= API_FUNCTION_COUNT || flags & RECORD_CAPTURED ||
        (uint32_t)load_u64(record + 24) != 0)
        return false;
    const struct api_function *a = &api_functions[code];
    if (a->memory != API_MEMORY_NONE || a->class == API_GRAPH)
        return false;
    if (a->class == API_LAUNCH || a->class == API_GRAPH_LAUNCH)
        flight_watch_launched(load_u64(record + 8));
    return true;
}

static void flight_sink_see(struct block_sink *sink, uint32_t thread, uint64_t position,
                            const uint8_t *record, size_t bytes)
{
    (void)sink;
    static uint8_t copy[8 * RECORD_WORDS_MAX] __attribute__((aligned(8)));
    if (f.is_over || bytes > sizeof copy || is_passed(record))
        return;
    memcpy(copy, record, bytes); /* copied first: the program can overwrite it */
    flight_state_see(thread, position, copy, bytes, f.dumps || f.is_dumping);
    flight_watch_see(copy, bytes);
}

static void report_end(struct block_sink *sink, const uint64_t counters[COUNTER_COUNT])
{
    stream_out.end(sink, counters);
}

static struct block_sink flight_sink = {.flags = BLOCK_AFTER_GAP,
                                        .append = flight_sink_append,
                                        .see = flight_sink_see,
                                        .end = report_end};

struct block_sink *flight_or_stream(void)
{
    flight_sink.place = stream_out.place;
    return f.is_on ? &flight_sink : &stream_out;
}

/* ---- dumps ----------------------------------------------------------------------------------- */

static bool store_statements(const struct record *records, unsigned count, uint64_t sequence)
{
    static uint8_t raw[8 * RECORD_WORDS_MAX] __attribute__((aligned(8)));
    struct block_header h = {.flags = BLOCK_AFTER_GAP | BLOCK_OF_STATE};
    size_t used = 0;
    block_encoder_reset(f.encoder);
    for (unsigned i = 0; i < count; i++) {
        int bytes = record_write(&records[i], raw + used, sizeof raw - used);
        if (bytes > 0 && block_encoder_add(f.encoder, raw + used, (size_t)bytes) > 0)
            used += (size_t)bytes;
    }
    uint64_t next = f.next_sequence;
    f.next_sequence = sequence;
    size_t bytes = make_block(f.encoder, &h);
    f.next_sequence = next;
    return bytes && stream_out.append(&stream_out, f.block, bytes);
}

static struct record window(uint64_t number, enum window_state state, uint64_t ticks)
{
    return (struct record){RECORD_WITH(WINDOW, [WINDOW_NUMBER] = number, [WINDOW_STATE] = state),
                           .begin = ticks};
}

/* A dump is in the stream file completely, or not at all. */
static void give_up_dump(void)
{
    int error = errno;
    f.is_dumping = false;
    f.refused++;
    stream_out_cut(f.stream_bytes);
    say(SAY_FLIGHT, "cannot write a dump to '%s': %s; the flight recorder goes on",
        stream_out.place, error_text(error));
}

/* Returns where a dump begins: after the last one if everything since is kept, otherwise with the
 * oldest block. */
static uint64_t place_cursor(void)
{
    unsigned first = oldest() < FLIGHT_SEGMENTS ? oldest() : f.current;
    f.cursor = (struct cursor){
        .index = first, .last = f.current, .last_bytes = f.segments[f.current].bytes};
    for (unsigned i = 0; f.dumps && i < FLIGHT_SEGMENTS; i++) {
        if (f.segments[i].number && f.segments[i].number == f.resume_number) {
            f.cursor.index = i;
            f.cursor.at = f.resume_at;
            return f.dumped_ticks + NS_TICKS; /* the times must differ in nanoseconds, too */
        }
    }
    return f.segments[first].begin_ticks;
}

static void begin_dump(void)
{
    struct record says[3];
    unsigned count = 0;
    uint64_t begin = place_cursor(), zero = gp.header.scale.ticks_zero;
    f.is_asked = false;
    f.is_dumping = true;
    f.dump_ticks = ticks_now();
    f.dump_sequence = f.next_sequence;
    f.dump_mark = flight_state_mark();
    if (!f.dumps && begin > zero)
        says[count++] = window(0, WINDOW_IS_CLOSED, zero);
    says[count++] = window(f.dumps + 1, WINDOW_IS_OPEN, begin);
    says[count++] =
        (struct record){RECORD_WITH(DUMP, [DUMP_NUMBER] = f.dumps + 1,
                                    [DUMP_REASON] = f.asked.reason, [DUMP_VALUE] = f.asked.value,
                                    [DUMP_NS] = f.asked.ns, [DUMP_MEDIAN_NS] = f.asked.median_ns,
                                    [DUMP_BEGIN_NS] = clock_scale_ns(&gp.header.scale, begin),
                                    [DUMP_LOST] = flight_state_lost()),
                        .begin = f.dump_ticks, .bytes = (const uint8_t *)f.text,
                        .byte_count = (uint32_t)strlen(f.text)};
    if (!store_statements(says, count, f.segments[f.cursor.index].first))
        give_up_dump();
}

/* After a kill in the middle of this, the previous values stand. */
static void report_written(void)
{
    uint64_t which = f.dumps & 1;
    unsigned offset = FLIGHT_OFFSET_DONE + (unsigned)which * FLIGHT_DONE_ENTRY;
    f.stream_bytes = stream_out_bytes();
    flight_sink_set(offset + FLIGHT_DONE_STREAM_BYTES, f.stream_bytes);
    flight_sink_set(offset + FLIGHT_DONE_DUMPS, f.dumps);
    flight_sink_set(offset + FLIGHT_DONE_NEXT, f.dump_sequence);
    flight_sink_set(offset + FLIGHT_DONE_NS, clock_scale_ns(&gp.header.scale, f.dumped_ticks));
    flight_sink_set(FLIGHT_OFFSET_WRITTEN, which);
}

static void end_dump(void)
{
    struct record says = window(f.dumps + 1, WINDOW_IS_CLOSED, f.dump_ticks);
    if (!store_statements(&says, 1, f.dump_sequence ? f.dump_sequence - 1 : 0)) {
        give_up_dump();
        return;
    }
    f.is_dumping = false;
    f.dumps++;
    f.dumped_ticks = f.dump_ticks;
    f.resume_number = f.segments[f.cursor.last].number;
    f.resume_at = f.cursor.last_bytes;
    flight_state_forget(f.dump_mark);
    report_written();
}

/* Copies from the segments until that time. Returns false if the dump has ended, or was dropped. */
static bool pump(uint64_t until_ns)
{
    struct cursor *c = &f.cursor;
    bool good = true;
    int fd = f.is_dumping ? pool_open_file() : -1;
    while (good && fd >= 0 && f.is_dumping) {
        uint64_t end = c->index == c->last ? c->last_bytes : f.segments[c->index].bytes;
        if (c->at < end) {
            size_t bytes = end - c->at < COPY_BYTES ? (size_t)(end - c->at) : COPY_BYTES;
            ssize_t got = pread(fd, f.copy, bytes, segment_offset(c->index) + (off_t)c->at);
            good = got > 0 && stream_out.append(&stream_out, f.copy, (size_t)got);
            c->at += good ? (uint64_t)got : 0;
        } else if (c->index == c->last) {
            end_dump();
        } else {
            c->index = (c->index + 1) % FLIGHT_SEGMENTS;
            c->at = f.segments[c->index].state_bytes;
            if (until_ns == UINT64_MAX)
                break; /* it is enough to be past that segment */
        }
        if (clock_ns(CLOCK_MONOTONIC) >= until_ns)
            break;
    }
    if (f.is_dumping && (fd < 0 || !good))
        give_up_dump();
    if (fd >= 0)
        close(fd);
    return f.is_dumping;
}

/* The dump at the end is never refused. */
static bool may_dump(uint64_t now_ns)
{
    if (now_ns - f.hour_ns >= HOUR_NS || !f.hour_ns) {
        f.hour_ns = now_ns;
        f.hour_dumps = 0;
    }
    if (f.hour_dumps >= gp.settings.numbers[SETTING_DUMP_LIMIT] ||
        stream_out_bytes() >= gp.settings.numbers[SETTING_DUMP_BYTES])
        return false;
    f.hour_dumps++;
    return true;
}

void flight_ask(const struct dump *d)
{
    if (!f.is_on || f.is_over || f.is_asked)
        return;
    if (!may_dump(clock_ns(CLOCK_MONOTONIC))) {
        f.refused++;
        return;
    }
    f.asked = *d;
    f.is_asked = true;
    snprintf(f.text, sizeof f.text, "%s", d->text ? d->text : "");
}

bool flight_is_due(uint64_t now_ns)
{
    struct dump due;
    if (!f.is_on || f.is_over)
        return false;
    while (flight_watch_due(&due))
        flight_ask(&due);
    return (f.is_asked && !f.is_dumping) || turn_is_due(now_ns);
}

void flight_look(struct thread *writer, uint64_t now_ns, bool is_last)
{
    if (!f.is_on || f.is_over)
        return;
    if (!is_last && turn_is_due(now_ns))
        flight_sink_turn(); /* everything is stored: later records go into the next segment */
    while (is_last && pump(UINT64_MAX))
        ;
    uint64_t dumps = f.dumps;
    /* what was noticed while everything was sealed says more than "the process ended" */
    struct dump due;
    if (is_last && !f.is_asked && flight_watch_due(&due))
        flight_ask(&due);
    if (is_last && !f.is_asked) {
        f.asked = (struct dump){.reason = DUMP_END};
        f.is_asked = true;
        f.text[0] = '\0';
    }
    if (f.is_asked && !f.is_dumping)
        begin_dump();
    while (is_last && pump(UINT64_MAX))
        ;
    if (!is_last)
        return;
    f.is_over = f.dumps > dumps;
    f.has_failed = !f.is_over;
    if (f.is_over) /* nothing is taken from there any more */
        chunk_set_u64(gp.pool.base, LIVE_OFFSET_FLIGHT, 0);
    else /* the record is refused, and so the live file stays */
        meta_append_text(writer, "dump_failed", "the last one");
}

void flight_describe(struct thread *writer, bool is_last)
{
    char number[24];
    if (!f.is_on)
        return;
    if (!is_last)
        pump(clock_ns(CLOCK_MONOTONIC) + PUMP_NS);
    if (f.refused == f.refused_reported)
        return;
    snprintf(number, sizeof number, "%llu", (unsigned long long)f.refused);
    meta_append_text(writer, "dumps_refused", number);
    f.refused_reported = f.refused;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static void drop_pages(void *p, size_t bytes)
{
    if (p)
        munmap(p, bytes);
}

void flight_forget(void)
{
    drop_pages(f.page, FLIGHT_PAGE_BYTES);
    drop_pages(f.encoder, sizeof *f.encoder);
    drop_pages(f.payload, BLOCK_PAYLOAD_BYTES_MAX);
    drop_pages(f.block, BLOCK_HEADER_BYTES + compress_bytes_max(BLOCK_PAYLOAD_BYTES_MAX));
    drop_pages(f.copy, COPY_BYTES);
    flight_state_free();
    memset(&f, 0, sizeof f);
}

/* The page has storage, so that a store cannot raise SIGBUS. */
static uint8_t *map_page(void)
{
    int fd = pool_open_file();
    if (fd < 0)
        return NULL;
    int error = posix_fallocate(fd, (off_t)f.base, FLIGHT_PAGE_BYTES);
    void *p = error ? MAP_FAILED
                    : mmap(NULL, FLIGHT_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                           (off_t)f.base);
    error = error ? error : errno;
    close(fd);
    errno = error;
    return p == MAP_FAILED ? NULL : p;
}

static bool make_ready(void)
{
    size_t state_bytes = f.segment_bytes / 2;
    f.base = (gp.pool.map_bytes + OFFSET_UNIT - 1) & ~(uint64_t)(OFFSET_UNIT - 1);
    f.page = map_page();
    f.encoder = pages_map(sizeof *f.encoder);
    f.payload = pages_map(BLOCK_PAYLOAD_BYTES_MAX);
    f.block = pages_map(BLOCK_HEADER_BYTES + compress_bytes_max(BLOCK_PAYLOAD_BYTES_MAX));
    f.copy = pages_map(COPY_BYTES);
    return f.page && f.encoder && f.payload && f.block && f.copy &&
           flight_state_create(state_bytes < STATE_BYTES_MAX ? state_bytes : STATE_BYTES_MAX);
}

bool flight_create(void)
{
    /* Each of them opens windows in the data, and so does a dump. */
    static const enum setting_index others[] = {SETTING_SCHEDULE, SETTING_CAPTURE_RANGE,
                                                SETTING_DELAY, SETTING_DURATION};
    const char *text = gp.settings.texts[SETTING_FLIGHT];
    memset(&f, 0, sizeof f);
    flight_watch_start(false);
    if (!*text || !flight_parse(text, &f.keeps))
        return true;
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
        const char *other = getenv(setting_infos[others[i]].variable);
        if (other && *other && strcmp(other, setting_infos[others[i]].default_value) != 0) {
            say(SAY_START,
                "recording is off: --flight cannot be combined with --%s; remove one of them",
                setting_infos[others[i]].option);
            return false;
        }
    }
    f.segment_bytes = f.keeps.bytes / FLIGHT_SEGMENTS & ~(uint64_t)(OFFSET_UNIT - 1);
    if (!gp.pool.is_file)
        errno = ENOTSUP;
    if (!gp.pool.is_file || !make_ready()) {
        say(SAY_START,
            "recording is off: cannot create the live file that --flight needs: %s; set "
            "GPUPROF_LIVE to a local folder with free space",
            error_text(errno));
        flight_forget();
        return false;
    }
    f.segments[0] =
        (struct segment){.number = ++f.number, .begin_ticks = gp.header.scale.ticks_zero};
    flight_sink_set(FLIGHT_OFFSET_SEGMENT_BYTES, f.segment_bytes);
    f.dumped_ticks = gp.header.scale.ticks_zero;
    report_written();
    publish(0);
    flight_sink_set(FLIGHT_OFFSET_MAGIC, FLIGHT_MAGIC);
    chunk_set_u64(gp.pool.base, LIVE_OFFSET_FLIGHT, f.base);
    f.turned_ns = clock_ns(CLOCK_MONOTONIC);
    f.is_on = true;
    flight_watch_start(true);
    return true;
}
