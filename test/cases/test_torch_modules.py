# SPDX-License-Identifier: Apache-2.0
"""--pytorch=modules: which modules of PyTorch were called, held against the program's own log; and
what their table says, against what the records say."""

import collections
import json

import conftest
import csv_tables
import pytest
import stream_reader
import toolchain

from made_ops import BACKWARD, LABEL, OTHER, Recording, T
from op_truth import covered, forward_of, innermost, last_time

MODULE = 254
SYSTEM_PYTHON = "/usr/bin/python3"
RAW = conftest.BUILD / "make_raw"


@pytest.fixture(name="run")
def fixture_run(library, tmp_path):
    def run(scene, stderr="", **settings):
        (tmp_path / "live").mkdir()
        env = toolchain.environment(tmp_path / "out", library, GPUPROF_LIVE=tmp_path / "live",
                                    LD_LIBRARY_PATH=toolchain.torch_ops()[1],
                                    **{"GPUPROF_PYTORCH": "modules", **settings})
        program = toolchain.SOURCES / "modules_work.py"
        done = toolchain.run([SYSTEM_PYTHON, program, tmp_path / "log", scene, toolchain.pytorch(),
                              "libcudart.so.12"], env)
        assert done.stderr == stderr
        return [(p, json.loads((tmp_path / f"log.{p.header.pid}").read_text()))
                for p in stream_reader.read_folder(tmp_path / "out")]
    return run


def events_of(process, scopes=(MODULE,)):
    """By thread id: ("begin", text) and ("end",) of modules, in the order of time."""
    tids = {r.thread: r.args[0] for r in process.of_type(stream_reader.THREAD)}
    by_thread = collections.defaultdict(list)
    for at, op in enumerate(stream_reader.read_ops(process)):
        if op.scope in scopes:
            by_thread[tids[op.thread]] += [(op.begin, at, ["begin", op.name]),
                                           (op.end, -at, ["end"])]
    return {tid: [what for *_, what in sorted(events)] for tid, events in by_thread.items()}


def told(log):
    by_thread = collections.defaultdict(list)
    for tid, *what in log:
        by_thread[tid].append(what)
    return by_thread


@pytest.mark.parametrize("scene,count", (
    ("plain", 21), ("threads", 8 * 50 * 4), ("refused", 3), ("compiled", 4), ("deep", 64),
    ("paused", 9), ("reused", 200), ("interrupted", 4), ("left", 204)))
def test_modules(run, scene, count):
    """Every forward is there, once, in its place, by its path."""
    [(process, log)] = run(scene)
    found = events_of(process)
    if scene == "refused":  # the begin of a module whose forward was never called is known
        [events] = found.values()
        assert events == [["begin", "Outer Outer"], ["begin", "Layer Outer.inner"], ["end"],
                          ["end"]]
        return
    assert found == told(log)
    assert sum(what[0] == "begin" for events in found.values() for what in events) == count


def test_hooks_of_lightning(run):
    """Its profiler is asked to measure each: they are labels, around the modules in them."""
    [(process, log)] = run("hooks")
    [(tid, events)] = events_of(process, (MODULE, LABEL)).items()
    events = events[[what[-1].startswith("[pl]") for what in events].index(True):]
    assert events == told(log)[tid]
    assert collections.Counter(what[1].rpartition(".")[2] for what in events if what[1:])[
        "on_exception"] == 3


def test_child(run):
    """The child of a fork has the hooks, since its Python has them, and names of its own."""
    runs = run("fork")
    assert len(runs) == 2
    for process, log in runs:
        assert events_of(process) == told(log) and len(log) == 8


@pytest.mark.parametrize("scene,wanted,meta", (
    ("unwanted", "shapes", []), ("compiled", "modules,shapes", ["modules=on"])))
def test_what_is_wanted(run, scene, wanted, meta):
    """The program fails where hooks are set that nobody wants, and where wanted ones are not."""
    [(process, _)] = run(scene, GPUPROF_PYTORCH=wanted, GPUPROF_SEAL="20ms")
    said = [r.text.decode() for r in process.of_type(stream_reader.META)]
    assert [text for text in said if text.startswith("modules=")][-1:] == meta
    assert "pytorch=shapes" in said and bool(events_of(process)) == bool(meta)


# ---- the table ---------------------------------------------------------------------------------

COLUMNS = ("calls", "self_cpu_ns", "cpu_ns", "self_gpu_ns", "gpu_ns", "backward_cpu_ns",
           "backward_gpu_ns")


def wanted_of(process):
    """The table, from the definition: all that is around is looked for each time."""
    last = last_time(process)
    ops = [op for op in stream_reader.read_ops(process) if not op.traced]
    for op in ops:
        op.end = op.end or last
    modules = [op for op in ops if op.scope == MODULE]
    works = [op for op in ops if op.scope != MODULE]

    def around(at, thread, among):
        return [op for op in among if op.thread == thread and op.begin <= at < op.end]

    rows = collections.defaultdict(lambda: dict.fromkeys(COLUMNS, 0))
    for op in modules:
        inside = [m for m in modules if m is not op and m.thread == op.thread and
                  op.begin < m.begin < op.end]
        row = rows[op.name]
        row["calls"] += 1
        row["cpu_ns"] += op.end - op.begin
        row["self_cpu_ns"] += op.end - op.begin - covered((m.begin, m.end) for m in inside)
    backward = {}  # of a backward operator: the modules around its forward one
    for op in works:
        forward = forward_of(op, works, last)
        found = around(forward.begin, forward.thread, modules) if forward else []
        if found:
            backward[id(op)] = found
    for op in works:
        outer = [o for o in around(op.begin, op.thread, works) if o is not op]
        if id(op) in backward and not any(id(o) in backward for o in outer):
            for module in backward[id(op)]:
                rows[module.name]["backward_cpu_ns"] += op.end - op.begin
    calls = {r.correlation: r for r in process.of_type(stream_reader.CALL)}
    for work in process.of_type(stream_reader.TYPE_NUMBERS["kernel"]):
        call = calls[work.correlation]
        forward = around(call.begin, call.thread, modules)
        for module in forward:
            rows[module.name]["gpu_ns"] += work.duration
        if forward:
            rows[innermost(forward).name]["self_gpu_ns"] += work.duration
        inside = [op for op in around(call.begin, call.thread, works) if id(op) in backward]
        for module in backward[id(innermost(inside))] if inside else []:
            rows[module.name]["backward_gpu_ns"] += work.duration
    return rows


def made(seed=3):
    r, lines = Recording(), iter(range(seed * 1000, 10**9, 777))
    with r.op("Lonely Lonely", scope=MODULE):
        pass
    for number in range(4):
        numbers = []
        with r.op("GPT GPT", scope=MODULE):
            r.launch(next(lines))
            for layer in range(2):
                with r.op(f"Block GPT.layers.{layer}", scope=MODULE), \
                        r.op(f"Linear GPT.layers.{layer}.fc", scope=MODULE):
                    with r.op("aten::mm", T((4, 8)), T((8, 16)), seq=10 * number + layer):
                        r.launch(next(lines))
                    numbers.append(10 * number + layer)
                with r.op("aten::relu", T((4, 16)), seq=10 * number + 5 + layer):
                    r.launch(next(lines))
                numbers.append(10 * number + 5 + layer)
        for sequence in reversed(numbers):
            with r.op("autograd::engine::evaluate_function: MmBackward0", thread=OTHER,
                      scope=BACKWARD, seq=sequence, forward=1):
                r.launch(next(lines), thread=OTHER)
                with r.op("MmBackward0", thread=OTHER, scope=BACKWARD, seq=sequence, forward=1), \
                        r.op("aten::mm", T((4, 16)), T((16, 8)), thread=OTHER):
                    r.launch(next(lines), thread=OTHER)
        r.launch(next(lines))
    r.device("NVIDIA H100", 0)
    return r


def test_table(run_verb, tmp_path):
    folder = made().write(RAW, tmp_path / "data")
    [process] = stream_reader.read_folder(folder)
    wanted = wanted_of(process)
    report = json.loads(run_verb("report", "--format=json", folder).stdout)
    found = {f"{row['class']} {row['name']}": {key: row[key] for key in COLUMNS}
             for row in report["modules"]}
    assert found == wanted and len(found) == 6
    by_name = {row["name"]: row for row in report["modules"]}
    # 2 x 4 x 8 x 16 for each product: two in a forward, four in a backward.
    assert by_name["GPT"]["flops"] == 4 * 2 * 1024
    assert by_name["GPT"]["backward_flops"] == 4 * 4 * 1024
    assert by_name["GPT.layers.1.fc"]["flops"] == 4 * 1024
    assert "flops" not in by_name["Lonely"]
    order = [row["gpu_ns"] + row["backward_gpu_ns"] for row in report["modules"]]
    assert order == sorted(order, reverse=True)
    assert abs(order[0] / report["ops_gpu_ns"] - by_name["GPT"]["gpu_share"]) < 1e-3


def test_other_tables_do_not_change(run_verb, tmp_path):
    """Operators and labels are what they are without modules around them."""
    with_modules = made().write(RAW, tmp_path / "with")
    plain = made()
    process = stream_reader.read_folder(with_modules)[0]
    modules = {r.args[0] for r in process.of_type(stream_reader.OP_BEGIN) if r.code == MODULE}
    begins, ends = (stream_reader.TYPE_NUMBERS[name] for name in ("op_begin", "op_end"))
    plain.lines = [line for line in plain.lines if not any(
        line.split()[1] == str(kind) and int(line.split()[8].split(",")[0]) in modules
        for kind in (begins, ends))]
    without = plain.write(RAW, tmp_path / "without")
    for by in ("name", "shape", "stack", "range"):
        reports = [json.loads(run_verb("report", "--format=json", f"--by={by}", folder).stdout)
                   for folder in (with_modules, without)]
        for key in ("ops", "labels", "ops_under_none"):
            for row in (row for report in reports for row in report.get(key, [])):
                row.pop("self_cpu_ns", None), row.pop("cpu_share", None)
            assert reports[0].get(key) == reports[1].get(key), (by, key)


def test_trace(run_verb, tmp_path):
    """As PyTorch's own traces have them: each with that around it."""
    folder = made().write(RAW, tmp_path / "data")
    run_verb("merge", folder, "-o", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    modules = {e["args"]["Python id"]: e for e in events if e.get("cat") == "python_function"}
    [process] = stream_reader.read_folder(folder)
    ops = [op for op in stream_reader.read_ops(process) if op.scope == MODULE]
    assert len(modules) == len(ops) == 1 + 4 * 5
    for e in modules.values():
        parent = modules.get(e["args"]["Python parent id"])
        path = e["args"]["module"]
        kind = f"nn.Module: {e['args']['module'] if '.' not in path else ''}"
        assert e["name"].startswith(kind) and e["name"].rsplit("_", 1)[1].isdigit()
        assert (parent is None) == ("." not in path)
        if parent:
            assert path.startswith(parent["args"]["module"] + ".")
            assert parent["ts"] <= e["ts"] and \
                e["ts"] + e["dur"] <= parent["ts"] + parent["dur"] + 1e-3
    owners = {e["args"]["External id"] for e in events if e.get("cat") == "kernel"}
    assert not owners & {e["args"]["External id"] for e in modules.values()}


# ---- hooks -------------------------------------------------------------------------------------

def test_table_of_hooks(run_verb, tmp_path):
    """Each by its name, with what no other one inside of it takes; they are in no other table."""
    r, wanted = Recording(), collections.defaultdict(lambda: [0, 0, 0, 0, 0])

    def hook(name, *inside):
        """How long it took, and the GPU for it."""
        begin, work = r.now + 1000, 0
        with r.op(f"[pl][profile]{name}", scope=LABEL):
            begin = r.now
            inner = [act() for act in inside]
        total, gpu = r.now - begin, sum(gpu for _, gpu, _ in inner)
        row = wanted[name]
        row[0] += 1
        row[1] += total - sum(ns for ns, _, is_hook in inner if is_hook)
        row[2] += total
        row[3] += sum(gpu for _, gpu, is_hook in inner if not is_hook) + work
        row[4] += gpu
        return total, gpu, True

    def work(ns):
        with r.op("mine", scope=LABEL), r.op("aten::mm", T((4, 8)), T((8, 16))):
            r.launch(ns)
        return 0, ns, False
    for step in range(3):
        hook("run_training_batch", lambda: work(100), lambda: hook(
            "[LightningModule]Net.optimizer_step", lambda: hook(
                "[Strategy]S.training_step", lambda: work(2000 + step), lambda: work(7)),
            lambda: work(300)), lambda: hook("[Callback]Bar.on_train_batch_end"))
    folder = r.write(RAW, tmp_path / "data")
    report = json.loads(run_verb("report", "--format=json", folder).stdout)
    found = {row["name"]: [row[key] for key in ("calls", "self_cpu_ns", "cpu_ns", "self_gpu_ns",
                                                "gpu_ns")] for row in report["hooks"]}
    assert found == wanted and len(found) == 4
    assert [row["name"] for row in report["labels"]] == ["mine"]
    order = [row["cpu_ns"] for row in report["hooks"]]
    assert order == sorted(order, reverse=True)
    text = run_verb("report", "--table=hooks", folder).stdout
    assert "[Strategy]S.training_step" in text and "[pl]" not in text
    rows = csv_tables.table(run_verb("report", "--format=csv", "--table=hooks", folder).stdout)
    assert [row["name"] for row in rows] == [row["name"] for row in report["hooks"]]
    part = tmp_path / "part"
    run_verb("report", "--partial", "-o", part, folder)
    whole = json.loads(run_verb("report", "--format=json", "--combine", part).stdout)
    assert whole["hooks"] == report["hooks"]
    stacks = json.loads(run_verb("report", "--format=json", "--by=stack", folder).stdout)["ops"]
    assert ["mine", "[pl][profile]run_training_batch"] in [row.get("stack") for row in stacks]


def test_no_hooks(run_verb, tmp_path):
    folder = made().write(RAW, tmp_path / "data")
    text = run_verb("report", "--table=hooks", folder).stdout
    assert (": no hooks were recorded; 'gpuprof run --pytorch=modules' records Lightning's hooks"
            in text)
