/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_quiet.h"

#include <errno.h>

#include "base/real_dlsym.h"
#include "base/signals.h"
#include "record/thread.h"

struct quiet quiet_begin(void)
{
    struct quiet quiet = {this_thread.inside, block_signals(), errno};
    call_enter(&this_thread, CALL_FOR_GOOD);
    dlsym_find_real();
    return quiet;
}

void quiet_end(const struct quiet *quiet)
{
    if (quiet->outside)
        call_enter(&this_thread, quiet->outside);
    else
        call_leave(&this_thread);
    restore_signals(quiet->mask);
    errno = quiet->error;
}
