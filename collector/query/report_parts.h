/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a report that need a consumer of their own and that not every table uses. */
#ifndef GPUPROF_COLLECTOR_REPORT_PARTS_H
#define GPUPROF_COLLECTOR_REPORT_PARTS_H

enum report_part {
    REPORT_IDLE = 1, /* also findings, steps, and remarks about memory */
    REPORT_OPS = 2,
    REPORT_LIBRARIES = 4,
    REPORT_CALLS = 8,       /* rows by function; failed and open calls */
    REPORT_WORK = 16,       /* rows of device activities */
    REPORT_CORRELATED = 32, /* and of their launches */
    REPORT_MEMORY = 64,     /* the ledger of memory */
    REPORT_MAKERS = 128,    /* the library call that launched each kernel */
    REPORT_USE = 256,       /* how busy devices were */
    REPORT_UNSEEN = 512,    /* numbers shown only with --full (not their presence) */
    REPORT_HOST = 1024,     /* host activities: samples, system calls, Python's lock */
};

#define REPORT_EVERYTHING                                                                          \
    (REPORT_IDLE | REPORT_OPS | REPORT_LIBRARIES | REPORT_CALLS | REPORT_WORK |                    \
     REPORT_CORRELATED | REPORT_MEMORY | REPORT_MAKERS | REPORT_USE | REPORT_HOST)

#endif
