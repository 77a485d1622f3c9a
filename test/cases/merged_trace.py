# SPDX-License-Identifier: Apache-2.0
"""A trace of what make_gpu has recorded, and what holds for all of them."""

import collections
import json

import pytest

STEP = 100.0  # us
ORIGIN = 0.2  # of the first event that is shown, the first label


@pytest.fixture
def merged(run_collector, make_gpu):
    """merged("train", ranks, steps, options...): the trace."""
    def merge(scenario, ranks, steps, *options, code=0):
        result = run_collector("merge", *options, make_gpu(scenario, ranks, steps))
        assert result.returncode == code, result.stderr
        return json.loads(result.stdout)
    return merge


def of_category(trace, category):
    return [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == category]


def at(step, us):
    """Time in the trace of `us` after the begin of a step."""
    return round(STEP * (step + 1) + us - ORIGIN, 3)


def names(trace, what="thread_name"):
    return {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"]
            if e["ph"] == "M" and e["name"] == what}


GPU_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_graph", "cuda_sync")


def check_sums(row):
    """The same for readers that add times up as doubles; operators are ranges once more."""
    stack = []
    for begin, _, e in sorted(row, key=lambda item: item[:2]):
        while stack and stack[-1][0] < begin:
            stack.pop()
        end = begin + e["dur"]
        assert not stack or end < stack[-1][0] or (end == stack[-1][0] and (
            "cpu_op" in (e["cat"], stack[-1][1]["cat"]) or e["dur"] == 0)), (e, stack[-1])
        stack.append((end, e))


def check_rows(trace):
    """Slices of a row nest or stay 1 ns apart; outer ones begin first or come first in the file."""
    rows = collections.defaultdict(list)
    for place, e in enumerate(trace["traceEvents"]):
        if e["ph"] != "X":
            continue
        begin = round(e["ts"] * 1000)
        rows[e["pid"], e["tid"]].append((begin, place, begin + round(e["dur"] * 1000), e))
    for row in rows.values():
        check_sums([(e["ts"], place, e) for _, place, _, e in row])
        stack = []
        for begin, _, end, e in sorted(row, key=lambda item: item[:2]):
            while stack and stack[-1] < begin:
                stack.pop()
            assert not stack or end <= stack[-1], e
            stack.append(end)
    return len(rows)
