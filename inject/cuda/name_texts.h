/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of kernel names: copies in memory that has a bound and is used again, and what of a
 * name is recorded. Copies are kept and dropped under the lock of names.c.
 */
#ifndef GPUPROF_INJECT_NAME_TEXTS_H
#define GPUPROF_INJECT_NAME_TEXTS_H

#include <stddef.h>

#define NAME_BYTES_MAX 4096u /* of a recorded name */

/*
 * What is recorded of `name`, and its length: the name itself, or if that is too long, in `cut`,
 * its begin and a hash of all of it, so that names that begin alike are told apart. A cut is
 * counted.
 */
const char *name_as_recorded(const char *name, char cut[NAME_BYTES_MAX + 1], size_t *length);

/* A copy of a name of at most NAME_BYTES_MAX bytes; NULL: no room. */
const char *name_text_keep(const char *name);

/* That copy's room may be used again. */
void name_text_drop(const char *text);

#endif
