# SPDX-License-Identifier: Apache-2.0
"""gpuprof memory: what it prints for people, and what it refuses."""

import struct

import csv_tables
import pytest
from made_memory import TYPES, Process, at_random
from memory_verb import fixture_memory, leaking
from test_tables import on_terminal


def with_everything(process):
    """Beside leaks: tensors, what is hidden, a preallocation, and PyTorch's failure with advice."""
    total, mib = 80 << 30, 1 << 20
    for device in range(4):
        process.get("linear", (1 << 41) + (device << 32), 20 * mib, device, line=3)
    kept = process.tensor((1 << 41) + 4 * mib, 8 * mib, reserved=20 * mib, line=4)
    for number in range(3):
        process.tensor((1 << 44) + (number << 20), 512, line=20 + number)
    process.get("pinned", 1 << 20, mib, line=3)
    process.call("cudaMemGetInfo", [total - 500 * mib, total, 0])
    process.get("linear", 1 << 42, total // 2, line=5)
    process.raw(1, TYPES["tensor_oom"], [1 << 50, kept.bytes, 20 * mib, 0, 1],
                code=process.stack(6))
    process.raw(1, TYPES["tensor_oom"], [11 * mib, kept.bytes, 20 * mib, 0, 1],
                code=process.stack(6))
    return process


@pytest.mark.parametrize("columns", [80, 60, 200])
def test_first_screen(columns, memory, collector, run_verb, tmp_path):
    """With all that there can be it is 24 lines at most, none wider than the terminal."""
    memory([with_everything(leaking(20, 2000))])
    text = on_terminal([collector, "memory", tmp_path / "data"], columns)
    lines = text.partition("\n\n")[0].splitlines()
    assert 18 <= len(lines) <= 24, text
    assert max(map(len, lines)) <= columns
    labels = [line[2:13].strip() for line in lines]
    assert [label for label in labels if label] == \
        ["memory", "no memory", "held by", "try", "peak", "held by", "grows", "hidden"]
    if columns >= 80:
        assert lines[1].startswith("  no memory  11.0 MiB wanted, 8.0 MiB of 80.0 GiB held by ten")
        assert "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" in "\n".join(lines)
        at = labels.index("grows")
        assert lines[at].split()[1:] == "38.0 KiB, 2.0 KiB a step: train " \
            "(/home/me/train.py:17)".split()
        assert lines[at + 3].split()[-1] == "--table=leaks"
        peaks = lines[labels.index("peak"):][:5]
        assert [line.split(": ")[1].split(";")[0].partition(" (")[0] for line in peaks[:4]] == \
            ["device 0", "device 1", "device 2", "device 3"]
        assert peaks[4].split() == "... and 2 more: --table=places".split()
    found = csv_tables.tables(run_verb("memory", tmp_path / "data", "--format=csv").stdout)
    assert {"places", "owners", "leaks", "kinds", "steps", "curve"} <= set(found)
    run_verb("memory", tmp_path / "data", "--format=csv", "-o", "tables/")
    assert {path.name: csv_tables.table(path.read_text())
            for path in (tmp_path / "tables").iterdir()} == \
        {f"{name}.csv": rows for name, rows in found.items()}


def test_short_rows_in_a_pipe(memory, run_verb, tmp_path):
    """Which process it is needs no words if there is one; all eight leaks are on the page."""
    memory([leaking(60, 6000)])
    text = run_verb("memory", tmp_path / "data").stdout
    [places] = [table for table in text.split("\n\n") if table.startswith("memory of each device")]
    assert max(map(len, places.splitlines())) <= 80
    leaks = text.partition("memory growth from step to step\n")[2].split("\n\n")[0].splitlines()
    assert [line.split(":")[1].rstrip(")") for line in leaks[1:]] == \
        [str(10 + leak) for leak in reversed(range(8))]
    text = run_verb("memory", tmp_path / "data", "--table=kinds").stdout
    assert text.splitlines()[-1].endswith("  linear, device 0")


def test_the_screen_says_whose_it_is(memory, run_verb, tmp_path):
    """What only one of several processes holds is its own; a line is of all that have it."""
    both = [Process(rank, pythonic=True) for rank in range(2)]
    for process in both:
        process.get("linear", 512, 3000, line=1)
    both[1].get("linear", 1024, 2000, line=2)
    memory(both)
    screen = run_verb("memory", tmp_path / "data").stdout.partition("\n\n")[0]
    held = screen.partition("  held by ")[2].splitlines()
    assert [line.partition("%  ")[2].partition(" (")[0] for line in held] == [
        "2 processes: train", "rank 1: train"]
    memory(both[:1])
    assert "process" not in run_verb("memory", "--rank=0", tmp_path / "data").stdout.partition(
        "  held by ")[2].partition("\n\n")[0]


def test_whose_stack_it_is(memory, run_verb, tmp_path):
    """Two processes have the same one, and a column says which; a line is of both together."""
    def owners(count, *options):
        processes = [Process(rank, pythonic=True) for rank in range(count)]
        for process in processes:
            process.get("linear", 1 << 40, (1 + process.rank) << 20, line=3)
        made = memory(processes, *options)["owners"]
        return {row["bytes"] >> 20: row["process"] for row in made if row["bytes"]}

    def heads(*options):
        text = run_verb("memory", tmp_path / "data", "--table=owners", *options).stdout
        return next(line for line in text.splitlines() if "owner" in line and "bytes" in line)

    assert owners(1, "--by=stack") == {1: None} and "process" not in heads("--by=stack")
    assert owners(2) == {3: None} and "process" not in heads()
    assert owners(2, "--by=stack") == {1: "rank 0", 2: "rank 1"}
    assert "process" in heads("--by=stack")


def test_a_moment_behind_the_end(memory, run_verb, run_collector, tmp_path):
    process = at_random(7)
    wall = memory([process])["wall_ns"]
    assert memory([process], f"--at={wall / 1e9:.9f}")["places"]
    done = run_collector("memory", tmp_path / "data", "--at=99.5")
    assert done.returncode == 2 and not done.stdout
    assert "--at: nothing was recorded 99.500 s after the first event; the last event is at" in \
        done.stderr


def test_nothing_could_be_read(memory, run_verb, run_collector, tmp_path):
    """Of damaged files nobody knows what the program has done."""
    memory([Process()])
    text = run_verb("memory", tmp_path / "data").stdout
    assert "peak       no allocation was read" in text
    process = Process()
    process.get("linear", 0x1000, 64)
    memory([process])
    path = tmp_path / "data/0.gpuprof"
    data = bytearray(path.read_bytes())
    for at in range(len(data) * 3 // 4, len(data) - 8):
        data[at] ^= 0x55
    path.write_bytes(data)
    done = run_collector("memory", tmp_path / "data")
    assert done.returncode == 3
    lines = done.stdout.splitlines()
    assert lines[1].startswith("  lost       blocks damaged: ")
    assert lines[2:] == ["  peak       no allocation was read"]


def test_wrong_usage(run_collector):
    for words, says in ((["--table=peaks"], "unknown table in 'peaks'; 'gpuprof help memory'"),
                        (["--sort=colour", "--table=owners"],
                         "column 'colour'; the columns are: name, "),
                        (["--at=noon"], "neither peak nor end nor a number of seconds"),
                        (["--by=name"], "python-line|stack|operator"),
                        (["-o", "x.svgz"], "unknown file type"),
                        (["-o", "x.svg"], "name it .txt, .csv, .json, .html or .pickle"),
                        (["-o", "x.html", "--by=stack"], "a page has all tables"),
                        *[(["--from=1ms", *options],
                         "need a page (-o page.html) or --table=places,owners,curve") for
                          options in ([], ["-o", "x.pickle"], ["--table=owners", "--at=3ms"])],
                        (["--to=1s", "--table=owners,leaks"], "leaks always covers the whole")):
        done = run_collector("memory", *words, "x")
        assert done.returncode == 2 and says in done.stderr, words
