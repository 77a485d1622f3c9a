/* SPDX-License-Identifier: Apache-2.0 */
/* Runs as a command line names them: recordings, and files or names of baselines. */
#ifndef GPUPROF_COLLECTOR_RUN_OPERANDS_H
#define GPUPROF_COLLECTOR_RUN_OPERANDS_H

#include <stdbool.h>

#include "base/exit_code.h"
#include "diff/run_make.h"
#include "diff/run_set.h"

/* Where the baseline of that name is, in new memory; NULL: no memory, or no such name may be (of
 * letters, digits, '.', '_' and '-', the first no '.' and no '-'). */
char *baseline_path(const char *folder, const char *name);

/* Are both the same file or folder, or name? */
bool run_operands_same(const char *one, const char *other);

/*
 * Adds what each of `paths` is: a baseline file, or the name of one in `folder`; a recording, as
 * one run. EXIT_OK, or another exit code after one line on stderr that begins with `verb`.
 */
enum exit_code run_operands_read(struct run_set *s, char **paths, int count, const char *folder,
                                 const struct run_wish *wish, bool keep_live, const char *verb);

#endif
