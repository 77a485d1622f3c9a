/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a report a part has, and a report that is made of parts. Carried is what sums over
 * processes give to the nanosecond: calls by function, errors, all tables of gpu_report.h,
 * operators (op_part.h), calls of libraries (library_part.h), losses, what processes say of
 * themselves and what gpuprof cost them (process_part.h); steps (step_part.h); idle time by place,
 * findings, and of what ranks do together what each of them did, from which it follows who met whom
 * (idle_part.h, finding_part.h). A process is in one share, whole, and so are its work, its ranges,
 * its books of memory; what shares have in common is put right here:
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

#include "query/part_file.h"
#include "report/collective_part.h"
#include "report/finding_part.h"
#include "report/idle_part.h"
#include "report/library_part.h"
#include "report/part_missing.h"
#include "report/report.h"

/* Puts into the part what report_make has found. 0 or an error. */
int part_report_put(struct report *r, struct part *part);

/* A report of parts; what its rows are views of. */
struct combination {
    bool is_quiet;      /* of several jobs is said nothing */
    bool groups;        /* what one of ranges is; range_rows.h */
    struct part *parts; /* owned */
    uint32_t part_count;
    struct process_told *told; /* owned, by the processes' numbers */
    uint32_t told_capacity;
    struct recording rec; /* of processes without events */
    struct report report;
    void **functions; /* owned, and so are they: struct function */
    uint32_t function_count;
    uint32_t function_capacity;
    void **threads; /* likewise struct thread, of failures */
    uint32_t thread_count;
    uint32_t thread_capacity;
    struct failure *failures; /* owned; of all parts */
    uint32_t failure_count;
    uint32_t failure_capacity;
    struct idle_parts idle;
    struct finding_parts found;
    struct called_parts called;
    struct library_waits waits;
    bool has_few_times; /* a part had more different ones than it could keep */
};

/* `quiet`: nothing is said of several jobs, which is said already; `groups` as struct report_wish
 * has it. EXIT_OK, or another exit code after one line on stderr; combination_release in every
 * case.
 */
enum exit_code combination_make(struct combination *c, char **paths, int path_count, bool quiet,
                                bool groups);
void combination_release(struct combination *c);

/* Is it one that a combination can have? Then it is as of all recordings, unless something is
 * missing that it needs: enum part_missing. */
bool part_report_has(const struct table_info *info);
unsigned part_report_needs(const struct table_info *info);

/* In words, with commas between; returns `text`. */
#define PART_MISSING_BYTES 256
const char *part_report_missing(unsigned missing, char text[static PART_MISSING_BYTES]);

#endif
