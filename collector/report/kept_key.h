/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether the report of a folder is stored beside its recordings (report_cache.h), and
 * identifies its sources: a hash of this program, of each recording's inode, size and time, and of
 * what loading found. Nothing is stored for a recording that is still running, or that has fewer
 * than KEPT_RECORDS records: reading it again is as fast.
 */
#ifndef GPUPROF_COLLECTOR_KEPT_KEY_H
#define GPUPROF_COLLECTOR_KEPT_KEY_H

#include "base/options.h"
#include "read/recording.h"

#ifndef KEPT_RECORDS /* tests set a smaller number */
#define KEPT_RECORDS 1000000u
#endif

#define KEPT_KEY_BYTES 32

struct kept_key {
    bool is_made; /* false: nothing is stored */
    uint8_t bytes[KEPT_KEY_BYTES];
};

/* Returns whether the recording has ended and has at least KEPT_RECORDS records. */
bool kept_is_worth_it(const struct recording *rec);

void kept_key_make(struct kept_key *k, const struct recording *rec, const struct options *options);

#endif
