/* SPDX-License-Identifier: Apache-2.0 */
/* What of a report takes a consumer of its own, and not every table is made of. */
#ifndef GPUPROF_COLLECTOR_REPORT_PARTS_H
#define GPUPROF_COLLECTOR_REPORT_PARTS_H

enum report_part {
    REPORT_IDLE = 1, /* with findings, steps, and what is to be said of the memory */
    REPORT_OPS = 2,
    REPORT_LIBRARIES = 4,
    REPORT_CALLS = 8,    /* rows of functions, and what failed, or had not returned */
    REPORT_WORK = 16,    /* rows of what devices did */
    REPORT_TIED = 32,    /* and of what it was launched by */
    REPORT_MEMORY = 64,  /* the books of memory */
    REPORT_MAKERS = 128, /* which call of a library launched a kernel */
    REPORT_USE = 256,    /* how busy devices were */
    REPORT_UNSEEN = 512, /* numbers that only --full shows, but not whether there are any */
    REPORT_HOST = 1024,  /* what the host did: samples, calls of the system, Python's lock */
};

#define REPORT_EVERYTHING                                                                          \
    (REPORT_IDLE | REPORT_OPS | REPORT_LIBRARIES | REPORT_CALLS | REPORT_WORK | REPORT_TIED |      \
     REPORT_MEMORY | REPORT_MAKERS | REPORT_USE | REPORT_HOST)

#endif
