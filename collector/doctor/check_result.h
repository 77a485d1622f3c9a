/* SPDX-License-Identifier: Apache-2.0 */
/* What a check of `gpuprof doctor` has found. */
#ifndef GPUPROF_COLLECTOR_CHECK_RESULT_H
#define GPUPROF_COLLECTOR_CHECK_RESULT_H

#include <stdbool.h>

#define CHECK_TEXT_BYTES 768

enum check_state {
    CHECK_OK,
    CHECK_LIMITED, /* something of what could be recorded will be missing */
    CHECK_BROKEN,  /* nothing will be recorded, or nothing that the program is about */
};

struct check_result {
    enum check_state state;
    char text[CHECK_TEXT_BYTES];
    char advice[CHECK_TEXT_BYTES]; /* one thing to do; "" with CHECK_OK */
};

/*
 * Fills it: `advice` is NULL with CHECK_OK. Always true, as a check answers that has something to
 * say.
 */
bool check_result_set(struct check_result *f, enum check_state state, const char *advice,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
