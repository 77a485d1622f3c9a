/* SPDX-License-Identifier: Apache-2.0 */
#include "output/background.h"

#include <stdlib.h>

#include "base/parallel.h"

struct filled {
    char *buffer;
    size_t length;
};

struct background {
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct filled filled[BACKGROUND_BUFFERS]; /* a ring; owned */
    unsigned first;
    unsigned count;
    char *empty[BACKGROUND_BUFFERS]; /* owned */
    unsigned empty_count;
    bool ends;
    int error;
    background_use_fn *use;
    void *context;
};

static void *work(void *context)
{
    struct background *b = context;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (!b->count && !b->ends)
            pthread_cond_wait(&b->changed, &b->lock);
        if (!b->count)
            break;
        struct filled next = b->filled[b->first];
        int error = b->error;
        pthread_mutex_unlock(&b->lock);
        if (!error)
            error = b->use(b->context, next.buffer, next.length);
        pthread_mutex_lock(&b->lock);
        b->error = error;
        b->first = (b->first + 1) % BACKGROUND_BUFFERS;
        b->count--;
        b->empty[b->empty_count++] = next.buffer;
        pthread_cond_signal(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static void release(struct background *b)
{
    for (unsigned i = 0; i < b->empty_count; i++)
        free(b->empty[i]);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

struct background *background_start(size_t bytes, background_use_fn *use, void *context)
{
    struct background *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->use = use;
    b->context = context;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    while (b->empty_count < BACKGROUND_BUFFERS - 1 && (b->empty[b->empty_count] = malloc(bytes)))
        b->empty_count++;
    if (b->empty_count == BACKGROUND_BUFFERS - 1 && parallel_start(&b->thread, work, b))
        return b;
    release(b);
    return NULL;
}

char *background_exchange(struct background *b, char *buffer, size_t length, int *error)
{
    pthread_mutex_lock(&b->lock);
    b->filled[(b->first + b->count++) % BACKGROUND_BUFFERS] = (struct filled){buffer, length};
    pthread_cond_signal(&b->changed);
    while (!b->empty_count)
        pthread_cond_wait(&b->changed, &b->lock);
    char *empty = b->empty[--b->empty_count];
    *error = b->error;
    pthread_mutex_unlock(&b->lock);
    return empty;
}

int background_finish(struct background *b)
{
    pthread_mutex_lock(&b->lock);
    b->ends = true;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    int error = b->error;
    release(b);
    return error;
}
