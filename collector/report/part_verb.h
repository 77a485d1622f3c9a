/* SPDX-License-Identifier: Apache-2.0 */
/* report --partial: one of several processes that make a report together. It reads its share of the
 * files and writes its results. */
#ifndef GPUPROF_COLLECTOR_PART_VERB_H
#define GPUPROF_COLLECTOR_PART_VERB_H

#include "base/options.h"
#include "query/part_file.h"
#include "report/report.h"

/* Checks whether a part can be written, or a combination shown, with these options. Returns
 * EXIT_OK, or EXIT_USAGE after one line that says what is wrong. */
enum exit_code part_verb_check(const struct options *options, const struct report_view *view);

enum exit_code part_verb(const struct options *options);

/* Writes the part of a share, whose recordings are open, to `fd`, an empty file. Returns EXIT_OK,
 * or another exit code after one line. Call part_release and report_release in both cases. */
enum exit_code part_make(struct part *part, int fd, struct report *report, struct recording *rec,
                         const struct share *share, const struct report_request *request);

#endif
