# SPDX-License-Identifier: Apache-2.0
"""--pytorch: operators of the simulated PyTorch, held against its own log, one by one."""

import collections
import dataclasses
import json
import pathlib
import signal
import struct

import pytest
import stream_reader
import toolchain

from op_truth import Expected, check_tables, check_trace

LAYOUTS = ("2.1", "2.1-old", "2.4-old", "2.11", "2.15")
LABEL_SCOPE, UNKNOWN_SCOPE = 7, 255
NAMES_MAX, INPUTS_MAX, VARIANTS = (1 << 16) - 1, (1 << 18) - 1, 256
BYTES_MAX = 4096
SYSTEM_PYTHON = "/usr/bin/python3"
VALUES = 40 * 14  # operators of the scenario


@dataclasses.dataclass
class Line:
    """An operator as the simulated PyTorch's log has it."""
    number: int
    tid: int
    callbacks: int  # how many were told of it
    name: str
    scope: int
    sequence: int
    forward: int
    thread: int
    inputs: str
    end_tid: int = None


def read_log(path):
    lines, by_number = [], {}
    for text in path.read_text(encoding="utf-8").splitlines():
        kind, tid, number, *rest = text.split("\t")
        if kind == "E":
            if int(number) in by_number:  # else the parent's log has it
                by_number[int(number)].end_tid = int(tid)
            continue
        line = Line(int(number), int(tid), int(rest[0]), rest[1], *map(int, rest[2:6]), rest[6])
        by_number[line.number] = line
        lines.append(line)
    return lines


def is_tracing(name):
    return name.endswith("(dynamo_timed)")


def text_of(values):
    """The inputs as sim_torch.h writes them."""
    words = []
    for value in values:
        kind = value[0]
        if kind == "tensor":
            words.append(f"T{value[1]}[{','.join(map(str, value[2]))}]")
        elif kind == "list":
            words += ["(", *([text_of(value[1])] if value[1] else []), ")"]
        elif kind == "double":
            words.append(f"D{value[1]:g}")
        elif kind in ("int", "bool"):
            words.append(f"{'I' if kind == 'int' else 'B'}{int(value[1])}")
        else:
            words.append({"none": "N", "undefined": "U", "other": "O", "scalar": "S",
                          "unread": "T?", "cut": "..."}[kind])
    return " ".join(words)


class Runner:
    def __init__(self, library, folder):
        self.library, self.folder = library, folder
        self.out, self.live, self.log = folder / "out", folder / "live", folder / "log"
        self.live.mkdir()
        self.program, self.path = toolchain.torch_ops()

    def __call__(self, *arguments, status=0, pytorch="shapes", layout="2.11", stderr="", **more):
        if pytorch:
            more["GPUPROF_PYTORCH"] = pytorch
        env = toolchain.environment(self.out, self.library, GPUPROF_LIVE=self.live,
                                    LD_LIBRARY_PATH=self.path, SIMTORCH_LAYOUT=layout,
                                    SIMTORCH_LOG=self.log, **more)
        done = toolchain.run([self.program, *arguments], env, status=status)
        assert stderr is None or done.stderr == stderr
        return self

    @property
    def processes(self):
        return stream_reader.read_folder(self.out)

    @property
    def process(self):
        [process] = self.processes
        return process

    def logged(self, process):
        return read_log(self.folder / f"log.{process.header.pid}")


@pytest.fixture(name="torch")
def fixture_torch(library, tmp_path):
    return Runner(library, tmp_path)


def by_thread(ops, key):
    threads = collections.defaultdict(list)
    for op in ops:
        threads[key(op)].append(op)
    return threads


def compare(process, lines, has_inputs=True, has_layout=True, has_ends=True):
    """Every operator that a callback was told of is there, once, in order, with all there is to be
    known of it. Returns how many."""
    tids = {r.thread: r.args[0] for r in process.of_type(stream_reader.THREAD)}
    ours = by_thread(stream_reader.read_ops(process), lambda op: tids[op.thread])
    theirs = by_thread([line for line in lines if line.callbacks], lambda line: line.tid)
    assert {tid: len(ops) for tid, ops in ours.items()} == \
        {tid: len(ops) for tid, ops in theirs.items()}
    count = 0
    for tid, ops in theirs.items():
        for op, line in zip(ours[tid], ops):
            is_label = line.scope == LABEL_SCOPE
            known = has_layout and not is_label
            assert op.name == line.name and op.own_thread == line.thread
            assert op.scope == (line.scope if is_label or has_layout else UNKNOWN_SCOPE)
            assert op.sequence == (line.sequence if known and line.sequence >= 0 else None)
            assert op.forward_thread == (line.forward if known else 0)
            if known and has_inputs and line.inputs and not op.traced:
                assert text_of(op.inputs) == line.inputs, line
            else:
                assert op.inputs is None
            if has_ends:
                assert (op.end is not None) == (line.end_tid is not None)
                assert op.end is None or (op.begin <= op.end and
                                          tids[op.end_thread] == line.end_tid)
            count += 1
    return count


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values(torch, layout):
    process = torch("values", layout=layout).process
    assert compare(process, torch.logged(process)) == VALUES
    assert process.meta["pytorch"] == "shapes" and not process.losses
    assert len(process.of_type(stream_reader.OP_NAME)) == 14


@pytest.mark.parametrize("layout", ("2.1-old", "2.15"))
def test_names_only_where_wanted(torch, layout):
    process = torch("values", layout=layout, pytorch="names").process
    assert compare(process, torch.logged(process), has_inputs=False) == VALUES
    assert process.meta["pytorch"] == "names" and not process.of_type(stream_reader.OP_INPUTS)


@pytest.mark.parametrize("layout", ("unknown", "hostile"))
def test_strange_layout(torch, layout):
    """Nothing is believed that does not fit: names are asked for, the rest is not read."""
    reason = "this version's operators have an unknown memory layout"
    process = torch("values", layout=layout).process
    assert process.meta["said"] == f"PyTorch operators are recorded without shapes: {reason}"
    assert compare(process, torch.logged(process), has_layout=False) == VALUES
    assert process.meta["pytorch"] == f"names only: {reason}"


def test_strange_tensors(torch):
    reason = "this version's tensors have an unknown memory layout"
    process = torch("values", layout="hostile-tensors").process
    assert process.meta["said"] == f"PyTorch operators are recorded without shapes: {reason}"
    lines = torch.logged(process)
    for line in lines:
        line.inputs = " ".join("T?" if word[0] == "T" else word for word in line.inputs.split())
    assert compare(process, lines) == VALUES
    assert process.meta["pytorch"] == f"names: {reason}"


def test_crossing(torch):
    process = torch("crossing").process
    assert compare(process, torch.logged(process)) == 20 * 4
    ops = [op for op in stream_reader.read_ops(process) if op.name in "ab"]
    for a, b in zip(ops[::2], ops[1::2]):
        assert a.begin < b.begin < a.end < b.end


@pytest.mark.parametrize("pytorch", ("shapes", "stacks"))
def test_threads(torch, pytorch):
    process = torch("threads", pytorch=pytorch).process
    assert compare(process, torch.logged(process)) == 64 * 300
    assert not process.losses
    # One record of each name and each set of inputs, whoever met it first.
    assert len(process.of_type(stream_reader.OP_NAME)) == 3
    assert len(process.of_type(stream_reader.OP_INPUTS)) == 7 * 5 * 3 + 1


def test_fork_in_an_operator(torch):
    torch("fork")
    processes = sorted(torch.processes, key=lambda p: p.header.start_time)
    logs = list(torch.folder.glob("log.*"))
    assert len(logs) == 3 and len(processes) == 2, "a child without CUDA leaves no file"
    parent = next(p for p in processes if p.header.parent_pid not in
                  [q.header.pid for q in processes])
    child = next(p for p in processes if p is not parent)
    compare(parent, torch.logged(parent))
    [*_, before, after] = torch.logged(child)
    assert before.callbacks and after.callbacks
    [op] = stream_reader.read_ops(child)
    assert op.name == after.name and text_of(op.inputs) == after.inputs and op.end


def test_exit_in_an_operator(torch):
    process = torch("exit", status=3).process
    assert compare(process, torch.logged(process)) == 1


def test_killed_in_an_operator(torch):
    process = torch("kill", status=-signal.SIGKILL).process
    toolchain.remove_live([process])
    lines = torch.logged(process)
    assert compare(process, lines) == len(lines) == VALUES + 1
    assert [op.name for op in stream_reader.read_ops(process) if not op.end] == ["does not end"]


TRACED = [True, True, True, False, True, False, False, True, True, False] * 2


def test_traced(torch):
    """What is done to fake tensors, which are on the device meta, is no work: it has no sizes and
    is marked, and so is what is inside. What Python does for real tensors is work."""
    process = torch("traced").process
    lines = torch.logged(process)
    assert compare(process, lines) == len(lines)
    ops = stream_reader.read_ops(process)
    assert [op.traced for op in ops] == TRACED


def test_numbers_fill_no_table(torch):
    process = torch("variants").process
    inputs = [text_of(op.inputs) for op in stream_reader.read_ops(process)]
    assert inputs == [f"T6[3] I{i}" for i in range(VARIANTS)] + \
        ["T6[3] S"] * (400 - VARIANTS) + [f"T6[1,{i}] ( I{i} )" for i in range(400)] + \
        ["T6[3] I399"]


def test_list_that_is_too_long(torch):
    process = torch("list").process
    [record] = process.of_type(stream_reader.OP_INPUTS)
    assert BYTES_MAX - 700 < len(record.text) <= BYTES_MAX
    [(kind, values)] = stream_reader.read_inputs(record.text)[:1]
    assert kind == "list" and values[-1] == ("cut",) and \
        set(map(repr, values[:-1])) == {repr(("tensor", 6, [300, 2]))}


def test_pause(torch):
    """No operator of a pause, but the ends of those that began before it; nobody is told of it."""
    process = torch("pause").process
    ops = stream_reader.read_ops(process)
    lines = torch.logged(process)
    assert compare(process, lines) == len(ops)
    assert [line.name for line in lines if not line.callbacks] == ["in a pause"] * 3
    assert [op.name for op in ops] == ["outer", "after it"] * 3 and all(op.end for op in ops)
    assert sum(r.type == stream_reader.OP_END for r in process.records) == len(ops)


def test_given_up(torch):
    """Inputs first, then operators; labels never."""
    process = torch("governed", GPUPROF_OVERHEAD_MAX="0.0001%", stderr=None).process
    lines = torch.logged(process)
    steps = [(s.code, s.text.decode()) for s in process.of_type(stream_reader.STEP_DOWN)]
    assert [s for s in steps if s[0] >= 7] == [(7, "inputs of operators off"),
                                               (8, "operators off")]
    assert [text for key, text in process.metas if key == "pytorch"] == \
        ["shapes", "names", "labels"]
    ops = stream_reader.read_ops(process)
    assert [op.name for op in ops] == [line.name for line in lines if line.callbacks]
    assert [op.name for op in ops[-99:]] == ["step ()"] * 99  # they end amid the round before
    kinds = [op.inputs is not None for op in ops if op.scope != LABEL_SCOPE]
    assert kinds[0] and not kinds[-1] and kinds == sorted(kinds, reverse=True)


@pytest.mark.long
@pytest.mark.parametrize("budget", (2, 0.2))
def test_a_budget_holds(torch, budget):
    """200,000 operators a second. What they cost is measured by the program, too, by its thread's
    clock: gpuprof says no less, and what is left is within a quarter of the budget."""
    env = toolchain.environment(
        torch.out, torch.library, GPUPROF_LIVE=torch.live, LD_LIBRARY_PATH=torch.path,
        GPUPROF_PYTORCH="shapes", GPUPROF_OVERHEAD_MAX=f"{budget}%")
    done = toolchain.run([torch.program, "rate", 5], env)
    spent_ns, share, callbacks = map(float, done.stdout.split())
    process = torch.process
    assert 100 * share <= 1.25 * budget
    steps = [s.code for s in process.of_type(stream_reader.STEP_DOWN)]
    assert (8 in steps) == (callbacks == 1) and (7 in steps) >= (8 in steps)
    assert bool(steps) == done.stderr.startswith("gpuprof: ")
    costs = {r.text: r.args for r in process.of_type(stream_reader.TYPE_NUMBERS["cost"])}
    assert costs[b"operator"][3] >= 0.4 * spent_ns > 0


class Frames:
    """The Python frames of a process's stacks, and whether they are borrowed."""

    def __init__(self, process):
        self.places = {}
        for r in process.of_type(stream_reader.TYPE_NUMBERS["python"]):
            file, function = r.text.split(b"\0")
            self.places[r.args[0]] = [file.decode(), r.args[1], function.decode()]
        self.stacks = {r.args[0]: r for r in process.of_type(stream_reader.TYPE_NUMBERS["stack"])}

    def of(self, number):
        record = self.stacks[number]
        frames = struct.unpack(f"<{len(record.text) // 8}Q", record.text)
        assert all(frame >> 60 == 2 for frame in frames), "Python's alone"
        return [self.places[frame & 0xFFFFFFFF] for frame in frames], record.args[1]


def run_python(torch, scene, pytorch="stacks", **settings):
    """Each process, its operators' stacks, and what Python said of them."""
    env = toolchain.environment(
        torch.out, torch.library, GPUPROF_LIVE=torch.live, LD_LIBRARY_PATH=torch.path,
        GPUPROF_PYTORCH=pytorch, **{"GPUPROF_BACKTRACE_THRESHOLD": "off", **settings})
    told = torch.folder / "told"
    done = toolchain.run([SYSTEM_PYTHON, toolchain.SOURCES / "torch_python.py", scene, told], env)
    assert not done.stderr
    return [(process, json.loads((torch.folder / f"told.{process.header.pid}").read_text()))
            for process in torch.processes]


def check_stacks(process, told, flags=0):
    frames = Frames(process)
    ops = stream_reader.read_ops(process)
    assert [op.name for op in ops] == [name for name, _ in told]
    for op, (name, stack) in zip(ops, told):
        if stack is None:
            assert op.stack == 0, name
        else:
            assert frames.of(op.stack) == (stack, flags if name == "Backward" else 0), name
    return frames


def test_stacks_of_threads(torch):
    """Sixteen that meet the same places and stacks, in their own order each."""
    [(process, told)] = run_python(torch, "threads")
    frames = Frames(process)
    ours = [repr([op.name, frames.of(op.stack)[0] if op.stack else None])
            for op in stream_reader.read_ops(process)]
    assert sorted(ours) == sorted(map(repr, told)) and len(ours) == len(told) > 16 * 30 * 4
    assert len({repr(frames.of(number)) for number in frames.stacks}) == \
        len({repr(stack) for _, stack in told if stack}) and not process.losses
    [*_, (count, timed, *_)] = [r.args for r in process.of_type(stream_reader.TYPE_NUMBERS["cost"])
                                if r.text == b"operator"]
    assert count == 2 * len(ours) and count / 64 < timed < count / 16  # from first to last


@pytest.mark.parametrize("scene", ("kinds", "moved", "native", "borrowed"))
def test_stacks(torch, scene):
    [(process, told)] = run_python(torch, scene)
    frames = check_stacks(process, told, flags=2)
    different = {repr(stack) for _, stack in told if stack}
    assert len(frames.stacks) == len(different) > 0
    assert process.meta["pytorch"] == "stacks"
    assert process.meta["stacks"] == "Python frames, for operators only" and not process.losses
    calls = process.of_type(stream_reader.CALL)
    assert calls and not any(call.stack for call in calls)
    costs = {r.text: r.args for r in process.of_type(stream_reader.TYPE_NUMBERS["cost"])}
    outermost = sum(op.stack > 0 for op in stream_reader.read_ops(process))
    assert costs[b"operator_stack"][0] == outermost + 3 * (scene == "native")


def test_stacks_in_a_child(torch):
    """The operator around the fork is open there, too; what is in it has no stack."""
    for process, told in run_python(torch, "fork"):
        check_stacks(process, [line for line in told if line[0] != "aten::around" or
                               told[0][0] == "aten::first"])


def test_stacks_are_asked_for(torch):
    [(process, told)] = run_python(torch, "kinds", pytorch="shapes")
    assert len(stream_reader.read_ops(process)) == len(told)
    assert not process.of_type(stream_reader.TYPE_NUMBERS["stack"])
    assert process.meta["stacks"] == "absent: switched off"


def test_stacks_beside_those_of_calls(torch):
    [(process, told)] = run_python(torch, "kinds", GPUPROF_BACKTRACE_THRESHOLD="0")
    check_stacks(process, told)
    assert all(call.stack for call in process.of_type(stream_reader.CALL))


def test_stacks_are_given_up_first(torch):
    [(process, _)] = run_python(torch, "governed", GPUPROF_OVERHEAD_MAX="0.0001%")
    steps = [(s.code, s.text.decode()) for s in process.of_type(stream_reader.STEP_DOWN)]
    assert steps[0] == (9, "stacks of operators off")
    assert [text for key, text in process.metas if key == "pytorch"][:2] == ["stacks", "shapes"]
    ops = [op for op in stream_reader.read_ops(process) if op.name == "aten::linear0"]
    has_stack = [op.stack > 0 for op in ops]
    assert has_stack[0] and not has_stack[-1] and has_stack == sorted(has_stack, reverse=True)


def test_stacks_in_a_trace(torch, run_collector):
    [(process, told)] = run_python(torch, "kinds")
    trace = json.loads(run_collector("merge", torch.out).stdout)
    ops = [e for e in trace["traceEvents"] if e.get("cat") in ("cpu_op", "user_annotation")]
    by_number = {op["args"]["External id"]: op for op in ops}
    frames = trace["stackFrames"]
    for number, (name, stack) in enumerate(told, 1):
        op = by_number[number]
        assert op["name"] == name and ("stack" in op["args"]) == (stack is not None)
        if stack is None:
            assert "sf" not in op
            continue
        shown, at = [], op["sf"]
        while at:
            shown.append(frames[str(at)]["name"])
            at = frames[str(at)].get("parent")
        assert shown == [f"{function} ({pathlib.Path(file).name}:{line})"
                         for file, line, function in stack]
        assert op["args"]["stack"] == shown


@pytest.mark.parametrize("pytorch", ("off", None))
def test_off(torch, pytorch):
    process = torch("values", "0", pytorch=pytorch).process
    assert not stream_reader.read_ops(process) and "pytorch" not in process.meta


def test_operators_alone_record_nothing(torch):
    torch("alone")
    assert not torch.out.exists() and not list(torch.live.iterdir())


@pytest.mark.long
def test_more_labels_than_the_table_holds(torch):
    process = torch("labels").process
    assert compare(process, torch.logged(process)) == 70000 and not process.losses
    assert len(process.of_type(stream_reader.OP_NAME)) == NAMES_MAX


@pytest.mark.long
def test_more_inputs_than_the_table_holds(torch):
    process = torch("inputs", GPUPROF_ON_FULL="wait").process
    assert len(process.of_type(stream_reader.OP_INPUTS)) == INPUTS_MAX
    assert process.losses == {"op_inputs_dropped": 270000 - INPUTS_MAX}


def test_dump(torch, run_collector):
    torch("values")
    lines = run_collector("dump", torch.out).stdout.splitlines()
    ops = stream_reader.read_ops(torch.process)
    assert sum(line.startswith("op_begin ") for line in lines) == len(ops) == VALUES
    [conv] = [line for line in lines if line.startswith("op_inputs ") and "16,3,3,3" in line]
    assert ' values="float[8,3,32,32], float[16,3,3,3], undefined, (2, 2), (1, 1), (1, 1), 1" ' \
        in conv
    [to] = [line for line in lines if line.startswith("op_inputs ") and "c10::Half" in line]
    assert ' values="c10::Half[1,2,3,4,5,6,7], other, true, false, none" ' in to


def test_dump_says_what_is_traced(torch, run_collector):
    torch("traced")
    lines = [line for line in run_collector("dump", torch.out).stdout.splitlines()
             if line.startswith("op_begin ")]
    assert [line.endswith(" traced") for line in lines] == TRACED


@pytest.mark.parametrize("scenario, by", [
    pytest.param(scenario, by, marks=pytest.mark.long if (scenario, by) in
                 (("threads", "name"), ("threads", "stack")) else ())
    for scenario in ("values", "crossing", "threads", "traced", "pause")
    for by in ("name", "shape", "stack")])
def test_report(torch, run_collector, scenario, by):
    torch(scenario)
    report = run_collector("report", "--format=json", f"--by={by}", torch.out)
    assert report.returncode == 0
    check_tables(json.loads(report.stdout), Expected(torch.processes, by), 3)


@pytest.mark.parametrize("scenario", ("values", "crossing", "traced"))
def test_trace(torch, run_collector, scenario):
    """Of one thread: where times are rounded, those of several may have another order."""
    torch(scenario)
    trace = run_collector("merge", torch.out)
    assert trace.returncode == 0
    check_trace(json.loads(trace.stdout), torch.process)
