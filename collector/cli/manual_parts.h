/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the manual says of each verb beside its options, as rows: examples, variables, files, exit
 * statuses; and of the functions of gpuprof.h.
 */
#ifndef GPUPROF_COLLECTOR_MANUAL_PARTS_H
#define GPUPROF_COLLECTOR_MANUAL_PARTS_H

/* In the order in which a verb's section has them. */
enum manual_part { PART_EXAMPLE, PART_VARIABLE, PART_FILE, PART_STATUS, PART_COUNT };

extern const char *const manual_part_titles[PART_COUNT];

struct manual_row {
    const char *verbs; /* "merge report": with spaces between */
    enum manual_part part;
    const char *name;
    const char *text;
};

extern const struct manual_row manual_rows[]; /* ended by a row without verbs */

struct manual_function {
    const char *prototype;
    const char *text;
};

extern const struct manual_function manual_functions[]; /* ended by one without a prototype */

#endif
