/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a report is stored in a part, and how parts are combined into a report. A part has
 * everything that can be added up over processes exactly: all tables of sums (analyses.def),
 * losses, the processes' metadata, gpuprof's own cost, steps, idle time by place and findings. For
 * collectives it has what each rank did, from which the combination finds who waited for whom. A
 * process is in one share as a whole, with its work, ranges and memory ledger. What shares have in
 * common is adjusted here:
 *
 *  - times of the processes of a host have one offset (recording.h), so first and last are
 * comparable;
 *  - rows of devices have the rank in their names, or the process if there are several;
 *  - devices come in the order of their first work, as in one walk;
 *  - how many ranges differ only in their numbers is known when all parts are there;
 *  - quantiles come from histograms, which are added up; shares and means come from the sums.
 *
 * Where something has a bound, a part stores as much for its share as a report does for everything,
 * and has a flag if that was not enough. Parts lack what enum part_missing lists, and what is made
 * only on request: rows by stack, thread or source line, and the tables of steps.
 */
#ifndef GPUPROF_COLLECTOR_PART_REPORT_H
#define GPUPROF_COLLECTOR_PART_REPORT_H

#include "analyse/idle_ranks.h"
#include "query/part_file.h"
#include "report/report.h"

/* Puts the results of report_make into the part. Returns 0 or an error. */
int part_report_put(struct report *r, struct part *part);

/* A report made of parts, and what its rows are views of. */
struct combination {
    bool is_quiet;      /* print no messages: the caller does, or has another way left */
    bool groups;        /* rows of ranges are groups; range_rows.h */
    struct part *parts; /* owned */
    uint32_t part_count;
    struct rank_numbers *numbers;      /* owned, indexed by part */
    struct process_reported *reported; /* owned, indexed by the process number */
    struct recording rec;              /* its processes have no events */
    struct report report;
    bool has_few_times; /* a part had more different times than it could store */
    bool has_more;      /* some rows had no room, here or in a part */
};

/* Facts about a process that come from the event walk. */
struct process_reported {
    struct losses losses;
    uint64_t calls;
    uint64_t window; /* number of the last window; 0: none */
};

/*
 * A section of a part: writes it, adds it to the combination, and finishes after the last part
 * (NULL: nothing to do). Sections have the order of part_report.c; each is added from all parts
 * before the next one. The last returns 0 or an error; damage is noted in the part.
 */
struct part_section {
    void (*put)(struct report *r, struct part *p);
    void (*add)(struct combination *c, struct part *p);
    int (*end)(struct combination *c);
};

extern const struct part_section device_part, idle_part, finding_part; /* idle_part.c */

/* Put a text, which may be NULL, into the part; an end mark follows the last. Getting returns false
 * at the end or after a failure. (part_report.c) */
void part_put_text(struct part *p, const char *text);
bool part_get_text(struct part *p, const char **text);

/* Reads part `index`, like part_read. */
typedef enum exit_code combination_part_fn(void *context, uint32_t index, struct part *part);

/*
 * Combines `count` parts. `quiet`: prints nothing about several jobs or faulty parts; `groups`: see
 * struct report_request. Returns EXIT_OK, or another exit code after one line on stderr. Call
 * combination_release in every case.
 */
enum exit_code combination_make(struct combination *c, uint32_t count, combination_part_fn *read,
                                void *context, bool quiet, bool groups);

/* Likewise, only the processes, with their losses, the steps, and the spans that cross blocks. */
enum exit_code combination_make_head(struct combination *c, uint32_t count,
                                     combination_part_fn *read, void *context);
void combination_release(struct combination *c);

/* Returns the first option that restricts or regroups a report, so that no combination of parts can
 * serve it, without "--"; for a part that is written, also those that only choose what to show.
 * NULL: there is none. (part_verb.c, as the next) */
const char *part_verb_other(const struct options *all, bool is_part);

/* Checks whether a part can be written, or a combination shown, with these options. Returns
 * EXIT_OK, or EXIT_USAGE after one line that says what is wrong. */
enum exit_code part_verb_check(const struct options *options, const struct report_view *view);

/* report --partial: one of several processes that make a report together. It reads its share of the
 * files and writes its results. */
enum exit_code part_verb(const struct options *options);

/* Writes the part of a share, whose recordings are open, to `fd`, an empty file. Returns EXIT_OK,
 * or another exit code after one line. Call part_release and report_release in both cases. */
enum exit_code part_make(struct part *part, int fd, struct report *report, struct recording *rec,
                         const struct report_request *request);

/* Writes the names of what is missing, separated by commas; returns `text`. */
#define PART_MISSING_BYTES 256
const char *part_report_missing(unsigned missing, char text[static PART_MISSING_BYTES]);

/* ---- reports of several workers, and stored ones (shared_report.c) ----
 *
 * Makes tables from parts (part_report.h), either with several workers (workers.h), each of which
 * reads its share of the processes, or from what an earlier report stored.
 *
 * FOLDER/.gpuprof-report has the parts that a whole report was combined from, and its findings
 * about memory. Every table that parts can give comes from there. It is derived data and may be
 * deleted at any time. It begins with a part (query/part_file.h) that has a key, the state of other
 * files used to resolve names, and the findings; the report's parts follow. It is used only while
 * all these files are unchanged.
 */

/*
 * Returns true if the report of `rec` is in *c; the caller releases it. Returns false if parts lack
 * something shown, or workers are missing or failed: make the report without them.
 */
bool shared_report_make(struct combination *c, struct recording *rec, const struct options *options,
                        const struct report_view *view);

/* Reads what a report of a window takes from the stored report of all. Returns false if there is
 * none that fits; otherwise the caller releases the combination. */
bool shared_report_whole(struct combination *c, struct recording *rec,
                         const struct options *options);

struct report_cache {
    int fd;             /* owned; -1: not open */
    uint64_t at, bytes; /* where the next part begins; length of the file */
    uint32_t count;     /* number of parts */
    struct part head;
};

void report_cache_release(struct report_cache *k);

/* Reads the next part (combination_part_fn; the context is the struct report_cache). */
enum exit_code report_cache_part(void *kept, uint32_t index, struct part *part);

/* Puts the findings about memory into the combined report. Returns 0; after GPUPROF_DAMAGED the
 * report must be made anew. */
int report_cache_memory(struct report_cache *k, struct combination *c);

#endif
