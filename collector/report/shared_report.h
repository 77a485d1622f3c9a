/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes tables from parts (part_report.h) with several workers (workers.h). Each reads its share of
 * the files, as report --partial does, and writes its part to an unnamed file.
 */
#ifndef GPUPROF_COLLECTOR_SHARED_REPORT_H
#define GPUPROF_COLLECTOR_SHARED_REPORT_H

#include "base/options.h"
#include "report/report_cache.h"

/*
 * Returns true if the report of `rec` is in *c; the caller releases it. Returns false if parts lack
 * something shown, or workers are missing or failed: make the report without them.
 */
bool shared_report_make(struct combination *c, struct recording *rec, const struct options *options,
                        const struct report_view *view, const struct kept_key *key);

/* The same, from what an earlier report stored with that key (report_cache.h). */
bool shared_report_kept(struct combination *c, struct recording *rec, const struct options *options,
                        const struct report_view *view, const struct kept_key *key);

#endif
