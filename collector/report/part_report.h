/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a report a part has, and a report that is made of parts. Carried is what sums over
 * processes give to the nanosecond: all tables of sums (analyses.def), losses, what processes say
 * of themselves and what gpuprof cost them; steps; idle time by place, findings, and of what ranks
 * do together what each of them did, from which it follows who met whom. A process is in one share,
 * whole, and so are its work, its ranges, its books of memory; what shares have in common is put
 * right here:
 *
 *  - times of a host's processes have one offset (share.h), so that first and last can be compared;
 *  - rows of devices have the rank in their names, or the process if there are several;
 *  - devices come in the order of their first work, as one walk meets them;
 *  - how many ranges differ in their numbers alone is told when all are there;
 *  - quantiles are of histograms, which are added up, shares and means of the sums.
 *
 * Where something has a bound, a part keeps as much for its share as a report does for all, and
 * says so if that was not enough. What is not carried is in enum part_missing, and what is there
 * only if it is asked for: rows by stack, thread or line of source, and the tables of steps.
 */
#ifndef GPUPROF_COLLECTOR_PART_REPORT_H
#define GPUPROF_COLLECTOR_PART_REPORT_H

#include "analyse/idle_ranks.h"
#include "query/part_file.h"
#include "report/report.h"

/* Puts into the part what report_make has found. 0 or an error. */
int part_report_put(struct report *r, struct part *part);

/* A report of parts; what its rows are views of. */
struct combination {
    bool is_quiet;      /* nothing is said: somebody else says it, or another way is left */
    bool groups;        /* what one of ranges is; range_rows.h */
    struct part *parts; /* owned */
    uint32_t part_count;
    struct packed_cache cache;         /* of their spans */
    struct part_numbers *numbers;      /* owned, by part */
    struct process_reported *reported; /* owned, by the processes' numbers */
    struct recording rec;              /* of processes without events */
    struct report report;
    struct reported_place **places; /* owned, and so are they; what idle time is charged to */
    uint32_t place_count;
    struct called_part *called; /* owned; what the ranks have called */
    uint32_t called_count;
    bool has_few_times; /* a part had more different ones than it could keep */
    bool has_more;      /* rows for which there was no room, here or in a part */
};

/* What numbers of a part mean where all are added up. Its lists are owned. */
struct part_numbers {
    struct rank_numbers ranks;
    uint32_t *names, *places; /* of findings; 0: it is not known */
    uint32_t name_count, place_count, device_count;
};

/* What the walk knows of a process. */
struct process_reported {
    struct losses losses;
    uint64_t calls;
    uint64_t window; /* the number of the last one; 0: none */
};

/*
 * A section of a part: what puts it there, what adds it to the others', and what follows when that
 * of all parts is there (NULL: nothing). Sections come in the order of part_report.c, each of all
 * parts before the next one. 0 or an error; that it is damaged the part says.
 */
struct part_section {
    int (*put)(struct report *r, struct part *p);
    int (*add)(struct combination *c, struct part *p);
    int (*end)(struct combination *c);
};

extern const struct part_section process_part, device_part, step_part, collective_part, idle_part,
    finding_part, exposed_part;

/* Is something to be told of collectives, or may it be when other parts are there? */
bool collective_part_is_doubtful(const struct hang *h);

/* Texts that a part counts, and the end of them; reading them, what `number` says of each, which
 * may be NULL there: *numbers is owned by the caller. 0 or an error. (part_report.c) */
void part_put_text(struct part *p, const char *text);
int part_texts(struct combination *c, struct part *p, uint32_t **numbers, uint32_t *count,
               int (*number)(struct combination *c, const char *text, uint32_t *number));

/* A place with that text, at that `where` (NULL: it is not known), of the thread with that id (0:
 * of none), whose share of the work that is (idle_row_work_share); the texts must stay. What
 * *place says of the call stays. 0 or GPUPROF_NO_MEMORY. (idle_part.c) */
int part_report_place(struct combination *c, const struct idle_reported *what, uint32_t tid,
                      struct idle_place *place);

/* Reads part `index`, as part_read does. */
typedef enum exit_code combination_part_fn(void *context, uint32_t index, struct part *part);

/*
 * Of `count` parts. `quiet`: says nothing of several jobs, nor of what is wrong with parts;
 * `groups` as struct report_request has it. EXIT_OK, or another exit code after one line on stderr;
 * combination_release in every case.
 */
enum exit_code combination_make(struct combination *c, uint32_t count, combination_part_fn *read,
                                void *context, bool quiet, bool groups);
void combination_release(struct combination *c);

/* Is it one that a combination can have? Then it is as of all recordings, unless something is
 * missing that it needs: enum part_missing. */
bool part_report_has(const struct table_info *info);
unsigned part_report_needs(const struct table_info *info);

/* In words, with commas between; returns `text`. */
#define PART_MISSING_BYTES 256
const char *part_report_missing(unsigned missing, char text[static PART_MISSING_BYTES]);

#endif
