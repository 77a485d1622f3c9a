# SPDX-License-Identifier: Apache-2.0
"""cuDNN: its calls and what their plans say, beside the double's own books."""

import collections
import json
import re
from math import prod

import pytest
import stream_reader
import toolchain
from stream_reader import CALL, LIBRARY_BEGIN, LIBRARY_END, LIBRARY_PLAN

TYPES = {"FLOAT": "f32", "HALF": "f16", "BFLOAT16": "bf16"}
OPERATIONS = {"10": "convolution_forward", "11": "convolution_backward_filter",
              "12": "convolution_backward_data", "13": "pointwise", "19": "matmul",
              "41": "sdpa_fwd", "99": "of_later"}
OLDER = {"cudnnConvolutionForward": "convolution_forward",
         "cudnnConvolutionBiasActivationForward": "convolution_forward",
         "cudnnConvolutionBackwardData": "convolution_backward_data",
         "cudnnConvolutionBackwardFilter": "convolution_backward_filter",
         "cudnnFindConvolutionForwardAlgorithmEx": "find_convolution_forward",
         "cudnnPoolingForward": "pooling_forward", "cudnnRNNForward": "rnn_forward",
         "cudnnBatchNormalizationForwardTrainingEx": "batch_normalization_forward"}
PLANS_MAX = 8191


def work(way="linked"):
    """The program and its LD_LIBRARY_PATH."""
    runtime = toolchain.runtime(12)
    part = toolchain.build("cudnn_double.c", "-shared", "-fPIC", "-DPART", *runtime,
                           str(toolchain.SOURCES / "cudnn_double_legacy.c"),
                           "-Wl,-soname,libcudnn_graph.so.9")
    versions = toolchain.OUT / "cudnn.map"
    versions.write_text("libcudnn.so.9 { global: *; };\n", encoding="ascii")
    shim = toolchain.build("cudnn_double.c", "-shared", "-fPIC", runtime[0],
                           "-Wl,-soname,libcudnn.so.9", f"-Wl,--version-script={versions}")
    folder = toolchain.OUT / f"cudnn-{shim.stem}-{part.stem}"
    folder.mkdir(exist_ok=True)
    toolchain.linked(folder / "libcudnn_graph.so.9", part)
    link = toolchain.linked(folder / "libcudnn.so.9", shim)
    flags = (f'-DBY_DLSYM="{link}"',) if way == "dlsym" else (link,)
    return toolchain.build("cudnn_work.c", *runtime, *flags), f"{toolchain.SIM}:{folder}"


def run(library, folder, *arguments, way="linked", **settings):
    """What the double wrote down, and the recordings."""
    program, path = work(way)
    env = toolchain.environment(folder / "out", library, LD_LIBRARY_PATH=path, **settings)
    with open(folder / "log", "wb") as log:
        done = toolchain.run([program, *arguments], {**env, "DNN_LOG": str(log.fileno())}, status=3,
                             pass_fds=[log.fileno()])
    assert done.stderr == ""
    lines = (folder / "log").read_text(encoding="ascii").splitlines()
    return lines, stream_reader.read_folder(folder / "out") if library else []


def numbers(text):
    return tuple(int(n) for n in text.split(","))


def tensor(dims, type_name, strides, flag=""):
    dims, strides, flags = numbers(dims), numbers(strides), set()
    closest = min((s, -i) for i, (n, s) in enumerate(zip(dims, strides)) if n > 1 or i == 1)
    if len(dims) > 3 and closest[1] == -1 and dims[1] > 1 and any(n > 1 for n in dims[2:]):
        flags.add("channels_last")
    if flag:
        flags.add(flag)
    return dims, TYPES[type_name], flags


def told_by_graph(line):
    """A plan, as the double's line has it: its operations as they are to be told."""
    operations = []
    for part in line.split(" | ")[1:]:
        kind, *words = part.split()
        says = {}
        for key, value in (word.split("=") for word in words):
            key = {"matA": "a", "matB": "b", "matC": "c"}.get(key, key.lower())
            if ":" in value and not value.endswith(":value"):
                says[key] = tensor(*value.split(":"))
            elif key == "compute":
                says[key] = TYPES[value]
            elif key == "mode":
                says[key] = {"0": "add", "100": "relu_fwd"}[value]
            elif ":" not in value:
                says[key] = numbers(value)
        if says.get("pad_upper") == says.get("pad_lower") and "pad_upper" in says:
            says["pad"] = says.pop("pad_upper")
            says.pop("pad_lower")
        add_groups(says)
        operations.append((OPERATIONS[kind], says))
    return operations


def add_groups(says):
    x, w = says.get("x", says.get("dx")), says.get("w", says.get("dw"))
    if x and w and x[0][1] != w[0][1]:
        says["groups"] = (x[0][1] // w[0][1],)


def told_by_descriptors(line):
    name, *words = line.split()
    says = {}
    for key, value in (word.split("=") for word in words if "=" in word):
        if value == "none":
            continue
        dims, type_name, layout, groups, strides, dilations = value.split(":")
        if key == "conv":
            says.update(compute=TYPES[type_name], pad=numbers(dims), stride=numbers(strides),
                        dilation=numbers(dilations))
            if groups != "1":
                says["groups"] = (int(groups),)
        elif key == "rnn":
            cells, directions, *sizes = numbers(dims)
            says.update(zip(("input", "hidden", "projection", "layers"), ((n,) for n in sizes)),
                        mode=("relu", "tanh", "lstm", "gru")[cells], compute=TYPES[type_name],
                        directions=(1 + directions,))
        elif key in ("w", "dw"):
            says[key] = (numbers(dims), TYPES[type_name],
                         {"channels_last"} if layout == "1" else set())
        else:
            says[key] = tensor(dims, type_name, strides)
    return [(OLDER[name], says)]


def told(lines):
    """Function and operations of each call that is the program's own."""
    calls, inner = [], 0
    for line in lines:
        name = line.split()[0]
        if inner:
            inner -= 1
        elif name.startswith("cudnnBackend"):
            calls.append((name, told_by_graph(line)))
        else:
            calls.append((name, told_by_descriptors(line)))
            inner = 4 if name.startswith("cudnnFind") else 0
    return calls


def read_value(value):
    """By the grammar of event-stream.md."""
    if re.fullmatch(r"-?\d+(,-?\d+)*", value):
        return numbers(value)
    dims, colon, rest = value.partition(":")
    if colon:
        type_name, *flags = rest.split(":")
        assert len(set(flags)) == len(flags) and set(flags) <= {"channels_last", "virtual"}
        return numbers(dims), type_name, set(flags)
    assert re.fullmatch(r"[a-z0-9_-]+", value)
    return value


def read_plan(text):
    operations = []
    for operation in text.split("; "):
        name, *words = operation.split(" ")
        pairs = [word.split("=") for word in words]
        operations.append((name, {key: read_value(value) for key, value in pairs}))
        assert len(operations[-1][1]) == len(pairs) and re.fullmatch(r"[a-z0-9_]+", name)
    return operations


def begins(process):
    """Function and operations of each call; operations None: not known."""
    records = process.of_type(LIBRARY_PLAN)
    plans = {r.args[0]: read_plan(r.text.decode("ascii")) for r in records}
    assert len(plans) == len(records) == len({r.text for r in records}) and 0 not in plans
    found = []
    for r in process.of_type(LIBRARY_BEGIN):
        function = process.functions[r.code]
        if function.symbol != "cudnnBackendFinalize":
            labels = [label for _, label in function.args]
            arguments = dict(zip(labels, r.args))
            assert labels[0] == "plan" and arguments["handle"] in (0, 0x11)
            found.append((function.symbol, plans[r.args[0]] if r.args[0] else None))
    return found


def canonical(operations):
    return tuple((operation, tuple(sorted((key, str(value)) for key, value in says.items())))
                 for operation, says in operations)


def counted(calls):
    return collections.Counter((name, canonical(operations)) for name, operations in calls)


def known(calls):
    """An execution of no plan is recorded, and what it does is not known."""
    return [(name, operations or None) for name, operations in calls]


@pytest.mark.parametrize("way", ["linked", "dlsym"])
def test_plans(library, tmp_path, way):
    """Forms and sizes of 40 convolutions and what else there is; half of them where others were."""
    lines, [process] = run(library, tmp_path, "plans", way=way)
    calls = told(lines)
    assert begins(process) == known(calls) and not process.losses
    said_at = collections.defaultdict(set)
    for line in lines:
        said_at[line.split()[1]].add(line.partition("|")[2])
    assert sum(len(said) > 1 for said in said_at.values()) > 10  # addresses do come again
    ends = process.of_type(LIBRARY_END)
    assert collections.Counter(e.result for e in ends) == {0: len(ends) - 1, 2000: 1}
    for begin, end in [(b, e) for b, e in zip(process.of_type(LIBRARY_BEGIN), ends)
                       if process.functions[b.code].symbol == "cudnnBackendExecute"]:
        inside = [c for c in process.of_type(CALL) if begin.begin <= c.begin <= end.begin]
        assert inside or end.result


def test_older_functions(library, tmp_path):
    """Descriptors are read at each call; what it tries inside of Find is part of that."""
    lines, [process] = run(library, tmp_path, "legacy")
    assert begins(process) == told(lines) and len(told(lines)) == 40 * (2 * 6 + 1) + 8
    algorithms = []
    for r in process.of_type(LIBRARY_BEGIN):
        function = process.functions[r.code]
        if function.symbol == "cudnnConvolutionForward":
            values = dict(zip((label for _, label in function.args), r.args))
            algorithms.append((values["algorithm"], values["workspace"]))
    assert algorithms == 2 * [(i % 7, i << 20) for i in range(40)]


def test_threads(library, tmp_path):
    lines, [process] = run(library, tmp_path, "threads")
    assert len(lines) == 320 and not process.losses
    assert counted(begins(process)) == counted(told(lines))


def test_fork(library, tmp_path):
    """A child's file says what its plans are itself."""
    lines, processes = run(library, tmp_path, "fork")
    [parent, child] = sorted(processes, key=lambda p: -len(p.of_type(LIBRARY_BEGIN)))
    calls = told(lines)
    assert begins(parent) == [calls[0], *calls[3:]] and begins(child) == calls[1:3]
    assert [len(p.of_type(LIBRARY_PLAN)) for p in (parent, child)] == [2, 2]


def test_reload(library, tmp_path):
    lines, [process] = run(library, tmp_path, "reload", way="dlsym")
    assert begins(process) == told(lines) and len(lines) == 3


@pytest.mark.parametrize("refuses", ["json", "content", "sense", "tensors"])
def test_what_cudnn_does_not_tell(library, tmp_path, refuses):
    """Nothing is known then, and nobody notices that it was asked for."""
    lines, [process] = run(library, tmp_path, "refused", DNN_REFUSES=refuses)
    by_plan = [b for b in begins(process) if b[0] == "cudnnBackendExecute"]
    older = [b for b in begins(process) if b[0] != "cudnnBackendExecute"]
    if refuses == "tensors":
        assert by_plan == told(lines)[:4]
        assert older == [(name, None) for name, _ in told(lines)[4:]]
    else:
        assert by_plan == 4 * [("cudnnBackendExecute", None)]
        assert older == told(lines)[4:] and len(older) == 7


def test_more_plans_than_fit(library, tmp_path):
    count = PLANS_MAX + 200
    lines, [process] = run(library, tmp_path, "many", str(count))
    calls, found = told(lines), begins(process)
    assert len(process.of_type(LIBRARY_PLAN)) == PLANS_MAX and not process.losses
    for round_ in (0, count):
        assert found[round_:round_ + PLANS_MAX] == calls[round_:round_ + PLANS_MAX]
        assert {o for _, o in found[round_ + PLANS_MAX:round_ + count]} == {None}


def test_settings(library, tmp_path):
    for setting in ("names", "off"):
        folder = tmp_path / setting
        folder.mkdir()
        lines, [process] = run(library, folder, "fork", GPUPROF_LIBRARIES=setting)[0], \
            stream_reader.read_folder(folder / "out")[:1]
        symbols = {process.functions[r.code].symbol for r in process.of_type(LIBRARY_BEGIN)}
        assert lines and not process.of_type(LIBRARY_PLAN)
        assert symbols == ({"cudnnBackendExecute", "cudnnBackendFinalize"} if setting == "names"
                           else set())
        assert all(not r.args for r in process.of_type(LIBRARY_BEGIN))


def test_bare(tmp_path):
    """Without us all is as it was."""
    for scene in ("plans", "legacy", "refused"):
        assert run(None, tmp_path, scene)[0]


def flops_of(operations):
    """Of what a call does: each is two for each pair of numbers that are multiplied."""
    total = 0
    for name, says in operations:
        dims = {key: value[0] for key, value in says.items() if isinstance(value, tuple)}
        if name.startswith("convolution_"):
            w, y = dims.get("w", dims.get("dw")), dims.get("y", dims.get("dy"))
            total += 2 * prod(y) * prod(w[1:])
        elif name == "matmul":
            total += 2 * prod(dims["c"]) * dims["a"][-1]
        elif name == "sdpa_fwd":
            total += 2 * prod(dims["q"][:3]) * dims["k"][2] * (dims["q"][3] + dims["v"][3])
    return total


@pytest.mark.parametrize("calls", ["plans", "legacy"])
def test_report(library, tmp_path, run_verb, calls):
    """Floating point operations are those of what the double wrote down."""
    lines, _ = run(library, tmp_path, calls)
    expected = collections.Counter((name, flops_of(operations))
                                   for name, operations in told(lines))
    rows = json.loads(run_verb("report", "--format=json", tmp_path / "out").stdout)["library"]
    found = collections.Counter()
    for row in rows:
        assert row["library"] == "cudnn"
        if row["function"] != "cudnnBackendFinalize":
            found[row["function"], row.get("flops", 0)] += row["calls"]
    assert found == expected and len(found) > 30
