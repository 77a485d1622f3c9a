/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka with what it wants included first, a reproducible random sequence, and a scratch folder.
 */
#ifndef GPUPROF_TEST_UNIT_TEST_H
#define GPUPROF_TEST_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* xorshift64; the state must not be 0. */
static inline uint64_t random_of(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A new folder below $TMPDIR or /tmp; the name is in a static buffer. */
static inline const char *scratch_folder(void)
{
    static char path[256];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/gpuprof-unit-XXXXXX", folder && folder[0] ? folder : "/tmp");
    assert_non_null(mkdtemp(path));
    return path;
}

/* Removes it with everything in it. */
static inline void scratch_remove(const char *path)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

#endif
