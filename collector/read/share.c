/* SPDX-License-Identifier: Apache-2.0 */
#include "read/recording.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

#define BOOT_ID_BYTES 16

static int compare_boots(const struct machine_claim *a, const struct machine_claim *b)
{
    return memcmp(a->boot_id, b->boot_id, BOOT_ID_BYTES);
}

static int by_offset(const void *left, const void *right)
{
    const struct machine_claim *a = *(struct machine_claim *const *)left;
    const struct machine_claim *b = *(struct machine_claim *const *)right;
    return compare_boots(a, b) ?: ORDER(a->offset, b->offset);
}

static int compare_hosts(const struct machine_claim *a, const struct machine_claim *b)
{
    int order = compare_boots(a, b);
    return order ? order : strcmp(a->host, b->host);
}

/* Those of a host in the order of its monotonic clock. */
static int by_host(const void *left, const void *right)
{
    const struct machine_claim *a = *(struct machine_claim *const *)left;
    const struct machine_claim *b = *(struct machine_claim *const *)right;
    uint64_t x = a->begin_ns - a->offset, y = b->begin_ns - b->offset;
    return compare_hosts(a, b) ?: ORDER(x, y) ?: ORDER(a->machine, b->machine);
}

static bool is_known(const struct machine_claim *c)
{
    static const uint8_t unknown[BOOT_ID_BYTES];
    return memcmp(c->boot_id, unknown, sizeof unknown) != 0;
}

static uint32_t root_of(uint32_t *roots, uint32_t machine)
{
    while (roots[machine] != machine)
        machine = roots[machine] = roots[roots[machine]];
    return machine;
}

/* A host's clock that was set is one, whatever it said before: all of its are one machine, unless
 * the same ones come again. `seen`: for each machine the host, + 1, in which it was met. */
static void join_host(struct machine_claim **host, uint32_t count, uint32_t number, uint32_t *seen,
                      uint32_t *roots)
{
    bool comes_again = false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t machine = host[i]->machine;
        comes_again |= seen[machine] == number + 1 && host[i - 1]->machine != machine;
        seen[machine] = number + 1;
    }
    for (uint32_t i = 1; i < count && !comes_again; i++)
        roots[root_of(roots, host[i]->machine)] = root_of(roots, host[0]->machine);
}

int machines_find(struct machine_claim *claims, uint32_t count)
{
    struct machine_claim **order = calloc(count + 1u, sizeof(struct machine_claim *));
    uint32_t *roots = calloc(count + 1u, sizeof *roots), *seen = calloc(count + 1u, sizeof *seen);
    int error = order && roots && seen ? 0 : GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        order[i] = &claims[i];
        roots[i] = i;
    }
    if (error == 0 && count)
        qsort(order, count, sizeof *order, by_offset);
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        const struct machine_claim *before = i ? order[i - 1] : NULL;
        bool is_same = before && is_known(order[i]) && compare_boots(before, order[i]) == 0 &&
                       order[i]->offset - before->offset < MACHINE_APART_NS;
        order[i]->machine = is_same ? before->machine : i;
    }
    if (error == 0 && count)
        qsort(order, count, sizeof *order, by_host);
    for (uint32_t i = 0, next; error == 0 && i < count; i = next) {
        for (next = i + 1; next < count && compare_hosts(order[i], order[next]) == 0; next++)
            ;
        if (is_known(order[i]))
            join_host(order + i, next - i, i, seen, roots);
    }
    for (uint32_t i = 0; error == 0 && i < count; i++)
        claims[i].machine = root_of(roots, claims[i].machine);
    free(order);
    free(roots);
    free(seen);
    return error;
}

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
