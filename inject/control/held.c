/* SPDX-License-Identifier: Apache-2.0 */
#include "control/held.h"

#include <stdbool.h>
#include <string.h>

#include "api/api.h"
#include "base/pages.h"
#include "record.h"

#define PLACES_MIN 4096u      /* of 24 bytes each */
#define FREED      UINT64_MAX /* stored in place of the number of bytes */
/* the writer reads each thread's records once a second, one thread after another */
#define LATE_NS 3000000000u
#define ARRAY   ((uint64_t)1 << 63) /* array handles get a range of their own */

struct place {
    uint64_t address; /* 0: free */
    uint64_t bytes;
    uint64_t begin_ns; /* begin of the newest call seen for this address, on any thread */
};

static struct {
    struct place *places; /* at least half are free */
    uint32_t size;        /* power of two */
    uint32_t count;       /* addresses in the table, allocated or not */
    uint64_t bytes;
    bool is_unknown;
} held;

static void drop_table(struct place *places, uint32_t size)
{
    if (places)
        munmap(places, size * sizeof *places);
}

void held_reset(void)
{
    drop_table(held.places, held.size);
    memset(&held, 0, sizeof held);
}

uint64_t held_bytes(void)
{
    return held.is_unknown ? UINT64_MAX : held.bytes;
}

static void held_give_up(void)
{
    held_reset();
    held.is_unknown = true;
}

static struct place *held_find(struct place *places, uint32_t size, uint64_t address)
{
    uint32_t i = (uint32_t)((address * 0x9e3779b97f4a7c15u) >> 32) & (size - 1);
    while (places[i].address && places[i].address != address)
        i = (i + 1) & (size - 1);
    return &places[i];
}

/* May a call that arrives late still need this place? */
static bool held_is_wanted(const struct place *p, uint64_t now_ns)
{
    return p->address && (p->bytes != FREED || p->begin_ns + LATE_NS > now_ns);
}

/* Makes a new table without the places freed long ago, as large as needed. */
static void held_renew(uint64_t now_ns)
{
    uint32_t count = 0, size = PLACES_MIN;
    for (uint32_t i = 0; i < held.size; i++)
        count += held_is_wanted(&held.places[i], now_ns);
    while (size < 4 * (uint64_t)count)
        size *= 2;
    struct place *places = count < HELD_BLOCKS_MAX ? pages_map(size * sizeof *places) : NULL;
    if (!places) {
        held_give_up();
        return;
    }
    for (uint32_t i = 0; i < held.size; i++)
        if (held_is_wanted(&held.places[i], now_ns))
            *held_find(places, size, held.places[i].address) = held.places[i];
    drop_table(held.places, held.size);
    held.places = places;
    held.size = size;
    held.count = count;
}

/* Notes that `bytes` are allocated at this address since `begin_ns`, or FREED. */
static void held_note(uint64_t address, uint64_t bytes, uint64_t begin_ns)
{
    if (2 * held.count >= held.size)
        held_renew(begin_ns);
    if (held.is_unknown || !address)
        return;
    struct place *p = held_find(held.places, held.size, address);
    if (p->address && p->begin_ns > begin_ns)
        return;
    held.count += !p->address;
    held.bytes -= p->address && p->bytes != FREED ? p->bytes : 0;
    held.bytes += bytes != FREED ? bytes : 0;
    *p = (struct place){address, bytes, begin_ns};
}

static uint64_t labelled(const struct record *r, const struct api_function *f, const char *label)
{
    for (unsigned i = 0; i < f->arg_count && i < r->arg_count; i++)
        if (strcmp(f->args[i].label, label) == 0)
            return r->args[i];
    return 0;
}

void held_see(const struct record *r, uint64_t begin_ns)
{
    const struct api_function *f = &api_functions[r->code];
    uint64_t address = labelled(r, f, "ptr"), bytes = labelled(r, f, "bytes");
    if (held.is_unknown || r->flags & RECORD_CAPTURED || api_has_failed(f->domain, r->result))
        return;
    switch (f->memory) {
    case API_MEMORY_GET_DEVICE:
    case API_MEMORY_GET_MANAGED:
    case API_MEMORY_GET_POOLED: held_note(address, bytes, begin_ns); break;
    case API_MEMORY_FREE: held_note(address, FREED, begin_ns); break;
    case API_MEMORY_GET_ARRAY: held_note(address ^ ARRAY, bytes, begin_ns); break;
    case API_MEMORY_FREE_ARRAY: held_note(address ^ ARRAY, FREED, begin_ns); break;
    case API_MEMORY_GET_PHYSICAL:
    case API_MEMORY_RESET: held_give_up(); break;
    default: break;
    }
}
