/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ahead.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"

struct made {
    struct event event;
    uint32_t lost_records;
    int what; /* what `next` has returned; behind one that is not above 0 there is nothing */
    int error_number;
};

struct batch {
    uint32_t count;
    uint32_t text_bytes;
    struct made made[AHEAD_EVENTS];
    struct record records[AHEAD_EVENTS];
    uint8_t text[AHEAD_TEXT_BYTES];
};

struct ahead {
    next_event_fn *next;
    void *context;
    struct batch *batches; /* owned; a ring */
    pthread_t thread;
    pthread_mutex_t lock; /* of the next four */
    pthread_cond_t changed;
    unsigned first; /* of those that are made: the one that is being used, or will be next */
    unsigned made_count;
    bool ends;
    struct batch *used; /* NULL: none yet */
    uint32_t used_count;
};

/* False: nothing comes behind it. */
static bool fill(const struct ahead *a, struct batch *b)
{
    int what = 1;
    b->count = b->text_bytes = 0;
    while (what > 0 && b->count < AHEAD_EVENTS &&
           b->text_bytes <= AHEAD_TEXT_BYTES - RECORD_BYTES_MAX) {
        struct made *made = &b->made[b->count];
        struct record *record = &b->records[b->count++];
        made->what = what = a->next(a->context, &made->event, &made->lost_records);
        made->error_number = errno;
        if (what != 1)
            continue;
        *record = *made->event.record;
        made->event.record = record;
        if (record->bytes) {
            assert(record->byte_count <= RECORD_BYTES_MAX);
            record->bytes =
                memcpy(b->text + b->text_bytes, made->event.record->bytes, record->byte_count);
            b->text_bytes += record->byte_count;
        }
    }
    return what > 0;
}

static void *work(void *context)
{
    struct ahead *a = context;
    bool has_more = true;
    pthread_mutex_lock(&a->lock);
    while (has_more) {
        while (a->made_count == AHEAD_BATCHES && !a->ends)
            pthread_cond_wait(&a->changed, &a->lock);
        if (a->ends)
            break;
        struct batch *next = &a->batches[(a->first + a->made_count) % AHEAD_BATCHES];
        pthread_mutex_unlock(&a->lock);
        has_more = fill(a, next);
        pthread_mutex_lock(&a->lock);
        a->made_count++;
        pthread_cond_signal(&a->changed);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

static void release(struct ahead *a)
{
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a->batches);
    free(a);
}

struct ahead *ahead_start(next_event_fn *next, void *context)
{
    struct ahead *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->next = next;
    a->context = context;
    a->batches = malloc(AHEAD_BATCHES * sizeof *a->batches);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    if (a->batches && parallel_start(&a->thread, work, a))
        return a;
    release(a);
    return NULL;
}

/* Gives back the batch that is used up, and takes the next. */
static void exchange(struct ahead *a)
{
    pthread_mutex_lock(&a->lock);
    if (a->used) {
        a->first = (a->first + 1) % AHEAD_BATCHES;
        a->made_count--;
        pthread_cond_signal(&a->changed);
    }
    while (!a->made_count)
        pthread_cond_wait(&a->changed, &a->lock);
    pthread_mutex_unlock(&a->lock);
    a->used = &a->batches[a->first];
    a->used_count = 0;
}

int ahead_next(struct ahead *a, struct event *e, uint32_t *lost_records)
{
    if (!a->used || a->used_count == a->used->count)
        exchange(a);
    const struct made *made = &a->used->made[a->used_count];
    if (made->what <= 0) {
        errno = made->error_number;
        return made->what;
    }
    a->used_count++;
    *e = made->event;
    *lost_records = made->lost_records;
    return made->what;
}

void ahead_end(struct ahead *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->ends = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    release(a);
}
