/* SPDX-License-Identifier: Apache-2.0 */
/* What make_corpus.c and corpus_records.c make files of: good ones, to which they add what is odd.
 */
#ifndef GPUPROF_TEST_CORPUS_H
#define GPUPROF_TEST_CORPUS_H

#include "stream_builder.h"

extern const char *corpus_folder; /* where the files go */

void corpus_save_bytes(const char *name, const void *data, size_t length);

/* The head of a file, with two functions; calls of them on two threads; its end, and the file. */
void corpus_begin(struct stream_builder *b);
void corpus_add_calls(struct stream_builder *b);
void corpus_save(struct stream_builder *b, const char *name);

/* Saves the files whose blocks are as they should be, and whose records are not.
 * (corpus_records.c) */
void corpus_save_records(void);
void corpus_save_host(void); /* of these, the one of what the host did (corpus_host.c) */

#endif
