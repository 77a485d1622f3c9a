/* SPDX-License-Identifier: Apache-2.0 */
#include "table/csv_kind.h"

const struct csv_kind_info csv_kinds[CSV_KIND_COUNT] = {
    [CSV_FUNCTION] = {"function", "each function that was called"},
    [CSV_KERNEL] = {"kernel", "each kernel, or each of its grids"},
    [CSV_COPY] = {"copy", "each kind of copy, and sets"},
    [CSV_GRAPH] = {"graph", "each graph"},
    [CSV_SYNC] = {"sync", "each kind of synchronisation"},
    [CSV_LAUNCH] = {"launch", "latency, time in the queue, and the call, of launches of kernels"},
    [CSV_RANGE] = {"range", "each range's name, on the host"},
    [CSV_GPU_RANGE] = {"gpu_range", "each range's name, projected on the GPU"},
    [CSV_RANGE_DOMAIN] = {"range_domain", "each range's name, on the host, in a domain of NVTX, "
                                          "which is in domain; it is among the ranges, too"},
    [CSV_GPU_RANGE_DOMAIN] = {"gpu_range_domain", "the same, projected on the GPU"},
    [CSV_OP] = {"op", "each of PyTorch's operators: time on the host"},
    [CSV_OP_SELF] = {"op_self", "the same without that of the operators inside of it"},
    [CSV_OP_GPU] = {"op_gpu", "each operator: time of the work on the GPU that was begun in it"},
    [CSV_OP_GPU_SELF] = {"op_gpu_self",
                         "the same without that of the operators inside of it; and what was begun "
                         "in none"},
    [CSV_OP_BACKWARD] = {"op_backward", "each operator: time of its backward ones on the host"},
    [CSV_OP_BACKWARD_GPU] = {"op_backward_gpu",
                             "the same of the work on the GPU that was begun in these"},
    [CSV_OP_FLOPS] = {"op_flops", "each operator: count is its floating point operations as "
                                  "torch.profiler counts them, calls those that they are known of"},
    [CSV_OP_COUNTER_FLOPS] = {"op_counter_flops", "the same as torch.utils.flop_counter does"},
    [CSV_OP_NONE] = {"op_none", "each cause of GPU time under no operator; count is how much work "
                                "that was"},
    [CSV_LABEL] = {"label", "each of PyTorch's labels: time on the host"},
    [CSV_LABEL_GPU] = {"label_gpu", "each label: time of the work on the GPU that was begun in it"},
    [CSV_MODULE] = {"module", "the forward of each of PyTorch's modules: time on the host"},
    [CSV_MODULE_GPU] = {"module_gpu", "the same: time of the work on the GPU that was begun in it"},
    [CSV_MODULE_BACKWARD] = {"module_backward", "each module: time of the backward operators of "
                                                "those in it on the host"},
    [CSV_MODULE_BACKWARD_GPU] = {"module_backward_gpu",
                                 "the same of the work on the GPU that was begun in these"},
    [CSV_MODULE_FLOPS] = {"module_flops", "each module: count is the floating point operations of "
                                          "the operators in its forward, as flop_counter counts"},
    [CSV_HOOK] = {"hook", "each of Lightning's hooks: time on the host"},
    [CSV_HOOK_GPU] = {"hook_gpu", "each hook: time of the work on the GPU that was begun in it"},
    [CSV_LIBRARY] = {"library",
                     "each function and shape that cuBLAS, cuDNN or NCCL was called with: "
                     "time on the host"},
    [CSV_LIBRARY_GPU] = {"library_gpu",
                         "the same: the work on the GPU that was begun in it, and the "
                         "bytes of one call"},
    [CSV_LIBRARY_FLOPS] = {"library_flops", "the same, where they are known: count is the floating "
                                            "point operations of one call"},
    [CSV_STEP_STAT] = {"step_stat", "the mean, median, p95 and p99 of the steps, and the slowest "
                                    "ones: how long they took"},
    [CSV_STEP_PART] = {"step_part", "each part that the time of all steps is split into"},
    [CSV_STEP] = {"step", "each step: how long it took; count is how many batches were fetched"},
    [CSV_STEP_GPU] = {"step_gpu", "each step: for how long of it the GPU was busy"},
    [CSV_STEP_PARTIAL] = {"step_partial", "each step that is partial: what of it is known"},
    [CSV_STEP_WAITED] = {"step_waited", "each step in which its process waited for another rank: "
                                        "which one, in domain, longest, and how long"},
    [CSV_PHASE] = {"phase", "each phase of training: time on the host in all steps"},
    [CSV_PHASE_GPU] = {"phase_gpu", "each phase: time of the work on the GPU that was begun in it"},
    [CSV_OVERHEAD] = {"overhead", "each kind of overhead of CUDA and CUPTI"},
    [CSV_DEVICE] = {"device", "what each device did in all, and for how long"},
    [CSV_GPU_TIME] = {"gpu_time", "each device of a process: for how long it could have worked"},
    [CSV_GPU_IDLE] = {"gpu_idle", "each device of a process: for how long of that it was idle"},
    [CSV_IDLE] = {"idle", "each cause, in domain, and place of idle time; calls are the gaps"},
    [CSV_RANK] =
        {"rank", "each rank: its devices' time; calls are its steps, mean_ns is how long one took"},
    [CSV_RANK_LATE] = {"rank_late",
                       "each rank: count is its collectives with other ranks, calls those "
                       "that it was the last to begin, total_ns how long others only "
                       "waited for it"},
    [CSV_ARRIVAL] = {"arrival",
                     "each kind of collective on each communicator: how often ranks met, "
                     "and how far the last one was behind the first"},
    [CSV_CLOCK] = {"clock", "each host of several: total_ns is by how much its clock was ahead of "
                            "the reference's, max_ns how well that is known, count of how many "
                            "collectives, calls its processes"},
    [CSV_CLOCK_BEHIND] = {"clock_behind", "the same of hosts whose clocks were behind"},
    [CSV_DEVICE_COUNTERS] = {"device_counters", "each device that the driver was asked of: calls "
                                                "are the readings, bytes the most memory in use"},
    [CSV_DEVICE_POWER] = {"device_power", "the same: count is its energy in mJ, total_ns how long "
                                          "its power limit slowed it down, calls the mean in mW"},
    [CSV_ENERGY] = {"energy",
                    "the run, steps and ranges: count is the energy of the devices in mJ, "
                    "calls how many steps or ranges it is of"},
    [CSV_MEMORY] = {"memory", "the most memory of each device"},
    [CSV_HOST_KERNEL] = {"host_kernel", "each kernel that processes without rows of the GPU "
                                        "launched: times of the calls"},
    [CSV_HOST_COPY] = {"host_copy", "each direction of their copies, likewise"},
    [CSV_THREAD] = {"thread", "calls of one thread (--by=thread)"},
    [CSV_STACK] = {"stack", "calls with one stack, on the host, and one for the work on the GPU"},
    [CSV_PYTHON_LINE] = {"python_line", "calls of one line of Python, likewise"},
    [CSV_PYTHON_LINE_ALL] = {"python_line_all", "calls that a line of Python led to, likewise"},
    [CSV_SOURCE_LINE] = {"source_line", "calls of one line below the folder of --source, likewise"},
    [CSV_SOURCE_LINE_ALL] = {"source_line_all", "calls that such a line led to, likewise"},
    [CSV_COST] = {"cost", "each class of what gpuprof itself costs"},
    [CSV_COST_UNMEASURED] = {"cost_unmeasured",
                             "one that nobody has measured; count is how many there were"},
    [CSV_FINDING] = {"finding",
                     "each finding, by its id: what it costs the device that it costs most; "
                     "count is how many devices have it"},
    [CSV_OPEN_CALL] = {"open_call",
                       "a call that had not returned, with the time until then in max_ns (its "
                       "function's row has it, too)"},
    [CSV_UNFINISHED] = {"unfinished", "a kernel that hangs, or is the likeliest to on its stream; "
                                      "max_ns is how long ago it was launched, count all launches "
                                      "there that had not finished"},
    [CSV_COLLECTIVE] = {"collective",
                        "a rank and a collective that does not come to its end: domain "
                        "is the rank's state, max_ns how long others have waited, "
                        "count its number on its communicator"},
    [CSV_ERROR] = {"error", "an error and the function that returned it; count is how often (that "
                            "function's errors have them, too)"},
    [CSV_DUMP] = {"dump",
                  "a dump of the flight recorder; total is how long it holds, count its number"},
    [CSV_STEP_DOWN] = {"step_down", "what was given up for --overhead-max, as a text"},
    [CSV_MEMORY_PEAK] = {"memory_peak",
                         "gpuprof memory: the most memory of each place; total_ns is "
                         "when, calls are the blocks got"},
    [CSV_MEMORY_END] = {"memory_end", "what it has at the end"},
    [CSV_MEMORY_OWNER] = {"memory_owner", "each owner: what it held at that moment; count is how "
                                          "many blocks that were"},
    [CSV_MEMORY_OWNER_END] = {"memory_owner_end", "each owner that holds something at the end"},
    [CSV_MEMORY_LEAK] = {"memory_leak", "each owner that grows: by how much, since the first step"},
    [CSV_MEMORY_HIDDEN] = {"memory_hidden",
                           "what a device used beyond the ledger, when the program asked"},
    [CSV_MEMORY_KIND] = {"memory_kind", "each kind of memory, at its place's peak"},
    [CSV_MEMORY_RANGE] = {"memory_range", "each range and label: the most that there was in any"},
    [CSV_MEMORY_RESIDENT] = {"memory_resident",
                             "the host's memory of each process: the most of it"},
    [CSV_MEMORY_STEP] = {"memory_step", "each step: the most of it, and what there was at its end"},
    [CSV_MEMORY_CURVE] = {"memory_curve", "each piece of the time, likewise"},
    [CSV_MEMORY_FAILED] = {"memory_failed", "an allocation for which there was not enough memory"},
    [CSV_DAMAGE] = {"damage", "what of the files is damaged; count is how much"},
    [CSV_LOSS] = {"loss", "something that is missing; count is how much"},
    [CSV_NOTE] = {"note", "the same for what is only good to know"},
};
