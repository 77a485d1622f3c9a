# SPDX-License-Identifier: Apache-2.0
"""Samples of the CPU: against what the program measures of itself."""

import collections
import re
import shutil
import sys

import pytest
import stream_reader
import toolchain
from test_native_stacks import Stacks

# A virtual machine's ticks stop while its host runs others: their time is told of one tick later.
SAMPLE = stream_reader.TYPE_NUMBERS["sample"]
SAMPLE_CPU = 0
SILENT = 8
PYTHON_FRAME = 2


def recorded(library, folder, *arguments, **settings):
    """The process, and the NS that each name on its output says."""
    env = toolchain.environment(folder / "out", library, **{"GPUPROF_SAMPLE": "100", **settings})
    program = toolchain.build("sample_work.c", *toolchain.runtime(12))
    done = toolchain.run([program, *arguments], env)
    said = [line.split() for line in done.stdout.splitlines()]
    (process,) = stream_reader.read_folder(folder / "out")
    return process, [(name, int(ns)) for name, ns in said]


def cpu_samples(process):
    return [record for record in process.of_type(SAMPLE) if record.code == SAMPLE_CPU]


def weighed(process, samples):
    """Periods by the function that burns."""
    stacks, found = Stacks(process), collections.Counter()
    for record in samples:
        if not record.stack:  # in our own code, where one of few ticks may come
            continue
        names = list(stacks.names(record.stack, "sample_work"))
        assert "main" in names or "beside" in names
        found.update({name: record.weight or 1
                      for name in names if name in ("heavy", "light", "burn_beside")})
    return found


def test_shares_of_functions(library, tmp_path):
    """Also of what ran before the first recorded call; a thread that waits is not sampled."""
    process, said = recorded(library, tmp_path, "200", "2")
    samples = cpu_samples(process)
    main = process.header.pid
    assert {record.args[0] for record in samples} == {10_000_000}
    first = process.calls()[0].begin
    assert weighed(process, [r for r in samples if r.begin < first])["heavy"] >= 8
    found = weighed(process, [record for record in samples if record.args[1] == main])
    for name in ("heavy", "light"):
        ns = sum(ns for said_name, ns in said if said_name.startswith(name))
        assert found[name] * 10_000_000 == pytest.approx(ns, abs=90_000_000)
    others = [record for record in samples if record.args[1] != main]
    assert len({record.args[1] for record in others}) == 2
    assert weighed(process, others)["burn_beside"] * 10_000_000 == pytest.approx(
        sum(ns for name, ns in said if name == "burn_beside"), abs=80_000_000)
    named = [record for record in samples if record.text]
    assert len({record.args[1] for record in named}) == len(named) == 3
    assert {record.text[:11] for record in named} == {b"sample_work"}
    assert not process.losses


def test_lines_of_python(library, tmp_path):
    """The frame innermost in Python, its function and line; before the first call, too."""
    source = toolchain.SOURCES / "sample_lines.py"
    env = toolchain.environment(tmp_path / "out", library, GPUPROF_SAMPLE="100")
    said = collections.Counter()
    for line in toolchain.run([sys.executable, source], env).stdout.splitlines():
        said[line.split()[0]] += float(line.split()[1])
    (process,) = stream_reader.read_folder(tmp_path / "out")
    places = {record.args[0]: (record.text.split(b"\0")[1].decode(), record.args[1])
              for record in process.of_type(stream_reader.TYPE_NUMBERS["python"])}
    lines, found = source.read_text(encoding="ascii").splitlines(), collections.Counter()
    stacks = Stacks(process)
    for record in cpu_samples(process):
        frames = [frame for frame in stacks.frames.get(record.stack, ())
                  if frame >> 60 == PYTHON_FRAME]
        function, line = places[frames[0] & 0xFFFFFFFF] if frames else ("", 0)
        if function in said:
            found[function] += record.weight or 1
            found["hot"] += (record.weight or 1) * (
                "hot" in lines[line - 1] or "range" in lines[line - 1])
    for name, seconds in said.items():
        assert found[name] / 100 == pytest.approx(seconds, abs=.1), name
    assert found["hot"] > 40
    assert not process.losses


def test_children_of_forks(library, tmp_path):
    """One that works is sampled, though it makes no call; others have no thread and no file."""
    env = toolchain.environment(tmp_path / "out", library, GPUPROF_SAMPLE="100")
    done = toolchain.run([sys.executable, toolchain.SOURCES / "sample_fork.py"], env)
    assert done.stdout.split() == ["3", "0", "3", "3"]
    parent, child = stream_reader.read_folder(tmp_path / "out")
    assert parent.calls() and not child.calls()
    names = [record.text.split(b"\0")[1] for record
             in child.of_type(stream_reader.TYPE_NUMBERS["python"])]
    assert b"work" in names
    assert sum(record.weight or 1 for record in cpu_samples(child)
               if record.args[1] == child.header.pid) == pytest.approx(20, abs=6)


def plain_and_sampled(library, folder, source, *arguments, count=1):
    """What it prints without gpuprof, and each time with samples at 1 kHz."""
    program = toolchain.build(source, *toolchain.runtime(12))
    plain = toolchain.run([program, *arguments], toolchain.environment(folder)).stdout
    for number in range(count):
        out = folder / f"out{number}"
        env = toolchain.environment(out, library, GPUPROF_SAMPLE="1000")
        yield plain, toolchain.run([program, *arguments], env).stdout, out


def test_signals_are_the_programs(library, tmp_path):
    """Actions, masks, what waits for signals, and calls that wait while another thread runs."""
    for plain, sampled, out in plain_and_sampled(library, tmp_path, "sample_signals.c"):
        assert plain.endswith("done\n") and "EINTR" not in plain
        assert sampled == plain
        (process,) = [p for p in stream_reader.read_folder(out) if p.calls()]
        notes = [record.text for record in process.of_type(stream_reader.META)]
        assert any(b"sampling moved to another signal" in text for text in notes)


@pytest.mark.parametrize("count", [5, pytest.param(2000, marks=pytest.mark.long)])
def test_stress(library, tmp_path, count):
    for plain, sampled, out in plain_and_sampled(library, tmp_path, "sample_stress.c", "60",
                                                 count=count):
        assert sampled == plain == "right all\n"
        assert any(cpu_samples(process) for process in stream_reader.read_folder(out))
        shutil.rmtree(out)


def test_who_blocks_the_signal_is_told(library, run_collector, tmp_path):
    process, said = recorded(library, tmp_path, "300", "1", "deaf", GPUPROF_SAMPLE="1000")
    main = process.header.pid
    sampled, silent = [], []
    for record in cpu_samples(process):
        (silent if record.args[2] & SILENT else sampled).append(record)
    assert {record.args[1] for record in sampled} == {main} != {silent[0].args[1]}
    assert silent[0].text[:11] == b"sample_work" and len({record.args[1] for record in silent}) == 1
    ns = next(ns for name, ns in said if name == "burn_beside")
    assert sum(r.weight * r.args[0] for r in silent) == pytest.approx(ns, abs=25_000_000)
    assert process.losses == {"samples_silent": 1}
    told = run_collector("report", "--full", tmp_path / "out").stdout
    row, = (line for line in told.splitlines() if "(threads that block the signal of" in line)
    assert re.search(r" [23]\d\d\.\d+ ms ", row), told


def test_off(library, tmp_path):
    process, _ = recorded(library, tmp_path, "10", "1", GPUPROF_SAMPLE="off")
    assert not process.of_type(SAMPLE)
