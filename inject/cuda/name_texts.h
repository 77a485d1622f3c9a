/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of kernel names: copies in bounded memory that is reused, and the form in which a name
 * is recorded. Copies are made and dropped under the lock of names.c. */
#ifndef GPUPROF_INJECT_NAME_TEXTS_H
#define GPUPROF_INJECT_NAME_TEXTS_H

#include <stddef.h>

#define NAME_BYTES_MAX 4096u /* longest recorded name */

/*
 * Returns the text to record for `name`, and its length. If the name is too long, `cut` receives
 * its beginning and a hash of all of it, so that names with the same beginning stay different. Cut
 * names are counted.
 */
const char *name_as_recorded(const char *name, char cut[NAME_BYTES_MAX + 1], size_t *length);

/* Copies a name of at most NAME_BYTES_MAX bytes. Returns NULL if there is no space. */
const char *name_text_keep(const char *name);

/* Frees the copy. */
void name_text_drop(const char *text);

#endif
