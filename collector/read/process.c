/* SPDX-License-Identifier: Apache-2.0 */
#include "read/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "base/array.h"
#include "base/file_at.h"
#include "base/memory.h"
#include "error.h"
#include "rank.h"
#include "record/gpu_record.h"
#include "record/losses.h"

struct loader {
    struct process *process;
    struct reader *reader;
    process_block_fn *on_block;
    void *context;
    struct stream_scan scan;
    uint8_t *payload;
    size_t capacity;
    uint64_t sequence; /* expected for the next block */
    uint64_t end_ns;   /* latest known end */
    bool is_reported;  /* the stream file has everything that the live file has */
};

void reader_init(struct reader *r)
{
    *r = (struct reader){.api_crc = api_table_crc(),
                         .stored = memory_new(BLOCK_STORED_BYTES_MAX, 1)};
}

void reader_release(struct reader *r)
{
    zstandard_release(&r->codec);
    function_table_release(&r->functions);
    free(r->stored);
    r->stored = NULL;
}

int process_block(struct process *p, struct reader *r, struct block_place *place, uint8_t **payload,
                  size_t *capacity)
{
    const uint8_t *stored;
    if (place->offset & LIVE_BLOCK) {
        const struct live_block *block = &p->live.blocks[place->offset & ~LIVE_BLOCK];
        place->header = block->header;
        stored = block->stored;
    } else {
        int size = stream_file_block(&p->file, &r->pool, place->offset, &place->header, r->stored,
                                     &stored);
        if (size < 0)
            return size;
    }
    const struct block_header *h = &place->header;
    if (h->payload_bytes > *capacity || !*payload) {
        size_t want = h->payload_bytes + h->payload_bytes / 4;
        free(*payload);
        *capacity = 0;
        *payload = memory_from(malloc(want));
        *capacity = want;
    }
    return payload_open(&r->codec, h, stored, *payload);
}

/* Types of facts about functions and the process, which a walk need not read again. */
#define TAKEN_TYPES                                                                                \
    (block_type_bit(RECORD_API) | block_type_bit(RECORD_CALLBACK) | block_type_bit(RECORD_META))

static int look_into(struct loader *l, struct block_place *place)
{
    struct block_decoder decoder;
    struct record record;
    int error = process_block(l->process, l->reader, place, &l->payload, &l->capacity);
    if (error == 0)
        error = block_decoder_init(&decoder, l->payload, place->header.payload_bytes,
                                   place->header.record_count);
    if (error == GPUPROF_NO_MEMORY) /* of the decoder */
        memory_missing();
    /* The pass that reads the block's events counts the damage. */
    if (error < 0)
        return error == GPUPROF_IO ? error : 0;
    int more = 0;
    while ((more = block_decoder_next(&decoder, &record)) > 0)
        process_take(l->process, l->reader, place->header.thread, &record, l->end_ns);
    block_decoder_release(&decoder);
    place->is_taken = more == 0 && place->header.types && !(place->header.types & ~TAKEN_TYPES) &&
                      place->header.max_ns == 0;
    return 0;
}

/* Types of a device's work; types of facts that any thread may write at any time. */
#define DEVICE_TYPES                                                                               \
    (block_type_bit(RECORD_KERNEL) | block_type_bit(RECORD_COPY) | block_type_bit(RECORD_SET) |    \
     block_type_bit(RECORD_GRAPH))
#define NEWS_TYPES                                                                                 \
    (block_type_bit(RECORD_NOTE) | block_type_bit(RECORD_STEP_DOWN) |                              \
     block_type_bit(RECORD_OS_FUNCTION))

static int process_take_block(struct loader *l, struct block_place *place)
{
    struct process *p = l->process;
    const struct block_header *h = &place->header;
    struct thread *thread = thread_get(&p->threads, h->thread);
    if (!thread)
        return GPUPROF_LIMIT;
    bool first = !thread->looked;
    thread->looked = true;
    p->block_count++;
    p->has_gpu |=
        (h->types & DEVICE_TYPES) != 0; /* the block that names its thread may be damaged */
    if (h->max_ns > l->end_ns && h->max_ns < CLOCK_NS_MAX)
        l->end_ns = h->max_ns;
    /* After a kill, a live block may hold facts that the writer thread never received. */
    bool is_reported =
        first || h->thread == 0 || place->offset & LIVE_BLOCK || h->types & NEWS_TYPES;
    int error = is_reported ? look_into(l, place) : 0;
    if (h->thread != 0 && !thread->own) {
        p->record_count += h->record_count;
        p->min_ns = min_of(p->min_ns, h->min_ns);
        p->max_ns = max_of(p->max_ns, h->max_ns);
    }
    return error < 0 ? error : l->on_block ? l->on_block(l->context, p, place) : 0;
}

/*
 * Counts missing and repeated blocks by the numbers in the headers. Returns false if earlier blocks
 * had records of this block. If only some overlap, they cannot be told apart, so the rest is
 * lost.
 */
static bool check_order(struct loader *l, const struct block_header *h)
{
    struct losses *losses = &l->process->losses;
    bool may_lack = h->flags & BLOCK_AFTER_GAP;
    if (h->flags & BLOCK_OF_STATE)
        return true;
    if (h->sequence > l->sequence && !may_lack)
        losses->missing_blocks += h->sequence - l->sequence;
    if (h->sequence >= l->sequence)
        l->sequence = h->sequence + 1;
    struct thread *thread = thread_get(&l->process->threads, h->thread);
    if (!thread || h->thread == 0)
        return true;
    if (h->position_begin < thread->position_end) {
        losses->repeated_blocks++;
        losses->damaged_blocks += h->position_end > thread->position_end;
        losses->damaged_records += h->position_end > thread->position_end ? h->record_count : 0;
        return false;
    }
    if (!may_lack)
        losses->missing_bytes += h->position_begin - thread->position_end;
    thread->position_end = h->position_end;
    return true;
}

static int take_stream(struct loader *l)
{
    struct process *p = l->process;
    struct block_place block = {0};
    stream_scan_init(&l->scan, &p->file, &l->reader->pool, p->file.first_block);
    int more;
    while ((more = stream_scan_next(&l->scan, &block)) > 0) {
        bool is_again = !check_order(l, &block.header);
        block.is_taken = false;
        int error = is_again ? 0 : process_take_block(l, &block);
        if (error < 0)
            return error;
        block.apart = is_again || block.is_taken; /* for the next block */
    }
    p->losses.skipped_bytes = l->scan.skipped;
    return more;
}

/* A torn last block is no loss if the live file still has its records. */
static bool torn_is_live(struct loader *l, bool live)
{
    if (!live || !l->scan.torn_header_read || l->scan.torn_header.thread == 0)
        return live;
    struct thread *thread = thread_find(&l->process->threads, l->scan.torn_header.thread);
    return thread && thread->live_end >= l->scan.torn_header.position_end;
}

static int take_live(struct loader *l, struct live_file *live)
{
    struct process *p = l->process;
    p->is_stopped = live->owner == LIVE_OWNER_STOPPED;
    p->losses.running = p->is_stopped || live->owner == LIVE_OWNER_RUNNING;
    p->losses.may_run = live->owner == LIVE_OWNER_UNKNOWN;
    if (live->flight && live->owner != LIVE_OWNER_ENDED) { /* they continue the unread recorder */
        p->losses.flight_unread = 1;
        return 0;
    }
    int error = live_tail_read(p, live, &l->reader->codec, l->end_ns);
    if (error < 0)
        return error;
    for (uint32_t i = 0; i < p->live.count && error == 0; i++) {
        struct block_place place = {.offset = LIVE_BLOCK | i, .header = p->live.blocks[i].header};
        error = process_take_block(l, &place);
    }
    l->is_reported = !live->flight && live->owner == LIVE_OWNER_ENDED && p->end_reason &&
                     !l->scan.torn && !p->live.count && !p->losses.open_calls &&
                     !p->losses.live_damaged_bytes;
    for (unsigned i = 0; i < COUNTER_COUNT; i++) { /* newer than any record */
        l->is_reported &= live->counters[i] <= p->losses.counters[i];
        process_set_counter(p, i, live->counters[i], l->end_ns);
    }
    p->losses.counters[COUNTER_PASSED_BY] += p->live.passed;
    return error;
}

/* Reads the header, or the live file's copy if the stream file has none. */
static int take_header(struct loader *l, struct live_file *live, bool *has_live)
{
    struct process *p = l->process;
    int error = stream_file_header(&p->file, &l->reader->pool, &p->header);
    if (error == GPUPROF_IO || error == GPUPROF_VERSION)
        return error;
    if (error == 0 && !l->reader->keep_live)
        live_adopt(p->file.path); /* on failure the file is read in place */
    int found = live_file_open(live, p->file.path, error == 0 ? &p->header : NULL);
    *has_live = found > 0;
    p->losses.live_damaged = found < 0;
    /* Another reader that takes the flight recorder replaces the stream file first. */
    int renewed = stream_file_renew(&p->file, &l->reader->pool);
    if (renewed < 0)
        return renewed;
    if (error < 0 && !*has_live)
        return error;
    if (error < 0) {
        p->header = live->header;
        p->file.first_block = 0;
        /* An empty file: the process died before it wrote its header, and nothing was lost. */
        p->losses.header_lost = p->file.size >= STREAM_HEADER_BYTES_MAX;
    }
    return 0;
}

/* Appends the flight recorder's contents to a copy of the stream; the live file stays as it is. */
static int take_flight(struct loader *l, const struct live_file *live)
{
    if (!live->flight || live->owner != LIVE_OWNER_ENDED)
        return 0;
    int fd = file_unnamed();
    if (fd < 0)
        return GPUPROF_SPOOL;
    int error = flight_copy(live, l->process->file.path, fd);
    if (error > 0)
        return stream_file_exchange(&l->process->file, &l->reader->pool, fd);
    file_close(fd);
    l->process->losses.live_damaged |= error == GPUPROF_DAMAGED;
    return error == GPUPROF_DAMAGED ? 0 : error;
}

static int process_own_load(struct loader *l, struct live_file *live, bool *has_live)
{
    struct process *p = l->process;
    int error = take_header(l, live, has_live);
    bool is_whole = !l->reader->only_headers;
    if (error == 0 && *has_live && is_whole)
        error = take_flight(l, live);
    if (error)
        return error;
    clock_map_init(&p->clock, &p->header);
    if (!is_whole) {
        clock_map_finish(&p->clock);
        return 0;
    }
    if (*has_live && (error = live_file_snapshot(live)) < 0)
        return error;
    if ((error = stream_file_resize(&p->file, &l->reader->pool)) < 0 ||
        (error = take_stream(l)) != 0)
        return error;
    const char *found = process_meta(p, PROCESS_RECOVERED);
    if (found) { /* recover already added everything of a remaining live file */
        losses_found_read(&p->losses, found);
        *has_live = false;
    }
    if (*has_live && (error = take_live(l, live)) < 0)
        return error;
    p->lived_ns = max_of(l->end_ns, *has_live ? live_file_alive_ns(live) : 0);
    if (l->scan.torn && !torn_is_live(l, *has_live))
        p->losses.torn_bytes += l->scan.torn;
    for (unsigned i = 0; i < COUNTER_COUNT; i++) /* written where blocks had no room */
        process_set_counter(p, i, p->header.counters[i], l->end_ns);
    /* If a recording ended early (disk full) and has no live file, counters say what is missing. */
    bool is_cut = p->losses.counters[COUNTER_ENDED] && !p->header.live_path[0];
    p->losses.not_ended = !p->end_reason && !*has_live && !found && !is_cut;
    clock_map_finish(&p->clock);
    p->codes.is_own = p->header.api_crc == l->reader->api_crc;
    return 0;
}

int process_load(struct process *p, struct reader *r, const char *path, uint32_t number,
                 process_block_fn *on_block, void *context)
{
    struct loader l = {.process = p, .reader = r, .on_block = on_block, .context = context};
    struct live_file live = {.fd = -1};
    bool has_live = false;
    *p = (struct process){.number = number, .index = number, .min_ns = UINT64_MAX};
    int error = stream_file_init(&p->file, &r->pool, path);
    if (error < 0)
        return error;
    error = process_own_load(&l, &live, &has_live);
    int saved = errno;
    /* The live file remained because other threads ran at the end; they wrote nothing more. */
    if (error == 0 && has_live && l.is_reported && !r->keep_live)
        live_file_remove(&live);
    live_file_release(&live);
    free(l.payload);
    if (error < 0)
        process_release(p, r);
    errno = saved;
    return error;
}

void process_release(struct process *p, struct reader *r)
{
    stream_file_release(&p->file, &r->pool);
    thread_table_release(&p->threads);
    function_codes_release(&p->codes);
    os_functions_release(&p->os);
    clock_map_release(&p->clock);
    live_tail_release(&p->live);
    cost_table_release(&p->costs);
    blind_times_release(&p->blind);
    for (uint32_t i = 0; i < p->meta_count; i++)
        free(p->meta[i].text);
    free(p->meta);
    for (uint32_t i = 0; i < p->dump_count; i++)
        free(p->dumps[i].text);
    free(p->dumps);
    for (uint32_t i = 0; i < p->note_count; i++)
        free(p->notes[i]);
    free(p->notes);
}
