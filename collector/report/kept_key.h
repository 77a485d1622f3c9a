/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a report of a folder is kept beside its recordings (report_cache.h), and of what it was
 * made: a hash of this program and of each recording's inode, size and time, and what loading
 * found. Nothing is kept of a recording that goes on, or of fewer than KEPT_RECORDS records, which
 * are read as fast.
 */
#ifndef GPUPROF_COLLECTOR_KEPT_KEY_H
#define GPUPROF_COLLECTOR_KEPT_KEY_H

#include "base/options.h"
#include "read/recording.h"

#ifndef KEPT_RECORDS /* tests have less */
#define KEPT_RECORDS 1000000u
#endif

#define KEPT_KEY_BYTES 32

struct kept_key {
    bool is_made; /* false: nothing is kept */
    uint8_t bytes[KEPT_KEY_BYTES];
};

/* Has it KEPT_RECORDS records, and has it ended? */
bool kept_is_worth_it(const struct recording *rec);

void kept_key_make(struct kept_key *k, const struct recording *rec, const struct options *options);

#endif
