/* SPDX-License-Identifier: Apache-2.0 */
/* Orders the loaded processes, puts them on one clock and makes their pids and tids distinct. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "read/process.h"
#include "read/recording.h"

#define BACK_NS        8        /* above clock_map_back's largest error */
#define TID_SYSTEM_MAX 4194304u /* Linux's largest pid_max */

struct number {
    uint32_t wanted; /* pid or tid; 0 = unknown */
    uint32_t *shown;
};

static int compare_start(const void *left, const void *right)
{
    const struct process *a = *(struct process *const *)left;
    const struct process *b = *(struct process *const *)right;
    return ORDER(a->header.realtime_zero_ns, b->header.realtime_zero_ns)
               ?: memcmp(a->header.process_id, b->header.process_id, sizeof a->header.process_id);
}

/* Compares processes by display order; those without a rank, such as a launcher, come last. */
static int compare_rank(const void *left, const void *right)
{
    uint64_t a = (*(struct process *const *)left)->rank;
    uint64_t b = (*(struct process *const *)right)->rank;
    return ORDER(a, b) ?: compare_start(left, right);
}

static int compare_boot(const void *left, const void *right)
{
    const struct process *a = *(struct process *const *)left;
    const struct process *b = *(struct process *const *)right;
    return memcmp(a->header.boot_id, b->header.boot_id, sizeof a->header.boot_id)
               ?: compare_start(left, right);
}

/* Numbers the hosts by display order. Before, p->host is the number of a boot. */
static int find_hosts(struct recording *rec)
{
    uint32_t *numbers = calloc(rec->count + 1u, sizeof *numbers); /* of hosts, + 1; 0: none yet */
    rec->hosts = calloc(rec->count + 1u, sizeof *rec->hosts);
    if (!numbers || !rec->hosts) {
        free(numbers);
        return GPUPROF_NO_MEMORY;
    }
    for (uint32_t i = 0; i < rec->count; i++) {
        struct process *p = rec->processes[i];
        uint32_t *number = &numbers[p->host];
        if (!*number) {
            rec->hosts[rec->host_count] = (struct host){.first = p, .reference = rec->host_count};
            *number = ++rec->host_count;
        }
        p->host = *number - 1;
        rec->hosts[p->host].processes++;
    }
    free(numbers);
    return 0;
}

/* Processes of one boot share CLOCK_MONOTONIC, even if the wall clock was set between their starts:
 * they all use the first process's offset. */
static int share_clocks(struct recording *rec)
{
    struct process **order = malloc(rec->count * sizeof(struct process *));
    if (!order)
        return GPUPROF_NO_MEMORY;
    memcpy(order, rec->processes, rec->count * sizeof(struct process *));
    qsort(order, rec->count, sizeof *order, compare_boot);
    for (uint32_t i = 0; i < rec->count; i++) {
        bool is_same = i && boots_are_same(order[i - 1]->header.boot_id, order[i]->header.boot_id);
        order[i]->host = is_same ? order[i - 1]->host : i;
        if (is_same)
            order[i]->clock.offset = order[i - 1]->clock.offset;
    }
    free(order);
    for (uint32_t i = 0; rec->share && i < rec->count; i++) {
        struct process *p = rec->processes[i];
        p->clock.offset = share_clock_offset(rec->share, p->header.process_id, p->clock.offset);
    }
    return find_hosts(rec);
}

/* Gives each number to the first item that wants it. The other items, and those that want none, get
 * the next free numbers from `free_from` on. Returns 0 or GPUPROF_NO_MEMORY. */
static int distinguish(const struct number *numbers, uint32_t count, uint32_t free_from)
{
    struct key_map taken = {.count_max = UINT32_MAX};
    int error = 0;
    for (uint32_t i = 0; i < count && error == 0; i++) {
        struct key key = {.a = numbers[i].wanted};
        bool is_free = key.a && !key_map_get(&taken, key);
        *numbers[i].shown = is_free ? numbers[i].wanted : 0;
        error = is_free ? key_map_set(&taken, key, 1) : 0;
    }
    for (uint32_t i = 0; i < count && error == 0; i++) {
        if (*numbers[i].shown)
            continue;
        while (key_map_get(&taken, (struct key){.a = free_from}))
            free_from++;
        *numbers[i].shown = free_from++;
    }
    key_map_release(&taken);
    return error;
}

static int distinguish_pids(struct recording *rec)
{
    struct number *numbers = malloc(rec->count * sizeof *numbers);
    if (!numbers)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < rec->count; i++) {
        struct process *p = rec->processes[i];
        numbers[i] = (struct number){p->header.pid, &p->shown_pid};
    }
    int error = distinguish(numbers, rec->count, 1);
    free(numbers);
    return error;
}

static void name_worst_thread(struct process *p)
{
    uint64_t number = p->costs.sum[COST_SUM_WORST_THREAD];
    const struct thread *t =
        number <= UINT32_MAX ? thread_find(&p->threads, (uint32_t)number) : NULL;
    if (!t)
        return;
    p->costs.worst_tid = t->tid;
    memcpy(p->costs.worst_name, t->name, sizeof t->name);
}

/* The main thread keeps tid = pid, which viewers expect; no other thread may use that number. */
static int distinguish_tids(struct recording *rec, struct process *p)
{
    struct number *numbers = malloc((p->threads.count + 1) * sizeof *numbers);
    uint32_t count = 0;
    uint32_t main_shown = 0;
    if (!numbers)
        return GPUPROF_NO_MEMORY;
    numbers[count++] = (struct number){p->shown_pid, &main_shown};
    bool main_found = false;
    p->first_thread = rec->thread_count;
    for (uint32_t i = 0; i < p->threads.count; i++) {
        struct thread *t = p->threads.threads[i];
        t->index = rec->thread_count++;
        rec->own_thread_count += t->own || !t->number;
        if (!t->number) /* not a thread, but an injected file may have calls for it */
            continue;
        if (t->tid == p->header.pid && t->tid && !main_found) {
            t->shown_tid = p->shown_pid;
            main_found = true;
            continue;
        }
        numbers[count++] = (struct number){t->tid, &t->shown_tid};
    }
    p->thread_count = rec->thread_count - p->first_thread;
    int error = distinguish(numbers, count, TID_SYSTEM_MAX + 1);
    free(numbers);
    return error;
}

/* Sorts the index, which has process times, by shared times. */
static void order_blocks(struct recording *rec)
{
    for (uint32_t i = 0; i < rec->index.count; i++) {
        struct index_entry *entry = &rec->index.entries[i];
        struct clock_map *clock = &rec->loaded[entry->process]->clock;
        entry->time = clock_map_ns(clock, entry->time);
        entry->end = clock_map_ns(clock, entry->end);
    }
    block_index_sort(&rec->index);
    for (uint32_t i = 0; i < rec->count; i++)
        rec->processes[i]->first_entry = rec->index.count;
    for (uint32_t i = rec->index.count; i-- > 0;) {
        struct process *p = rec->loaded[rec->index.entries[i].process];
        rec->index.entries[i].next = p->first_entry;
        p->first_entry = i;
    }
}

void recording_move_clocks(struct recording *rec, recording_move_fn *move, const void *context)
{
    for (uint32_t i = 0; i < rec->index.count; i++) {
        struct index_entry *entry = &rec->index.entries[i];
        const struct clock_map *clock = &rec->loaded[entry->process]->clock;
        uint64_t time = clock_map_back(clock, entry->time);
        /* A block may be opened too early, but not after its first record. */
        entry->time = time > BACK_NS ? time - BACK_NS : 0;
        entry->end = clock_map_back(clock, entry->end) + BACK_NS;
    }
    for (uint32_t i = 0; i < rec->count; i++)
        move(context, rec->processes[i]);
    order_blocks(rec);
}

int recording_arrange(struct recording *rec)
{
    rec->loaded = malloc(rec->count * sizeof(struct process *));
    if (!rec->loaded)
        return GPUPROF_NO_MEMORY;
    memcpy(rec->loaded, rec->processes, rec->count * sizeof(struct process *));
    qsort(rec->processes, rec->count, sizeof *rec->processes, compare_rank);
    for (uint32_t i = 0; i < rec->count; i++)
        rec->processes[i]->index = i;
    int error = share_clocks(rec);
    if (error == 0)
        error = distinguish_pids(rec);
    for (uint32_t i = 0; error == 0 && i < rec->count; i++) {
        name_worst_thread(rec->processes[i]);
        error = distinguish_tids(rec, rec->processes[i]);
    }
    order_blocks(rec);
    return error;
}

/* ---- the index of blocks --------------------------------------------------------------------- */

/* Returns true if `b` follows `a`, and both are stored or both live blocks of one file. */
static bool joins(const struct block_index *x, const struct index_entry *a,
                  const struct index_entry *b)
{
    return !b->apart && a->process == b->process &&
           (a->offset & LIVE_BLOCK) == (b->offset & LIVE_BLOCK) &&
           (uint64_t)a->count + b->count <= x->run_max;
}

static void arrange_join(struct index_entry *a, const struct index_entry *b)
{
    a->count += b->count;
    if (b->time < a->time)
        a->time = b->time;
    if (b->end > a->end)
        a->end = b->end;
    a->types = a->types && b->types ? a->types | b->types : 0;
    a->thread = a->thread == b->thread ? a->thread : INDEX_THREADS;
}

/* Returns how many entries the index may have with `processes` processes before the newest one. */
static uint32_t room_of(const struct block_index *x, uint32_t processes)
{
    uint64_t room = BLOCK_INDEX_ONE + (uint64_t)BLOCK_INDEX_EACH * processes;
    return x->entries_max ? x->entries_max
                          : (uint32_t)(room < BLOCK_INDEX_MAX ? room : BLOCK_INDEX_MAX);
}

/* Doubles the blocks per entry until a quarter of the room is free. */
static void coalesce(struct block_index *x, uint32_t room)
{
    while (x->count > room / 4 * 3 && x->run_max < BLOCK_RUN_MAX) {
        uint32_t kept = 0;
        x->run_max *= 2;
        for (uint32_t i = 1; i < x->count; i++) {
            if (joins(x, &x->entries[kept], &x->entries[i]))
                arrange_join(&x->entries[kept], &x->entries[i]);
            else
                x->entries[++kept] = x->entries[i];
        }
        x->count = kept + 1;
    }
}

int block_index_add(struct block_index *x, uint32_t process, uint64_t offset,
                    const struct block_header *h, bool apart)
{
    struct index_entry entry = {.offset = offset,
                                .time = h->min_ns,
                                .end = h->max_ns,
                                .types = h->types,
                                .process = process,
                                .thread = h->thread,
                                .count = 1,
                                .apart = apart};
    if (!x->run_max)
        x->run_max = 1;
    if (x->count && joins(x, &x->entries[x->count - 1], &entry)) {
        arrange_join(&x->entries[x->count - 1], &entry);
        return 0;
    }
    uint32_t room = room_of(x, process);
    if (x->count >= room)
        coalesce(x, room);
    return ARRAY_PUSH(x->entries, x->count, &entry);
}

void block_index_drop(struct block_index *x, uint32_t process)
{
    while (x->count && x->entries[x->count - 1].process == process)
        x->count--;
}

void block_index_renumber(struct block_index *x, const uint32_t *numbers)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        uint32_t number = numbers[x->entries[i].process];
        if (number == UINT32_MAX)
            continue;
        x->entries[kept] = x->entries[i];
        x->entries[kept++].process = number;
    }
    x->count = kept;
}

static int compare_entries(const void *left, const void *right)
{
    const struct index_entry *a = left, *b = right;
    return ORDER(a->time, b->time) ?: ORDER(a->process, b->process) ?: ORDER(a->offset, b->offset);
}

void block_index_sort(struct block_index *x)
{
    if (x->count)
        qsort(x->entries, x->count, sizeof *x->entries, compare_entries);
}

void block_index_release(struct block_index *x)
{
    free(x->entries);
    *x = (struct block_index){0};
}
