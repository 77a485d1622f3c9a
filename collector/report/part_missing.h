/* SPDX-License-Identifier: Apache-2.0 */
/* What is in no part of a report (part_report.h). */
#ifndef GPUPROF_COLLECTOR_PART_MISSING_H
#define GPUPROF_COLLECTOR_PART_MISSING_H

/* What recordings may have that is in no part, since it looks at several processes at one moment,
 * or is no sum: a part says that there is something of it. */
enum part_missing {
    PART_HANGS = 1,       /* calls that had not returned, work that had not finished */
    PART_COLLECTIVES = 2, /* that not all ranks have called, or not alike */
    PART_LIBRARIES = 4,   /* more collectives than a part can keep */
    PART_COUNTERS = 8,    /* of devices, and their energy */
    PART_MEMORY = 16,     /* something is wrong with it */
    PART_ALL = 31,
    PART_OVERVIEW = PART_HANGS | PART_COUNTERS | PART_MEMORY /* of which the JSON's tells */
};

#endif
