/* SPDX-License-Identifier: Apache-2.0 */
/* META records: facts about a process as "key=value". Longer ones are cut. */
#ifndef GPUPROF_INJECT_META_H
#define GPUPROF_INJECT_META_H

#include <stddef.h>

struct thread;

/* Called by the writer. */
void meta_append(struct thread *writer, const char *key, const char *value, size_t length);
void meta_append_text(struct thread *writer, const char *key, const char *value);

/* The same on any thread, with a buffer `text` of `bytes` for key and value. */
void meta_append_with(struct thread *t, const char *key, const char *value, size_t length,
                      char *text, size_t bytes);

#endif
