/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole report, kept beside its recordings for the next questions: the parts that a first report
 * of a folder was added up from, in FOLDER/.gpuprof-report, and what it had found about memory. Any
 * table of which parts are made comes from there (report/part_report.h). It is derived data, and
 * may be deleted at any time: a part (query/part_file.h) with the key of kept_key.h, with what the
 * other files were in which names were looked up, and with the findings; behind it the parts of the
 * report. It is used only while all these files are what they were.
 */
#ifndef GPUPROF_COLLECTOR_REPORT_CACHE_H
#define GPUPROF_COLLECTOR_REPORT_CACHE_H

#include "report/kept_key.h"
#include "report/part_report.h"

struct report_cache {
    int fd;             /* owned; -1: it is not open */
    uint64_t at, bytes; /* where the next part begins, and how long the file is */
    uint32_t count;     /* of parts */
    bool has_memory;    /* the findings about memory are in the head */
    struct part head;
};

/* What was kept with that key. False: nothing that can be used. report_cache_release in any case.
 */
bool report_cache_read(struct report_cache *k, const char *folder, const struct kept_key *key);
void report_cache_release(struct report_cache *k);

/* The next part of it (combination_part_fn; the context is the struct report_cache). */
enum exit_code report_cache_part(void *kept, uint32_t index, struct part *part);

/* Puts the findings about memory into the report that was added up. 0; GPUPROF_DAMAGED or
 * GPUPROF_NO_MEMORY, and then the report must be made anew. */
int report_cache_memory(struct report_cache *k, struct combination *c);

/* Keeps a combination of parts that were read from files; `has_memory`: with its findings about
 * memory. What goes wrong there is no error. */
void report_cache_write(const char *folder, const struct kept_key *key, const struct combination *c,
                        bool has_memory);

#endif
