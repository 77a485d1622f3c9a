# SPDX-License-Identifier: Apache-2.0
"""read_tensorboard.py FOLDER: what TensorBoard's profiler plugin makes of a run, as JSON; with
--operators its operator view and that of kernels by operator, with --memory its memory view's
curves; with --calls it takes "cuda_runtime"
and "cuda_driver" for calls, too: it knows "runtime" alone, which no PyTorch of today writes, and
without calls no kernel is an operator's."""

import json
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")

from torch_tb_profiler.io.cache import Cache  # noqa: E402
from torch_tb_profiler.profiler import trace  # noqa: E402
from torch_tb_profiler.profiler.loader import RunLoader  # noqa: E402

if "--calls" in sys.argv:  # here, since it starts processes that read this file again
    trace.EventTypeMap.update(cuda_runtime=trace.EventTypes.RUNTIME,
                              cuda_driver=trace.EventTypes.RUNTIME)


def operators(profile):
    kernels = getattr(profile, "kernel_op_table", None)
    return {"name": profile.operation_table_by_name["data"],
            "shape": profile.operation_table_by_name_input["data"],
            "kernels": kernels["data"]["rows"] if kernels else []}


def memory(profile):
    return profile.get_memory_curve(time_metric="ms", memory_metric="B")["rows"]


def whole(profile):
    table = profile.kernel_table["data"]
    column = [item["name"] for item in table["columns"]]
    curve = profile.get_memory_curve(time_metric="ms", memory_metric="B")
    return {
        "views": [view.display_name for view in profile.views],
        "steps": [row[0] for row in profile.overview["steps"]["rows"]],
        "kernels": {row[column.index("Name")]: row[column.index("Calls")]
                    for row in table["rows"]},
        "occupancy": {row[column.index("Name")]: row[column.index("Mean Est. Achieved "
                                                                  "Occupancy (%)")]
                      for row in table["rows"]},
        "gpu_metrics": len(profile.gpu_metrics),
        "gpu_summary": profile.gpu_summary,
        "operators": [row[0] if isinstance(row, list) else row["name"]
                      for row in profile.operation_table_by_name["data"]],
        "memory_devices": curve["metadata"]["devices"],
        "memory_peaks": curve["metadata"]["peaks"],
        "reserved_max": {name: max(row[2] for row in points)
                         for name, points in curve["rows"].items()},
    }


def main(folder, describe):
    with Cache(tempfile.mkdtemp()) as cache:
        run = RunLoader("run", folder, cache).load()
        profiles = {profile.worker: describe(profile) for profile in run.profiles.values()
                    if profile.worker != "All"}
    print(json.dumps(profiles, default=str))


if __name__ == "__main__":
    main(sys.argv[1], operators if "--operators" in sys.argv else
         memory if "--memory" in sys.argv else whole)
