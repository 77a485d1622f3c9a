# SPDX-License-Identifier: Apache-2.0
"""What the texts of ranges say: emit_nvtx's operators, XLA, vLLM, NCCL, numbers."""

import collections
import json
import os
import random
import re
import resource

import conftest
import csv_tables
import pytest
import stream_reader

import op_truth
from made_ops import TYPES, Recording

LABEL, BACKWARD = 7, 1

# Name, scope, and whether autograd numbers it, as torch.profiler's trace of the same program has
# them.
NAMES = (("aten::linear", 0, True), ("aten::addmm", 0, True), ("aten::empty", 0, False),
         ("aten::copy_", 0, True), ("c10d::allreduce_", 0, False), ("MyFunction", 0, True),
         ("aten::_foreach_add_", 0, False), ("record_param_comms", 0, False),
         ("Optimizer.step#AdamW.step", LABEL, False), ("my, seq = 3, label", LABEL, False),
         ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", LABEL, False),
         ("FSDP::all_gather (layers.0)", LABEL, False), ("x, op_id = 7", LABEL, False))
EVALUATES = "autograd::engine::evaluate_function: "
SIZES = ([], [4], [4, 16], [16, 32], [2, 3, 4, 5], [1 << 40, 0], list(range(64)))


class Script:
    """Lines for make_ranges, and the operators that they stand for."""

    def __init__(self, seed, with_shapes, domain=0):
        self.random = random.Random(seed)
        self.lines, self.ops, self.with_shapes, self.domain = [], [], with_shapes, domain
        self.now, self.calls = 1000, 0

    def tick(self):
        self.now += self.random.randint(1, 60)
        return self.now

    def text(self, name, sequence, inputs):
        text = name + (f", seq = {sequence}" if sequence is not None else "")
        text += f", op_id = {len(self.ops) + 1}"
        if inputs is not None:
            text += f", sizes = {inputs}"
            edges = ", ".join(f"({self.random.randint(0, 99)},{self.random.randint(-1, 2)})"
                              for _ in inputs)
            text += f", input_op_ids = [{edges}]" if edges else ""
        return text

    def op(self, name, scope, has_sequence, inside, traced=False):
        sequence = self.random.randint(0, 1 << 20) if has_sequence else None
        inputs = None
        if self.with_shapes and self.random.random() < 0.8:
            inputs = self.random.choices(SIZES, k=self.random.randint(1, 4))
            inputs = [[]] if scope == LABEL else inputs
        begin = self.tick()
        op = stream_reader.Op(name, scope, traced, sequence, 0, None, 1, None, begin)
        self.lines.append(f"push {begin} {self.domain} {self.text(name, sequence, inputs)}")
        self.ops.append(op)
        inside()
        op.end, op.end_thread = self.tick(), 1
        self.lines.append(f"pop {op.end} {self.domain}")

    def call(self):
        self.calls += 1
        begin = self.tick()
        duration = self.random.randint(1, 20)
        self.lines += [f"call {begin} {duration} {self.calls}",
                       f"kernel {begin + 100} {self.random.randint(5, 300)} {self.calls}"]
        self.now += duration

    def backward(self, name):
        """In the pass backward each operator is evaluated, and in that is it."""
        self.op(EVALUATES + name, 0, False, lambda: self.op(name, BACKWARD, True, self.call))

    def step(self, depth=0):
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.random()
            if kind < 0.2:
                self.call()
            elif kind < 0.3:
                self.backward("AddmmBackward0")
            elif kind < 0.35:
                name = self.random.choice(("compile (dynamo_timed)", "PythonDispatchMode"))
                traced = name.endswith("(dynamo_timed)")
                self.op(name, LABEL if traced else 0, False, lambda: self.op(
                    "aten::mm", 0, False, lambda: None, traced), traced)
            else:
                self.op(*self.random.choice(NAMES),
                        lambda: self.step(depth + 1) if depth < 4 else self.call())


@pytest.fixture(name="emit_nvtx")
def fixture_emit_nvtx(make_ranges, monkeypatch):
    """emit_nvtx(SEED, WITH_SHAPES): a folder of 20 steps, and the operators of their process."""
    def make(seed, with_shapes, domain=0, steps=20):
        script = Script(seed, with_shapes, domain)
        script.lines += ["meta gpu_rows=from CUPTI", "thread 1", "domain 1 900 pytorch"]
        for _ in range(steps):
            script.step()
        script.call()
        folder = make_ranges(script.lines)
        # What gpuprof's own records would say is here what the texts were made from.
        monkeypatch.setattr(stream_reader, "read_ops", lambda process: script.ops)
        [process] = stream_reader.read_folder(folder)
        return folder, process, script.ops
    return make


@pytest.mark.parametrize("seed,by,domain", [(1, "name", 0), (2, "shape", 0), (3, "shape", 1)])
def test_operators(emit_nvtx, run_verb, seed, by, domain):
    folder, process, ops = emit_nvtx(seed, by == "shape", domain)
    expected = op_truth.Expected([process], by)
    assert len(ops) > 100 and expected.under_none and expected.traced
    report = json.loads(run_verb("report", "--format=json", f"--by={by}", folder).stdout)
    op_truth.check_tables(report, expected)
    assert report["losses"]["nvtx_ops"] == len(ops)
    assert "nvtx_sum" not in report


def test_rows_are_as_many_as_names(emit_nvtx, run_verb):
    folder, _, ops = emit_nvtx(4, True, steps=60)
    names = {op.name for op in ops if not op.traced}
    lines = run_verb("report", "--full", folder).stdout.splitlines()
    assert len(ops) > 500 and len(names) < 20 and len(lines) < 110
    ops_at = lines.index(next(line for line in lines if line.startswith("PyTorch's operators")))
    for name in names:  # above they may be places of idle time
        assert len([line for line in lines[ops_at:] if line.endswith(f"  {name}")]) == 1
    [note] = [line for line in lines if "known only from emit_nvtx" in line]
    assert int(note.split()[0].replace(",", "")) == len(ops)


def arguments_of(op, evaluated):
    """Of an operator of emit_nvtx: what its text does not say is not there."""
    args = {"from": "emit_nvtx"}
    numbers = op if op.sequence is not None else evaluated
    if numbers:
        args["Sequence number"] = numbers.sequence
    if op.traced:
        args["traced"] = True
    return args


def test_trace(emit_nvtx, run_verb, monkeypatch):
    folder, process, ops = emit_nvtx(5, True)
    trace = json.loads(run_verb("merge", folder).stdout)
    numbers = [e["args"].pop("op_id") for e in trace["traceEvents"]
               if e.get("args", {}).get("from") == "emit_nvtx"]
    assert sorted(numbers) == list(range(1, len(ops) + 1))
    monkeypatch.setattr(op_truth, "arguments_of", arguments_of)
    events, ops, ids, _ = op_truth.check_trace(trace, process)
    assert op_truth.check_owners(events, ops, ids, process) > 20


def test_gpuprofs_own_operators_win(make_ranges, run_verb):
    """Where both were recorded the operators are those of the records, and the ranges are ranges,
    one row for each operator's name."""
    lines = ["meta pytorch=shapes", "meta gpu_rows=from CUPTI"]
    for i in range(30):
        at = 1000 + 100 * i
        lines += [f"op {at} {64 + i} aten::mm",
                  f"push {at + 1} 0 aten::mm, seq = {i}, op_id = {i + 1}",
                  f"call {at + 10} 5 {i + 1}", f"kernel {at + 20} 10 {i + 1}",
                  f"pop {at + 30} 0", f"end {at + 32} {64 + i}"]
    folder = make_ranges(lines)
    text = run_verb("report", "--table=ops,nvtx_sum,nvtx_gpu_proj_sum", folder).stdout
    assert [line.split()[-1] for line in text.splitlines() if " aten::mm" in line] == \
        ["aten::mm"] * 3
    report = json.loads(run_verb("report", "--format=json", "--group", folder).stdout)
    [op], [on_host], [on_gpu] = report["ops"], report["nvtx_sum"], report["nvtx_gpu_proj_sum"]
    assert (op["name"], op["calls"], op["cpu_ns"]) == ("aten::mm", 30, 30 * 32)
    assert (on_host["name"], on_host["instances"], on_host["total_ns"]) == \
        ("aten::mm", 30, 30 * 29)
    assert (on_gpu["name"], on_gpu["instances"], on_gpu["total_ns"]) == ("aten::mm", 30, 300)
    assert report["losses"]["nvtx_ops_again"] == 30 and "nvtx_ops" not in report["losses"]
    each = json.loads(run_verb("report", "--format=json", folder).stdout)["nvtx_sum"]
    assert {row["name"] for row in each} == \
        {f"aten::mm, seq = {i}, op_id = {i + 1}" for i in range(30)}


def test_one_that_is_open_lasts_to_the_end(make_ranges, run_verb):
    folder = make_ranges(["thread 1", "push 1000 0 aten::mm, op_id = 1", "call 1100 50 1"])
    [row] = json.loads(run_verb("report", "--format=json", folder).stdout)["ops"]
    assert (row["name"], row["calls"], row["cpu_ns"]) == ("aten::mm", 1, 150)


# ---- hostile texts -------------------------------------------------------------------------------

ALMOST = ("aten::mm, op_id = ", "aten::mm, op_id = x", "aten::mm, op_id = 1 ", ", op_id = 1",
          "aten::mm, op_id = 99999999999999999999999", "aten::mm, op_id = 1, seq = 2")


def test_texts_that_are_almost_operators_are_ranges(make_ranges, run_verb):
    lines = ["thread 1"]
    for i, text in enumerate(ALMOST):
        lines += [f"push {1000 + 10 * i} 0 {text}", f"pop {1005 + 10 * i} 0"]
    report = json.loads(run_verb("report", "--format=json", make_ranges(lines)).stdout)
    assert {row["name"] for row in report["nvtx_sum"]} == set(ALMOST)
    assert "ops" not in report


# ---- numbers, domains, other frameworks ----------------------------------------------------------

ANY = re.compile(r"[0-9]+")
APART = re.compile(r"(?<![A-Za-z0-9])(?<![A-Za-z0-9]\.)[0-9]+(?![0-9A-Za-z])(?!\.[A-Za-z0-9])")


def grouped(texts, pattern, limit):
    """Text -> its row, where more than `limit` rows differ in such numbers alone."""
    alike = collections.defaultdict(set)
    for row in texts.values():
        alike[pattern.sub("*", row)].add(row)
    return {text: pattern.sub("*", row) if len(alike[pattern.sub("*", row)]) > limit else row
            for text, row in texts.items()}


def rows_of(names):
    """As GUIDE has it."""
    return grouped(grouped({name: name for name in names}, APART, 8), ANY, 256)


def ranges_of(names, domain=0, begin=1000):
    """Lines of a range for each name, and how long each lasted."""
    lines, lasted = ["thread 1"], collections.defaultdict(lambda: [0, 0])
    for i, name in enumerate(names):
        at, duration = begin + 1000 * i, 1 + i * 7 % 900
        lines += [f"push {at} {domain} {name}", f"pop {at + duration} {domain}"]
        lasted[name][0] += 1
        lasted[name][1] += duration
    return lines, lasted


NUMBERED = {
    "iteration {}": 40, "epoch {}/{}, loss 0.{}": 40, "step_{}": 9, "step#{}": 8, "[{}]": 20,
    "batch {}.": 12, "{} of 7": 10, "layer{}.0.conv2": 30, "model.layers.{}.mlp": 80,
    "GEMM {}x64": 50, "fp{}": 3, "block{1} iteration {0}": 200, "frame{}": 300, "v{}.{}": 100,
    "caf\u00e9{}": 12, "no number": 1, "iteration *": 1}


def numbered(seed):
    chosen = random.Random(seed)
    names = [form.format(i, i % 7, i * 31) for form, count in NUMBERED.items()
             for i in range(count)] * 2
    chosen.shuffle(names)
    return names


@pytest.mark.parametrize("seed", (1, 2, 3))
def test_numbers_are_groups(make_ranges, run_verb, seed):
    names = numbered(seed)
    lines, lasted = ranges_of(names)
    folder = make_ranges(lines)
    wanted = collections.defaultdict(lambda: [0, 0])
    for name, row in rows_of(lasted).items():
        wanted[row][0] += lasted[name][0]
        wanted[row][1] += lasted[name][1]
    assert {"iteration *", "step_*", "[*]", "batch *.", "* of *", "frame*", "layer3.0.conv2",
            "model.layers.7.mlp", "GEMM 9x64", "step#3", "block3 iteration *"} < set(wanted)
    assert "step#*" not in wanted and len(wanted) < len(lasted) / 2

    def rows(*options):
        made = json.loads(run_verb("report", "--format=json", *options, folder).stdout)
        found = collections.defaultdict(lambda: [0, 0])
        for row in made["nvtx_sum"]:  # two: the group, and the range that really has its name
            assert row["name"] == "iteration *" or row["name"] not in found
            found[row["name"]][0] += row["instances"]
            found[row["name"]][1] += row["total_ns"]
        return found

    assert rows("--group") == wanted
    assert rows() == rows("--no-group") == lasted
    for options, names in ((), wanted), (("--no-group",), lasted):
        lines = run_verb("report", "--table=nvtx_sum", *options, folder).stdout.splitlines()
        shown = {line.split("  ")[-1] for line in lines}
        assert set(names) <= shown
        assert len(lines) - len(names) < 8
        assert any(line.startswith("*: a number that differs") for line in lines) == (not options)


def test_many_numbers_take_one_row(make_ranges, run_verb):
    """More than there are rows: those of a group are counted all the same."""
    names = [f"iteration {i}" for i in range(70000)]
    lines, lasted = ranges_of(names)
    [row] = json.loads(run_verb("report", "--format=json", "--group",
                                make_ranges(lines)).stdout)["nvtx_sum"]
    assert (row["name"], row["instances"]) == ("iteration *", len(names))
    assert row["total_ns"] == sum(ns for _, ns in lasted.values())
    assert row["min_ns"] == 1 and row["max_ns"] == 900


def test_a_group_has_the_quantiles_of_all(make_ranges, run_verb):
    lines, _ = ranges_of(f"iteration {i}" for i in range(900))
    [row] = json.loads(run_verb("report", "--format=json", "--group",
                                make_ranges(lines)).stdout)["nvtx_sum"]
    assert row["median_ns"] == pytest.approx(450, rel=0.01)
    assert row["p95_ns"] == pytest.approx(855, rel=0.01)


def test_numbered_labels_are_groups(make_ranges, run_verb):
    """Both those that gpuprof recorded and those of emit_nvtx."""
    lines = ["thread 1"]
    for i in range(20):
        at = 1000 + 100 * i
        lines += [f"push {at} 0 iteration {i}, op_id = {i + 1}", f"call {at + 10} 5 {i + 1}",
                  f"kernel {at + 20} {i + 1} {i + 1}", f"pop {at + 50} 0"]
    lines += ["push 9000 0 layer1, op_id = 99", "pop 9001 0"]
    folder = make_ranges(["meta gpu_rows=from CUPTI", *lines])
    each = {("layer1", 1, 1, 0)} | {(f"iteration {i}", 1, 50, i + 1) for i in range(20)}
    group = {("layer1", 1, 1, 0), ("iteration *", 20, 20 * 50, sum(range(21)))}
    for options, wanted in ((), each), (("--group",), group), (("--no-group",), each):
        rows = json.loads(run_verb("report", "--format=json", *options, folder).stdout)["labels"]
        assert {(row["name"], row["calls"], row["cpu_ns"], row["gpu_ns"]) for row in rows} == wanted
    for options, names in ((), group), (("--no-group",), each):
        text = run_verb("report", "--table=labels", *options, folder).stdout
        assert {line.split("  ")[-1] for line in text.splitlines()} > {name[0] for name in names}
        assert ("*: a number that differs" in text) == (not options)


def requests(overlap, count=20_000):
    """Each ends before the next one begins, or after that."""
    recording = Recording()
    for number in range(1, count + 1):
        if number > 1 and not overlap:
            recording.add(1, TYPES["range_end"], [number - 1])
        recording.add(1, TYPES["range_start"], [number, 0, 0, 0, 0, 0, 0], "request")
        recording.launch(10)
        if number > 1 and overlap:
            recording.add(1, TYPES["range_end"], [number - 1])
    return recording


def test_what_overlaps_takes_no_longer(tmp_path, run_verb):
    """A server's requests, of which one is always open: work does not go back to the first."""
    maker = conftest.built(conftest.BUILD / "make_raw")
    folders = [requests(overlap).write(maker, tmp_path / str(overlap)) for overlap in (False, True)]
    for verb in ("report",), ("merge", "-o", os.devnull):
        seconds = []
        for folder in folders:
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            run_verb(*verb, folder)
            seconds.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        assert seconds[1] < 3 * seconds[0] + 0.1


def test_domains(make_ranges, run_verb):
    """The same text in two domains is two rows; the default one has no name."""
    lines = ["thread 1", "domain 1 500 NCCL", "domain 2 501 a \"b\", c"]
    for domain in (0, 1, 2, 2):
        lines += ranges_of(["ncclAllReduce"], domain, 1000 + 10 * len(lines))[0][1:]
    lines += ranges_of(["late"], 7, 9000)[0][1:]  # nobody has named it
    folder = make_ranges(lines)
    made = json.loads(run_verb("report", "--format=json", folder).stdout)["nvtx_sum"]
    found = sorted((row["name"], str(row["domain"]), row["instances"]) for row in made)
    wanted = sorted([("ncclAllReduce", "None", 1), ("ncclAllReduce", "NCCL", 1),
                     ("ncclAllReduce", 'a "b", c', 2), ("late", "domain 7", 1)])
    assert found == wanted and list(made[0])[-1] == "domain"
    table = csv_tables.table(
        run_verb("report", "--format=csv", "--table=nvtx_sum", folder).stdout)
    assert sorted((row["name"], row["domain"] or "None", int(row["instances"]))
                  for row in table) == wanted
    lines = run_verb("report", "--table=nvtx_sum", folder).stdout.splitlines()
    assert sorted(line.split("  ")[-1] for line in lines if "nccl" in line) == \
        ["NCCL:ncclAllReduce", 'a "b", c:ncclAllReduce', "ncclAllReduce"]


COMM = 0xfeedc0ffee0ddf00
STATIC = 1 << 24
# Schema, bytes, words in hexadecimal -> what of it stands in the trace.
SAID_BY_NCCL = (
    ((STATIC + 5, 24, COMM, 4096, 4), {"bytes": 4096, "reduction": "avg"}),
    ((STATIC + 5, 24, COMM, 4096, 9), {"bytes": 4096, "reduction": 9}),
    ((STATIC + 4, 16, COMM, 1 << 40), {"bytes": 1 << 40}),
    ((STATIC + 8, 32, COMM, 12, 3 | 2 << 32, 7), {"bytes": 12, "root": 3, "reduction": "max"}),
    ((STATIC + 9, 24, COMM, 12, 2**32 - 1), {"bytes": 12, "peer": -1}),
    ((STATIC + 0, 24, COMM, 8 | 3 << 32, 5), {"ranks": 8, "rank": 3, "device": 5}))
SAID_BY_NOBODY = ((STATIC + 5, 16, 4096, 4), (STATIC + 1, 12, COMM, 2), (STATIC + 99, 0),
                  (5, 3, 97), (STATIC + 5, 23, COMM, 4096, 4),
                  (2**64 - 1, 2**64 - 1, 1, 2, 3, 4))


def test_payloads_of_nccl(make_ranges, run_verb):
    lines = ["thread 1", "domain 1 500 NCCL", "domain 2 501 mine"]
    for i, (words, domain) in enumerate(
            [(words, 1) for words, _ in SAID_BY_NCCL] + [(words, 1) for words in SAID_BY_NOBODY] +
            [(SAID_BY_NCCL[0][0], 2)]):
        lines += ["data " + " ".join([*map(str, words[:2]), *(f"{word:x}" for word in words[2:])]),
                  f"push {1000 + 10 * i} {domain} {i}", f"pop {1005 + 10 * i} {domain}"]
    folder = make_ranges(lines)
    trace = json.loads(run_verb("merge", folder).stdout)["traceEvents"]
    args = {int(e["name"]): e["args"] for e in trace if e.get("cat") == "user_annotation"
            and e["name"].isdigit()}
    for one in args.values():
        del one["External id"], one["domain"]
    for i, (_, wanted) in enumerate(SAID_BY_NCCL):
        assert args[i] == {"communicator": hex(COMM), **wanted}
    for i, words in enumerate((*SAID_BY_NOBODY, SAID_BY_NCCL[0][0]), len(SAID_BY_NCCL)):
        assert {key: str(value) if key != "payload words" else value
                for key, value in args[i].items()} == {
            "payload schema": str(words[0]), "payload bytes": str(words[1]),
            "payload words": [hex(word) for word in words[2:]]}
    report = json.loads(run_verb("report", "--format=json", folder).stdout)["nvtx_sum"]
    moved = {int(row["name"]): row["bytes"] for row in report if "bytes" in row}
    assert moved == {i: wanted["bytes"] for i, (_, wanted) in enumerate(SAID_BY_NCCL)
                     if "bytes" in wanted}
    table = csv_tables.tables(run_verb("report", "--format=csv", "--group", folder).stdout)
    [row] = [row for row in table["nvtx_sum"] if row["name"] == "*" and row["domain"] == "NCCL"]
    assert int(row["bytes"]) == sum(moved.values())


FRAMEWORKS = {
    "XlaModule:#hlo_module=jit_step,program_id={}#": "XlaModule: jit_step",
    "XlaModule:#prefix=jit(f)/jit(main),hlo_module=jit_f,program_id={}#": "XlaModule: jit_f",
    "Thunk:#hlo_op=fusion.3#": "Thunk: fusion.3",
    "Thunk:#name=main/dot[dims=(1,),hlo_op=x],hlo_op=dot.{}#":
        "Thunk: dot.{} (main/dot[dims=(1,),hlo_op=x])",
    "{{'Module': 'model.layers.0.mlp', 'Inputs': [[{}, 4096]]}}": "model.layers.0.mlp",
    "{{'Module': \"it's\", 'Inputs': []}}": "it's",
    "{{'Module': 'lm_head'}}": "lm_head",
    "iteration {}, op_id = {}, size": "iteration *, op_id = *, size"}
NOT_OF_THEM = ("XlaModule:#hlo_module=jit_f,program_id=1", "XlaModule:#hlo_module=#",
               "XlaModule:##", "Thunk:#", "Thunk:##", "Thunk:#hlo_op=#", "Thunk:#name=x#",
               "Thunk:#hlo_opx=y#", "{'Module': ", "{'Module': 'x'", "{'Module': ''}",
               "{'Module': 'x' }", "{'Module': 'x\\'}",
               "#", "XlaModule:#", ", op_id = ")


def test_texts_of_other_frameworks(make_ranges, run_verb):
    names = {form.format(i, i): row.format(i) for form, row in FRAMEWORKS.items()
             for i in range(20)}
    names.update({text: text for text in NOT_OF_THEM})
    lines, lasted = ranges_of(names)
    report = json.loads(run_verb("report", "--group", "--format=json", make_ranges(lines)).stdout)
    wanted = collections.Counter(names.values())
    assert {row["name"]: row["instances"] for row in report["nvtx_sum"]} == wanted


def test_hostile_texts(make_ranges, run_verb):
    """Long ones made of what the forms consist of are read in time and come out as they went in."""
    chosen = random.Random(7)
    parts = [", op_id = ", ", seq = ", "1", "[", "]", ", sizes = [", ", ", "(1,-1)", "'", "#",
             "Thunk:#", "name=", ",hlo_op=", "{'Module': ", "\\", "9" * 30, "x", "\u20ac",
             ", input_op_ids = ["]
    texts = {"".join(chosen.choices(parts, k=chosen.randint(1, 300)))[:1300] for _ in range(300)}
    texts = {text for text in texts if text == text.strip() and
             not re.search(r"^.+, op_id = [0-9]{1,19}($|, sizes|, input)", text)}
    texts |= {part * (4000 // len(part.encode())) for part in parts}
    lines, lasted = ranges_of(sorted(texts))
    folder = make_ranges(lines)
    report = json.loads(run_verb("report", "--format=json", folder).stdout)
    assert {row["name"] for row in report["nvtx_sum"]} == set(lasted)
    run_verb("report", folder)
    json.loads(run_verb("merge", folder).stdout)
