/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a whole recording (rows.h), kept beside its files for the next question: a column
 * file (store/column_file.h) for each worker that read a share of the processes,
 * FOLDER/.gpuprof-rows.0 and so on. It may be deleted at any time. Its key is a hash of this
 * program and of each recording's inode, size and time, and what loading found; what does not fit,
 * is torn or damaged is not used, and replaced by the next report. Nothing is kept of a recording
 * that goes on, of a folder that cannot be written, or of fewer than KEPT_RECORDS records, which
 * are read as fast.
 */
#ifndef GPUPROF_COLLECTOR_KEPT_ROWS_H
#define GPUPROF_COLLECTOR_KEPT_ROWS_H

#include "base/options.h"
#include "base/select_wish.h"
#include "resolve/rows.h"
#include "store/column_file.h"

#ifndef KEPT_RECORDS /* tests have less */
#define KEPT_RECORDS 1000000u
#endif

struct kept_rows {
    char *path; /* owned: of the files but for their numbers; NULL: nothing is kept */
    struct column_key key;
    uint32_t index, count; /* which file this process writes, of how many */
    bool is_only_read;     /* none is written */
};

/* Has it KEPT_RECORDS records, and has it ended? Only then keeping something is worth it. */
bool kept_rows_is_large(const struct recording *rec);

/* Where they are, if there may be any: of a whole folder. kept_rows_release in any case. */
void kept_rows_find(struct kept_rows *k, const struct recording *rec,
                    const struct options *options);
void kept_rows_release(struct kept_rows *k);

/* Before the walk: all rows go into the file, too. What goes wrong there is no error. */
void kept_rows_write(struct kept_rows *k, struct resolver *r);

/* After it: the file is whole, with what the walk knows beside rows. */
void kept_rows_finish(const struct kept_rows *k, struct resolver *r);

/*
 * In place of a walk: gives the readers, which are all added, the rows that are kept (`piece`, or
 * NULL: those that begin between its times, which are all that it says), and the walk its losses
 * and times. How many rows they got; 0: there are none, or none that can be used; or an error,
 * with GPUPROF_DAMAGED if that shows behind the first. But for a success all must be made anew.
 */
int64_t kept_rows_read(const struct kept_rows *k, struct resolver *r,
                       const struct select_wish *piece);

#endif
