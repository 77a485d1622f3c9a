/* SPDX-License-Identifier: Apache-2.0 */
#include "append_double.h"

#include <pthread.h>
#include <stdlib.h>

#include "record/thread.h"

#define APPENDED_MAX 400000u

struct state gp;
struct fork_page fork_page;

static struct {
    pthread_mutex_t mutex;
    bool refuse;
    struct record *records;
    unsigned count;
    _Atomic uint64_t counters[COUNTER_COUNT];
} appended = {.mutex = PTHREAD_MUTEX_INITIALIZER};

bool thread_append(struct thread *t, const struct record *r)
{
    (void)t;
    pthread_mutex_lock(&appended.mutex);
    bool fits = !appended.refuse && appended.count < APPENDED_MAX;
    if (fits) {
        uint8_t *bytes = malloc(r->byte_count ? r->byte_count : 1);
        memcpy(bytes, r->bytes, r->byte_count);
        appended.records[appended.count] = *r;
        appended.records[appended.count++].bytes = bytes;
    } else {
        counter_add(COUNTER_DROPPED, 1);
    }
    pthread_mutex_unlock(&appended.mutex);
    return fits;
}

void append_reset(void)
{
    for (unsigned i = 0; i < appended.count; i++)
        free((void *)(uintptr_t)appended.records[i].bytes);
    free(appended.records);
    appended.records = calloc(APPENDED_MAX, sizeof *appended.records);
    appended.count = 0;
    appended.refuse = false;
    memset(&gp, 0, sizeof gp);
    memset(&fork_page, 0, sizeof fork_page);
    for (unsigned i = 0; i < COUNTER_COUNT; i++)
        atomic_store(&appended.counters[i], 0);
    gp.counters = appended.counters;
    gp.header.scale.mult = 1u << 31;
}

void append_refuse(bool refuse)
{
    pthread_mutex_lock(&appended.mutex);
    appended.refuse = refuse;
    pthread_mutex_unlock(&appended.mutex);
}

unsigned append_count(unsigned type)
{
    unsigned count = 0;
    for (unsigned i = 0; i < appended.count; i++)
        count += appended.records[i].type == type;
    return count;
}

const struct record *append_find(unsigned type, uint64_t number)
{
    const struct record *found = NULL;
    for (unsigned i = 0; i < appended.count; i++) {
        const struct record *r = &appended.records[i];
        if (r->type != type || r->args[0] != number)
            continue;
        if (found)
            return NULL;
        found = r;
    }
    return found;
}

uint64_t append_counter(enum counter_index index)
{
    return atomic_load(&appended.counters[index]);
}
