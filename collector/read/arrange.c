/* SPDX-License-Identifier: Apache-2.0 */
/* Orders the loaded processes, puts them on one clock and makes their pids and tids distinct. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "bytes.h"
#include "read/process.h"
#include "read/recording.h"

#define BACK_NS        8        /* above clock_map_back's largest error */
#define TID_SYSTEM_MAX 4194304u /* Linux's largest pid_max */

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

static struct key boot_key(const struct process *p, uint32_t index)
{
    const uint8_t *boot = p->header.boot_id;
    bool is_known = boots_are_same(boot, boot);
    return (struct key){load_u64(boot), load_u64(boot + 8), is_known ? 0 : index + 1ull};
}

/* Finds the host of the process, perhaps a new one, and its process that started first. */
static void find_host(struct recording *rec, struct key_map *boots, uint32_t index,
                      const struct process **first)
{
    struct process *p = rec->processes[index];
    struct key key = boot_key(p, index);
    uint32_t number = (uint32_t)key_map_get(boots, key);
    if (!number) {
        rec->hosts[rec->host_count] = (struct host){.first = p, .reference = rec->host_count};
        first[rec->host_count] = p;
        number = ++rec->host_count;
        (void)key_map_set(boots, key, number);
    }
    p->host = number - 1;
    rec->hosts[p->host].processes++;
    if (compare_start(&p, &first[p->host]) < 0)
        first[p->host] = p;
}

/* Numbers the hosts by display order. Processes of one boot share CLOCK_MONOTONIC, even if the wall
 * clock was set between their starts: they all use the first process's offset. */
static void share_clocks(struct recording *rec)
{
    const struct process **first = memory_new(rec->count + 1u, sizeof(struct process *));
    struct key_map boots = {.count_max = UINT32_MAX};
    rec->hosts = memory_new(rec->count + 1u, sizeof *rec->hosts);
    for (uint32_t i = 0; i < rec->count; i++)
        find_host(rec, &boots, i, first);
    for (uint32_t i = 0; i < rec->count; i++) {
        struct process *p = rec->processes[i];
        p->clock.offset = first[p->host]->clock.offset;
    }
    key_map_release(&boots);
    free(first);
}

/* Returns a wanted number that is not taken, else 0. */
static uint32_t claim_number(struct key_map *taken, uint32_t wanted)
{
    if (!wanted || key_map_get(taken, (struct key){.a = wanted}))
        return 0;
    (void)key_map_set(taken, (struct key){.a = wanted}, 1);
    return wanted;
}

/* Sets *shown, if it is 0, to the next free number from *next on. */
static void give_number(const struct key_map *taken, uint32_t *shown, uint32_t *next)
{
    while (!*shown && key_map_get(taken, (struct key){.a = *next}))
        ++*next;
    *shown = *shown ? *shown : (*next)++;
}

static void distinguish_pids(struct recording *rec)
{
    struct key_map taken = {.count_max = UINT32_MAX};
    uint32_t next = 1;
    for (uint32_t i = 0; i < rec->count; i++)
        rec->processes[i]->shown_pid = claim_number(&taken, rec->processes[i]->header.pid);
    for (uint32_t i = 0; i < rec->count; i++)
        give_number(&taken, &rec->processes[i]->shown_pid, &next);
    key_map_release(&taken);
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

static void number_threads(struct recording *rec, struct process *p)
{
    p->first_thread = rec->thread_count;
    p->thread_count = p->threads.count;
    for (uint32_t i = 0; i < p->threads.count; i++) {
        struct thread *t = p->threads.threads[i];
        t->index = rec->thread_count++;
        rec->own_thread_count += t->own || !t->number;
    }
}

/* The main thread keeps tid = pid, which viewers expect; no other thread may use that number. */
static void distinguish_tids(struct process *p)
{
    struct key_map taken = {.count_max = UINT32_MAX};
    uint32_t next = TID_SYSTEM_MAX + 1, main_tid = claim_number(&taken, p->shown_pid);
    for (uint32_t i = 0; i < p->threads.count; i++) {
        struct thread *t = p->threads.threads[i];
        bool is_main = t->number && t->tid == p->header.pid && t->tid && main_tid;
        t->shown_tid = is_main ? main_tid : 0;
        main_tid = is_main ? 0 : main_tid;
        if (!is_main && t->number) /* 0 is not a thread, but an injected file may have its calls */
            t->shown_tid = claim_number(&taken, t->tid);
    }
    for (uint32_t i = 0; i < p->threads.count; i++)
        if (p->threads.threads[i]->number)
            give_number(&taken, &p->threads.threads[i]->shown_tid, &next);
    key_map_release(&taken);
}

/* Finds each process's entries of the sorted index. */
static void chain_blocks(struct recording *rec)
{
    for (uint32_t i = 0; i < rec->count; i++)
        rec->processes[i]->first_entry = rec->index.count;
    for (uint32_t i = rec->index.count; i-- > 0;) {
        struct process *p = rec->loaded[rec->index.entries[i].process];
        rec->index.entries[i].next = p->first_entry;
        p->first_entry = i;
    }
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
    chain_blocks(rec);
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

void recording_arrange(struct recording *rec)
{
    rec->loaded = memory_new(rec->count, sizeof(struct process *));
    memcpy(rec->loaded, rec->processes, rec->count * sizeof(struct process *));
    qsort(rec->processes, rec->count, sizeof *rec->processes, compare_rank);
    for (uint32_t i = 0; i < rec->count; i++)
        rec->processes[i]->index = i;
    share_clocks(rec);
    distinguish_pids(rec);
    for (uint32_t i = 0; i < rec->count; i++) {
        name_worst_thread(rec->processes[i]);
        number_threads(rec, rec->processes[i]);
        distinguish_tids(rec->processes[i]);
    }
    order_blocks(rec);
}

/* ---- fewer processes ------------------------------------------------------------------------- */

void recording_drop(struct recording *rec)
{
    uint32_t kept = 0, *numbers = memory_new(rec->count + 1u, sizeof *numbers);
    for (uint32_t i = 0; i < rec->count; i++) {
        struct process *p = rec->processes[i];
        numbers[p->number] = p->is_elsewhere ? UINT32_MAX : kept;
        if (p->is_elsewhere) {
            process_release(p, &rec->reader);
            free(p);
            continue;
        }
        p->number = p->index = kept;
        rec->processes[kept++] = p;
    }
    rec->count = kept;
    block_index_renumber(&rec->index, numbers);
    free(numbers);
}

static int compare_places(const void *left, const void *right)
{
    const struct stream_header *a = &(*(struct process *const *)left)->header;
    const struct stream_header *b = &(*(struct process *const *)right)->header;
    return memcmp(a->boot_id, b->boot_id, sizeof a->boot_id)
               ?: memcmp(a->process_id, b->process_id, sizeof a->process_id);
}

void recording_find_share(struct recording *rec, struct share *s)
{
    const uint32_t count = rec->count;
    struct process **order = memory_new(count, sizeof *order);
    memcpy(order, rec->processes, count * sizeof *order);
    qsort(order, count, sizeof *order, compare_places);
    *s = (struct share){
        .index = s->index, .count = s->count, .file_count = count + rec->unread_files};
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *id = order[i]->header.process_id;
        s->set = bytes_hash(s->set, id, sizeof order[i]->header.process_id);
        order[i]->is_elsewhere = (uint64_t)i * s->count / count != s->index;
    }
    rec->unread_files = s->index == 0 ? rec->unread_files : 0;
    free(order);
}

void recording_share(struct recording *rec, struct share *s)
{
    s->host_count = rec->host_count;
    recording_drop(rec);
    rec->share = s;
    rec->host_count = rec->missing_count = rec->thread_count = rec->own_thread_count = 0;
    rec->is_parallel = false;
    for (uint32_t i = 0; i < rec->count; i++) {
        rec->loaded[i] = rec->processes[i];
        number_threads(rec, rec->processes[i]);
    }
    chain_blocks(rec);
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
    a->records = (uint32_t)min_of((uint64_t)a->records + b->records, UINT32_MAX);
    a->time = min_of(a->time, b->time);
    a->end = max_of(a->end, b->end);
    a->types = a->types && b->types ? a->types | b->types : 0;
    a->thread = a->thread == b->thread ? a->thread : INDEX_THREADS;
}

/* Returns how many entries the index may have with `processes` processes before the newest one. */
static uint32_t room_of(const struct block_index *x, uint32_t processes)
{
    uint64_t room = BLOCK_INDEX_ONE + (uint64_t)BLOCK_INDEX_EACH * processes;
    return x->entries_max ? x->entries_max : (uint32_t)min_of(room, BLOCK_INDEX_MAX);
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

void block_index_add(struct block_index *x, uint32_t process, uint64_t offset,
                     const struct block_header *h, bool apart)
{
    struct index_entry entry = {.offset = offset,
                                .time = h->min_ns,
                                .end = h->max_ns,
                                .types = block_types(h),
                                .process = process,
                                .thread = h->thread,
                                .records = h->record_count,
                                .count = 1,
                                .apart = apart};
    if (!x->run_max)
        x->run_max = 1;
    if (x->count && joins(x, &x->entries[x->count - 1], &entry)) {
        arrange_join(&x->entries[x->count - 1], &entry);
        return;
    }
    uint32_t room = room_of(x, process);
    if (x->count >= room)
        coalesce(x, room);
    ARRAY_PUSH(x->entries, x->count, &entry);
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
    ARRAY_SORT(x->entries, x->count, compare_entries);
}

void block_index_release(struct block_index *x)
{
    free(x->entries);
    *x = (struct block_index){0};
}
