/* SPDX-License-Identifier: Apache-2.0 */
/* META records: what there is to be known of a process, as "key=value". What is too long is cut. */
#ifndef GPUPROF_INJECT_META_H
#define GPUPROF_INJECT_META_H

#include <stddef.h>

struct thread;

/* By the writer. */
void meta_append(struct thread *writer, const char *key, const char *value, size_t length);
void meta_append_text(struct thread *writer, const char *key, const char *value);

/* The same by any thread, which has `bytes` of room in `text` for both. */
void meta_append_with(struct thread *t, const char *key, const char *value, size_t length,
                      char *text, size_t bytes);

#endif
