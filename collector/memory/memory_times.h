/* SPDX-License-Identifier: Apache-2.0 */
/* Memory over time: tables of `gpuprof memory` of steps, pieces of the time, ranges, and the host.
 */
#ifndef GPUPROF_COLLECTOR_MEMORY_TIMES_H
#define GPUPROF_COLLECTOR_MEMORY_TIMES_H

#include "memory/memory_rows.h"

enum { M_NAME, M_PLACE, M_STEP, M_END_AT, M_PEAK, M_END, M_COLUMNS };

enum { R_NAME, R_PLACE, R_WHERE, R_COUNT, R_PEAK, R_RISE, R_KEPT, R_COLUMNS };

enum { H_PROCESS, H_PID, H_RANK, H_HOST, H_MOST, H_MOST_AT, H_LAST, H_SAMPLES, H_RESIDENT_COLUMNS };

extern const struct column memory_step_columns[M_COLUMNS];
extern const struct column memory_range_columns[R_COLUMNS];
extern const struct column memory_resident_columns[H_RESIDENT_COLUMNS];

/* As struct table_info has them. */
void memory_steps_begin(struct table *t, enum report_format format);
void memory_curve_begin(struct table *t, enum report_format format);
void memory_ranges_begin(struct table *t, enum report_format format);
void memory_resident_begin(struct table *t, enum report_format format);
bool memory_has_resident(const struct table *t, uint32_t index, enum report_format format);
void memory_fill_step(const struct table *t, uint32_t index, enum report_format format,
                      struct cell *cells);
void memory_fill_curve(const struct table *t, uint32_t index, enum report_format format,
                       struct cell *cells);
void memory_fill_range(const struct table *t, uint32_t index, enum report_format format,
                       struct cell *cells);
void memory_fill_resident(const struct table *t, uint32_t index, enum report_format format,
                          struct cell *cells);

#endif
