/* SPDX-License-Identifier: Apache-2.0 */
#include "read/recording.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

int share_add(struct share *s, const char *path, bool is_named)
{
    struct stream_header h = {0};
    struct share_file made = {.path = strdup(path), .is_named = is_named};
    if (!made.path || ARRAY_PUSH(s->files, s->file_count, &made) < 0) {
        free(made.path);
        return GPUPROF_NO_MEMORY;
    }
    struct share_file *f = &s->files[s->file_count - 1];
    f->is_lost = stream_header_of(path, &h) < 0;
    if (f->is_lost)
        return 0;
    memcpy(f->process_id, h.process_id, sizeof f->process_id);
    memcpy(f->boot_id, h.boot_id, sizeof f->boot_id);
    f->begin_ns = h.realtime_zero_ns;
    f->clock_offset = clock_offset_of(&h);
    return 0;
}

static int compare_files(const void *left, const void *right)
{
    const struct share_file *a = *(struct share_file *const *)left;
    const struct share_file *b = *(struct share_file *const *)right;
    return a->is_lost - b->is_lost ?: memcmp(a->boot_id, b->boot_id, sizeof a->boot_id) ?:
           memcmp(a->process_id, b->process_id, sizeof a->process_id);
}

static bool share_is_before(const struct share_file *a, const struct share_file *b)
{
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns;
    return memcmp(a->process_id, b->process_id, sizeof a->process_id) < 0;
}

/* Gives all files of a boot, which are neighbours, the offset of its first process. */
static void share_offsets(struct share *s, struct share_file **order)
{
    for (uint32_t i = 0, next; i < s->file_count && !order[i]->is_lost; i = next) {
        const struct share_file *first = order[i];
        for (next = i + 1; next < s->file_count && !order[next]->is_lost &&
                           boots_are_same(order[i]->boot_id, order[next]->boot_id);
             next++)
            first = share_is_before(order[next], first) ? order[next] : first;
        uint64_t offset = first->clock_offset;
        for (uint32_t k = i; k < next; k++)
            order[k]->clock_offset = offset;
        s->host_count++;
    }
}

int share_deal(struct share *s)
{
    struct share_file **order = malloc((s->file_count + 1u) * sizeof(struct share_file *));
    uint32_t processes = 0;
    if (!order)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < s->file_count; i++)
        order[i] = &s->files[i];
    qsort(order, s->file_count, sizeof *order, compare_files);
    s->set = 0;
    for (uint32_t i = 0; i < s->file_count; i++) {
        bool is_again = i && compare_files(&order[i - 1], &order[i]) == 0;
        if (order[i]->is_lost || is_again)
            continue;
        s->set = bytes_hash(s->set, order[i]->process_id, sizeof order[i]->process_id);
        processes++;
    }
    for (uint32_t i = 0, place = 0; i < s->file_count; i++) {
        bool is_again = i && compare_files(&order[i - 1], &order[i]) == 0;
        place += i && !is_again; /* copies of a file stay in one share, which drops them */
        order[i]->is_here =
            order[i]->is_lost ? s->index == 0 : (uint64_t)place * s->count / processes == s->index;
    }
    share_offsets(s, order);
    free(order);
    return 0;
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
    for (uint32_t i = 0; i < s->file_count; i++)
        free(s->files[i].path);
    free(s->files);
    *s = (struct share){0};
}

/* ---- ranks that are not here ----------------------------------------------------------------- */

struct seat {
    uint64_t rank, size;
    uint32_t job;
};

static int compare_seats(const void *left, const void *right)
{
    const struct seat *a = left, *b = right;
    return ORDER(a->job, b->job) ?: ORDER(a->rank, b->rank);
}

/* Returns the job size that all processes agree on; 0: they differ, or a rank is larger. */
static uint64_t size_of(const struct seat *seats, uint32_t count)
{
    uint64_t size = seats[0].size;
    for (uint32_t i = 1; i < count; i++)
        size = seats[i].size == size ? size : 0;
    return seats[count - 1].rank < size ? size : 0;
}

/* Adds the missing ranks from `first` up to, but not including, `end`. */
static void share_add_span(struct missing_ranks *m, uint64_t first, uint64_t end)
{
    if (first >= end)
        return;
    if (m->span_count < MISSING_SPANS_MAX) {
        m->spans[m->span_count][0] = first;
        m->spans[m->span_count][1] = end - 1;
    }
    m->span_count++;
    m->count += end - first;
}

static struct missing_ranks missing_of(const struct seat *seats, uint32_t count)
{
    struct missing_ranks m = {.job = seats[0].job, .size = size_of(seats, count)};
    uint64_t next = 0; /* rank */
    for (uint32_t i = 0; i < count; i++) {
        m.here += seats[i].rank >= next;
        share_add_span(&m, next, seats[i].rank);
        next = seats[i].rank + 1;
    }
    share_add_span(&m, next, m.size);
    return m;
}

int recording_find_missing(struct recording *rec)
{
    struct seat *seats = calloc(rec->count + 1u, sizeof *seats);
    uint32_t count = 0;
    free(rec->missing);
    rec->missing_count = 0;
    rec->missing = calloc(rec->job_count + 1u, sizeof *rec->missing);
    if (!seats || !rec->missing) {
        free(seats);
        return GPUPROF_NO_MEMORY;
    }
    for (uint32_t i = 0; i < rec->count && !rec->share && !rec->left_out_ranks; i++) {
        const struct process *p = rec->processes[i];
        if (p->job != JOB_NONE)
            seats[count++] = (struct seat){p->rank, process_world_size(p), p->job};
    }
    qsort(seats, count, sizeof *seats, compare_seats);
    for (uint32_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && seats[next].job == seats[i].job; next++)
            ;
        struct missing_ranks m = missing_of(seats + i, next - i);
        if (m.count)
            rec->missing[rec->missing_count++] = m;
    }
    free(seats);
    return 0;
}

static int compare_job(const void *key, const void *item)
{
    uint32_t job = *(const uint32_t *)key, other = ((const struct missing_ranks *)item)->job;
    return ORDER(job, other);
}

const struct missing_ranks *missing_ranks_of(const struct recording *rec, uint32_t job)
{
    return rec->missing_count
               ? bsearch(&job, rec->missing, rec->missing_count, sizeof *rec->missing, compare_job)
               : NULL;
}

char *missing_ranks_text(const struct missing_ranks *m, char text[static MISSING_RANKS_BYTES])
{
    size_t at = (size_t)snprintf(text, MISSING_RANKS_BYTES, "rank%s", m->count > 1 ? "s" : "");
    for (uint32_t i = 0; i < m->span_count && i < MISSING_SPANS_MAX; i++) {
        at += (size_t)snprintf(text + at, MISSING_RANKS_BYTES - at, "%s %llu", i ? "," : "",
                               (unsigned long long)m->spans[i][0]);
        if (m->spans[i][1] > m->spans[i][0])
            at += (size_t)snprintf(text + at, MISSING_RANKS_BYTES - at, "-%llu",
                                   (unsigned long long)m->spans[i][1]);
    }
    at += (size_t)snprintf(text + at, MISSING_RANKS_BYTES - at, "%s",
                           m->span_count > MISSING_SPANS_MAX ? " and more" : "");
    if (m->size)
        snprintf(text + at, MISSING_RANKS_BYTES - at, " of %llu", (unsigned long long)m->size);
    return text;
}
