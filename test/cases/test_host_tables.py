# SPDX-License-Identifier: Apache-2.0
"""What the host did, as tables: samples, imports, system calls, the GIL, collections. The
recordings are made, and their sums are known from what was put into them."""

import collections
import csv
import json
import platform
import random
import re
import sqlite3

import conftest
import pytest
import toolchain
from made_host_sums import GAP, IN_KERNEL, LIBC, PERIOD, PYTHON, TORCH, Host, Made

FUTEX = {"aarch64": 98}.get(platform.machine(), 202)
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
    for title in ("CPU time by line (samples)", "Python imports", "system calls",
                  "waits for Python's lock (GIL)", "Python's garbage collections"):
        assert title in text
    assert "tokenize (data.py:81)" in text and "[libtorch_cpu.so]" in text
    assert "loader (thread 4711), while python (thread 1000) had it" in text
    cpu = sum(row["cpu_ns"] for row in told(run_verb, folder)["samples"])
    assert cpu == sum(row["cpu_ns"] for row in made.lines.values())


def known_lines(host, folder, dice, mine):
    """line -> Counter of what --by=python-line and --source say; of `mine` alone, or of all."""
    own = {name: host.line(name, str(folder / file), line)
           for name, file, line in (("a", "train.py", 2), ("b", "data.py", 3), ("c", "data.py", 5))}
    library = host.line("decode", "/usr/lib/python3.11/json/decoder.py", 355)
    rows = collections.defaultdict(collections.Counter)
    for i in range(200):
        names = dice.choices("abcabcl", k=dice.randrange(1, 5))  # innermost first
        inner = dice.choice(((), (PYTHON,), (TORCH, PYTHON), (LIBC,)))
        frames = [own.get(name, library) for name in names]
        weight, in_kernel = dice.choice((1, 3)), dice.random() < 0.2
        host.sample(1000 + 5000 * i, host.stack(*inner, *frames), weight=weight,
                    flags=IN_KERNEL * in_kernel, thread=dice.choice((1, 3)))
        kind = ("system_ns" if in_kernel else "native_ns" if TORCH in inner else "python_ns")
        shown = [name for name in names if name != "l" or not mine]
        if shown:
            rows[shown[0]] += collections.Counter(
                {"samples": weight, "cpu_ns": weight * PERIOD, kind: weight * PERIOD})
        for name in set(shown):
            rows[name] += collections.Counter(samples_all=weight, cpu_ns_all=weight * PERIOD)
    host.call(500, 100, host.stack(own["a"]))
    return rows


KEYS = ("samples", "cpu_ns", "python_ns", "native_ns", "system_ns", "samples_all", "cpu_ns_all")


@pytest.mark.parametrize("way", ("--by=python-line", "--mine", "--source"))
def test_lines_have_cpu_time_beside_their_calls(run_verb, make_stacks, tmp_path, way):
    source = tmp_path / "src"
    source.mkdir()
    for name in ("train.py", "data.py"):
        (source / name).write_text("def f():\n    pass\n    g()\n\nx = 1\n")
    host = Host()
    host.thread(3, 4711, "loader")
    rows = known_lines(host, source, random.Random(way), way != "--by=python-line")
    option = f"--source={source}" if way == "--source" else way
    folder = make_stacks(*host.script())
    report = json.loads(run_verb("report", option, "--format=json", folder).stdout)
    found = report["source_lines" if way == "--source" else "calls_by_python_line"]
    names = {("train.py", 2): "a", ("data.py", 3): "b", ("data.py", 5): "c",
             ("decoder.py", 355): "l"}
    got = {names[row["file"].rpartition("/")[2], row["line"]]: row for row in found if row["file"]}
    assert set(got) == set(rows)
    for name, row in rows.items():
        assert {key: got[name][key] for key in KEYS} == {key: row[key] for key in KEYS}
    assert (got["a"]["calls"], got["a"]["host_ns"]) == (1, 100)
    text = run_verb("report", option, folder).stdout
    assert re.search(r" CPU +Python +native +system +hits ", text)
    [head, *_] = csv.reader(run_verb("report", option, "--format=csv", "--table=" + (
        "source_lines" if way == "--source" else "calls_by_python_line"), folder).stdout.split())
    assert set(KEYS) <= set(head)


@pytest.mark.parametrize("way", ("--by=python-line", "--mine", "--by=stack"))
def test_lines_without_samples_have_no_such_column(run_verb, make_stacks, way):
    host = Host()
    host.call(500, 100, host.stack(host.line("a", "/home/me/train.py", 2)))
    if way == "--by=stack":  # whose rows are calls
        host.sample(1000, 1)
    folder = make_stacks(*host.script())
    name = "calls_by_stack" if way == "--by=stack" else "calls_by_python_line"
    report = json.loads(run_verb("report", way, "--format=json", folder).stdout)
    assert len(report[name]) == 1 and not set(KEYS) & set(report[name][0])
    out = run_verb("report", way, "--format=csv", f"--table={name}", folder).stdout
    assert not set(KEYS) & set(out.split("\n")[0].split(","))
    assert " hits " not in run_verb("report", way, folder).stdout


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


def test_stops_of_the_world(run_verb, make_stacks):
    """They are rows of their own, apart from waits for a holder that is not known."""
    host = Host()
    host.call(500, 100)
    host.gil(1000, 5000)
    for begin, code in (7000, 2), (20000, 2), (40000, 1):
        host.record("gil", begin, (0, 0), code=code, duration=10000)
    folder = make_stacks(*host.script())
    rows = {row["holder"]: (row["holder_tid"], row["waits"], row["wait_ns"], row["holds"])
            for row in told(run_verb, folder)["gil"]}
    assert rows == {None: (0, 1, 5000, 1), "stop of the world": (0, 2, 20000, 0)}
    text = run_verb("report", "--table=gil", folder).stdout
    assert f"(thread {host.pid}), stop of the world" in text
    assert run_verb("export", folder, "--format=csv").stdout.count("stop of the world") == 2


def test_dump_names_functions(run_verb, make_stacks):
    host = Host()
    host.call(500, 100)
    host.sample(1000, 77, weight=3, flags=2)
    host.os_call(2000, 10, "read", "/x", moved=5)
    host.os_call(3000, 10, 99)
    lines = run_verb("dump", make_stacks(*host.script())).stdout.splitlines()
    [sample] = [line for line in lines if line.startswith("sample ")]
    calls = [line for line in lines if line.startswith("os_call ")]
    assert " period=10000000 of_tid=0 flags=0x2 " in sample
    assert sample.endswith(" weight=3 stack=77")
    assert " function=read result=0 " in calls[0] and ' text="/x" ' in calls[0]
    assert " function=os_function_99 " in calls[1]
    for line in lines:  # a name says one thing
        names = re.findall(r"(?:^| )(\w+)=", re.sub(r'"[^"]*"', "", line))
        assert len(names) == len(set(names)), line


def test_looks_without_a_stack_say_what_the_thread_did(run_verb, make_stacks):
    """As there are where a program has no Python."""
    host = Host()
    host.call(500, 100)
    for at, state, call in ((1, "S", FUTEX), (2, "S", 9999), (3, "R", -1),
                                  (4, "D", -1), (5, "S", -1)):
        host.record("sample", at * 1000, (1000 * at, 0, 0, ord(state), call + 1), code=GAP)
    found = told(run_verb, make_stacks(*host.script()))["samples"]
    assert {row["function"]: row["gap_ns"] for row in found} == {
        "(no stack: it waits in futex)": 1000, "(no stack: it waits in system call 9999)": 2000,
        "(no stack: it runs)": 3000, "(no stack: it waits for a page)": 4000,
        "(no stack: it waits)": 5000}


NEAR_NS = 45_000_000  # a few ticks of the kernel's, at both ends


def test_lines_of_a_program(run_verb, library, tmp_path):
    """Samples against what the program says of its CPU time, by line, kind and import."""
    libraries = f"{library} {conftest.built(conftest.BUILD / 'libgpuprof-os.so')}"
    env = toolchain.environment(tmp_path / "out", libraries, GPUPROF_SAMPLE="100",
                                GPUPROF_OS="100us", PYTHONDONTWRITEBYTECODE="1")
    program = toolchain.SOURCES / "host_lines.py"
    lines = toolchain.run(["/usr/bin/python3", program, "0.2"], env).stdout.splitlines()
    said = dict(zip(words := " ".join(lines).split(), map(str, words[1:])))
    found = told(run_verb, tmp_path / "out", tables=("samples", "imports"))
    samples = {row["function"]: row for row in found["samples"]}
    text = program.read_text().splitlines()
    assert {"spin", "digest", "read"} <= set(samples), (
        found, run_verb("report", "--table=losses", tmp_path / "out").stdout)
    for kind, function, what in (("python", "spin", "Python"), ("native", "digest", "native code"),
                                 ("system", "read", "the kernel")):
        row = samples[function]
        assert row["file"] == str(program)
        assert text[row["line"] - 1].endswith(f"# line of {what}")
        assert row["cpu_ns"] == pytest.approx(int(said[kind]), abs=NEAR_NS)
        assert row[f"{kind}_ns"] == pytest.approx(row["cpu_ns"], abs=NEAR_NS)
    modules = {row["file"].rpartition("/")[2]: row for row in found["imports"]}
    outer, inner = int(said["outer"]), int(said["inner"])
    for name, own, all_ns in (("outer", outer - inner, outer), ("inner", inner, inner)):
        row = modules[f"host_lines_{name}.py"]
        assert row["cpu_ns"] == pytest.approx(own, abs=NEAR_NS)
        assert row["cpu_ns_all"] == pytest.approx(all_ns, abs=NEAR_NS)
        assert row["os_ns_all"] == pytest.approx(int(said["slept"]), abs=10_000_000)
    assert modules["host_lines_outer.py"]["os_ns"] < 10_000_000  # the other one slept
    assert "host_lines.py" not in modules


def test_rows_have_a_bound(run_verb, make_stacks):
    """No more than the file's bytes bear out: the others are one row, and the sums are whole."""
    host, count = Host(), 25_000
    host.call(500, 100)
    for i in range(count):
        host.os_call(1000 + 1000 * i, 100_000, "read", f"/{i % 1000}/{i}")
    folder = make_stacks(*host.script())
    [path] = folder.iterdir()
    rows = told(run_verb, folder, tables=("os",))["os"]
    assert len(rows) == 4096 + path.stat().st_size // 16 + 1 < count
    assert sum(row["calls"] for row in rows) == count
    [others] = [row for row in rows if row["function"] == "(others)"]
    assert others["calls"] == count - len(rows) + 1
    assert "(others)" in run_verb("report", "--table=os", folder).stdout


def test_a_piece_has_what_was_in_it(run_verb, make_stacks):
    """Also of sums of waits that are too short to be told one by one, whoever tells them."""
    host = Host()
    host.thread(3, 4711, "loader")
    host.thread(4, 4712, "gpuprof-host")
    for ms in range(1, 100):
        host.call(ms * 1_000_000, 100)
        stack = host.stack(host.line("a", "/home/me/train.py", ms % 7 + 1))
        host.sample(ms * 1_000_000 + 1000, stack, thread=4, tid=(host.pid, 4711)[ms % 2])
        host.os_call(ms * 1_000_000 + 2000, 100_000, "read", thread=(1, 3)[ms % 2])
        host.gil_rest(ms * 1_000_000 + 3000, 1, 10, 1, 10, 4, tid=(host.pid, 4711)[ms % 2])
        host.gil(ms * 1_000_000 + 4000, 200_000, thread=(1, 3)[ms % 2])
        host.gc(ms * 1_000_000 + 5000, 100, 1)
    folder = make_stacks(*host.script())
    for options, count in (((), 99), (("--from=19.5ms", "--to=39.5ms"), 20), (("--tid=4711",), 50),
                           (("--tid=4711", "--from=19.5ms", "--to=39.5ms"), 10)):
        found = told(run_verb, folder, *options)
        assert sum(row["samples"] for row in found["samples"]) == count
        assert sum(row["calls"] for row in found["os"]) == count
        assert sum(row["waits"] for row in found["gil"]) == 2 * count
        assert sum(row["holds"] for row in found["gil"]) == count
        gc = sum(row["collections"] for row in found.get("gc", ()))
        assert gc == (0 if "--tid=4711" in options else count)
