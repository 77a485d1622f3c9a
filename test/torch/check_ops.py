# SPDX-License-Identifier: Apache-2.0
"""A real PyTorch's operators, as gpuprof records them, held against torch.profiler's of the same
run: `make check-torch`."""

import collections
import json
import sys

import check_torch
import pytest
import stream_reader

sys.path.insert(0, str(check_torch.ROOT / "test" / "consumers"))

import check_operators  # pylint: disable=wrong-import-position

WORK = check_torch.HERE / "ops_work.py"
FLOPS_WORK = check_torch.HERE / "flops_work.py"
VERSION = tuple(map(int, check_torch.TORCH.name.split(".")[:2]))
LABEL_SCOPE = 7
ENGINE = "autograd::engine::evaluate_function: "  # torch.profiler gives it the number of its node
TYPES = dict(enumerate((
    "unsigned char", "signed char", "short int", "int", "long int", "c10::Half", "float", "double",
    "c10::complex<c10::Half>", "c10::complex<float>", "c10::complex<double>", "bool")))
TYPES[15] = "c10::BFloat16"
NUMBERS = {"int", "double", "bool", "scalar"}


def is_tensors(value):
    return value[0] == "list" and value[1] and \
        all(part[0] in ("tensor", "undefined") for part in value[1])


def dims(value):
    if value[0] == "tensor":
        return value[2]
    return [dims(part) for part in value[1]] if is_tensors(value) else []


def type_text(value):
    if value[0] == "tensor":
        return TYPES[value[1]]
    if value[0] in NUMBERS:
        return "Scalar"
    if value[0] != "list":
        return ""
    if is_tensors(value):
        return "TensorList"
    return "ScalarList" if all(part[0] in NUMBERS for part in value[1]) else ""


def nested(rows):
    """(begin, end, what) of one thread, in order of begin -> (depth, what)."""
    ends, found = [], []
    for begin, end, what in sorted(rows, key=lambda row: (row[0], -row[1])):
        while ends and ends[-1] <= begin:
            ends.pop()
        found.append((len(ends), what))
        ends.append(end)
    return found


def within(rows, window):
    """Of each thread what lies in the time of the label `window`."""
    [(low, high)] = [(b, e) for its in rows.values() for b, e, what in its if what[0] == window]
    kept = {tid: [row for row in its if low <= row[0] and row[1] <= high]
            for tid, its in rows.items()}
    return {tid: nested(its) for tid, its in kept.items() if its}


def theirs(path):
    rows = collections.defaultdict(list)
    for event in json.loads(path.read_text(encoding="utf-8"))["traceEvents"]:
        if event.get("cat") not in ("cpu_op", "user_annotation") or \
                event["name"].startswith("ProfilerStep"):
            continue
        args = event["args"]
        what = (event["name"], args.get("Sequence number"), args.get("Fwd thread id"),
                args.get("Input Dims"), args.get("Input type"))
        rows[event["tid"]].append((round(event["ts"] * 1000),
                                   round((event["ts"] + event["dur"]) * 1000), what))
    return within(rows, "window")


def is_coarse(path):
    """Up to 2.3 its times are whole microseconds, which say nothing of order and nesting, and lists
    of tensors have no sizes."""
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return all(isinstance(e["ts"], int) for e in events if e.get("cat") == "cpu_op")


def without_lists(what):
    if what[3] is None:
        return what
    return (*what[:3], [[] if kind == "TensorList" else size for size, kind in zip(*what[3:5])],
            *what[4:])


def ours(process):
    tids = {r.thread: r.args[0] for r in process.of_type(stream_reader.THREAD)}
    rows = collections.defaultdict(list)
    for op in stream_reader.read_ops(process):
        if op.end is None:
            continue
        known = op.inputs is not None
        what = (op.name, op.sequence, op.forward_thread if op.sequence is not None else None,
                [dims(value) for value in op.inputs] if known else None,
                [type_text(value) for value in op.inputs] if known else None, op.traced)
        rows[tids[op.thread]].append((op.begin, op.end, what))
    return within(rows, "window")


def same_inputs(one, other):
    """torch.profiler says nothing of the tensors in a list of optional ones (aten::index)."""
    if one[3] is None or other[3] is None:
        return one[3:5] == other[3:5]
    pairs = list(zip(*one[3:5], *other[3:5]))
    return len(one[3]) == len(other[3]) and all(
        (size, kind) == (its_size, its_kind) or
        ("index" in one[0] and kind == "TensorList" and (its_size, its_kind) == ([], ""))
        for size, kind, its_size, its_kind in pairs)


def compare_coarsely(mine, rows):
    """As many of each, with the same inputs but where ours has none or torch.profiler's less."""
    special = {what[0] for _, what in mine if what[5] or "index" in what[0]}
    mine, rows = ([without_lists(what[:5]) for _, what in its] for its in (mine, rows))
    engine = [[w for w in its if not w[0].startswith(ENGINE)] for its in (mine, rows)]
    counts = [collections.Counter(w[:3] for w in its) for its in engine]
    assert counts[0] == counts[1]
    counts = [collections.Counter(repr(w) for w in its if w[0] not in special) for its in engine]
    assert counts[0] == counts[1]
    return counts[0].total()


def test_operators(tmp_path):
    """Names, order, nesting, sizes, types, sequence numbers and forward threads."""
    trace = tmp_path / "trace.json"
    env = check_torch.environment(SIMCUDA_LOG=tmp_path)
    command = [check_torch.GPUPROF, "run", "-o", tmp_path / "out", "--pytorch=shapes", "--",
               check_torch.PYTHON, WORK, trace]
    done = check_torch.run(command, env)
    assert done.stdout.endswith("done\n")
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert process.meta["pytorch"] == "shapes" and not process.losses.get("op_inputs_dropped")
    mine, their = ours(process), theirs(trace)
    assert set(their) <= set(mine) and len(mine) > len(their) >= 2
    kinds = collections.Counter()
    for tid, rows in their.items():
        if is_coarse(trace):
            kinds["compared"] += compare_coarsely(mine[tid], rows)
            continue
        assert [(d, w[0]) for d, w in mine[tid]] == [(d, w[0]) for d, w in rows]
        for (_, one), (_, other) in zip(mine[tid], rows):
            if one[0].startswith(ENGINE):
                kinds["engine"] += 1
                continue
            assert one[1:3] == other[1:3], (one, other)
            kinds["traced" if one[5] else "compared"] += 1
            if not one[5]:
                assert same_inputs(one, other), (one, other)
    print(dict(kinds))
    assert kinds["compared"] > 1000
    assert is_coarse(trace) or (kinds["engine"] > 50 and kinds["traced"] > 20)


# ---- key_averages ------------------------------------------------------------------------------

def children_of(trace, categories):
    """Events, and what is inside of each, by their places, for each thread."""
    for events in check_operators.by_thread(check_operators.slices(trace, categories)).values():
        inside, around = [[] for _ in events], []
        for i, e in enumerate(events):
            while around and events[around[-1]]["ts"] + events[around[-1]]["dur"] <= e["ts"]:
                around.pop()
            if around:
                inside[around[-1]].append(i)
            around.append(i)
        yield events, inside


def averages(trace, merges, key_of):
    """key -> [calls, self, total, in CUDA]. `merges`: one whose only child has its name is one with
    it, as key_averages() has it; calls of CUDA are children, too, but their time is told apart."""
    rows = collections.defaultdict(lambda: [0, 0.0, 0.0, 0.0])
    calls = check_operators.slices(trace, check_operators.CALLS)
    for events, inside in children_of(trace, check_operators.HOST | check_operators.CALLS):
        merged = set()
        for i, e in enumerate(events):
            while merges and len(inside[i]) == 1 and events[inside[i][0]]["name"] == e["name"]:
                merged.add(inside[i][0])
                inside[i] = inside[inside[i][0]]
            if i in merged or e["cat"] not in check_operators.HOST:
                continue
            row = rows[key_of(e["name"], e["args"].get("Input Dims"))]
            row[0] += 1
            row[1] += e["dur"] - sum(events[k]["dur"] for k in inside[i]
                                     if events[k]["cat"] in check_operators.HOST)
            row[2] += e["dur"]
            row[3] += sum(c["dur"] for c in calls if e["ts"] <= c["ts"] < e["ts"] + e["dur"])
    return rows


def check_averages(trace, keys, key_of):
    """torch.profiler's table is as its trace says, but that a call whose operator it does not know
    may count for what is open then on another thread, and a label on the device for one more."""
    rows = averages(trace, True, key_of)
    for event in check_operators.slices(trace, {"gpu_user_annotation"}):
        rows[key_of(event["name"], None)][0] += 1
    found = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for name, sizes, *cells in keys:
        key = key_of(name, sizes)
        found[key] = [a + b for a, b in zip(found[key], cells)]
    for key, (count, own, total, in_cuda) in rows.items():
        near = 0.01 * count + 1e-6 * total  # it is in nanoseconds, and rounded
        assert found[key][0] == count and abs(found[key][2] - total) <= near, key
        assert own - in_cuda - near <= found[key][1] <= own + near, key


def name_key(name, dims):
    del dims
    return name


def shape_key(name, dims):
    """As TensorBoard's rows and the report's."""
    return name, str([] if dims is None or name in check_operators.OPTIONAL_LISTS else dims)


def flat_key(name, dims):
    """key_averages() has no sizes of lists of tensors."""
    return name, str([[] if any(isinstance(d, list) for d in one) else one for one in dims or []])


def reported(folder, by):
    done = check_torch.run([check_torch.GPUPROF, "report", "--format=json", f"--by={by}", folder],
                           check_torch.environment())
    report = json.loads(done.stdout)
    rows = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for one in report["ops"] + report["labels"]:
        key = one["name"] if by == "name" else shape_key(one["name"], one.get("input_dims"))
        for i, cell in enumerate(("calls", "self_cpu_ns", "cpu_ns")):
            rows[key][i] += one.get(cell, 0) / (1000 if i else 1)
    rows.pop("(under no operator)" if by == "name" else ("(under no operator)", "[]"), None)
    return rows


def add_unseen(rows, process, tids, key_of):
    """torch.profiler does not see all threads."""
    threads = {r.thread: r.args[0] for r in process.of_type(stream_reader.THREAD)}
    for op in stream_reader.read_ops(process):
        if threads[op.thread] not in tids:
            row = rows[key_of(op.name, [dims(value) for value in op.inputs])]
            row[0] += 1
            row[1] += (op.end - op.begin) / 1000  # they have nothing inside of them
            row[2] += (op.end - op.begin) / 1000


def test_key_averages(tmp_path):
    """The report's tables against key_averages() of the same run, by way of torch.profiler's own
    trace, since key_averages() makes one of operators that the trace and we count twice."""
    env = check_torch.environment()
    path, out = tmp_path / "trace.json", tmp_path / "out"
    check_torch.run([check_torch.GPUPROF, "run", "-o", out, "--pytorch=shapes", "--",
                     check_torch.PYTHON, WORK, path, tmp_path / "keys.json"], env)
    check_torch.run([check_torch.GPUPROF, "merge", out, "-o", tmp_path / "ours.json"], env)
    if is_coarse(path):
        pytest.skip("torch.profiler has whole microseconds")
    trace = json.loads(path.read_text(encoding="utf-8"))
    for keys, key_of in zip(json.loads((tmp_path / "keys.json").read_text()), (name_key, flat_key)):
        check_averages(trace, keys, key_of)
    tids = set(check_operators.by_thread(check_operators.slices(trace, check_operators.HOST)))
    ours = json.loads((tmp_path / "ours.json").read_text(encoding="utf-8"))
    readings = check_operators.Readings(ours, trace, check_operators.HOST)
    [process] = stream_reader.read_folder(out)
    for by, key_of in (("name", name_key), ("shape", shape_key)):
        rows, mine = averages(trace, False, key_of), reported(out, by)
        add_unseen(rows, process, tids, key_of)
        assert {key: row[0] for key, row in mine.items()} == \
            {key: row[0] for key, row in rows.items()}
        far = {(which, key): (mine[key][i], row[i]) for key, row in rows.items()
               for i, which in ((1, "self"), (2, "total"))
               if not readings.is_close(which, key, mine[key][i], row[i])}
        assert not far
        print(by, len(rows))


@pytest.mark.parametrize("pytorch", ("off", "names", "shapes"))
def test_output_is_unchanged(tmp_path, pytorch):
    bare = check_torch.run([check_torch.PYTHON, check_torch.WORK], check_torch.environment())
    done = check_torch.run(
        [check_torch.GPUPROF, "run", "-o", tmp_path / "out", f"--pytorch={pytorch}", "--",
         check_torch.PYTHON, check_torch.WORK], check_torch.environment())
    assert done.stdout == bare.stdout
    processes = stream_reader.read_folder(tmp_path / "out")
    assert len(processes) == 1
    assert bool(stream_reader.read_ops(processes[0])) == (pytorch != "off")
    assert processes[0].meta.get("pytorch", "off") == pytorch


def test_flops(tmp_path):
    """FLOPs to the last digit: key_averages(with_flops) of the same run, and FlopCounterMode's of
    another one, since torch.profiler counts twice what runs under a mode."""
    env = check_torch.environment()
    work = [check_torch.PYTHON, FLOPS_WORK]
    check_torch.run([*work, "counter", tmp_path / "counter.json"], env)
    check_torch.run([check_torch.GPUPROF, "run", "-o", tmp_path / "out", "--pytorch=shapes", "--",
                     *work, "profiler", tmp_path / "profiler.json"], env)
    report = json.loads(check_torch.run([check_torch.GPUPROF, "report", "--format=json",
                                         tmp_path / "out"], env).stdout)
    for name, key in (("profiler", "flops"), ("counter", "counter_flops")):
        theirs_ = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
        ours_ = {row["name"]: row[key] for row in report["ops"] if row.get(key)}
        assert len(theirs_) > 6
        # Before 2.4, convolution_backward was counted with other sizes, and of times in whole
        # microseconds torch.profiler cannot always tell which aten::mul is inside of another.
        for name_ in ("aten::convolution_backward", "aten::mul") if VERSION < (2, 4) else ():
            ours_.pop(name_, 0)
            theirs_.pop(name_, 0)
        for name in ours_.keys() - theirs_.keys():  # attention of the CPU is new to it in 2.15
            assert "for_cpu" in name and VERSION < (2, 15) and ours_.pop(name)
        assert ours_ == theirs_
    rows = {row["name"]: row for row in report["ops"]}
    for name in ("aten::mm", "aten::convolution", "aten::_scaled_dot_product_flash_attention"):
        assert rows[name]["counter_flops_calls"] == rows[name]["calls"] > 0
    assert rows["aten::convolution"]["backward_cpu_ns"] == rows["ConvolutionBackward0"]["cpu_ns"]


# What of a kernel's name says which operator it is of; zeros are a kernel's or a set.
REPLAYED = {"aten::mm": "standin_cublas", "aten::clamp_min": "clamp", "aten::add": "add",
            "aten::fill_": "Fill", "aten::_softmax": "softmax", "aten::copy_": "copy",
            "aten::zero_": "set"}


def test_replays(tmp_path):
    """Each replay's work is that of the operators that captured it."""
    check_torch.run([check_torch.GPUPROF, "run", "-o", tmp_path / "out", "--pytorch=shapes", "--",
                     check_torch.PYTHON, check_torch.HERE / "replay_work.py", 10],
                    check_torch.environment())
    report = json.loads(check_torch.run([check_torch.GPUPROF, "report", "--format=json",
                                         tmp_path / "out"], check_torch.environment()).stdout)
    [process] = stream_reader.read_folder(tmp_path / "out")
    number = stream_reader.TYPE_NUMBERS
    names = {r.args[0]: r.text.decode() for r in process.of_type(number["kernel_name"])}
    wanted = collections.Counter()
    for kind, node in (("kernel", 13), ("copy", 9), ("set", 8)):
        for record in process.of_type(number[kind]):
            if len(record.args) <= node or not record.args[node]:
                continue
            name = names[record.args[3]] if kind == "kernel" else kind
            [op] = [op for op, part in REPLAYED.items() if part in name]
            wanted[op] += record.duration
    found = {row["name"]: row["graph_gpu_ns"] for row in report["ops"] if row.get("graph_gpu_ns")}
    assert found == wanted and sum(wanted.values()) == report["ops_graph_ns"] > 0
    assert not [row for row in report.get("ops_under_none", []) if row["cause"] == "graph"]


@pytest.mark.skipif(VERSION < (2, 5), reason="no torch.distributed.tensor")
def test_python_does_it(tmp_path):
    """Under FlopCounterMode operators are there, and FLOPs are its own; of a DTensor on two ranks
    they are those of this rank's part; fake tensors have none, nor has torch.compile's trace."""
    done = check_torch.run([check_torch.GPUPROF, "run", "-o", tmp_path, "--pytorch=shapes", "--",
                            check_torch.PYTHON, check_torch.HERE / "python_work.py"],
                           check_torch.environment())
    report = json.loads(check_torch.run(
        [check_torch.GPUPROF, "report", "--format=json", "--by=range", tmp_path],
        check_torch.environment()).stdout)
    flops = {(row["range"], row["name"]): (row.get("flops"), row.get("counter_flops"))
             for row in report["ops"] if row["name"] == "aten::mm" and row["range"]}
    whole = 2 * 8 * 16 * 32
    assert json.loads(done.stdout.splitlines()[-1]) == whole
    assert flops == {("mode", "aten::mm"): (whole, whole),
                     ("dtensor", "aten::mm"): (whole // 2, whole // 2),
                     ("compile", "aten::mm"): (whole, whole),  # it runs at last, too
                     ("compiled", "aten::mm"): (whole, whole)}
    assert report["losses"]["traced_ops"] > 5
