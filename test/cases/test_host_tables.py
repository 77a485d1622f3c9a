# SPDX-License-Identifier: Apache-2.0
"""What the host did, as tables: samples, imports, calls of the system, the GIL, collections. The
recordings are made, and their sums are known from what was put into them."""

import json
import sqlite3

import pytest
from made_host_sums import GAP, Host, Made

TABLES = ("samples", "imports", "os", "gil", "gc")


def told(run_verb, folder, *options, tables=TABLES):
    return json.loads(run_verb("report", "--format=json", "--table=" + ",".join(tables), *options,
                               folder).stdout)


def same(rows, known, keys):
    found = {tuple(row[key] for key in keys): row for row in rows}
    assert set(found) == set(known) and len(rows) == len(known)
    for key, row in known.items():
        for name, value in row.items():
            assert found[key][name] == value, (key, name)
        others = [name for name, value in found[key].items()
                  if name.endswith("_ns") and value and name not in (*row, "mean_ns", "median_ns")]
        assert not others, (key, others)


def check(made, found):
    same(found["samples"], made.lines, ("function", "file", "line"))
    same(found["imports"], {(key,): row for key, row in made.modules.items()}, ("file",))
    same(found["os"], made.calls, ("function", "peer"))
    same(found["gil"], made.gil, ("pid", "tid", "holder_tid"))
    same(found["gc"], made.gc, ("pid", "generation"))


@pytest.mark.parametrize("ranks", (1, 3))
def test_sums_are_those_that_were_put_in(run_verb, make_stacks, tmp_path, ranks):
    made = Made(ranks, ranks)
    folder = make_stacks(*made.script)
    check(made, told(run_verb, folder))
    check(made, told(run_verb, folder, "-j2"))
    # Parts add up to the whole.
    paths = []
    for i in range(2):
        paths.append(tmp_path / f"part{i}")
        run_verb("report", "--partial", f"--share={i}/2", "-o", paths[-1], folder)
    whole = json.loads(run_verb("report", "--combine", "--format=json", *paths).stdout)
    check(made, whole)
    # And so does SQL.
    path = tmp_path / "x.sqlite"
    run_verb("export", "--format=sqlite", "-o", path, folder)
    with sqlite3.connect(path) as base:
        base.row_factory = sqlite3.Row
        check(made, {name: [dict(row) for row in base.execute(f"SELECT * FROM GPUPROF_{name}")]
                    for name in TABLES})


def test_as_text(run_verb, make_stacks):
    made = Made(5)
    folder = make_stacks(*made.script)
    text = run_verb("report", "--full", folder).stdout
    for title in ("CPU time by line (samples)", "imports of Python", "calls of the system",
                  "waits for Python's lock (GIL)", "garbage collections of Python"):
        assert title in text
    assert "tokenize (data.py:81)" in text and "[libtorch_cpu.so]" in text
    assert "loader (thread 4711), while python (thread 1000) had it" in text
    cpu = sum(row["cpu_ns"] for row in told(run_verb, folder)["samples"])
    assert cpu == sum(row["cpu_ns"] for row in made.lines.values())


def test_without_them_nothing_is_said(run_verb, make_stacks, tmp_path):
    """A recording that has none of it has no such section, key or table."""
    host = Host()
    host.call(500, 100)
    folder = make_stacks(*host.script())
    report = json.loads(run_verb("report", "--format=json", folder).stdout)
    assert not set(TABLES) & set(report)
    assert "samples" not in run_verb("report", "--full", folder).stdout
    assert "gpuprof run --sample" in run_verb("report", "--table=samples", folder).stdout
    run_verb("export", "--format=sqlite", "-o", tmp_path / "x.sqlite", folder)
    with sqlite3.connect(tmp_path / "x.sqlite") as base:
        names = {name for (name,) in base.execute("SELECT name FROM sqlite_master")}
    assert "GPUPROF_SAMPLES" not in names


def test_anything_may_stand_in_a_file(run_verb, make_stacks):
    """Functions that nobody named, threads and stacks that are not there, extreme numbers."""
    host = Host()
    host.call(500, 100)
    host.sample(1000, 77, weight=2**32 - 1)
    host.sample(2000, 0, weight=2**32 - 1, period=2**64 - 1)
    host.sample(3000, host.stack("p1000", "99+5", "w7777777777777777"), source=GAP, tid=2**63,
                thread=9)
    host.sample(4000, source=40000)
    host.os_call(5000, 10, 65535, "a\\nb\x1b[2J" + "x" * 8000)
    host.os_call(6000, 2**62, 3, moved=2**64 - 1, error=2**64 - 1)
    host.record("os_function", 7000, (2**64 - 1,), code=3, text="y" * 8000)
    host.record("os_function", 7000, (), code=4)
    host.record("gil", 8000, (2**64 - 1, 2**64 - 1), code=9)
    host.record("gil_rest", 9000, (2**64 - 1,) * 4)
    host.record("gc", 9500, (), code=65535, duration=2**62)
    folder = make_stacks(*host.script())
    found = told(run_verb, folder)
    rows = {row["function"]: row for row in found["samples"]}
    assert rows["(no stack)"]["samples"] >= 2**32 - 1
    assert "\x1b" not in run_verb("report", "--full", folder).stdout
    assert {row["function"][:20] for row in found["os"]} == {"os_function_65535", "y" * 20}
    assert [row["generation"] for row in found["gc"]] == [65535]
    run_verb("dump", folder)


def test_dump_names_functions(run_verb, make_stacks):
    host = Host()
    host.call(500, 100)
    host.sample(1000, 77, weight=3, flags=2)
    host.os_call(2000, 10, "read", "/x", moved=5)
    host.os_call(3000, 10, 99)
    lines = run_verb("dump", make_stacks(*host.script())).stdout.splitlines()
    [sample] = [line for line in lines if line.startswith("sample ")]
    calls = [line for line in lines if line.startswith("os_call ")]
    assert " period=10000000 tid=0 flags=0x2 " in sample and sample.endswith(" weight=3 stack=77")
    assert " function=read result=0 " in calls[0] and ' text="/x" ' in calls[0]
    assert " function=os_function_99 " in calls[1]
