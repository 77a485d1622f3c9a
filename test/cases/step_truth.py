# SPDX-License-Identifier: Apache-2.0
"""What the tables of steps must have, from the records and the guide's definitions alone: each
moment is looked at by itself, and all that is around it is looked for each time."""

import bisect
import collections
import dataclasses
import math
import re

import pytest
import stream_reader
from stream_reader import CALL, OP_BEGIN, OP_END, PAUSE, STEP, TYPE_NUMBERS

SILENCE = TYPE_NUMBERS["silence"]
LABEL, BACKWARD, MODULE = 7, 1, 254
KERNEL, COPY, SET, GRAPH = (TYPE_NUMBERS[name] for name in ("kernel", "copy", "set", "graph"))
WORK = (KERNEL, COPY, SET, GRAPH)
PARTS = ("kernels", "copies", "communication", "runtime", "dataloader", "operators", "other")
PHASES = ("backward", "optimizer", "zero_grad", "forward", "sync", "data")  # the first goes first
HOOK = "[pl][profile]"
HOOKS = {"training_step": "forward", "validation_step": "forward", "test_step": "forward",
         "predict_step": "forward", "backward": "backward", "optimizer_step": "optimizer",
         "configure_gradient_clipping": "optimizer", "optimizer_zero_grad": "zero_grad",
         "batch_to_device": "data", "transfer_batch_to_device": "data",
         "train_dataloader_next": "data", "val_next": "data"}
READS = ("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal")
FACTS = (*range(2, 10), *range(17, 23), *range(31, 37), 39, 40, 41)  # records that only describe
ENDLESS = 1 << 62


@dataclasses.dataclass
class Op:
    name: str
    scope: int
    traced: bool
    thread: int
    begin: int
    end: int = ENDLESS
    closed: bool = False  # by an end of its own
    moved: bool = False
    phase: str = None
    sequence: int = None
    forward_thread: int = 0
    region: tuple = (None, None)  # the phase that it is in, and the unit
    outer: tuple = (None, None)

    @property
    def is_label(self):
        return self.scope == LABEL

    @property
    def works(self):
        return not self.is_label and self.scope != MODULE and not self.traced

    def named(self, prefix):
        return self.is_label and self.name.startswith(prefix)

    @property
    def is_backward(self):
        return self.scope == BACKWARD or \
            (not self.is_label and self.name.startswith("autograd::engine::"))

    @property
    def own_phase(self):
        if self.named(HOOK):
            return None if self.traced else HOOKS.get(self.name.rpartition(".")[2])
        return None if self.traced else "forward" if self.scope == MODULE else \
            "backward" if self.is_backward else \
            "optimizer" if self.named("Optimizer.step#") else \
            "zero_grad" if self.named("Optimizer.zero_grad#") else \
            "data" if self.named("enumerate(DataLoader)#") else None

    @property
    def begins_phase(self):
        return self.region[1] is None and self.region[0] and self.region != self.outer and \
            (self.region[0], self.outer[0]) != ("zero_grad", "optimizer")

    def unit_phase(self):
        """That of a unit, as far as it alone says it."""
        if self.region[0] == "optimizer" and self.sequence is None:
            return "no gradient"
        return "optimizer" if self.name.startswith("aten::_amp_") else \
            "sync" if self.name in READS else "plain"


def holds(said, outer):
    return said and not (said == "forward" and outer in ("backward", "data"))


@dataclasses.dataclass
class Step:
    begin: int
    end: int
    number: int
    made_of: str
    partial: bool = False
    parts: dict = None
    batches: int = 0


def read_ops(process):
    """By begin. An object that begins again ends what it was before."""
    names = {r.args[0]: r.text.decode("utf-8", "replace")
             for r in process.of_type(stream_reader.OP_NAME)}
    ops, open_ops = [], {}
    for r in sorted((r for r in process.records if r.type in (OP_BEGIN, OP_END)),
                    key=lambda r: r.begin):
        before = open_ops.pop(r.args[0], None)
        if before:
            before.end, before.closed = r.begin, r.type == OP_END
            before.moved = r.thread != before.thread
        if r.type == OP_BEGIN:
            name = names.get(r.args[1]) if r.args[1] else r.text.decode()
            op = Op(name, r.code, bool(r.flags & stream_reader.TRACED), r.thread, r.begin,
                    sequence=r.args[3] - 1 if r.args[3] else None, forward_thread=r.args[4])
            ops.append(op)
            open_ops[r.args[0]] = op
    return ops


class Busy:
    """When any of the spans lasts."""

    def __init__(self, spans):
        self.begins, self.ends = [], []
        for begin, end in sorted(s for s in spans if s[0] < s[1]):
            if self.ends and begin <= self.ends[-1]:
                self.ends[-1] = max(end, self.ends[-1])
            else:
                self.begins.append(begin)
                self.ends.append(end)

    def __call__(self, ns):
        at = bisect.bisect_right(self.begins, ns)
        return at > 0 and ns < self.ends[at - 1]


class Process:
    def __init__(self, process, by, pattern=None):
        self.process = process
        self.records = [r for r in process.records if r.thread != 0]
        shown = [r for r in self.records if r.type not in FACTS]
        self.first, self.last = min(r.begin for r in shown), max(r.end for r in shown)
        self.ops = read_ops(process)
        self.calls = {r.correlation: r for r in process.of_type(CALL)}
        self.find_phases()
        self.steps = getattr(self, f"by_{by}")(pattern)
        self.find_pauses()
        self.split()

    def open_at(self, thread, ns):
        return [op for op in self.ops if op.thread == thread and op.begin <= ns < op.end]

    def find_phases(self):
        for op in self.ops:
            around = [o for o in self.open_at(op.thread, op.begin) if o is not op]
            op.outer = around[-1].region if around else (None, None)
            if holds(op.own_phase, op.outer[0]):
                op.region = (op.own_phase, None)
            elif op.works and op.outer in ((None, None), ("optimizer", None)):
                op.region = (op.outer[0], op)
            else:
                op.region = op.outer
        for thread in {op.thread for op in self.ops}:
            self.find_units(thread)
        for op in self.ops:
            op.phase = op.region[1].phase if op.region[1] else op.region[0]

    def find_units(self, thread):
        """What is around each operator that nothing says a phase of; all at distinct times."""
        anchors = [(op.begin, op.region[0]) for op in self.ops if op.begins_phase and
                   (op.thread == thread or op.region[0] == "backward")]
        anchors += [(op.end, "optimizer") for op in self.ops if op.thread == thread and
                    op.is_label and op.own_phase == "optimizer" == op.region[0]]
        inside = [op for op in self.ops if op.thread == thread and op.region[1]]
        units = [op for op in inside if op.region[1] is op]
        made = []
        for unit in units:
            if unit.unit_phase() != "plain" or unit.sequence is None:
                continue
            following = [(ns, phase) for ns, phase in anchors if ns > unit.begin]
            for op in inside:
                if op.begin <= unit.begin or op.forward_thread:
                    continue
                if op.sequence is not None and op.sequence > unit.sequence:
                    following.append((op.begin, "more"))
                elif op in units and (op.unit_phase() == "sync" or
                                      (op.unit_phase() == "plain" and op.sequence is not None)):
                    following.append((op.begin, "no more"))
            if min(following, default=(0, None))[1] in ("more", "backward"):
                made.append(unit)
        anchors += [(unit.begin, "forward") for unit in made]
        for unit in units:
            unit.phase = unit.unit_phase()
            before = [anchor for anchor in sorted(anchors) if anchor[0] < unit.begin]
            last = before[-1][1] if before else None
            following = min((a for a in anchors if a[0] > unit.begin), default=(0, None))[1]
            trained = following in ("forward", "backward")
            if unit in made:
                unit.phase = "forward"
            elif unit.phase == "no gradient":
                unit.phase = "forward" if last == "forward" and trained else "optimizer"
            elif unit.phase == "plain":
                trains = any(phase in ("forward", "optimizer") for _, phase in before)
                unit.phase = "optimizer" if last in ("backward", "optimizer") and not trained \
                    and trains else "forward"

    # ---- definitions ---------------------------------------------------------------------------

    def of_begins(self, marks):
        """(begin, number, name) of each."""
        ends = [mark[0] for mark in marks[1:]] + [self.last]
        return [Step(begin, end, number, name, at == len(marks) - 1)
                for at, ((begin, number, name), end) in enumerate(zip(marks, ends))]

    def of_spans(self, spans):
        """(begin, end, number or None, name, whether it ended by itself) of each."""
        steps = []
        for begin, end, number, name, ended in sorted(spans, key=lambda span: span[0]):
            if not steps or begin >= steps[-1].end:
                steps.append(Step(begin, min(end, self.last), len(steps) if number is None
                                  else number, name, not ended))
        return steps

    def by_none(self, _):
        return []

    def by_range(self, _):
        marks = sorted((r.begin, r.args[0], None) for r in self.process.of_type(STEP))
        return self.of_begins(marks)

    def labels(self, prefix):
        return [op for op in self.ops if op.named(prefix) and not op.traced]

    def by_profiler(self, _):
        return self.of_spans((op.begin, op.end, int(op.name[13:]), op.name, op.closed)
                             for op in self.labels("ProfilerStep#"))

    def by_optimizer(self, wanted):
        ends = []
        for op in self.labels("Optimizer.step#"):
            around = [o for o in self.open_at(op.thread, op.begin) if o is not op]
            is_outermost = not any(o.is_backward or o.named("Optimizer.step#") for o in around)
            if is_outermost and op.closed and (not wanted or f"#{wanted}.step" in op.name):
                ends.append(op)
        ends.sort(key=lambda op: op.end)
        ends = [op for op in ends if (op.name, op.thread) == (ends[0].name, ends[0].thread)]
        begins = [self.first, *(op.end for op in ends)]
        return [Step(begin, op.end, i, op.name, i == 0)
                for i, (begin, op) in enumerate(zip(begins, ends))]

    def by_dataloader(self, _):
        outermost = [op for op in self.labels("enumerate(DataLoader)#") if not any(
            o is not op and o.named("enumerate(DataLoader)#")
            for o in self.open_at(op.thread, op.begin))]
        outermost = [op for op in outermost if op.thread == outermost[0].thread]
        return self.of_begins([(op.begin, i, op.name) for i, op in enumerate(outermost)])

    def by_graph(self, _):
        launches = [r for r in self.process.of_type(CALL) if r.result == 0 and r.flags & 39 == 0 and
                    self.process.functions[r.code].symbol.endswith("GraphLaunch")]
        launches.sort(key=lambda r: r.begin)
        counts = collections.Counter(r.args[0] for r in launches)  # in the order of the first
        if not counts or max(counts.values()) < 2:
            return []
        graph = counts.most_common(1)[0][0]
        launches = [r for r in launches if r.args[0] == graph]
        steps = self.of_begins([(r.begin, i, None) for i, r in enumerate(launches)])
        ends = [min((r.begin - r.args[0] for r in self.process.of_type(SILENCE)
                     if r.thread == launch.thread and step.begin < r.begin - r.args[0] < step.end
                     and r.args[1] - r.args[2] - r.args[3] >= r.args[0] / 2), default=None)
                for step, launch in zip(steps, launches)]
        if 2 * (len(ends) - ends.count(None)) <= len(ends):  # else they are of the loop
            for step, end in zip(steps, ends):
                step.end, step.partial = (end, False) if end else (step.end, step.partial)
        return steps

    def by_name(self, pattern):
        """Nested ranges of the default domain, and labels."""
        expression = re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.S)
        spans, stacks = [], collections.defaultdict(list)
        for r in sorted(self.records, key=lambda r: r.begin):
            if r.type == stream_reader.PUSH:
                stacks[r.thread].append((r.begin, r.text.decode()))
            elif r.type == stream_reader.POP and stacks[r.thread]:
                begin, name = stacks[r.thread].pop()
                spans.append((begin, r.begin, name, True))
        spans += [(begin, ENDLESS, name, False) for stack in stacks.values()
                  for begin, name in stack]
        spans += [(op.begin, op.end, op.name, op.closed) for op in self.labels("")]

        def number(name):
            digits = re.search(r"\d+$", name)
            return int(digits[0]) if digits and name != pattern else None
        return self.of_spans((begin, end, number(name), name, ended)
                             for begin, end, name, ended in spans if expression.fullmatch(name))

    def find_pauses(self):
        pauses, begin = [], None
        for r in sorted(self.process.of_type(PAUSE), key=lambda r: r.begin):
            if r.args[0] and begin is None:
                begin = r.begin
            elif not r.args[0] and begin is not None:
                pauses.append((begin, r.begin))
                begin = None
        if begin is not None:
            pauses.append((begin, ENDLESS))
        self.steps = [step for step in self.steps
                      if not any(begin <= step.begin < end >= step.end for begin, end in pauses)]
        for step in self.steps:
            step.partial |= any(begin < step.end and step.begin < end for begin, end in pauses)

    # ---- what the time was spent on ------------------------------------------------------------

    def split(self):
        kernel_names = {r.args[0]: r.text.decode()
                        for r in self.process.of_type(TYPE_NUMBERS["kernel_name"])}
        self.kernel_name = lambda r: kernel_names.get(r.args[3], "(others)")
        spans = collections.defaultdict(list)
        for r in self.records:
            if r.type in WORK:
                is_nccl = r.type == KERNEL and self.kernel_name(r).startswith("nccl")
                part = "copies" if r.type in (COPY, SET) else \
                    "communication" if is_nccl else "kernels"
                spans[part].append((r.begin, r.end))
            elif r.type == CALL:
                spans["runtime"].append((r.begin, r.end))
                if "Synchronize" in self.process.functions[r.code].symbol and \
                        not self.thread_phase(r.thread, r.begin):
                    spans["waits"].append((r.begin, r.end))
        for op in self.ops:
            if op.named("enumerate(DataLoader)#") and not op.traced:
                spans["dataloader"].append((op.begin, op.end))
            elif op.works:
                spans["operators"].append((op.begin, op.end))
        self.cuts = sorted({ns for all_spans in spans.values() for span in all_spans
                            for ns in span} | {ns for op in self.ops for ns in (op.begin, op.end)})
        busy = {part: Busy(spans[part]) for part in PARTS[:-1]}
        self.waits = Busy(spans["waits"])
        self.host = collections.Counter()
        loads = Busy(spans["dataloader"]).begins
        for step in self.steps:
            step.parts = dict.fromkeys(PARTS, 0)
            step.batches = sum(step.begin <= ns < step.end for ns in loads)
            gap, last = 0, None
            for begin, end in self.pieces(step):
                part = next((p for p in PARTS[:-1] if busy[p](begin)), "other")
                step.parts[part] += end - begin
                if step.partial:
                    continue
                phase = self.phase_at(begin)
                if not phase:
                    gap += end - begin
                    continue
                self.host["other" if phase != last else phase] += gap
                self.host[phase] += end - begin
                gap, last = 0, phase
            self.host["other"] += gap

    def pieces(self, step):
        """Pieces of it in which nothing changes."""
        low, high = (bisect.bisect_right(self.cuts, ns) for ns in (step.begin, step.end))
        cuts = [step.begin, *(ns for ns in self.cuts[low:high] if ns < step.end), step.end]
        return [(a, b) for a, b in zip(cuts, cuts[1:]) if a < b]

    def thread_phase(self, thread, ns):
        """Of the innermost; a closure in an update goes on with what was forward in it."""
        around = self.open_at(thread, ns)
        if not around:
            return None
        last = max((op for op in self.ops if op.thread == thread and op.end <= ns),
                   key=lambda op: op.end, default=None)
        if around[-1].region == ("optimizer", None) and last and last.phase == "forward" and \
                not any(op.thread == thread and last.end < op.begin <= ns for op in self.ops):
            return "forward"
        return around[-1].phase

    def phase_at(self, ns):
        phases = {self.thread_phase(thread, ns) for thread in {op.thread for op in self.ops}}
        return next((phase for phase in PHASES if phase in phases),
                    "sync" if self.waits(ns) else None)

    def gpu_phases(self):
        """GPU time by the phase in which the host began the work."""
        sums = collections.Counter()
        for r in self.records:
            if r.type not in WORK:
                continue
            call = self.calls.get(r.correlation)
            at = call.begin if call else r.begin
            around = self.open_at(call.thread, at) if call else []
            around = [op for op in reversed(around) if not op.traced]
            found, is_in_op = None, False
            for op in around:
                if not found or (op.own_phase and not holds(found, op.own_phase)):
                    found = op.own_phase
                is_in_op |= not found and op.works
                if found not in (None, "forward"):
                    break
            phase = found
            if is_in_op and found in (None, "optimizer"):
                units = [op for op in self.ops if op.region[1] is op and op.thread == call.thread
                         and op.begin <= at]
                phase = units[-1].phase if units else "forward"
            if any(s.begin <= at < s.end and not s.partial for s in self.steps):
                sums[phase or "other"] += r.duration
        return sums

    def kernels_of(self, step):
        found = collections.defaultdict(lambda: [0, 0])
        for r in self.records:
            if r.type == KERNEL and step.begin <= r.begin < step.end:
                found[self.kernel_name(r)][0] += 1
                found[self.kernel_name(r)][1] += r.duration
        return found

    def operators_of(self, step):
        """How many began in it."""
        return collections.Counter(op.name for op in self.ops if op.works
                                   and step.begin <= op.begin < step.end
                                   and (op.closed or op.end == ENDLESS))


def quantile(durations, fraction):
    """The smallest that is not exceeded by so many."""
    return sorted(durations)[max(1, math.ceil(fraction * len(durations))) - 1]


def check(report, processes, samples=0):
    """Every number of the tables."""
    rows, wanted = report["steps"], [step for p in processes for step in p.steps]
    origin = min(p.first for p in processes)
    assert len(rows) == len(wanted)
    for row, step in zip(rows, wanted):
        assert sum(step.parts.values()) == step.end - step.begin
        assert {part: row[f"{part}_ns"] for part in PARTS} == step.parts
        assert (row["step"], row["begin_ns"], row["duration_ns"], row["partial"], row["made_of"],
                row["batches"]) == (step.number, step.begin - origin, step.end - step.begin,
                                    step.partial, step.made_of, step.batches)
        assert row["gpu_busy_ns"] == sum(step.parts[part] for part in PARTS[:3])
    whole = [step for step in wanted if not step.partial]
    assert (report["steps_whole"], report["steps_partial"]) == \
        (len(whole), len(wanted) - len(whole))
    if whole:
        check_sums(report, processes, whole, samples)
    else:
        assert report["step_stats"] == report["step_parts"] == report["phases"] == []


def check_sums(report, processes, whole, samples):
    durations = [step.end - step.begin for step in whole]
    stats = {row["name"]: row for row in report["step_stats"] if row["name"] != "slowest"}
    assert {name: row["duration_ns"] for name, row in stats.items()} == {
        "mean": sum(durations) // len(whole), "median": quantile(durations, 0.5),
        "p95": quantile(durations, 0.95), "p99": quantile(durations, 0.99)}
    slowest = [row for row in report["step_stats"] if row["name"] == "slowest"]
    assert [row["duration_ns"] for row in slowest] == sorted(durations, reverse=True)[:5]
    if samples:
        assert stats["median"]["samples_per_second"] == \
            pytest.approx(samples * 1e9 / quantile(durations, 0.5))
    assert {row["name"]: row["total_ns"] for row in report["step_parts"]} == \
        {part: sum(step.parts[part] for step in whole) for part in PARTS}
    host, gpu = collections.Counter(), collections.Counter()
    for process in processes:
        host.update(process.host)
        gpu.update(process.gpu_phases())
    phases = {row["name"]: (row["host_ns"], row["gpu_ns"]) for row in report["phases"]}
    assert phases == {name: (host[name], gpu[name]) for name in (*PHASES, "other")}
    assert sum(host.values()) == sum(durations)


def check_slowest(report, processes):
    """What is different in the slowest step."""
    whole = sorted((-(step.end - step.begin), at, step.begin, p, step)
                   for at, p in enumerate(processes) for step in p.steps if not step.partial)
    of_process = [item for item in whole if item[1] == whole[0][1]]
    if len(of_process) < 2:
        return False
    *_, process, slowest = of_process[0]
    median = of_process[len(of_process) // 2][-1]
    rows = {(row["kind"], row["name"]): row for row in report["slowest_step"]}
    for part in PARTS:
        row = rows["part", part]
        assert (row["slowest_ns"], row["median_ns"]) == (slowest.parts[part], median.parts[part])
        assert row["difference_ns"] == slowest.parts[part] - median.parts[part]
    a, b = process.kernels_of(slowest), process.kernels_of(median)
    found = {name: (row["slowest_count"], row["slowest_ns"], row["median_count"], row["median_ns"])
             for (kind, name), row in rows.items() if kind == "kernel"}
    assert found == {name: (*a[name], *b[name]) for name in a.keys() | b.keys()}
    a, b = process.operators_of(slowest), process.operators_of(median)
    found = {name: (row["slowest_count"], row["median_count"])
             for (kind, name), row in rows.items() if kind == "operator"}
    assert found == {name: (a[name], b[name]) for name in a.keys() | b.keys()}
    return True

