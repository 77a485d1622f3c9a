/* SPDX-License-Identifier: Apache-2.0 */
/* In place of inject/life/finish.c and fatal.c: the recording ends with the program, and _exit,
 * abort and the like stay libc's. */
#include "life/fatal.h"
#include "life/finish.h"

#include <stdlib.h>

#include "record/state.h"
#include "record/wake.h"

static void at_exit(void)
{
    writer_flush(END_EXIT, 10000000000u);
}

void finish_register(void)
{
    atexit(at_exit);
}

bool finish_is_recorder(void)
{
    return epoch_now() != EPOCH_NONE;
}

void fatal_load(void)
{
}
