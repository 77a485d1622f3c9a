/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of which parts can be made (part_report.h), made by several workers (workers.h): each
 * reads its share of the files, as report --partial does, and its part goes to a file without a
 * name.
 */
#ifndef GPUPROF_COLLECTOR_SHARED_REPORT_H
#define GPUPROF_COLLECTOR_SHARED_REPORT_H

#include "base/options.h"
#include "report/kept_key.h"
#include "report/part_report.h"

/*
 * True: the report of `rec` is in *c, to be released. False: parts do not have what is wanted, or
 * workers are not to be had, or one has failed: it must be made without.
 */
bool shared_report_make(struct combination *c, struct recording *rec, const struct options *options,
                        const struct report_view *view, enum report_format format, bool groups,
                        const struct kept_key *key);

/* The same of what a report before has kept with that key (report_cache.h). */
bool shared_report_kept(struct combination *c, struct recording *rec, const struct options *options,
                        const struct report_view *view, enum report_format format, bool groups,
                        const struct kept_key *key);

#endif
