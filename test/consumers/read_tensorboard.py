# SPDX-License-Identifier: Apache-2.0
"""read_tensorboard.py FOLDER: what TensorBoard's profiler plugin makes of a run, as JSON."""

import json
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")

from torch_tb_profiler.io.cache import Cache  # noqa: E402
from torch_tb_profiler.profiler.loader import RunLoader  # noqa: E402


def describe(profile):
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


def main(folder):
    with Cache(tempfile.mkdtemp()) as cache:
        run = RunLoader("run", folder, cache).load()
        profiles = {profile.worker: describe(profile) for profile in run.profiles.values()
                    if profile.worker != "All"}
    print(json.dumps(profiles, default=str))


if __name__ == "__main__":
    main(sys.argv[1])
