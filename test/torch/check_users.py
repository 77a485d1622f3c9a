# SPDX-License-Identifier: Apache-2.0
"""What users run, unmodified, is the same under --pytorch=shapes: `make check-torch`. Its output,
exit status, graphs and breaks of torch.compile, torch.profiler's own results; and Lightning's and
Hugging Face's trainers, where they are installed (README.md)."""

import collections
import json
import re
import subprocess

import check_torch
import pytest
import stream_reader

WORK = check_torch.HERE / "users_work.py"
OPS = check_torch.HERE / "ops_work.py"
STEPS = 12
SECONDS = re.compile(r"'train_(runtime|\w+_per_second)': [\d.]+|^W\d{4} [\d:.]+ \d+ ", re.MULTILINE)
NEEDS = {"lightning": "lightning", "trainer": "transformers"}
LABELS = {"lightning": "Optimizer.step#AdamW.step", "trainer": "Optimizer.step#AdamW.step"}
STATUS = {"raises": 1, "exits": 3}
LAUNCHER = re.compile(r"^(gpuprof: |  ).*\n", re.MULTILINE)


def run(command, status):
    done = subprocess.run([str(part) for part in command], env=check_torch.environment(),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=check_torch.SECONDS_MAX)
    assert done.returncode == status, done.stderr
    return done


def is_there(module):
    return subprocess.run([check_torch.PYTHON, "-c", f"import {module}"], check=False,
                          env=check_torch.environment(), capture_output=True).returncode == 0


@pytest.mark.parametrize("what", ("compile", "raises", "exits", "lightning", "trainer"))
def test_is_as_bare(tmp_path, what):
    if what in NEEDS and not is_there(NEEDS[what]):
        pytest.skip(f"{NEEDS[what]} is not installed")
    command = [check_torch.PYTHON, WORK, what]
    bare = run(command, STATUS.get(what, 0))
    done = run([check_torch.GPUPROF, "run", "--quiet", "-o", tmp_path, "--pytorch=shapes", "--",
                *command], STATUS.get(what, 0))
    assert SECONDS.sub("", done.stdout) == SECONDS.sub("", bare.stdout)
    assert SECONDS.sub("", LAUNCHER.sub("", done.stderr)) == \
        SECONDS.sub("", LAUNCHER.sub("", bare.stderr))
    [process] = stream_reader.read_folder(tmp_path)
    assert process.meta["pytorch"] == "shapes"
    names = collections.Counter(op.name for op in stream_reader.read_ops(process))
    assert names["aten::addmm"] or names["aten::linear"]
    if what in LABELS:
        assert names[LABELS[what]] == STEPS
        assert sum(names[name] for name in names if name.startswith("enumerate(DataLoader)#"))
    print(what, names.total())


def profiled(before, folder):
    """What torch.profiler says of its own: the operators of its trace by thread, the device's work,
    and the operators' rows of key_averages(), without times."""
    paths = [folder / "trace.json", folder / "keys.json"]
    folder.mkdir()
    check_torch.run([*before, check_torch.PYTHON, OPS, *paths], check_torch.environment())
    trace, keys = (json.loads(path.read_text(encoding="utf-8")) for path in paths)
    slices = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    threads = collections.defaultdict(list)
    for e in sorted(slices, key=lambda e: (e["ts"], -e["dur"])):
        if e["cat"] in ("cpu_op", "user_annotation"):
            threads[e["tid"]].append([e["name"], *(e["args"].get(key) for key in (
                "Input Dims", "Input type", "Concrete Inputs", "Sequence number"))])
    operators = {e["name"] for e in slices if e["cat"] == "cpu_op"}
    work = collections.Counter(e["name"] for e in slices
                               if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"))
    rows = [sorted(str(row[:3]) for row in table if row[0] in operators) for table in keys]
    return sorted(threads.values(), key=len), work, rows


def test_profiler_is_as_bare(tmp_path):
    bare = profiled([], tmp_path / "bare")
    ours = profiled([check_torch.GPUPROF, "run", "--quiet", "-o", tmp_path / "out",
                     "--pytorch=shapes", "--"], tmp_path / "ours")
    assert list(map(len, ours[0])) == list(map(len, bare[0]))
    assert ours == bare and bare[1].total() > 40 and len(bare[2][0]) > 100
