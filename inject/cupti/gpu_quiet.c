/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_quiet.h"

#include <errno.h>
#include <pthread.h>

#include "base/real_dlsym.h"
#include "base/signals.h"
#include "record/thread.h"

struct quiet quiet_begin(void)
{
    struct quiet quiet = {this_thread.inside, block_signals(), 0, errno};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet.cancel_state);
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
    pthread_setcancelstate(quiet->cancel_state, NULL);
    errno = quiet->error;
}
