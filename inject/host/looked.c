/* SPDX-License-Identifier: Apache-2.0 */
#include "host/looked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/memory_read.h"
#include "base/pages.h"
#include "base/proc.h"
#include "record/open_look.h"
#include "record/pool.h"
#include "record/thread.h"

#define FILLING    UINT32_MAX /* stands for the tid while a place is being filled */
#define FILES_MAX  32u        /* threads with open files: three files each */
#define PATH_BYTES 64
#define TEXT_BYTES 1024
#define HEAD_BYTES                                                                                 \
    offsetof(struct thread, waited) /* the part of struct thread that is read here                 \
                                     */

static struct looked *all; /* LOOKED_MAX entries */
/* places ever used; incremented by the thread that takes one */
static _Atomic uint32_t place_count;
static unsigned file_count; /* threads with open files; used by the observing thread */

bool looked_start(void)
{
    return all || (all = pages_map(LOOKED_MAX * sizeof *all));
}

void looked_add(struct thread *t)
{
    if (t->inside == CALL_FOR_GOOD) /* our own thread */
        return;
    for (uint32_t i = 0; i < LOOKED_MAX; i++) {
        uint32_t nobody = 0, count = atomic_load(&place_count);
        if (atomic_load_explicit(&all[i].tid, memory_order_relaxed) ||
            !atomic_compare_exchange_strong(&all[i].tid, &nobody, FILLING))
            continue;
        all[i].thread = t;
        atomic_store(&all[i].tid, t->tid);
        while (count <= i && !atomic_compare_exchange_weak(&place_count, &count, i + 1))
            ;
        return;
    }
}

struct looked *looked_at(unsigned place)
{
    uint32_t tid = atomic_load_explicit(&all[place].tid, memory_order_acquire);
    return tid && tid != FILLING ? &all[place] : NULL;
}

static uint64_t looked_word_at(const uint8_t *head, size_t offset)
{
    uint64_t word;
    memcpy(&word, head + offset, sizeof word);
    return word;
}

/* Returns since when the thread is in a call that waits for the device, from the records in its
 * chunk. */
static uint64_t find_busy(uint64_t records)
{
    struct call_seen outermost, innermost;
    const uint8_t *chunk = (const uint8_t *)(uintptr_t)records - LIVE_CHUNK_HEAD_BYTES;
    uint64_t at = (uint64_t)(chunk - pool_chunk(&gp.pool, 0));
    if (at % gp.pool.chunk_bytes != 0 ||
        at / gp.pool.chunk_bytes >= atomic_load(&gp.pool.allocated) ||
        !open_calls_look(chunk, &outermost, &innermost))
        return 0;
    unsigned type = outermost.head & 0xff, code = outermost.head >> 32 & 0xffff;
    unsigned class = type == RECORD_CALL && code < API_FUNCTION_COUNT ? api_functions[code].class
                                                                      : API_CLASS_COUNT;
    return class == API_SYNC || class == API_COPY ? outermost.begin : 0;
}

static void take_calls(struct looked_calls *c, const uint8_t *head, uint32_t tid)
{
    uint32_t here;
    memcpy(&here, head + offsetof(struct thread, tid), sizeof here);
    if (here != tid)
        return;
    c->ended = looked_word_at(head, offsetof(struct thread, ended));
    c->is_in_call = looked_word_at(head, offsetof(struct thread, open)) & ~(uint64_t)CALL_BITS;
    if (c->is_in_call)
        c->busy_begin = find_busy(looked_word_at(head, offsetof(struct thread, records)));
}

/* Reads the places [first, first + count) at once, if no thread among them has ended. */
static void read_some(struct looked_calls *calls, unsigned first, unsigned count)
{
    static uint8_t heads[MEMORY_READS_MAX][HEAD_BYTES]; /* used by the observing thread */
    struct iovec pieces[MEMORY_READS_MAX];
    uint32_t tids[MEMORY_READS_MAX];
    unsigned places[MEMORY_READS_MAX], n = 0;
    for (unsigned i = first; i < first + count; i++) {
        const struct looked *l = looked_at(i);
        calls[i] = (struct looked_calls){0};
        if (!l)
            continue;
        pieces[n] = (struct iovec){(void *)(uintptr_t)l->thread, HEAD_BYTES};
        tids[n] = atomic_load(&l->tid);
        places[n++] = i;
    }
    bool is_whole = n && memory_read_pieces(pieces, n, heads);
    for (unsigned i = 0; i < n; i++)
        if (is_whole || memory_read_pieces(&pieces[i], 1, heads[i]))
            take_calls(&calls[places[i]], heads[i], tids[i]);
}

unsigned looked_read_calls(struct looked_calls *calls)
{
    unsigned count = atomic_load(&place_count);
    for (unsigned first = 0; first < count; first += MEMORY_READS_MAX)
        read_some(calls, first,
                  count - first < MEMORY_READS_MAX ? count - first : MEMORY_READS_MAX);
    return count;
}

static void close_files(struct looked *l)
{
    if (!l->has_files)
        return;
    kept_file_close(&l->counts);
    kept_file_close(&l->stat);
    kept_file_close(&l->call);
    l->has_files = false;
    file_count--;
}

static bool open_one(struct kept_file *f, uint32_t tid, const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/self/task/%u/%s", tid, name);
    return kept_file_open(f, path);
}

/* The kernel may lack `syscall` or `schedstat`; then their values are not known. */
static bool open_files(struct looked *l)
{
    uint32_t tid = atomic_load(&l->tid);
    if (l->has_files || file_count >= FILES_MAX || !open_one(&l->stat, tid, "stat"))
        return l->has_files;
    open_one(&l->counts, tid, "schedstat");
    open_one(&l->call, tid, "syscall");
    l->has_files = true;
    file_count++;
    return true;
}

bool looked_read_counts(struct looked *l, struct looked_counts *c)
{
    char text[TEXT_BYTES], *rest = text;
    *c = (struct looked_counts){0};
    if (!open_files(l) || !kept_file_read(&l->counts, text, sizeof text))
        return false;
    c->ran_ns = strtoull(text, &rest, 10);
    c->delay_ns = strtoull(rest, &rest, 10);
    c->slices = strtoull(rest, &rest, 10);
    return true;
}

static uint64_t stat_number(const char *text, enum proc_stat_field field)
{
    const char *p = proc_stat_field(text, field);
    return p ? strtoull(p, NULL, 10) : 0;
}

/* The file has "running", or the call's number and arguments; -1 means none: a page fault. */
static void read_call(const struct looked *l, struct looked_state *s)
{
    char text[TEXT_BYTES], *rest = text;
    if (!kept_file_read(&l->call, text, sizeof text) || text[0] < '0' || text[0] > '9')
        return;
    s->is_in_call = true;
    s->call = (uint32_t)strtoul(text, &rest, 10);
    s->first_argument = strtoull(rest, NULL, 16);
}

bool looked_read_state(struct looked *l, struct looked_state *s, struct looked_counts *c)
{
    char text[TEXT_BYTES];
    *s = (struct looked_state){0};
    looked_read_counts(l, c);
    if (!open_files(l) || !kept_file_read(&l->stat, text, sizeof text))
        return false;
    const char *state = proc_stat_field(text, PROC_STAT_STATE);
    s->state = state ? *state : 0;
    c->faults = stat_number(text, PROC_STAT_FAULTS);
    c->major_faults = stat_number(text, PROC_STAT_MAJOR_FAULTS);
    if (s->state != 'R')
        read_call(l, s);
    return true;
}

void looked_leave(struct looked *l)
{
    close_files(l);
    atomic_store_explicit(&l->tid, 0, memory_order_release);
}

void looked_forget(void)
{
    for (unsigned i = 0; i < LOOKED_MAX; i++)
        looked_leave(&all[i]);
    atomic_store(&place_count, 0);
}
