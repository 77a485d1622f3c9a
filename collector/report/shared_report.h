/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes tables from parts (part_report.h), either with several workers (workers.h), each of which
 * reads its share of the files as report --partial does, or from what an earlier report stored.
 *
 * FOLDER/.gpuprof-report has the parts that a whole report was combined from, and its findings
 * about memory. Every table that parts can give comes from there. It is derived data and may be
 * deleted at any time. It begins with a part (query/part_file.h) that has a key, the state of other
 * files used to resolve names, and the findings; the report's parts follow. It is used only while
 * all these files are unchanged.
 */
#ifndef GPUPROF_COLLECTOR_SHARED_REPORT_H
#define GPUPROF_COLLECTOR_SHARED_REPORT_H

#include "base/sha256.h"
#include "report/part_report.h"

#ifndef KEPT_RECORDS /* tests set a smaller number */
#define KEPT_RECORDS 1000000u
#endif

/*
 * Returns true if the report of `rec` is in *c; the caller releases it. Returns false if parts lack
 * something shown, or workers are missing or failed: make the report without them.
 */
bool shared_report_make(struct combination *c, struct recording *rec, const struct options *options,
                        const struct report_view *view);

/* Returns whether the recording has ended and has at least KEPT_RECORDS records; others are read
 * again as fast. */
bool kept_is_worth_it(const struct recording *rec);

/* ---- what is stored (report_cache.c) ---- */

/* Identifies the sources: a hash of this program, of each recording's inode, size and time, and of
 * what loading found. */
struct kept_key {
    bool is_made; /* false: nothing is stored */
    char text[SHA256_BASE64_BYTES];
};

void kept_key_make(struct kept_key *k, const struct recording *rec, const struct options *options);

struct report_cache {
    int fd;             /* owned; -1: not open */
    uint64_t at, bytes; /* where the next part begins; length of the file */
    uint32_t count;     /* number of parts */
    struct part head;
};

/* Opens what was stored with that key. Returns false if nothing usable is there. Call
 * report_cache_release in both cases. */
bool report_cache_read(struct report_cache *k, const char *folder, const struct kept_key *key);
void report_cache_release(struct report_cache *k);

/* Reads the next part (combination_part_fn; the context is the struct report_cache). */
enum exit_code report_cache_part(void *kept, uint32_t index, struct part *part);

/* Puts the findings about memory into the combined report. Returns 0; after GPUPROF_DAMAGED or
 * GPUPROF_NO_MEMORY the report must be made anew. */
int report_cache_memory(struct report_cache *k, struct combination *c);

/* Stores a combination of parts that were read from files, with its findings about memory. A
 * failure to write is ignored. */
void report_cache_write(const char *folder, const struct kept_key *key,
                        const struct combination *c);

#endif
