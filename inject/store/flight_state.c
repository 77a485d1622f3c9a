/* SPDX-License-Identifier: Apache-2.0 */
#include "store/flight_state.h"

#include <string.h>

#include "api/api.h"
#include "base/pages.h"
#include "client_note.h"
#include "record.h"

#define BUCKETS      (1u << 17)
#define THREAD_LISTS 1024u
#define NONE         UINT32_MAX

/* What a record means for later ones. */
enum part {
    PART_NOTHING,
    PART_FACT,   /* needed for ever */
    PART_LATEST, /* needed until there is another with its key */
    /* needed until the next record with its key closes it; the newest is closed first */
    PART_OPENS,
    PART_CLOSES,
};

/* Precedes each record. */
struct kept {
    uint64_t key;
    uint64_t order;
    uint64_t position;
    uint32_t thread;
    uint32_t bytes;
    /* next older one in its bucket; in flight_state_write, the next in its list of threads */
    uint32_t next;
    uint8_t part; /* enum part; PART_NOTHING: no longer needed */
};

static struct {
    uint8_t *data; /* NULL: there is none */
    size_t capacity;
    size_t used;
    size_t dead_bytes;
    uint64_t order;
    uint64_t lost;
    uint32_t *buckets; /* offsets of the newest */
} all;

bool flight_state_create(size_t bytes)
{
    memset(&all, 0, sizeof all);
    all.capacity = bytes;
    all.data = pages_map(bytes);
    all.buckets = pages_map(BUCKETS * sizeof *all.buckets);
    if (all.data && all.buckets) {
        memset(all.buckets, 0xff, BUCKETS * sizeof *all.buckets);
        return true;
    }
    flight_state_free();
    return false;
}

void flight_state_free(void)
{
    if (all.data)
        munmap(all.data, all.capacity);
    if (all.buckets)
        munmap(all.buckets, BUCKETS * sizeof *all.buckets);
    all.data = NULL;
    all.buckets = NULL;
}

uint64_t flight_state_lost(void)
{
    return all.lost;
}

/* ---- what a record is ------------------------------------------------------------------------ */

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u ^ (b + 0x7f4a7c15u) * 0xff51afd7ed558ccdu;
    return x ^ x >> 29;
}

static uint64_t text_key(const struct record *r, char end)
{
    uint64_t key = r->type;
    for (uint32_t i = 0; i < r->byte_count && r->bytes[i] != (uint8_t)end; i++)
        key = mix(key, r->bytes[i]);
    return key;
}

/* All notes are kept; of other META records only the latest with a key. */
static uint64_t meta_key(const struct record *r)
{
    static const char note[] = META_NOTE "=";
    bool is_note = r->byte_count >= sizeof note - 1 && memcmp(r->bytes, note, sizeof note - 1) == 0;
    return text_key(r, is_note ? '\0' : '=');
}

static uint64_t argument(const struct record *r, unsigned index)
{
    return index < r->arg_count ? r->args[index] : 0;
}

/* Returns the argument with that label; allocations are found by `ptr`. */
static uint64_t labelled(const struct record *r, const struct api_function *f, const char *label)
{
    for (unsigned i = 0; i < f->arg_count; i++)
        if (strcmp(f->args[i].label, label) == 0)
            return argument(r, i);
    return 0;
}

/* Addresses form one key space, array handles another, and host memory of the program a third. */
static enum part call_part(const struct record *r, uint64_t *key)
{
    if (r->code >= API_FUNCTION_COUNT)
        return PART_NOTHING;
    const struct api_function *f = &api_functions[r->code];
    if (f->class == API_GRAPH || r->flags & RECORD_CAPTURED)
        return PART_FACT; /* defines later launches of the graph */
    if (f->memory == API_MEMORY_NONE || f->memory == API_MEMORY_INFO ||
        api_has_failed(f->domain, r->result))
        return PART_NOTHING;
    *key = mix(RECORD_CALL, labelled(r, f, "ptr"));
    switch (f->memory) {
    case API_MEMORY_GET_DEVICE:
    case API_MEMORY_GET_MANAGED:
    case API_MEMORY_GET_POOLED:
    case API_MEMORY_GET_HOST:
    case API_MEMORY_REGISTER_HOST: return PART_OPENS;
    case API_MEMORY_FREE:
    case API_MEMORY_FREE_HOST:
    case API_MEMORY_UNREGISTER_HOST: return PART_CLOSES;
    case API_MEMORY_GET_ARRAY: *key = mix(*key, 1); return PART_OPENS;
    case API_MEMORY_FREE_ARRAY: *key = mix(*key, 1); return PART_CLOSES;
    /* physical memory, pools, resets: they change the meaning of others */
    default: return PART_FACT;
    }
}

static enum part flight_state_part_of(const struct record *r, uint32_t thread, uint64_t *key)
{
    *key = r->type;
    switch (r->type) {
    case RECORD_CALL: return call_part(r, key);
    case RECORD_META: *key = meta_key(r); return PART_LATEST;
    case RECORD_COST:
    case RECORD_STEP_DOWN: *key = text_key(r, '\0'); return PART_LATEST;
    case RECORD_COUNTER: *key = mix(r->type, r->code); return PART_LATEST;
    case RECORD_NAME: *key = mix(r->type, argument(r, NAME_HANDLE)); return PART_LATEST;
    case RECORD_PAUSE: *key = mix(r->type, argument(r, PAUSE_BY)); return PART_LATEST;
    case RECORD_THREAD: *key = mix(r->type, thread); return PART_LATEST;
    case RECORD_POOL:
        *key = mix(mix(r->type, argument(r, POOL_OPERATION)), argument(r, POOL_POOL));
        return PART_LATEST;
    case RECORD_DEVICE_SOURCE:
        *key = mix(r->type, argument(r, DEVICE_SOURCE_NUMBER));
        return PART_LATEST;
    case RECORD_DEVICE_ABSENT:
        *key =
            mix(mix(r->type, argument(r, DEVICE_ABSENT_SOURCE)), argument(r, DEVICE_ABSENT_GROUP));
        return PART_LATEST;
    case RECORD_ANCHOR:
    case RECORD_STEP:
    case RECORD_COST_SUM: return PART_LATEST;
    case RECORD_API:
    case RECORD_NOTE:
    case RECORD_DEVICE:
    case RECORD_CONTEXT:
    case RECORD_STREAM:
    case RECORD_KERNEL_NAME:
    case RECORD_LABEL:
    case RECORD_MODULE:
    case RECORD_PYTHON:
    case RECORD_STACK:
    case RECORD_OP_NAME:
    case RECORD_OP_INPUTS:
    case RECORD_OP_THREAD:
    case RECORD_CALLBACK:
    case RECORD_LIBRARY_PLAN:
    case RECORD_COMMUNICATOR: return PART_FACT;
    case RECORD_PUSH: *key = mix(thread, argument(r, PUSH_DOMAIN)); return PART_OPENS;
    case RECORD_POP: *key = mix(thread, argument(r, POP_DOMAIN)); return PART_CLOSES;
    case RECORD_RANGE_START:
    case RECORD_RANGE_END:
        *key = mix(RECORD_RANGE_START, argument(r, RANGE_START_RANGE));
        return r->type == RECORD_RANGE_START ? PART_OPENS : PART_CLOSES;
    case RECORD_OP_BEGIN:
    case RECORD_OP_END:
        *key = mix(RECORD_OP_BEGIN, argument(r, OP_BEGIN_OP));
        return r->type == RECORD_OP_BEGIN ? PART_OPENS : PART_CLOSES;
    case RECORD_LIBRARY_BEGIN:
    case RECORD_LIBRARY_END:
        *key = mix(mix(RECORD_LIBRARY_BEGIN, thread), r->code);
        return r->type == RECORD_LIBRARY_BEGIN ? PART_OPENS : PART_CLOSES;
    case RECORD_MEMORY:
        *key = mix(r->type, argument(r, MEMORY_ADDRESS));
        return argument(r, MEMORY_OPERATION) == 1 ? PART_OPENS : PART_CLOSES;
    case RECORD_TENSOR:
        *key = mix(mix(r->type, argument(r, TENSOR_DEVICE)), argument(r, TENSOR_ADDRESS));
        return argument(r, TENSOR_OPERATION) == 1 ? PART_OPENS : PART_CLOSES;
    default: return PART_NOTHING;
    }
}

/* ---- keeping --------------------------------------------------------------------------------- */

static struct kept *at(uint32_t place)
{
    return (struct kept *)(void *)(all.data + place);
}

static size_t size_of(const struct kept *k)
{
    return sizeof *k + k->bytes;
}

static uint32_t *bucket_of(uint64_t key)
{
    return &all.buckets[(key ^ key >> 32) % BUCKETS];
}

static void flight_state_drop(struct kept *k)
{
    k->part = PART_NOTHING;
    all.dead_bytes += size_of(k);
}

/* Removes the newest record with that key. Returns false if there is none. */
static bool drop_newest(uint64_t key)
{
    for (uint32_t *link = bucket_of(key); *link != NONE; link = &at(*link)->next) {
        struct kept *k = at(*link);
        if (k->key == key) {
            *link = k->next;
            flight_state_drop(k);
            return true;
        }
    }
    return false;
}

static void flight_state_enter(struct kept *k)
{
    if (k->part != PART_OPENS && k->part != PART_LATEST)
        return;
    uint32_t *bucket = bucket_of(k->key);
    k->next = *bucket;
    *bucket = (uint32_t)((uint8_t *)k - all.data);
}

/* Moves the needed records together. */
static void pack(void)
{
    size_t to = 0, bytes;
    memset(all.buckets, 0xff, BUCKETS * sizeof *all.buckets);
    for (size_t from = 0; from < all.used; from += bytes) {
        bytes = size_of(at((uint32_t)from));
        if (at((uint32_t)from)->part == PART_NOTHING)
            continue;
        memmove(all.data + to, all.data + from, bytes);
        flight_state_enter(at((uint32_t)to));
        to += bytes;
    }
    all.used = to;
    all.dead_bytes = 0;
}

void flight_state_see(uint32_t thread, uint64_t position, const uint8_t *record, size_t bytes,
                      bool is_written)
{
    struct record r;
    uint64_t key;
    if (!all.data || record_parse(record, bytes, &r) != (int)bytes)
        return;
    enum part part = flight_state_part_of(&r, thread, &key);
    if (part == PART_LATEST)
        drop_newest(key);
    if (part == PART_NOTHING || (part == PART_CLOSES && (drop_newest(key) || !is_written)))
        return;
    if (sizeof(struct kept) + bytes > all.capacity - all.used && all.dead_bytes > all.capacity / 8)
        pack();
    if (sizeof(struct kept) + bytes > all.capacity - all.used) {
        all.lost++;
        return;
    }
    struct kept *k = at((uint32_t)all.used);
    memcpy(k + 1, record, bytes);
    *k = (struct kept){.key = key,
                       .order = all.order++,
                       .position = position,
                       .thread = thread,
                       .bytes = (uint32_t)bytes,
                       .part = (uint8_t)part};
    flight_state_enter(k);
    all.used += size_of(k);
}

uint64_t flight_state_mark(void)
{
    return all.order;
}

void flight_state_forget(uint64_t mark)
{
    for (size_t place = 0; place < all.used; place += size_of(at((uint32_t)place)))
        if (at((uint32_t)place)->order < mark && at((uint32_t)place)->part != PART_NOTHING)
            flight_state_drop(at((uint32_t)place));
    pack();
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Writes the records of one list of threads, in order: a block ends where another thread's records
 * begin. */
static bool write_list(uint32_t first, struct block_encoder *e,
                       bool (*store)(struct block_encoder *e, struct block_header *h))
{
    struct block_header h = {.flags = BLOCK_AFTER_GAP | BLOCK_OF_STATE};
    block_encoder_reset(e);
    for (uint32_t place = first; place != NONE;) {
        const struct kept *k = at(place);
        if (e->record_count && k->thread != h.thread && !store(e, &h))
            return false;
        int bytes = block_encoder_add(e, (const uint8_t *)(k + 1), k->bytes);
        if (bytes == 0) {
            if (!store(e, &h))
                return false;
            continue;
        }
        if (e->record_count == 1) {
            h.thread = k->thread;
            h.position_begin = k->position;
        }
        h.position_end = k->position + k->bytes;
        place = k->next;
    }
    return !e->record_count || store(e, &h);
}

bool flight_state_write(struct block_encoder *e,
                        bool (*store)(struct block_encoder *e, struct block_header *h))
{
    static uint32_t first[THREAD_LISTS], last[THREAD_LISTS];
    bool good = true;
    pack();
    memset(first, 0xff, sizeof first);
    for (size_t place = 0; place < all.used; place += size_of(at((uint32_t)place))) {
        struct kept *k = at((uint32_t)place);
        uint32_t list = k->thread % THREAD_LISTS;
        k->next = NONE;
        if (first[list] == NONE)
            first[list] = (uint32_t)place;
        else
            at(last[list])->next = (uint32_t)place;
        last[list] = (uint32_t)place;
    }
    for (uint32_t i = 0; good && i < THREAD_LISTS; i++)
        good = write_list(first[i], e, store);
    pack(); /* restores the buckets */
    return good;
}
