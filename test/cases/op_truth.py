# SPDX-License-Identifier: Apache-2.0
"""What the tables of operators must have, from the records and the definition alone."""

import collections
import itertools
import json
import math

import stream_reader

LABEL = 7
REALTIME_ZERO = 1700000000000000000  # of the recordings that test/unit makes
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
        self.backward_cpu = self.backward_gpu = 0

    def values(self):
        return (self.calls, self.self_cpu, self.cpu, self.self_gpu, self.gpu)

    def all_values(self):
        return (*self.values(), self.backward_cpu, self.backward_gpu)


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


def find_around(ops):
    """By id: the last that began on its thread before it and was open then, and the last label."""
    around, labels = {}, {}
    for thread in {op.thread for op in ops}:
        stack = []
        for op in sorted((op for op in ops if op.thread == thread), key=lambda op: op.begin):
            stack = [before for before in stack if before.end > op.begin]
            around[id(op)] = innermost(stack)
            labels[id(op)] = innermost(o for o in stack if o.scope == LABEL)
            stack.append(op)
    return around, labels


def forward_of(op, ops, last):
    """Of those over by then, the last forward operator with that number on that thread."""
    if op.scope != 1 or not op.forward_thread or op.sequence is None or \
            op.name.startswith("autograd::engine::evaluate_function"):
        return None
    return max((o for o in ops if o.sequence == op.sequence and o.scope != LABEL and
                not o.forward_thread and o.own_thread == op.forward_thread and
                o.end <= op.begin and o.end < last), key=lambda o: o.begin, default=None)


class Expected:
    """The tables, from the definition: all that is around is looked for each time."""

    def __init__(self, processes, by="name"):
        self.rows = collections.defaultdict(Sums)  # by kind, name and what `by` adds
        self.under_none = self.gpu = self.traced = 0
        self.by = by
        self.around, self.labels, self.forward = {}, {}, {}  # of one process, by id
        for process in processes:
            self.add(process)

    def row(self, op):
        more = None
        if self.by == "shape" and op.scope != LABEL and op.inputs is not None:
            more = json.dumps(dims_of(op.inputs))
        if self.by == "stack":
            names, around = [], self.around[id(op)]
            while around:
                names.append(around.name)
                around = self.around[id(around)]
            more = json.dumps(names)
        label = self.labels[id(op)]
        if self.by == "range" and op.scope != LABEL and label:
            more = json.dumps(label.name)
        return self.rows[op.scope == LABEL, op.name, more]

    def add(self, process):
        last = last_time(process)
        ops = stream_reader.read_ops(process)
        self.traced += sum(op.traced for op in ops)
        ops = [op for op in ops if not op.traced]
        for op in ops:
            op.end = op.end or last
        self.around, self.labels = find_around(ops)
        forward = self.forward = {id(op): forward_of(op, ops, last) for op in ops}
        inside = collections.defaultdict(list)
        before = collections.defaultdict(list)  # those that began on the same thread
        for op in ops:
            around = innermost(o for o in before[op.thread] if op.end <= o.end)
            before[op.thread].append(op)
            if around and op.end_thread in (None, op.thread):
                inside[id(around)].append((op.begin, op.end))
        for op in ops:
            row = self.row(op)
            row.calls += 1
            row.cpu += op.end - op.begin
            if op.end_thread in (None, op.thread):
                row.self_cpu += op.end - op.begin - covered(inside[id(op)])
            if forward[id(op)]:
                self.row(forward[id(op)]).backward_cpu += op.end - op.begin
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
            if self.forward[id(op)]:
                self.row(self.forward[id(op)]).backward_gpu += work.duration
        own = innermost(op for op in around if op.scope != LABEL)
        if own:
            self.row(own).self_gpu += work.duration
        else:
            self.under_none += work.duration
        label = innermost(around)
        if label and label.scope == LABEL:
            self.row(label).self_gpu += work.duration


KEYS = ("calls", "self_cpu_ns", "cpu_ns", "self_gpu_ns", "gpu_ns", "backward_cpu_ns",
        "backward_gpu_ns")


def check_tables(report, expected, ns_per_call=0):
    """`ns_per_call`: by which times may differ where clocks are mapped, and so rounded; a
    thousandth more, since the machine's clock may be made to go faster or slower meanwhile."""
    found = {}
    for key, is_label in (("ops", False), ("labels", True)):
        rows = report.get(key, [])
        order = [(-row["self_gpu_ns"], -row.get("self_cpu_ns", 0)) for row in rows]
        assert order == sorted(order)
        for row in rows:
            more = row.get({"shape": "input_dims"}.get(expected.by, expected.by))
            if expected.by == "name":
                assert not row.keys() & {"input_dims", "stack", "range"}
                more = None
            identity = (is_label, row["name"], None if more is None else json.dumps(more))
            assert identity not in found
            found[identity] = tuple(row.get(key, 0) for key in KEYS)
    wanted = {key: sums.all_values() for key, sums in expected.rows.items()}
    if expected.under_none:
        wanted[False, "(under no operator)", None] = \
            (0, 0, 0, expected.under_none, expected.under_none, 0, 0)
    assert found.keys() == wanted.keys()
    wrong = {key: (found[key], wanted[key]) for key in found
             if any(abs(a - b) > ns_per_call * wanted[key][0] + (b / 1000 if ns_per_call else 0)
                    for a, b in zip(found[key], wanted[key])) or found[key][0] != wanted[key][0]}
    assert not wrong
    assert report["ops_gpu_ns"] == expected.gpu
    assert report["ops_under_none_ns"] == expected.under_none
    if expected.gpu:
        assert abs(report["ops_under_none_share"] - expected.under_none / expected.gpu) < 1e-4
        assert sum(row["self_gpu_ns"] for row in report["ops"]) == expected.gpu
        assert abs(sum(row["gpu_share"] for row in report["ops"]) - 1) < 0.01
    assert report["losses"].get("traced_ops", 0) == expected.traced
    assert sum(row["gpu_ns"] for row in report.get("ops_under_none", [])) == expected.under_none


# ---- traces ------------------------------------------------------------------------------------

TYPES = {5: "c10::Half", 6: "float", 15: "c10::BFloat16", 4: "long int", 7: "double"}


def type_of(value):
    if value[0] == "tensor":
        return TYPES[value[1]]
    if value[0] in ("int", "double", "bool", "scalar"):
        return "Scalar"
    if value[0] == "list":
        kinds = {one[0] for one in value[1]} - {"cut"}
        if kinds <= {"int", "double", "bool", "scalar"}:
            return "ScalarList"
        return "TensorList" if kinds <= {"tensor", "undefined", "unread"} else ""
    return ""


def number_text(value):
    """A number as PyTorch prints it."""
    kind, number = value
    if kind != "double":
        return str(number)
    if math.isfinite(number) and abs(number) < 1e10 and number == int(number):
        return f"{'-' if math.copysign(1, number) < 0 else ''}{abs(int(number))}."
    return "%.17g" % number


def concrete_of(value):
    """What is known of the numbers among the inputs; "" stands for everything else."""
    known = ("int", "double", "bool")
    if value[0] in known:
        return number_text(value)
    if value[0] == "list" and all(one[0] in known for one in value[1]):
        return f"[{', '.join(map(number_text, value[1]))}]"
    return ""


def find_evaluated(ops):
    """By id of an operator that evaluates a backward one: the first of that name right in it."""
    found = {}
    for thread in {op.thread for op in ops}:
        stack = []
        for op in sorted((op for op in ops if op.thread == thread), key=lambda op: op.begin):
            stack = [before for before in stack if (before.end or 1 << 63) > op.begin]
            around = innermost(stack)
            if around and op.scope == 1 and op.sequence is not None and \
                    around.name == f"autograd::engine::evaluate_function: {op.name}":
                found.setdefault(id(around), op)
            stack.append(op)
    return found


def arguments_of(op, evaluated):
    """What the slice of an operator must have among its args; `evaluated`: the backward one that it
    evaluates, whose numbers it has."""
    args = {}
    numbers = op if op.sequence is not None else evaluated
    if numbers:
        args |= {"Sequence number": numbers.sequence, "Fwd thread id": numbers.forward_thread}
    if op.inputs is not None:
        values = list(itertools.takewhile(lambda value: value[0] != "cut", op.inputs))
        args |= {"Input Dims": dims_of(values), "Input type": list(map(type_of, values)),
                 "Concrete Inputs": list(map(concrete_of, values))}
    if op.traced:
        args["traced"] = True
    if op.end is None:
        args["open"] = True
    return args


def check_rows(events):
    """Slices of one row nest or stay apart."""
    rows = collections.defaultdict(list)
    for e in sorted(events, key=lambda e: e["ts"]):
        begin = round(e["ts"] * 1000)
        end = begin + round(e["dur"] * 1000)
        stack = rows[e["pid"], e["tid"]]
        while stack and stack[-1] < begin:
            stack.pop()
        assert not stack or end <= stack[-1], e
        stack.append(end)


def check_trace(trace, process):
    """The trace of one process has each of its operators once, tied as the records say."""
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    check_rows(events)
    ops = sorted(stream_reader.read_ops(process), key=lambda op: op.begin)
    slices = {e["args"]["External id"]: e for e in events if "Ev Idx" in e["args"]}
    assert len(slices) == len(ops) == sum("Ev Idx" in e["args"] for e in events)
    # Ids rise with begins, and so each says whose it is.
    by_id = dict(zip(sorted(slices), ops))
    ids = {id(op): number for number, op in by_id.items()}
    evaluated = find_evaluated(ops)
    for number, op in by_id.items():
        e = slices[number]
        assert e["name"] == op.name and e["args"]["Ev Idx"] == number - 1
        assert e["cat"] == ("user_annotation" if op.scope == LABEL else "cpu_op")
        args = {key: value for key, value in e["args"].items()
                if key not in ("External id", "Ev Idx")}
        assert args == arguments_of(op, evaluated.get(id(op)))
        if op.end:  # each of those that touch moves by 1 ns
            assert abs(e["dur"] * 1000 - (op.end - op.begin)) < 100
    return events, ops, ids, slices


def check_owners(events, ops, ids, process):
    """Calls and work have the id of their operator."""
    calls = {r.correlation: r for r in process.of_type(stream_reader.CALL)}
    last = last_time(process)
    tied = 0
    for e in events:
        if e["cat"] not in ("cuda_runtime", "kernel", "gpu_memset"):
            continue
        call = calls.get(e["args"]["correlation"])
        own = innermost(op for op in ops if call and op.thread == call.thread and
                        not op.traced and op.scope != LABEL and
                        op.begin <= call.begin < (op.end or last))
        assert e["args"]["External id"] == (ids[id(own)] if own else 0), e
        tied += own is not None
    return tied


def check_arrows(trace, ops, ids, slices):
    """From the last forward operator with that number on that thread, to backward ones."""
    starts, ends = ({e["id"]: (e["pid"], e["tid"], e["ts"]) for e in trace["traceEvents"]
                     if e.get("cat") == "fwdbwd" and e["ph"] == phase} for phase in "sf")
    assert starts.keys() == ends.keys()
    wanted = []
    for op in ops:
        forward = innermost(o for o in ops if o.sequence == op.sequence is not None and
                            o.end and o.end <= (op.end or 1 << 63) and
                            not o.forward_thread and o.own_thread == op.forward_thread and
                            o.scope != LABEL and not o.traced)
        is_backward = op.scope == 1 and op.forward_thread and not op.traced and \
            not op.name.startswith("autograd::engine::evaluate_function")
        if is_backward and forward and forward.begin < op.begin:
            pair = (slices[ids[id(forward)]], slices[ids[id(op)]])
            wanted.append([(e["pid"], e["tid"], e["ts"]) for e in pair])
    assert sorted(map(list, ((starts[i], ends[i]) for i in starts))) == sorted(wanted)
    return len(wanted)


def spans_of(ops, process):
    """The labels and the ranges of a process: number -> (thread, begin, end, name). They and the
    operators are numbered together, in the order of their begins."""
    last = last_time(process)
    records = sorted((r for r in process.records
                      if r.type in (stream_reader.PUSH, stream_reader.POP)), key=lambda r: r.begin)
    begins = sorted([op.begin for op in ops] +
                    [r.begin for r in records if r.type == stream_reader.PUSH])
    numbers = {begin: number for number, begin in enumerate(begins, 1)}
    spans = {numbers[op.begin]: (op.thread, op.begin, op.end or last, op.name)
             for op in ops if op.scope == LABEL and not op.traced}
    stacks = collections.defaultdict(list)
    for r in records:
        if r.type == stream_reader.PUSH:
            stacks[r.thread].append(r)
            spans[numbers[r.begin]] = (r.thread, r.begin, last, r.text.decode())
        elif stacks[r.thread]:
            begun = stacks[r.thread].pop()
            spans[numbers[begun.begin]] = (r.thread, begun.begin, r.begin, begun.text.decode())
    return spans


def check_projected(trace, process):
    """Each label or range is on the device from the first to the last work begun in it: not one in
    the row of its thread overlaps another, so inner ones begin and end some ns apart."""
    ops = stream_reader.read_ops(process)
    calls = {r.correlation: r for r in process.of_type(stream_reader.CALL)}
    origin = trace["baseTimeNanoseconds"] - REALTIME_ZERO
    wanted = {}
    for number, (thread, begin, end, name) in spans_of(ops, process).items():
        work = [r for r in process.records if r.type in GPU_WORK and
                (call := calls.get(r.correlation)) and call.thread == thread and
                begin <= call.begin < end]
        if work and not name.startswith("ProfilerStep#"):
            wanted[number] = (name, min(r.begin for r in work),
                              max(r.begin + r.duration for r in work))
    found = [e for e in trace["traceEvents"] if e.get("cat") == "gpu_user_annotation"]
    assert sorted(e["args"]["External id"] for e in found) == sorted(wanted)
    for e in found:
        name, begin, end = wanted[e["args"]["External id"]]
        shown = origin + round(e["ts"] * 1000)
        assert e["name"] == name and 0 <= shown - begin < 100
        assert abs(shown + round(e["dur"] * 1000) - end) < 100
    return len(wanted)
