# SPDX-License-Identifier: Apache-2.0
"""What the tables of operators must have, from the records and the definition alone."""

import collections
import json

import stream_reader

LABEL = 7
GPU_WORK = [stream_reader.TYPE_NUMBERS[name] for name in ("kernel", "set")]


def dims_of(inputs):
    """As PyTorch's traces have them: what is no tensor has no sizes."""
    def sizes(value):
        return list(value[2]) if value[0] == "tensor" else []

    def is_tensor(value):
        return value[0] in ("tensor", "undefined", "unread", "cut")

    found = []
    for value in inputs:
        if value[0] == "cut":
            break
        if value[0] == "list" and all(map(is_tensor, value[1])):
            found.append([sizes(one) for one in value[1] if one[0] != "cut"])
        else:
            found.append(sizes(value))
    return found


class Sums:
    def __init__(self):
        self.calls = self.self_cpu = self.cpu = self.self_gpu = self.gpu = 0

    def values(self):
        return (self.calls, self.self_cpu, self.cpu, self.self_gpu, self.gpu)


def last_time(process):
    shown = [*GPU_WORK, stream_reader.CALL, stream_reader.OP_BEGIN, stream_reader.OP_END]
    return max(r.begin + r.duration for r in process.records if r.type in shown)


def innermost(ops):
    """The last that began: of one thread they are in that order."""
    found = None
    for found in ops:
        pass
    return found


def covered(spans):
    """How long any of them lasts: those that cross overlap."""
    total = until = 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


class Expected:
    """The tables, from the definition: all that is around is looked for each time."""

    def __init__(self, processes, by_shape=False):
        self.rows = collections.defaultdict(Sums)  # by kind, name and sizes
        self.under_none = self.gpu = self.traced = 0
        self.by_shape = by_shape
        for process in processes:
            self.add(process)

    def row(self, op):
        dims = None
        if self.by_shape and op.scope != LABEL and op.inputs is not None:
            dims = json.dumps(dims_of(op.inputs))
        return self.rows[op.scope == LABEL, op.name, dims]

    def add(self, process):
        last = last_time(process)
        ops = stream_reader.read_ops(process)
        self.traced += sum(op.traced for op in ops)
        ops = [op for op in ops if not op.traced]
        for op in ops:
            op.end = op.end or last
        inside = collections.defaultdict(list)
        for index, op in enumerate(ops):
            around = innermost(o for o in ops[:index] if o.thread == op.thread and
                               op.end <= o.end)
            if around and op.end_thread in (None, op.thread):
                inside[id(around)].append((op.begin, op.end))
        for op in ops:
            row = self.row(op)
            row.calls += 1
            row.cpu += op.end - op.begin
            if op.end_thread in (None, op.thread):
                row.self_cpu += op.end - op.begin - covered(inside[id(op)])
        calls = {r.correlation: r for r in process.of_type(stream_reader.CALL)}
        for work in process.records:
            if work.type in GPU_WORK:
                self.add_work(work, calls.get(work.correlation), ops)

    def add_work(self, work, call, ops):
        around = [op for op in ops if call and op.thread == call.thread and
                  op.begin <= call.begin < op.end]
        self.gpu += work.duration
        for op in around:
            self.row(op).gpu += work.duration
        own = innermost(op for op in around if op.scope != LABEL)
        if own:
            self.row(own).self_gpu += work.duration
        else:
            self.under_none += work.duration
        label = innermost(around)
        if label and label.scope == LABEL:
            self.row(label).self_gpu += work.duration


KEYS = ("calls", "self_cpu_ns", "cpu_ns", "self_gpu_ns", "gpu_ns")


def check_tables(report, expected, ns_per_call=0):
    """`ns_per_call`: by which times may differ where clocks are mapped, and so rounded."""
    found = {}
    for key, is_label in (("ops", False), ("labels", True)):
        rows = report.get(key, [])
        order = [(-row["self_gpu_ns"], -row.get("self_cpu_ns", 0)) for row in rows]
        assert order == sorted(order)
        for row in rows:
            dims = row.get("input_dims")
            identity = (is_label, row["name"], None if dims is None else json.dumps(dims))
            assert identity not in found
            found[identity] = tuple(row.get(key, 0) for key in KEYS)
    wanted = {key: sums.values() for key, sums in expected.rows.items()}
    if expected.under_none:
        wanted[False, "(under no operator)", None] = \
            (0, 0, 0, expected.under_none, expected.under_none)
    assert found.keys() == wanted.keys()
    wrong = {key: (found[key], wanted[key]) for key in found
             if any(abs(a - b) > ns_per_call * wanted[key][0]
                    for a, b in zip(found[key], wanted[key])) or found[key][0] != wanted[key][0]}
    assert not wrong
    assert report["ops_gpu_ns"] == expected.gpu
    assert report["ops_under_none_ns"] == expected.under_none
    if expected.gpu:
        assert abs(report["ops_under_none_share"] - expected.under_none / expected.gpu) < 1e-4
        assert sum(row["self_gpu_ns"] for row in report["ops"]) == expected.gpu
        assert abs(sum(row["gpu_share"] for row in report["ops"]) - 1) < 0.01
    assert report["losses"].get("traced_ops", 0) == expected.traced
    assert ("input_dims" in report["ops"][0]) <= expected.by_shape
