/* SPDX-License-Identifier: Apache-2.0 */
/* Runs as a command line names them: recordings, and files or names of baselines. */
#ifndef GPUPROF_COLLECTOR_RUN_OPERANDS_H
#define GPUPROF_COLLECTOR_RUN_OPERANDS_H

#include <stdbool.h>

#include "base/message.h"
#include "diff/run_make.h"
#include "diff/run_summary.h"

/* Where the baseline of that name is, in new memory; NULL: no memory, or no such name may be (of
 * letters, digits, '.', '_' and '-', the first no '.' and no '-'). */
char *baseline_path(const char *folder, const char *name);

/* Are both the same file or folder, or name? */
bool run_operands_same(const char *one, const char *other);

/* How operands are read: names of baselines are looked for in `folder`. */
struct run_reading {
    const char *folder;
    struct run_wish wish;
    bool keep_live;
};

/*
 * Adds what each of `words` is: a baseline file, or the name of one; a recording, as one run; or
 * several of these with commas between, where all recordings together are one run. What is both a
 * file here and the name of a baseline is refused. EXIT_OK, or another exit code after one line on
 * stderr.
 */
enum exit_code run_operands_read(struct run_set *s, char **words, int count,
                                 const struct run_reading *how);

/* Adds the runs of a baseline file; likewise. */
enum exit_code run_operands_baseline(struct run_set *s, const char *path, const char *verb);

#endif
