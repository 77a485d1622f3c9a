/* SPDX-License-Identifier: Apache-2.0 */
#include "read/share.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "read/machines.h"

/* Of a file that has lost it the live file may have the header: loading knows. */
static int read_header(struct reader *r, const char *path, struct stream_header *h)
{
    struct stream_file file;
    int error = stream_file_init(&file, &r->pool, path);
    if (error < 0)
        return error;
    error = stream_file_header(&file, &r->pool, h);
    stream_file_release(&file, &r->pool);
    if (error == 0)
        return 0;
    struct process *p = malloc(sizeof *p);
    if (!p)
        return GPUPROF_NO_MEMORY;
    error = process_load(p, r, path, 0, NULL, NULL);
    if (error == 0) {
        *h = p->header;
        process_release(p, r);
    }
    free(p);
    return error;
}

int share_add(struct share *s, struct reader *r, const char *path, bool is_named)
{
    struct stream_header h = {0};
    struct clock_map clock = {0};
    struct share_file made = {.path = strdup(path), .is_named = is_named};
    if (!made.path || ARRAY_PUSH(s->files, s->file_count, &made) < 0) {
        free(made.path);
        return GPUPROF_NO_MEMORY;
    }
    struct share_file *f = &s->files[s->file_count - 1];
    f->is_lost = read_header(r, path, &h) != 0;
    if (f->is_lost)
        return 0;
    if (clock_map_init(&clock, &h) < 0)
        return GPUPROF_NO_MEMORY;
    memcpy(f->process_id, h.process_id, sizeof f->process_id);
    memcpy(f->boot_id, h.boot_id, sizeof f->boot_id);
    f->host = strdup(h.host);
    f->begin_ns = h.realtime_zero_ns;
    f->clock_offset = clock.offset;
    clock_map_release(&clock);
    return f->host ? 0 : GPUPROF_NO_MEMORY;
}

static int compare_files(const void *left, const void *right)
{
    const struct share_file *a = *(struct share_file *const *)left;
    const struct share_file *b = *(struct share_file *const *)right;
    return a->is_lost - b->is_lost ?: memcmp(a->boot_id, b->boot_id, sizeof a->boot_id) ?:
           memcmp(a->process_id, b->process_id, sizeof a->process_id);
}

static bool is_before(const struct share_file *a, const struct share_file *b)
{
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns;
    return memcmp(a->process_id, b->process_id, sizeof a->process_id) < 0;
}

/* Clocks of one machine get the offset that the first of its processes had. */
static int share_offsets(struct share *s)
{
    uint32_t count = s->file_count;
    struct machine_claim *claims = calloc(count + 1u, sizeof *claims);
    const struct share_file **firsts = calloc(count + 1u, sizeof(struct share_file *));
    uint64_t *offsets = calloc(count + 1u, sizeof *offsets);
    static const uint8_t unknown[16];
    int error = claims && firsts && offsets ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        const struct share_file *f = &s->files[i];
        claims[i] = (struct machine_claim){.boot_id = f->is_lost ? unknown : f->boot_id,
                                           .host = f->is_lost ? "" : f->host,
                                           .offset = f->clock_offset,
                                           .begin_ns = f->begin_ns};
    }
    if (error == 0)
        error = machines_find(claims, count);
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        const struct share_file *f = &s->files[i], **first = &firsts[claims[i].machine];
        s->host_count += !*first && !f->is_lost;
        if (!*first || is_before(f, *first))
            *first = f;
    }
    for (uint32_t i = 0; error == 0 && i < count; i++)
        offsets[i] = firsts[claims[i].machine]->clock_offset;
    for (uint32_t i = 0; error == 0 && i < count; i++)
        s->files[i].clock_offset = offsets[i];
    free(claims);
    free(firsts);
    free(offsets);
    return error;
}

int share_deal(struct share *s)
{
    struct share_file **order = malloc((s->file_count + 1u) * sizeof(struct share_file *));
    uint32_t processes = 0;
    struct sha256 hash;
    if (!order)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < s->file_count; i++)
        order[i] = &s->files[i];
    qsort(order, s->file_count, sizeof *order, compare_files);
    sha256_init(&hash);
    for (uint32_t i = 0; i < s->file_count; i++) {
        bool is_again = i && compare_files(&order[i - 1], &order[i]) == 0;
        if (order[i]->is_lost || is_again)
            continue;
        sha256_add(&hash, order[i]->process_id, sizeof order[i]->process_id);
        processes++;
    }
    sha256_base64(&hash, s->set);
    for (uint32_t i = 0, place = 0; i < s->file_count; i++) {
        bool is_again = i && compare_files(&order[i - 1], &order[i]) == 0;
        place += i && !is_again; /* copies of a file are in one share, which leaves them out */
        order[i]->is_here =
            order[i]->is_lost ? s->index == 0 : (uint64_t)place * s->count / processes == s->index;
    }
    free(order);
    return share_offsets(s);
}

uint64_t share_clock_offset(const struct share *s, const uint8_t *process_id, uint64_t offset)
{
    for (uint32_t i = 0; i < s->file_count; i++) {
        const struct share_file *f = &s->files[i];
        if (!f->is_lost && memcmp(f->process_id, process_id, sizeof f->process_id) == 0)
            return f->clock_offset;
    }
    return offset;
}

void share_release(struct share *s)
{
    for (uint32_t i = 0; i < s->file_count; i++) {
        free(s->files[i].path);
        free(s->files[i].host);
    }
    free(s->files);
    *s = (struct share){0};
}
