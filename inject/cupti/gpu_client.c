/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_client.h"

#include <stdatomic.h>

#include "record/thread.h"

static _Thread_local bool was_loaded; /* set by the driver during in_init */
static void (*_Atomic then)(void);    /* the function to call for it; every load sets the same */

void gpu_client_calls(void)
{
    this_thread.in_init = true;
}

int gpu_client_called(int result)
{
    bool is_due = was_loaded;
    gpu_client_initialised();
    if (is_due)
        atomic_load (&then)();
    return result;
}

void gpu_client_initialises(void)
{
    this_thread.in_init = true;
}

void gpu_client_initialised(void)
{
    this_thread.in_init = was_loaded = false;
}

bool gpu_client_defers(void (*what)(void))
{
    atomic_store(&then, what);
    was_loaded = this_thread.in_init;
    return was_loaded;
}
