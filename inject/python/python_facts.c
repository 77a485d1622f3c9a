/* SPDX-License-Identifier: Apache-2.0 */
#include "python/python_facts.h"

#include <string.h>
#include <sys/uio.h>

#include "base/memory_read.h"

/* facts closer than this are read as one: less than a page, so all is mapped */
#define GAP_BYTES   512u
#define BATCH_BYTES 2048u
#define BATCH_FACTS 32u
#define WORD        8u

_Static_assert(FACT_BYTES_MAX <= BATCH_BYTES, "each fits");

void python_facts_clear(struct python_facts *f)
{
    atomic_store_explicit(&f->count, 0, memory_order_release);
    f->word_count = f->next = 0;
}

void python_facts_spoil(struct python_facts *f)
{
    atomic_store_explicit(&f->count, FACTS_MAX + 1, memory_order_release);
}

/* Returns the word at offset `at`; bytes after the end are zeros. */
static uint64_t python_facts_word_at(const uint8_t *bytes, uint32_t at, uint32_t count)
{
    uint64_t word = 0;
    if (count - at >= WORD)
        memcpy(&word, bytes + at, WORD);
    else
        memcpy(&word, bytes + at, count - at);
    return word;
}

/* A fact at one moment: another thread may be writing it. */
struct seen {
    uint64_t address;
    uint32_t first;
    uint32_t bytes;
};

static struct seen python_facts_see(const struct python_fact *fact)
{
    return (struct seen){atomic_load_explicit(&fact->address, memory_order_acquire),
                         atomic_load_explicit(&fact->first, memory_order_acquire),
                         atomic_load_explicit(&fact->bytes, memory_order_acquire)};
}

static void python_facts_put(struct python_fact *to, const struct seen *s)
{
    atomic_store_explicit(&to->address, s->address, memory_order_release);
    atomic_store_explicit(&to->first, s->first, memory_order_release);
    atomic_store_explicit(&to->bytes, s->bytes, memory_order_release);
}

void python_facts_add(struct python_facts *f, uint64_t address, const void *read, uint32_t bytes)
{
    uint32_t count = atomic_load_explicit(&f->count, memory_order_relaxed), at = f->next;
    uint32_t words = (bytes + WORD - 1) / WORD, first = f->word_count;
    bool is_more = at >= count;
    if (count > FACTS_MAX)
        return;
    if (is_more ? count == FACTS_MAX || bytes > FACT_BYTES_MAX || words >= FACTS_WORDS_MAX - first
                : bytes != python_facts_see(&f->facts[at]).bytes) {
        python_facts_spoil(f);
        return;
    }
    if (!is_more)
        first = python_facts_see(&f->facts[at]).first;
    for (uint32_t i = 0; i < words; i++)
        atomic_store_explicit(&f->words[first + i], python_facts_word_at(read, i * WORD, bytes),
                              memory_order_release);
    python_facts_put(&f->facts[at], &(struct seen){address, first, bytes});
    f->next = at + 1;
    if (!is_more)
        return;
    f->word_count = first + words;
    atomic_store_explicit(&f->count, count + 1, memory_order_release);
}

/* Does `read` contain the fact's words? */
static bool python_facts_is_same(const struct python_facts *f, const struct seen *s,
                                 const uint8_t *read)
{
    for (uint32_t at = 0; at < s->bytes; at += WORD)
        if (atomic_load_explicit(&f->words[s->first + at / WORD], memory_order_acquire) !=
            python_facts_word_at(read, at, s->bytes))
            return false;
    return true;
}

void python_facts_end(struct python_facts *f)
{
    uint32_t count = atomic_load_explicit(&f->count, memory_order_relaxed);
    for (uint32_t i = 1; i < count && count <= FACTS_MAX; i++) {
        struct seen s = python_facts_see(&f->facts[i]), before;
        uint32_t to = i;
        for (; to > 0 && (before = python_facts_see(&f->facts[to - 1])).address > s.address; to--)
            python_facts_put(&f->facts[to], &before);
        python_facts_put(&f->facts[to], &s);
    }
}

/* What one system call reads: pieces, one after another in `bytes`, that contain the facts. */
struct batch {
    struct iovec pieces[BATCH_FACTS];
    unsigned piece_count;
    uint32_t byte_count;
    struct seen facts[BATCH_FACTS];
    uint16_t at[BATCH_FACTS]; /* offset of each in `bytes` */
    unsigned fact_count;
};

/* Returns false if it does not fit and must go into the next batch. */
static bool batch_add(struct batch *b, const struct seen *s)
{
    struct iovec *last = b->piece_count ? &b->pieces[b->piece_count - 1] : NULL;
    uint64_t begin = last ? (uintptr_t)last->iov_base : 0, end = last ? begin + last->iov_len : 0;
    bool is_near = last && s->address >= begin && s->address <= end + GAP_BYTES;
    uint64_t more = !is_near                      ? s->bytes
                    : s->address + s->bytes > end ? s->address + s->bytes - end
                                                  : 0;
    if (b->fact_count == BATCH_FACTS || more > BATCH_BYTES - b->byte_count)
        return false;
    if (is_near)
        last->iov_len += more;
    else
        b->pieces[b->piece_count++] =
            (struct iovec){(void *)(uintptr_t)s->address, (size_t)s->bytes};
    b->byte_count += (uint32_t)more;
    last = &b->pieces[b->piece_count - 1];
    b->at[b->fact_count] =
        (uint16_t)(b->byte_count - last->iov_len + (s->address - (uintptr_t)last->iov_base));
    b->facts[b->fact_count++] = *s;
    return true;
}

/* Returns how many facts are unchanged, up to the first that is not. */
static unsigned batch_look(const struct python_facts *f, const struct batch *b)
{
    uint8_t bytes[BATCH_BYTES];
    unsigned i = 0;
    if (!memory_read_pieces(b->pieces, b->piece_count, bytes))
        return 0;
    while (i < b->fact_count && python_facts_is_same(f, &b->facts[i], bytes + b->at[i]))
        i++;
    return i;
}

static uint32_t python_facts_look(const struct python_facts *f, uint32_t from, uint32_t count)
{
    for (struct batch b; from < count; from += b.fact_count) {
        b.piece_count = b.byte_count = b.fact_count = 0;
        for (uint32_t i = from; i < count; i++) {
            struct seen s = python_facts_see(&f->facts[i]);
            if (s.bytes > FACT_BYTES_MAX || s.first + s.bytes / WORD >= FACTS_WORDS_MAX)
                return i; /* another thread is writing it */
            if (!batch_add(&b, &s))
                break;
        }
        unsigned same = batch_look(f, &b);
        if (same < b.fact_count)
            return from + same;
    }
    return count;
}

bool python_facts_hold(const struct python_facts *f)
{
    uint32_t count = atomic_load_explicit(&f->count, memory_order_acquire);
    return count <= FACTS_MAX && python_facts_look(f, 0, count) == count;
}

uint32_t python_facts_changed(const struct python_facts *f, uint32_t from)
{
    return python_facts_look(f, from, atomic_load_explicit(&f->count, memory_order_acquire));
}
