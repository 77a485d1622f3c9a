/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts: what a verb ends with. They are no errors, which are negative (error.h): a function
 * returns the one or the other.
 */
#ifndef GPUPROF_COLLECTOR_EXIT_CODE_H
#define GPUPROF_COLLECTOR_EXIT_CODE_H

enum exit_code {
    EXIT_OK = 0,          /* everything recorded was read, a recovered live tail included */
    EXIT_ENVIRONMENT = 1, /* input or output failed, memory ran out */
    EXIT_USAGE = 2,       /* a wrong option, a file that is not ours, nothing to read */
    EXIT_DAMAGED = 3,     /* something recorded is missing; what is whole was used */
    EXIT_UNFIT = 4,       /* doctor: nothing, or nothing that matters, would be recorded here */
};

#endif
