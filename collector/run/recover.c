/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb `recover`: combines the stream file and the live file of a killed process. The new file
 * replaces the old one once it is on disk, then the live file is removed. If recover is killed
 * itself, either both files or the new one remain.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file_at.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/options.h"
#include "error.h"
#include "output/new_file.h"
#include "read/process.h"
#include "read/recording.h"
#include "record/losses.h"

#define FOUND_BYTES_MAX 1024

struct recover {
    struct reader reader;
    struct process process;
    bool is_loaded;   /* process must be released */
    const char *path; /* of the stream file; a view, like the next */
    struct live_file *live;
    int fd; /* of the new file; a view */
    uint64_t size;
    uint64_t sequence;     /* sequence number of the next new block */
    uint64_t own_position; /* position of gpuprof's own records */
    uint32_t open_thread;  /* thread of the open calls in the present blocks */
    uint32_t flags;        /* flags of further blocks: BLOCK_AFTER_GAP if others have it */
    uint64_t open_shift;   /* shift of their positions by the blocks before */
    uint64_t last_ns;
};

static int recover_put_data(struct recover *r, const void *data, size_t bytes)
{
    int error = file_write_at(r->fd, r->size, data, bytes);
    r->size += bytes;
    return error;
}

static int put_block(struct recover *r, struct block_header *h, const uint8_t *stored)
{
    uint8_t head[BLOCK_HEADER_BYTES];
    h->sequence = r->sequence++;
    h->flags |= r->flags;
    block_header_write(h, head);
    int error = recover_put_data(r, head, sizeof head);
    return error < 0 ? error : recover_put_data(r, stored, h->stored_bytes);
}

/* Copies a block as it is in the file, damaged or not: readers will detect it. */
static int copy_block(struct recover *r, struct process *p, const struct block_place *place)
{
    struct block_header h;
    const uint8_t *stored;
    int size =
        stream_file_block(&p->file, &r->reader.pool, place->offset, &h, r->reader.stored, &stored);
    if (size < 0)
        return size;
    r->sequence = h.sequence >= r->sequence ? h.sequence + 1 : r->sequence;
    r->flags |= h.flags & BLOCK_AFTER_GAP;
    if (h.thread == 0 && !(h.flags & BLOCK_OF_STATE))
        r->own_position = h.position_end;
    uint64_t bytes = (uint64_t)size + h.stored_bytes;
    int error = file_copy_at(p->file.fd, place->offset, r->fd, r->size, bytes);
    r->size += bytes;
    return error;
}

/* Writes a live block. Open calls get positions, which only a stream has. */
static int put_live_block(struct recover *r, const struct live_block *block)
{
    struct block_header h = block->header;
    if (h.position_begin == h.position_end) {
        if (r->open_thread != h.thread)
            r->open_shift = 0;
        r->open_thread = h.thread;
        h.position_begin += r->open_shift;
        r->open_shift += 8 * (uint64_t)RECORD_HEAD_WORDS * h.record_count;
        h.position_end += r->open_shift;
    }
    return put_block(r, &h, block->stored);
}

static int on_block(void *context, struct process *p, struct block_place *place)
{
    struct recover *r = context;
    if (place->header.max_ns > r->last_ns && place->header.max_ns < CLOCK_NS_MAX)
        r->last_ns = place->header.max_ns;
    if (place->offset & LIVE_BLOCK)
        return put_live_block(r, &p->live.blocks[place->offset & ~LIVE_BLOCK]);
    return copy_block(r, p, place);
}

/* Adds a record to the last block; `room` stores it until that is encoded. */
static size_t recover_add(struct recover *r, struct block_encoder *e, uint8_t *room, size_t at,
                          const struct record *record)
{
    struct record its = *record;
    its.begin = r->last_ns;
    int bytes = record_write(&its, room + at, FOUND_BYTES_MAX + 8 * RECORD_WORDS_MAX);
    if (bytes > 0)
        bytes = block_encoder_add(e, room + at, (size_t)bytes);
    return bytes > 0 ? at + (size_t)bytes : at;
}

/* Adds the source of GPU rows: a thread may have recorded it between its calls. */
static size_t add_gpu_rows(struct recover *r, struct block_encoder *e, uint8_t *room, size_t at)
{
    const char *rows = process_meta(&r->process, "gpu_rows");
    char text[FOUND_BYTES_MAX];
    int length = rows ? snprintf(text, sizeof text, "gpu_rows=%s", rows) : 0;
    if (length <= 0 || length >= (int)sizeof text)
        return at;
    struct record its = {
        .type = RECORD_META, .bytes = (const uint8_t *)text, .byte_count = (uint32_t)length};
    return recover_add(r, e, room, at, &its);
}

/* Adds what the process could not write: its counters, the losses found, and its end. */
static size_t make_last_records(struct recover *r, struct block_encoder *e, uint8_t *room)
{
    const struct losses *l = &r->process.losses;
    char text[sizeof PROCESS_RECOVERED + FOUND_BYTES_MAX] = PROCESS_RECOVERED "=";
    size_t at = 0;
    for (unsigned i = 0; i < COUNTER_COUNT; i++) {
        struct record counter = {RECORD_WITH(COUNTER, [COUNTER_VALUE] = l->counters[i]),
                                 .code = (uint16_t)i,
                                 .bytes = (const uint8_t *)counter_infos[i].name,
                                 .byte_count = (uint32_t)strlen(counter_infos[i].name)};
        if (l->counters[i])
            at = recover_add(r, e, room, at, &counter);
    }
    losses_found_text(l, text + sizeof PROCESS_RECOVERED, FOUND_BYTES_MAX);
    struct record found = {
        .type = RECORD_META, .bytes = (const uint8_t *)text, .byte_count = (uint32_t)strlen(text)};
    at = add_gpu_rows(r, e, room, recover_add(r, e, room, at, &found));
    struct record end = {RECORD_WITH(END, [END_REASON] = END_KILLED)};
    return r->process.end_reason ? at : recover_add(r, e, room, at, &end);
}

static int put_last_block(struct recover *r)
{
    struct block_encoder *e = memory_new(1, sizeof *e);
    uint8_t *room = memory_new(COUNTER_COUNT + 4, FOUND_BYTES_MAX + 8 * RECORD_WORDS_MAX);
    uint8_t *stored = NULL;
    block_encoder_reset(e);
    struct block_header h = {.position_begin = r->own_position};
    h.position_end = r->own_position + make_last_records(r, e, room);
    int error = block_store(&r->reader.codec, e, NULL, &h, &stored);
    if (error == 0)
        error = put_block(r, &h, stored);
    free(stored);
    free(room);
    free(e);
    return error;
}

/* Writes the whole new file, with the header of the live file: the stream file may have none. */
static int write_whole(void *context, int fd)
{
    struct recover *r = context;
    uint8_t head[STREAM_HEADER_BYTES_MAX];
    int error = stream_header_write(&r->live->header, head, sizeof head);
    r->fd = fd;
    if (error >= 0)
        error = recover_put_data(r, head, (size_t)error);
    if (error == 0)
        error = process_load(&r->process, &r->reader, r->path, 0, on_block, r);
    if (error < 0)
        return error;
    r->is_loaded = true;
    error = put_last_block(r);
    return error < 0 ? error : 1;
}

static enum exit_code recover_failed(const char *path, int error)
{
    if (error == GPUPROF_IO) {
        message("%s: %s; nothing was changed", path, strerror(errno));
        return EXIT_ENVIRONMENT;
    }
    bool is_foreign = error == GPUPROF_NOT_OURS;
    message("%s: %s%s", path, gpuprof_error_text(error), is_foreign ? foreign_advice(path) : "");
    return is_foreign ? EXIT_USAGE : EXIT_DAMAGED;
}

static enum exit_code recover_from(struct recover *r)
{
    const struct losses *l = &r->process.losses;
    int error = flight_take(r->live, r->path);
    if (error >= 0)
        error = new_file_replace(r->path, NULL, write_whole, r);
    if (error > 0)
        message("%s: recovered: events: %" PRIu64 ", unfinished calls: %" PRIu64, r->path,
                l->live_records, l->open_calls);
    if (error >= 0)
        error = live_file_remove(r->live);
    return error < 0 ? recover_failed(r->path, error) : EXIT_OK;
}

/* Recovers one stream file. A file with nothing to recover is fine, and not counted. */
static enum exit_code recover_file(struct recover *r, const char *path, uint32_t *count)
{
    struct live_file live;
    struct stream_header header;
    int error = stream_header_of(path, &header);
    if (error == GPUPROF_IO || error == GPUPROF_VERSION)
        return recover_failed(path, error);
    int found = live_file_open(&live, path, error < 0 ? NULL : &header);
    if (found <= 0) {
        if (found < 0 || error < 0)
            return recover_failed(path, found < 0 ? found : error);
        return EXIT_OK;
    }
    enum exit_code code = EXIT_OK;
    r->path = path;
    r->live = &live;
    ++*count;
    if (live.owner == LIVE_OWNER_ENDED)
        code = recover_from(r);
    else
        message("%s: not recovered: its process %s", path,
                live.owner != LIVE_OWNER_UNKNOWN ? "still runs"
                                                 : "may still run, on another machine or in "
                                                   "another container");
    live_file_release(&live);
    return code;
}

/* Uses a new state for each file, so that a failure does not affect others. */
static enum exit_code recover_alone(const char *path, uint32_t *count)
{
    struct recover *r = memory_new(1, sizeof *r);
    reader_init(&r->reader);
    r->reader.keep_live = true; /* recover removes the live file, so do not move it */
    enum exit_code code = recover_file(r, path, count);
    if (r->is_loaded)
        process_release(&r->process, &r->reader);
    reader_release(&r->reader);
    free(r);
    return code;
}

/* Recovers a file, or all files of a folder. */
static enum exit_code recover_path(const char *path)
{
    struct stat status;
    struct path_list list = {0};
    uint32_t count = 0;
    if (stat(path, &status) < 0) {
        message("%s: %s%s", *path ? path : "''", strerror(errno), reading_advice(errno));
        return errno == ENOENT || errno == ENOTDIR ? EXIT_USAGE : EXIT_ENVIRONMENT;
    }
    bool is_folder = S_ISDIR(status.st_mode);
    int error = is_folder ? path_list_read(&list, path) : 0;
    enum exit_code code = error < 0    ? recover_failed(path, error)
                          : !is_folder ? recover_alone(path, &count)
                          : list.count ? EXIT_OK
                                       : usage_error("no recording found in %s", path);
    for (uint32_t i = 0; i < list.count && error == 0; i++) {
        enum exit_code its = recover_alone(list.paths[i], &count);
        its = its == EXIT_USAGE ? EXIT_DAMAGED : its; /* the user did not name this file */
        code = code == EXIT_OK || its == EXIT_ENVIRONMENT ? its : code;
    }
    path_list_release(&list);
    if (code == EXIT_OK && count == 0)
        message("%s: nothing to recover: it has no live file", path);
    return code;
}

static enum exit_code recover_run(const struct options *options)
{
    enum exit_code code = EXIT_OK;
    for (int i = 0; i < options->path_count; i++) {
        enum exit_code its = recover_path(options->paths[i]);
        code = code == EXIT_OK || its == EXIT_ENVIRONMENT ? its : code;
    }
    return code;
}

VERB_IS(
    recover, recover_run, NULL, VERB_NO_OWN, TAKES_RECORDINGS | VERB_MORE, "DIR|FILE...",
    "complete the files of killed processes, for programs of your own; gpuprof reads them as they "
    "are",
    {PART_EXAMPLE, "gpuprof recover data", "complete all files of a folder"},
    {PART_EXAMPLE, "gpuprof recover data/*.gpuprof", "complete these files"});
