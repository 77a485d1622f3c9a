/* SPDX-License-Identifier: Apache-2.0 */
/* The list of features; feature.h explains the members. */
#include "record/feature.h"

#include "control/control.h"
#include "control/governor.h"
#include "cuda/capture.h"
#include "cuda/names.h"
#include "cupti/gpu.h"
#include "cupti/gpu_describe.h"
#include "device/device_thread.h"
#include "hook/content.h"
#include "hook/getproc.h"
#include "hook/resolve.h"
#include "hook/silence.h"
#include "host/gap.h"
#include "host/gc_callback.h"
#include "host/gil_events.h"
#include "host/host_thread.h"
#include "host/os_calls.h"
#include "host/quota.h"
#include "host/sampling.h"
#include "library/dnn_plans.h"
#include "library/library_call.h"
#include "life/fatal.h"
#include "life/finish.h"
#include "life/forked.h"
#include "python/python.h"
#include "range/labels.h"
#include "range/nvtx.h"
#include "range/user_ranges.h"
#include "range/windows.h"
#include "record/pool.h"
#include "record/recorded.h"
#include "record/thread_cost.h"
#include "stack/modules.h"
#include "stack/open_stacks.h"
#include "stack/stack.h"
#include "store/flight_sink.h"
#include "store/identity.h"
#include "store/resident.h"
#include "store/stream_out.h"
#include "store/writer.h"
#include "torch/tensor_memory.h"
#include "torch/torch.h"

static void refresh(struct thread *writer)
{
    (void)writer;
    resolve_refresh();
}

/* clang-format off */
const struct feature features[] = {
    /* Identity, output and buffer: everything else needs them. */
    {.start = identity_fill},
    {.create = stream_out_prepare},
    {.create = pool_create, .remove = pool_remove, .fork_child = pool_forget},
    {.start = thread_costs_start},

    /* What is recorded. */
    {.fork_child = names_reset},
    {.context_goes = capture_drop_all, .fork_child = capture_reset},
    {.unloading = modules_closing, .unloaded = modules_closed},
    {.tick = refresh, .unloaded = resolve_refresh},
    {.tick = getproc_report},
    {.start = content_start},
    {.start = stacks_start, .started = stacks_load, .tick = stacks_look,
     .turn = stacks_turn, .describe = stacks_describe, .fork_child = stacks_reset},
    {.tick = open_stacks_tick},
    {.start = silence_start, .attached = silence_attached, .tick = silence_tick,
     .turn = silence_start, .fork_child = silence_reset},
    {.writer_begin = host_start, .attached = gap_attached, .turn = host_wake,
     .fork_child = host_forget, .end = host_end},
    {.start = gap_start, .describe = gap_describe, .fork_child = gap_forget},
    {.describe = quota_describe, .fork_child = quota_forget},
    {.load = sampling_load, .start = sampling_start, .fork_child = sampling_forget},
    {.writer_begin = gc_look, .tick = gc_look, .fork_child = gc_forget},
    {.describe = python_describe, .unloading = python_closing, .unloaded = python_refresh,
     .fork_child = python_reset},
    {.load = gpu_load, .first_call = gpu_recording_runs, .describe = gpu_describe,
     .turn = gpu_turn, .context_goes = gpu_context_goes, .fork_child = gpu_forget, .dies = gpu_dies,
     .end = gpu_end},
    {.fork_child = labels_reset},
    {.load = nvtx_load},
    {.attached = ranges_attached, .end = ranges_end},
    {.writer_begin = torch_look, .tick = torch_look, .describe = torch_describe,
     .turn = torch_turn, .unloaded = torch_unloaded, .fork_child = torch_reset},
    {.unloaded = tensor_memory_unloaded},
    {.describe = library_describe, .fork_child = library_reset},
    {.unloaded = dnn_unloaded, .fork_child = dnn_reset},
    {.load = os_load, .start = os_start, .attached = os_attached, .end = os_end},
    {.started = gil_started, .tick = gil_tick, .fork_child = gil_forget, .end = gil_end},
    {.tick = resident_tick},
    {.writer_begin = device_start, .tick = device_tick, .turn = device_turn,
     .fork_child = device_forget, .end = device_end},
    {.load = windows_load, .start = windows_start, .describe = windows_describe,
     .door = windows_door, .end = windows_end},
    {.load = recorded_load, .start = recorded_start, .describe = recorded_describe},
    {.start = control_start, .tick = control_tick, .describe = control_describe},
    {.writer_begin = governor_start, .is_due = governor_is_due, .look = governor_look},

    /* Where it is written. The live file gets its name after the stream file, through which it is
     * found. */
    {.create = stream_out_create, .remove = stream_out_remove, .fork_child = stream_out_forget},
    {.start = pool_publish},
    {.create = flight_create, .remove = flight_forget, .describe = flight_describe,
     .is_due = flight_is_due, .look = flight_look, .fork_child = flight_forget},
    {.create = writer_start, .fork_child = writer_forget},
    {.load = fatal_load, .start = finish_register},
    {.start = forked_register},
};
/* clang-format on */

const unsigned feature_count = sizeof features / sizeof features[0];
