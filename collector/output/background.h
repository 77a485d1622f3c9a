/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread that does something with buffers, in the order in which they are handed to it, while
 * the next is being filled. Memory: BACKGROUND_BUFFERS buffers.
 */
#ifndef GPUPROF_COLLECTOR_BACKGROUND_H
#define GPUPROF_COLLECTOR_BACKGROUND_H

#include <stddef.h>

#define BACKGROUND_BUFFERS 4

/* Uses the bytes. 0 or an errno: then it is not called again. */
typedef int background_use_fn(void *context, const char *data, size_t length);

struct background;

/* Buffers have `bytes`. NULL: no memory, or no thread can be had. */
struct background *background_start(size_t bytes, background_use_fn *use, void *context);

/* Hands over `length` bytes of `buffer` (malloc'ed, now owned here), and gives an empty one, which
 * is now the caller's. *error is the errno of those before, once one has failed. */
char *background_exchange(struct background *b, char *buffer, size_t length, int *error);

/* Ends when all is done. 0 or the first errno. */
int background_finish(struct background *b);

#endif
