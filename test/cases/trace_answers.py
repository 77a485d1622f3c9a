# SPDX-License-Identifier: Apache-2.0
"""What people ask a trace: kernels and calls by name, bytes by direction, the time of kernels on
each device. Of slices as (category, name, row, begin, ns, arguments)."""

import collections


def slices_of(trace):
    """Those of a Chrome trace."""
    return [(e["cat"], e["name"], (e["pid"], e["tid"]), round(e["ts"] * 1000),
             round(e["dur"] * 1000), e["args"]) for e in trace["traceEvents"] if e["ph"] == "X"]


def answers(slices):
    kernels, calls, copies = (collections.defaultdict(lambda: (0, 0)) for _ in range(3))
    devices = collections.Counter()

    def add(sums, name, value):
        sums[name] = sums[name][0] + 1, sums[name][1] + value
    for category, name, row, _, ns, args in slices:
        if category == "kernel":
            add(kernels, name, ns)
            devices[row[0]] += ns
        elif category == "gpu_memcpy":
            add(copies, name.split()[1], args["bytes"])
        elif category == "cuda_runtime":
            add(calls, name, ns)
    return {"kernels": dict(kernels), "copies": dict(copies), "calls": dict(calls),
            "devices": dict(devices)}
