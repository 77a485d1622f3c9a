/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim_cupti.h"

/* Names: of kernels, valid until cuptiFinalize, and of callback ids. */

enum { ARENA_BYTES = 1 << 20, ARENA_COUNT_MAX = 64, BUCKET_COUNT = 4096 };

struct name {
    struct name *next;
    char text[];
};

static struct {
    char *arenas[ARENA_COUNT_MAX];
    unsigned arena_count;
    size_t used;
    struct name *buckets[BUCKET_COUNT];
    struct sigaction old;
} names;

static struct name *name_make(const char *text)
{
    size_t bytes = (sizeof(struct name) + strlen(text) + 1 + 15) / 16 * 16;
    if (bytes > ARENA_BYTES)
        abort();
    if (names.arena_count == 0 || ARENA_BYTES - names.used < bytes) {
        void *arena =
            mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (arena == MAP_FAILED || names.arena_count == ARENA_COUNT_MAX)
            abort();
        names.arenas[names.arena_count++] = arena;
        names.used = 0;
    }
    char *at = names.arenas[names.arena_count - 1] + names.used;
    names.used += bytes;
    struct name *name = (struct name *)(void *)at;
    strcpy(name->text, text);
    return name;
}

const char *name_keep(const char *text)
{
    uint32_t hash = 2166136261u;
    for (const char *at = text; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 16777619u;
    struct name **bucket = &names.buckets[hash % BUCKET_COUNT];
    for (struct name *name = *bucket; name; name = name->next)
        if (strcmp(name->text, text) == 0)
            return name->text;
    struct name *name = name_make(text);
    name->next = *bucket;
    *bucket = name;
    return name->text;
}

/* Only what may be called in a handler. */
static void name_used(int signal, siginfo_t *info, void *context)
{
    static const char text[] = "sim-cupti: a name was used after cuptiFinalize\n";
    (void)context;
    for (unsigned i = 0; i < names.arena_count; i++) {
        uintptr_t offset = (uintptr_t)info->si_addr - (uintptr_t)names.arenas[i];
        if (offset < ARENA_BYTES) {
            ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
            (void)written;
            abort();
        }
    }
    sigaction(signal, &names.old, NULL);
}

/* From now on a name's page cannot be read: whoever does hears why. */
void name_forbid(void)
{
    struct sigaction action = {.sa_sigaction = name_used, .sa_flags = SA_SIGINFO};
    for (unsigned i = 0; i < names.arena_count; i++)
        mprotect(names.arenas[i], ARENA_BYTES, PROT_NONE);
    sigaction(SIGSEGV, &action, &names.old);
    names.used = ARENA_BYTES;
    memset(names.buckets, 0, sizeof names.buckets);
}

/* The functions of each domain; a version knows those that existed when it was made. */
enum { DRIVER_COUNT = SIM_CUPTI == 118 ? 677 : SIM_CUPTI == 124 ? 754 : 807 };
enum { RUNTIME_COUNT = SIM_CUPTI == 118 ? 434 : SIM_CUPTI == 124 ? 468 : 523 };

static const struct callback_name {
    const char *old, *current; /* up to 12.x, and from 13.0 on */
} driver_names[] =
    {
#define CBID(id, name)              [id] = {#name, #name},
#define RENAMED(id, first, current) [id] = {#first, #current},
#include "sim_cupti_driver_cbids.def"
},
  runtime_names[] = {
#include "sim_cupti_runtime_cbids.def"
#undef CBID
#undef RENAMED
};
_Static_assert(sizeof runtime_names / sizeof runtime_names[0] <= CALLBACK_COUNT_MAX, "room");
_Static_assert(sizeof driver_names / sizeof driver_names[0] <= CALLBACK_COUNT_MAX, "room");

uint32_t callback_count(int domain)
{
    switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API: return DRIVER_COUNT;
    case CUPTI_CB_DOMAIN_RUNTIME_API: return RUNTIME_COUNT;
    case CUPTI_CB_DOMAIN_RESOURCE: return SIM_CUPTI >= 130 ? 24 : 22;
    case CUPTI_CB_DOMAIN_SYNCHRONIZE: return 3;
    default: return 0;
    }
}

CUPTI_EXPORT CUptiResult cuptiGetCallbackName(int domain, uint32_t cbid, const char **name)
{
    if (!name)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *name = NULL;
    bool has_names = domain == CUPTI_CB_DOMAIN_DRIVER_API || domain == CUPTI_CB_DOMAIN_RUNTIME_API;
    if (!has_names || cbid >= callback_count(domain))
        return CUPTI_ERROR_INVALID_PARAMETER;
    const struct callback_name *row =
        domain == CUPTI_CB_DOMAIN_DRIVER_API ? &driver_names[cbid] : &runtime_names[cbid];
    *name = SIM_CUPTI >= 130 ? row->current : row->old;
    return cupti_failure(__func__);
}

/* "cudaMemcpy_v3020" is cudaMemcpy of 3.2 and newer: the version, or 0 if it is another function.
 */
static unsigned name_version(const char *name, const char *symbol)
{
    size_t length = strlen(symbol);
    if (strncmp(name, symbol, length) != 0 || strncmp(name + length, "_v", 2) != 0)
        return 0;
    char *end;
    unsigned long version = strtoul(name + length + 2, &end, 10);
    return *end == '\0' && version >= 1000 ? (unsigned)version : 0;
}

uint32_t callback_find(const struct sim_symbol *symbol)
{
    uint32_t found = 0;
    unsigned best = 0;
    if (symbol->layer == 'D') {
        for (uint32_t id = 1; id < DRIVER_COUNT && !found; id++)
            if (strcmp(driver_names[id].current, symbol->name) == 0)
                found = (uint32_t)CUPTI_CB_DOMAIN_DRIVER_API << 16 | id;
        return found;
    }
    for (uint32_t id = 1; id < RUNTIME_COUNT; id++) {
        const char *name =
            symbol->version < 13000 ? runtime_names[id].old : runtime_names[id].current;
        unsigned version = name_version(name, symbol->name);
        if (version > best && version <= symbol->version) {
            best = version;
            found = (uint32_t)CUPTI_CB_DOMAIN_RUNTIME_API << 16 | id;
        }
    }
    return found;
}
