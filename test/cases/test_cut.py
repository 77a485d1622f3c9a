# SPDX-License-Identifier: Apache-2.0
"""A piece of a recording (--from, --step, --kind ...): a trace and the tables of it hold what SQL
finds in the trace, or the database, of the whole."""

import collections
import csv
import io
import itertools
import json
import os
import random
import re
import select
import sqlite3
import struct
import subprocess
import time

import csv_tables
import piece_truth
import pytest
import stream_reader
from conftest import BUILD, Program, built
from made_ops import CAPTURED, DEVICE, MAIN, OTHER, TYPES, Recording, T
from test_idle import COPIED, Script, copied

CALLS = "('cuda_runtime', 'cuda_driver')"
WORK = "('kernel', 'gpu_memcpy', 'gpu_memset', 'gpu_graph')"
SPANS = "('user_annotation', 'cpu_op')"
STEPS = ("SELECT ts, ts + dur AS till, pid FROM e WHERE cat = 'user_annotation' AND "
         "name LIKE 'ProfilerStep#%' AND step >= 2 AND step < 4")
FORWARD = ("SELECT ts, ts + dur AS till, pid FROM e WHERE cat = 'user_annotation' AND "
           "name = 'forward'")


def database(trace):
    """Each event that lasts; `at` is the begin of the call that made it, `host` its process."""
    base = sqlite3.connect(":memory:")
    base.create_function("regexp", 2, lambda pattern, text: re.search(pattern, text) is not None)
    base.execute("CREATE TABLE e (cat, name, pid, tid, ts REAL, dur REAL, id, device, step)")
    for e in trace["traceEvents"]:
        if e["ph"] != "X" or e["cat"] == "gpu_user_annotation":
            continue
        a = e.get("args", {})
        step = e["name"].partition("ProfilerStep#")[2]
        base.execute("INSERT INTO e VALUES (?,?,?,?,?,?,?,?,?)",
                     (e["cat"], e["name"], e["pid"], e["tid"], e["ts"], e["dur"],
                      a.get("correlation"), a.get("device"), int(step) if step else None))
    # As make_gpu has them: rank N is process 1000 + N, and has device N.
    base.create_function("rank", 1, lambda pid: pid - 1000 if pid >= 1000 else pid)
    base.execute(f"""CREATE TABLE all_ AS SELECT w.*, c.ts AS at, c.tid AS by, CASE
        WHEN w.cat IN {CALLS} OR w.cat IN {SPANS} OR w.cat = 'overhead'
        THEN rank(w.pid) ELSE w.device END AS rank
        FROM e AS w LEFT JOIN e AS c ON c.id = w.id AND c.cat IN {CALLS} AND
        c.id IS NOT NULL AND rank(c.pid) = w.device AND w.cat NOT IN {CALLS}""")
    base.execute(f"UPDATE all_ SET at = ts, by = tid WHERE cat IN {CALLS} OR "
                 "cat = 'overhead'")
    return base


def in_spans(spans):
    """Calls and work that are there by their calls, and what reaches into it."""
    return f"""EXISTS (SELECT 1 FROM ({spans}) AS s WHERE rank(s.pid) = a.rank AND
        CASE WHEN cat IN {SPANS} THEN a.ts < s.till AND a.ts + a.dur > s.ts
        ELSE a.at >= s.ts AND a.at < s.till END)"""


def in_time(begin, end):
    return f"""CASE WHEN cat IN {SPANS} THEN ts < {end} AND ts + dur > {begin}
        ELSE ts >= {begin} AND ts < {end} END"""


CUTS = {
    "from and to": (["--from=250.5us", "--to=450.5us"], in_time(250.5, 450.5)),
    "from": (["--from=0.0003005"], in_time(300.5, 1e9)),
    "to": (["--to=0.3005ms"], in_time(-1e9, 300.5)),
    "in work": (["--from=312us", "--to=316.5us"], in_time(312, 316.5)),
    "steps": (["--step=2:4"], in_spans(STEPS)),
    "a step": (["--step=2"], in_spans(STEPS.replace("step < 4", "step < 3"))),
    "range": (["--range=forw?rd"], in_spans(FORWARD)),
    "rank": (["--rank=1"], "rank = 1"),
    "kinds": (["--kind=kernel,launch"], "cat = 'kernel' OR name LIKE '%Launch%'"),
    "work": (["--kind=work"], f"cat IN {WORK}"),
    "ranges": (["--kind=range"], "cat = 'user_annotation' AND step IS NULL"),
    "name": (["--name=^(cuda|void at).*[a-z]"], "name REGEXP '^(cuda|void at).*[a-z]'"),
    "copies": (["--name=Memcpy HtoD"], "name LIKE 'Memcpy HtoD%'"),
    "long": (["--min-duration=4us"], "dur >= 4"),
    "device": (["--device=1-3,9"], f"cat NOT IN {WORK} AND cat <> 'cuda_sync' OR device = 1"),
    "all of it": (["--step=1:", "--rank=0", "--kind=work", "--to=452us", "--name=kernel"],
                  "rank = 0 AND cat = 'kernel' AND name GLOB '*kernel*' AND ts < 452 AND " +
                  in_spans(STEPS.replace("step >= 2 AND step < 4", "step >= 1"))),
}


def rows(events):
    """What is compared; a begin or an end may be moved by 1 ns to be apart from a neighbour."""
    return sorted((cat, name, rank, round(ts, 2), round(dur, 2))
                  for cat, name, rank, ts, dur in events)


def lasting(trace):
    base = database(trace)
    return rows(base.execute("SELECT cat, name, rank, ts, dur FROM all_ WHERE step IS NULL"))


@pytest.fixture
def whole(make_gpu, run_collector):
    folder = make_gpu("train", 2, 6)
    return folder, json.loads(run_collector("merge", folder).stdout)


def near(a, b):
    return len(a) == len(b) and all(
        x[:3] == y[:3] and abs(x[3] - y[3]) < 0.02 and abs(x[4] - y[4]) < 0.02
        for x, y in zip(a, b))


def sums(text):
    """By kind and name: number and nanoseconds of the tables that add up."""
    kinds = {"functions": "function", "cuda_gpu_kern_sum": "kernel",
             "cuda_gpu_mem_time_sum": "copy", "cuda_gpu_graph_sum": "graph", "nvtx_sum": "range"}
    found = {}
    for table, rows in csv_tables.tables(text).items():
        for row in rows if table in kinds else ():
            name, count = (row["function"], row["calls"]) if table == "functions" else \
                (row["name"], row["instances"])
            found[kinds[table], name] = (int(count), int(row["total_ns"]))
    return found


def test_a_piece_is_what_sql_finds(whole, run_collector):
    folder, trace = whole
    base = database(trace)
    for title, (options, where) in CUTS.items():
        wanted = rows(base.execute("SELECT cat, name, rank, ts, dur FROM all_ AS a WHERE "
                                   f"step IS NULL AND ({where})"))
        result = run_collector("merge", *options, "--no-counters", folder)
        assert (result.returncode, result.stderr) == (0, ""), title
        shown = lasting(json.loads(result.stdout))
        if any(o.startswith("--rank") for o in options):  # which alone has the pid of both
            wanted, shown = (rows((*e[:2], 0, *e[3:]) for e in x) for x in (wanted, shown))
        assert wanted and near(shown, wanted), (title, options)
        table = sums(run_collector("report", *options, "--format=csv", folder).stdout)
        counted = collections.defaultdict(lambda: [0, 0])
        for cat, name, _, _, dur in wanted:
            if cat in CALLS:
                counted["function", name][0] += 1
                counted["function", name][1] += round(dur * 1000)
            elif cat == "kernel":
                counted["kernel", name][0] += 1
                counted["kernel", name][1] += round(dur * 1000)
            elif cat == "user_annotation":
                counted["range", name][0] += 1
        shown = {k: v for k, v in table.items() if k[0] in ("function", "kernel")}
        assert shown == {k: tuple(v) for k, v in counted.items() if k[0] != "range"}, title
        ranges = {k[1]: v[0] for k, v in table.items() if k[0] == "range"}
        assert ranges == {k[1]: v[0] for k, v in counted.items() if k[0] == "range"}, title


def devices(run_collector, folder, *options):
    result = run_collector("report", *options, "--table=gpu_time", "--format=json", folder)
    return json.loads(result.stdout)["gpu_time"]


def test_time_of_devices_in_steps_adds_up(make_gpu, run_collector):
    """What was idle between two of them is in that in which it was, whatever ended it."""
    folder = make_gpu("train", 2, 12)
    added = collections.defaultdict(collections.Counter)
    for step in range(12):
        for row in devices(run_collector, folder, f"--step={step}"):
            assert row["other_ns"] == 0
            added[row["pid"]].update({"window": row["window_ns"], **times_of(row)})
    rows = devices(run_collector, folder, "--step=0:12")
    assert {row["pid"]: dict(added[row["pid"]]) for row in rows} == {
        row["pid"]: {"window": row["window_ns"], **times_of(row)} for row in rows}
    assert len(rows) == 2 and all(row["idle_ns"] for row in rows)


def test_devices_of_a_rank_start_up(whole, run_collector):
    folder, _ = whole
    of_rank, = devices(run_collector, folder, "--rank=1")
    assert of_rank["idle_start_up_ns"] > 0 and of_rank["device"] == 1


@pytest.mark.parametrize("cuts", [[250.5], [100.2, 180, 312, 316.5, 450], range(10, 600, 7)],
                         ids=["two", "some", "many"])
def test_time_of_devices_in_pieces_adds_up(whole, run_collector, cuts):
    """From the first event on, idle time by cause: what work that lasts into the next piece does
    there is that it is other work."""
    folder, _ = whole
    borders = ["0us", *(f"{cut}us" for cut in cuts), "1s"]
    added = collections.defaultdict(collections.Counter)
    for begin, end in itertools.pairwise(borders):
        for row in devices(run_collector, folder, f"--from={begin}", f"--to={end}"):
            added[row["device"]].update(times_of(row))
    all_of_it = {row["device"]: times_of(row) for row in devices(run_collector, folder, "--to=1s")}
    assert {device: dict(row) for device, row in added.items()} == all_of_it
    assert len(all_of_it) == 2 and all(row["idle"] and row["busy"] for row in all_of_it.values())


def idle_of(run_verb, folder, *options):
    report = json.loads(run_verb("report", "--format=json", "--table=idle,gpu_time", *options,
                                 folder).stdout)
    found = {(row["cause"], row["place"]): row["total_ns"] for row in report["idle"]}
    assert sum(found.values()) == sum(row["idle_ns"] for row in report["gpu_time"])
    return collections.Counter(found)


def test_causes_and_places_of_pieces_add_up(make_records, run_verb):
    """What pays for a wait, how long work was on its way, and where the host came to are seen in
    the whole gap, wherever it is cut."""
    s = Script(now=1000)
    s.launch(lasts=100)
    s.call("cudaDeviceSynchronize", 150)  # pays for 90 us behind it
    s.now += 200
    s.call("cudaMalloc", 10)
    s.now += 30
    s.launch(after=90, lasts=40)  # 85 us on its way
    s.now = s.last + 20
    s.call("cudaMemcpy", 200)  # waits for the kernel, but not for the copy before it
    s.work(130, 20, kind="copy")
    s.now += 100
    s.launch(lasts=30)
    folder = make_records(s.text())
    whole = idle_of(run_verb, folder, "--to=1s")
    assert {cause for cause, _ in whole} >= {"host", "sync", "copy", "launch"}
    for cut in range(3, s.now - 1000, 7):
        parts = [idle_of(run_verb, folder, *piece)
                 for piece in ((f"--to={cut}us",), (f"--from={cut}us", "--to=1s"))]
        assert parts[0] + parts[1] == whole, cut


@pytest.mark.parametrize("name", COPIED)
def test_whose_copies_cut_gaps_is_the_same_in_pieces(make_records, run_verb, name):
    s = copied(COPIED[name][0])
    s.now = 10_000  # so that no piece is empty
    s.call("cudaFree", 5)
    folder = make_records(s.text())
    whole = idle_of(run_verb, folder, "--to=1s")
    for cut in (50, 300, 1108, 1200, 2112, 2500, 3100, 3109, 3118, 3150, 3600, 4010):
        parts = [idle_of(run_verb, folder, *piece)
                 for piece in ((f"--to={cut}us",), (f"--from={cut}us", "--to=1s"))]
        assert parts[0] + parts[1] == whole, cut


def times_of(row):
    busy = sum(row[part] for part in ("compute_ns", "communication_ns", "copies_ns", "other_ns"))
    return {"window": row["window_ns"], "busy": busy + row["idle_communication_ns"],
            "idle": row["idle_ns"] - row["idle_communication_ns"],
            "start-up": row["idle_start_up_ns"]}


def test_a_piece_in_which_nothing_happens(make_records, run_collector, run_verb):
    """The program sleeps 3 ms between a kernel and the next launch: so all of it is idle, on the
    host's side; a name that is nowhere leaves nothing all the same."""
    s = Script(now=10_000)
    s.launch(lasts=100)
    s.now = s.last + 104 + 3000
    s.launch(lasts=100)
    folder = make_records(s.text())
    for begin, end, idle_us in ((200, 1700, 1500), (50, 2109, 2005), (2000, 3250, 1108)):
        piece = (f"--from={begin}us", f"--to={end}us")
        report = json.loads(run_verb("report", "--format=json", *piece, folder).stdout)
        [row] = report["gpu_time"]
        assert row["idle_ns"] == 1000 * idle_us and row["idle_nothing_ns"] == 0, piece
        assert row["idle_host_ns"] + row["idle_launch_ns"] == row["idle_ns"]
    screen = run_verb("report", "--from=200us", "--to=1700us", folder).stdout
    assert re.search(r"  wall time +1\.500 ms; .* 0 calls\n +GPU time .* idle 100\.0%\n", screen)
    none = run_collector("report", "--from=200us", "--to=1700us", "--name=kernel", folder)
    assert none.returncode == 2 and "no event is in the selection" in none.stderr


def test_a_process_that_is_over_has_no_time(make_records, run_collector):
    """In a piece behind it, and no row. (What begins later is started by then.)"""
    lines = []
    for rank in range(3):
        lines += [f"process {rank}"]
        for at in (100_000 * rank + 1000, 100_000 * rank + 50_000):
            lines += [f"{TYPES['kernel']} 2 {at} 1000 0 0 0 0 {rank},1,7,1 "]
    folder = make_records(lines)
    for piece, ranks in ((["--to=1ms"], "012"), (["--from=120us", "--to=130us"], "12"),
                         (["--from=50us"], "12"), (["--from=49.999us"], "012"),
                         (["--from=160us", "--name=kernel"], "2")):
        shown = json.loads(run_collector("report", "--format=json", *piece, folder).stdout)
        for table in ("gpu_time", "ranks"):
            assert "".join(sorted(row["rank"] for row in shown[table])) == ranks, (piece, table)


def test_arrows_and_steps_of_a_piece(whole, run_collector):
    folder, _ = whole
    cut = json.loads(run_collector("merge", "--step=2:4", folder).stdout)["traceEvents"]
    assert sorted(e["name"] for e in cut if e["name"].startswith("ProfilerStep#")) == [
        "ProfilerStep#2", "ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#3"]
    arrows = collections.Counter(e["ph"] for e in cut if e.get("cat") == "ac2g")
    assert arrows["s"] == arrows["f"] > 0
    of_kind = json.loads(run_collector("merge", "--kind=kernel", folder).stdout)["traceEvents"]
    assert not [e for e in of_kind if e.get("cat") == "ac2g"]  # the calls are not there


def test_pieces_add_up(whole, run_collector):
    """Calls and work begin in one piece; what memory there was is carried from the begin."""
    folder, _ = whole
    report = ["report", "--format=csv", folder]
    all_of_it = run_collector(*report).stdout
    parts = [run_collector(*report, *options).stdout for options in (
        ["--to=0.0001777"], ["--from=177.7us", "--to=401us"], ["--from=401us"])]
    added = collections.defaultdict(lambda: (0, 0))
    for part in parts:
        for key, (count, ns) in sums(part).items():
            added[key] = (added[key][0] + count, added[key][1] + ns)
    wanted = {k: v for k, v in sums(all_of_it).items() if k[0] != "range"}
    assert {k: v for k, v in added.items() if k[0] != "range"} == wanted
    most = [csv_tables.tables(part)["gpu_memory_peak"] for part in (all_of_it, *parts)]
    assert most[0] == most[3] and len({str(rows) for rows in most}) == 3  # it only grows


def test_operators_of_a_piece(tmp_path, run_collector):
    """An operator reaches into a piece; a graph's work is known by a capture that is not in it."""
    r = Recording()
    with r.op("captured"):
        r.add(1, TYPES["name"], [0x40, 1], "replayed")
        r.call("cudaStreamBeginCapture", [0x10])
        r.call("cudaLaunchKernel", [0x40], flags=CAPTURED)
        r.call("cudaStreamEndCapture", [0x20, 0x10])
        r.call("cudaGraphInstantiate", [0x30, 0x20, 0])
    borders = []
    for step in range(6):
        borders.append((r.now - 1000) / 1000 + 0.5)
        with r.op("outer", T((3, step))):
            r.launch(700)
            for _ in range(step):
                with r.op("inner"):
                    r.launch(300, "small")
        r.kernel("replayed", 900, r.call("cudaGraphLaunch", [0x30, 0x10]), 7, (7 << 32) + 1)
    folder = r.write(built(BUILD / "make_raw"), tmp_path / "data")
    base = database(json.loads(run_collector("merge", folder).stdout))
    origin, = base.execute("SELECT ts FROM e WHERE name = 'outer' ORDER BY ts").fetchone()
    shift = origin - borders[0] - 0.5
    for begin, end in ((borders[2], borders[4]), (borders[3] + 7, borders[3] + 9)):
        begin, end = round(begin + shift, 3), round(end + shift, 3)
        wanted = dict(base.execute(f"SELECT name, count(*) FROM e WHERE cat = 'cpu_op' AND "
                                   f"{in_time(begin, end)} GROUP BY name"))
        table = csv_tables.tables(run_collector(
            "report", f"--from={begin}us", f"--to={end}us", "--format=csv", folder).stdout)["ops"]
        shown = {row["name"]: int(row["calls"]) for row in table if int(row["calls"] or 0)}
        assert wanted and shown == wanted
        replays, = base.execute("SELECT count(*) FROM e WHERE name = 'replayed' AND "
                                f"{in_time(begin, end)}").fetchone()
        assert sum(int(row["gpu_ns"]) for row in table if row["name"] == "captured") == \
            900 * replays


def test_work_that_begins_before_its_call(make_stacks, run_collector):
    """By two clocks. It is in the step of its call, which a table learns of only behind it."""
    folder = make_stacks("process 0", "meta gpu_rows=present", "name 1 k", "step 1000 0",
                         "kernel 1 1800 100 7", "step 2000 1",
                         "call cudaLaunchKernel 2100 50 7 0 0", "step 3000 2")
    for step in range(3):
        table = sums(run_collector("report", f"--step={step}", "--format=csv", folder).stdout)
        assert table == ({("function", "cudaLaunchKernel"): (1, 50), ("kernel", "k"): (1, 100)}
                         if step == 1 else {})


@pytest.mark.parametrize("seed", [1, 2, "train", pytest.param(3, marks=pytest.mark.long)])
def test_what_is_in_random_pieces(seed, make_gpu, make_records, run_collector, tmp_path):
    """Calls, work, bytes, steps, the devices' time and the most memory, of one selection and of
    several together."""
    dice = random.Random(str(seed))
    folder = make_gpu("train", 2, 30) if seed == "train" else make_records(
        [line for rank in range(2) for line in piece_truth.lines_of(rank, dice, TYPES)])
    run_collector("export", folder, "-o", tmp_path / "whole.sqlite")
    whole = piece_truth.Whole(tmp_path / "whole.sqlite")
    empty = 0
    for _ in range(200 if seed == 3 else 25):
        piece = piece_truth.Piece(whole, dice)
        truth = piece_truth.known(piece)
        result = run_collector("report", "--format=json", *piece.options, folder)
        if result.returncode == 2 and not (truth["calls"] or truth["kernels"] or truth["copies"]):
            empty += 1
            continue
        shown = piece_truth.shown(json.loads(result.stdout), whole)
        for what, value in truth.items():
            assert shown[what] == value, (piece.options, what)
    assert empty < 10 or seed == 3


BESIDE = ("step", "process", "loss", "note")  # rows that are no events
IN_ROWS = {  # what of the whole's rows is in the piece; `reaches` is of what is open for a while
    "--to=1h": "1", "--kind=mark": "kind = 'mark'", "--kind=memory": "kind = 'memory'",
    "--kind=work,range": "kind IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'gpu_graph', 'range')",
    "--name=^(step|allocate|out.of)": "name REGEXP '^(step|allocate|out.of)'",
    "--name=^pause$": "name = 'pause'", "--min-duration=4us": "duration_ns >= 4000",
    "--device=1": "device IN ('', '1')", "--device=0 --kind=memory": "device = '0' AND "
    "kind = 'memory'", "--tid=1001": "tid = '1001'", "--tid=1003": "tid = '1003'",
    "--from=100us --to=270us": "CASE WHEN kind IN ('range', 'operator', 'library') THEN "
    "start_ns < 270000 AND start_ns + duration_ns > 100000 "
    "ELSE start_ns >= 100000 AND start_ns < 270000 END",
    "--step=1:3 --kind=call,work,memory,mark,overhead": "step IN ('1', '2') AND kind IN ("
    "'launch', 'alloc', 'copy', 'sync', 'graph', 'other', 'kernel', 'gpu_memcpy', 'gpu_memset', "
    "'gpu_graph', 'memory', 'mark', 'overhead')"}


def exported(run_collector, folder, *options):
    """The rows of csv that are events, and what was said."""
    result = run_collector("export", "--format=csv", *options, folder)
    assert result.returncode in (0, 2), result.stderr
    rows = list(csv.reader(io.StringIO(result.stdout))) or [[]]
    return rows[0], [row for row in rows[1:] if row[0] not in BESIDE], result


def odd_recording(tmp_path):
    """Memory on two threads and devices, of CUDA and of PyTorch; ends of what never began; a
    window's work, and some that was launched before it; work that comes before its name."""
    r = Recording()
    for step in range(5):
        r.add(MAIN, TYPES["step"], [step])
        r.add(OTHER, TYPES["pop"], [0])
        r.add(OTHER, TYPES["range_end"], [77])
        r.add(OTHER, TYPES["op_end"], [0x10])
        for thread, device in ((MAIN, 0), (OTHER, 1)):
            call = r.call("cudaMalloc", [0x7f0000000000 + r.now, 1 << 20, 0], thread=thread)
            r.add(DEVICE, TYPES["memory"], [1, 3, r.now, 1 << 20, device, 1], call=call)
            r.add(thread, TYPES["tensor"], [1, r.now, 512, 512, 512, device, 1])
            r.launch(700, f"kernel {step}", thread=thread, device=device)
        r.add(MAIN, TYPES["tensor_oom"], [1 << 30, 512, 512, 1, 1])
        r.add(DEVICE, TYPES["memory"], [2, 3, r.now, 1 << 20, 1, 1])
        r.kernel("of no call", 300, 1000 + step, device=step % 2)
        with r.op("operator", T((3, step))), r.range("range"):
            r.launch(200)
    r.add(MAIN, TYPES["pause"], [1])
    r.kernel("while it is off", 300, 9000)
    r.add(MAIN, TYPES["pause"], [0])
    return r.write(built(BUILD / "make_raw"), tmp_path / "data")


@pytest.mark.parametrize("what", ["train", "loss", "shared", "operators", "odd"])
def test_rows_of_a_piece_are_rows_of_the_whole(what, make_gpu, make_ops, run_collector, tmp_path):
    """All columns alike, whichever option; and overview.piece counts them."""
    folder = (odd_recording(tmp_path) if what == "odd" else make_ops(2, 900, 1)
              if what == "operators" else make_gpu(what, *([1] if what == "shared" else [2, 6])))
    names, whole, _ = exported(run_collector, folder)
    base = sqlite3.connect(":memory:")
    base.create_function("regexp", 2, lambda pattern, text: re.search(pattern, text) is not None)
    base.execute("CREATE TABLE e ({})".format(", ".join(
        f"[{name}] {'INT' if name.endswith('_ns') else ''}" for name in names)))
    base.executemany(f"INSERT INTO e VALUES ({','.join('?' * len(names))})", whole)
    for options, where in IN_ROWS.items():
        wanted = [[*map(str, row)] for row in base.execute(f"SELECT * FROM e WHERE {where}")]
        _, shown, result = exported(run_collector, folder, *options.split())
        report = run_collector("report", "--format=json", *options.split(), folder)
        assert result.returncode == report.returncode, options
        if result.returncode == 2:
            assert not wanted or "--device: the recording has no" in \
                result.stderr, options
            assert result.stderr.count("\n") == report.stderr.count("\n") == 1, options
            continue
        assert sorted(shown) == sorted(wanted), options
        assert json.loads(report.stdout)["overview"]["piece"]["events"] == len(wanted), options


def test_a_piece_says_what_it_is_of(make_gpu, run_verb):
    """And of memory that grows it says nothing, since that is so in the whole."""
    folder = make_gpu("train", 2, 40)
    screens = {piece: run_verb("report", *piece.split(), folder).stdout.partition("\n\n")[0]
               for piece in ("", "--step=3:5", "--kind=kernel --from=1ms --to=2ms", "--name=graph")}
    said = {piece: re.findall(r"  selection  (.*)", text) for piece, text in screens.items()}
    assert said == {
        "": [], "--name=graph": ["--name=graph"],
        "--step=3:5": [
            "399.800 us to 599.800 us after the first event, of 4.100 ms recorded: --step=3:5"],
        "--kind=kernel --from=1ms --to=2ms": [
            "1.000 ms to 2.000 ms after the first event, of 4.100 ms recorded: "
            "--from=1ms --to=2ms --kind=kernel"]}
    assert {piece: re.search(r"  steps +(\d+) ", text)[1] for piece, text in screens.items()} == {
        "": "78", "--step=3:5": "4", "--kind=kernel --from=1ms --to=2ms": "22",
        "--name=graph": "78"}  # all but the last, which are not whole
    assert "  start-up takes a large part of the recording (share of all the time)\n" in screens[""]
    for piece, text in screens.items():
        assert ("memory grows" in text) == (piece == "")
        assert ("of what was read" in text) == ("--from" in piece)
        assert ("of the whole recording" in text) == (piece != "" and "--from" not in piece)
    whole, cut = (json.loads(run_verb("report", "--format=json", *piece, folder).stdout)["overview"]
                  for piece in ([], ["--step=3", "--name=gemm|Launch"]))
    assert whole["piece"] is None and whole["gpu_time"]["other_ns"] == 0
    assert cut["piece"] == {"events": 12, "from_ns": 399800, "to_ns": 499800,
                            "options": {"step": "3", "name": "gemm|Launch"}}


def test_a_piece_in_a_long_wait(make_records, run_collector):
    """Two GPUs in kernels of 2 s, their hosts in a wait; only a third one does something then."""
    lines = []
    for rank in range(3):
        s = Script(rank)
        s.now += rank
        s.launch(us=3, after=5, lasts=2_000_000 if rank < 2 else 400_000)
        s.call("cudaStreamSynchronize", 2_000_000 - rank if rank < 2 else 1_200_000)
        s.call("cudaFree", 10)
        lines += s.text()
    folder = make_records(lines)

    def screen(*options):
        return run_collector("report", *options, folder).stdout.partition("\n\n")[0]
    begun = "work of 2 GPUs and 2 threads began earlier: --from=0.000003000 shows it"
    text = screen("--from=1.1s", "--to=1.5s")
    assert f"--to=1.5s\n             {begun}\n  wall time  400.000 ms; " in text, text
    overview = json.loads(run_collector("report", "--format=json", "--from=1.1s", "--to=1.5s",
                                        folder).stdout)["overview"]
    assert overview["wall_ns"] == 400_000_000 and overview["piece"].items() >= {
        "begun_devices": 2, "begun_threads": 2, "begun_ns": 3000}.items()
    for verb in (("merge",), ("report", "--table=functions")):
        empty = run_collector(*verb, "--from=1.3s", "--to=1.5s", folder)
        assert empty.returncode == 2 and begun in empty.stderr, empty.stderr
    shown = screen("--from=1.3s", "--to=1.5s")
    assert begun in shown and "GPU time   compute 100.0%  " in shown, shown
    assert "work of 1 GPU and 1 thread began earlier: --from=0.000003000 shows it" in \
        screen("--from=1.1s", "--to=1.5s", "--rank=0,2")
    assert "work of 2 threads began earlier: --from=0.000003000 shows it\n" in \
        screen("--from=1.1s", "--to=1.5s", "--kind=call")
    # What shows it shows it; the third thread is in a call for less than half of these pieces.
    assert "began earlier" not in screen("--from=0.000003", "--to=5s") + screen("--to=1s") + \
        screen("--from=1.1s", "--to=1.5s", "--name=Free")


def test_a_piece_of_times_that_do_not_meet(make_gpu, run_verb):
    """A range reaches into the step and into the time behind it."""
    folder = make_gpu("train", 1, 6)
    shown = json.loads(run_verb("report", "--step=2", "--from=0.00042", "--format=json",
                                folder).stdout)
    piece = shown["overview"]["piece"]
    assert [row["name"] for row in shown["nvtx_sum"]] == ["epoch"] and shown["wall_ns"] == 0
    assert (piece["from_ns"], piece["to_ns"], piece["events"]) == (420000, 420000, 1)


def test_a_step_of_a_piece_is_all_of_it(make_gpu, run_verb):
    folder = make_gpu("train", 1, 30)

    def steps(*options):
        return {row["step"]: row for row in json.loads(run_verb(
            "report", "--table=steps", "--format=json", *options, folder).stdout)["steps"]}
    whole = steps()
    for options, numbers in (
            (["--step=3:5"], [3, 4]), (["--kind=kernel", "--to=150us"], [0]),
            (["--from=1.02ms", "--to=1.23ms"], [9, 10, 11])):
        assert steps(*options) == {number: whole[number] for number in numbers}


def test_memory_that_was_not_there_is_said_in_its_piece(tmp_path, run_verb):
    r = Recording()
    for step in range(4):
        r.add(OTHER, TYPES["step"], [step])
        r.call("cudaMalloc", [0x7f0000000000, 1 << 40, 0], result=2 if step == 2 else 0)
    host = r.write(built(BUILD / "make_raw"), tmp_path / "host")
    assert run_verb("report", "--device=0", host, status=2).stderr == (
        "gpuprof: report: --device: the recording has no device\n")
    r.launch(500, device=2)  # which no record describes
    used = r.write(built(BUILD / "make_raw"), tmp_path / "used")
    assert run_verb("report", "--device=0", used, status=2).stderr == (
        "gpuprof: report: --device: the recording has no device\n")
    assert run_verb("report", "--device=0,2", used).stderr == ""
    r.device("GPU")
    folder = r.write(built(BUILD / "make_raw"), tmp_path / "data")
    for options, is_there in (([], True), (["--step=2"], True), (["--step=1"], False),
                              (["--step=2", "--device=0"], True)):
        said = json.loads(run_verb("report", "--format=json", *options, folder).stdout)
        assert bool(said["overview"]["out_of_memory"]) == is_there, options


def test_files_that_are_left_out_are_not_read(make_gpu, run_collector):
    """What is damaged in another rank's file is nobody's concern."""
    folder = make_gpu("train", 2, 200)
    first, second = sorted(folder.glob("*.gpuprof"))
    data = bytearray(second.read_bytes())
    data[len(data) // 2:] = bytes(len(data) - len(data) // 2)
    second.write_bytes(data)
    assert run_collector("report", folder).returncode == 3
    for verb in ("report", "merge", "flame", "memory", "dump"):  # rank 1 is in the first file
        result = run_collector(verb, "--rank=1", folder)
        assert result.returncode == 0 and "damaged" not in result.stderr, (verb, result.stderr)
    pid = int(re.search(r"pid[= ](\d+)", run_collector("dump", "--blocks", first).stdout).group(1))
    assert run_collector("report", f"--pid={pid}", folder).returncode == 0


def test_a_time_of_today(whole, run_collector):
    """Of the machine's own clock; the recording is of another day."""
    folder, _ = whole
    for moment in ("09:30", "23:59:59.5", time.strftime("%Y-%m-%dT00:00")):
        result = run_collector("report", f"--from={moment}", folder)
        assert result.returncode == 2 and "no event is in the selection" in result.stderr


NONE = "no event of the recording matches all of this"


@pytest.mark.parametrize("options, why", [
    (["--from=1h"], "the recording lasts [\\d.]+ [mu]?s after its first event, and --from and --to "
     "count from that; name a time with such events"),
    (["--to=@5", "--kind=call"], r"the recording lasts [\d.]+ [mu]?s after its first event "
     r"\([-\dT:]+\), and --from and --to count from that; name a time with such events"),
    (["--name=nowhere"], NONE),
    (["--kind=kernel", "--name=cudaM"], NONE),
    (["--kind=library"], NONE),
    (["--tid=77", "--kind=call"], NONE),
    (["--range=forward", "--min-duration=1.5s"], NONE),
    (["--device=9", "--kind=work"], "its devices are 0-1")],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_nothing_is_left(whole, run_collector, options, why):
    said = " ".join(sorted(options, key=lambda o: ("--min" in o, "--name" in o, "--kind" in o)))
    for verb in ("merge", "report", "flame", "export"):
        more = ["-j2", "--format=csv"] if verb == "export" else []
        result = run_collector(verb, *options, *more, whole[0])
        assert result.returncode == 2 and (verb in ("merge", "export") or not result.stdout)
        assert re.fullmatch(f"gpuprof: {verb}: no event is in the selection, "
                            f"{re.escape(said)}: {why}\n", result.stderr)


def test_nothing_is_written(whole, run_collector):
    folder, _ = whole
    for verb, name in (("merge", "x.json"), ("merge", "x.zip"), ("export", "x.sqlite"),
                       ("export", "x.csv"), ("flame", "x.folded")):
        result = run_collector(verb, "--name=nowhere", "-o", folder / name, folder)
        assert result.returncode == 2 and result.stderr.count("\n") == 1
        assert not (folder / name).exists()


def test_what_there_is_instead(run_collector, make_gpu):
    folder = make_gpu("train", 3, 20)
    for words in (("report", "--rank=7,9"), ("merge", "--pid=1")):
        wrong = run_collector(*words, folder)
        assert wrong.returncode == 2
        assert "none of the 3 recorded processes matches --rank, " in wrong.stderr
    for verb in ("merge", "report", "flame"):
        wrong = run_collector(verb, "--device=9", folder)
        assert (wrong.returncode, wrong.stderr) == (
            2, f"gpuprof: {verb}: --device: the recording has no such device; its "
            "devices are 0-2\n")
        assert verb == "merge" or not wrong.stdout
    assert run_collector("merge", "--device=0,9", folder).returncode == 0


@pytest.mark.parametrize("options, error", [
    (["--step=77"], "the recording has steps 0 to 5 (--step=0:6)"), 
    (["--step=4:4"], "'4:4' is not a step or a range A:B; B is not included"),
    (["--step=9:5"], "'9:5' is not a step or a range A:B; B is not included"),
    (["--step=a"], "'a' is not a step or a range A:B"), (["--step=5:a"], "'5:a' is not a step"),
    (["--range=none"], "no range or label is named 'none'"),
    (["--rank=9"], "none of the 2 recorded processes matches --rank, "), 
    (["--rank=3-1"], "'3-1' is not a list of numbers"),
    (["--tid=3-"], "'3-' is not a list of numbers"),
    (["--rank=" + 65 * "1," + "1"], " has more than 64 numbers and ranges"),
    (["--kind=kernel,kernels,call"], "--kind: 'kernels' is not a kind"),
    (["--name=("], "is not an extended regular expression"),
    (["--from=soon"], "is not a time since the first event"),
    (["--from=5", "--to=2"], "--to=2 is not later than --from=5, so nothing is between them"),
    *(([f"--{name}={text}"], f"--{name}: '{text}' is not a time since the first event")
      for name, text in (
          ("to", "2026-13-01T10:00"), ("from", "25:00"), ("from", "2026-04-30T24:00"),
          ("to", "10:60"), ("from", "2026-04-30T10:00:61"),
          ("from", "1969-12-31T10:00"))),
    (["--from=2026-04-30T"], "is not a time since the first event"),
    (["--min-duration=x"], "is not a time with a unit, such as 10us (ns, us, ms, s, m, h)"),
    (["--min-duration=10"], "'10' is not a time with a unit"),
    (["--min-duration=5.us"], "'5.us' is not a time with a unit"),
    (["--min-duration=1e3us"], "'1e3us' is not a time with a unit"),
    (["--from=5."], "is not a time since the first event"),
    (["--to=@1795456800."], "is not a time since the first event"),
    (["--to=5.s"], "is not a time since the first event")], ids=" ".join)
def test_what_cannot_be_meant(whole, run_collector, options, error):
    for verb in ("merge", "report"):
        result = run_collector(verb, *options, whole[0])
        assert result.returncode == 2 and error in result.stderr and result.stdout == ""
        assert result.stderr.count("\n") == 1


def test_days_and_leap_seconds(whole, run_collector):
    """The recording begins on 2023-11-14 at 22:13:20."""
    folder, trace = whole
    utc = {**os.environ, "TZ": "UTC"}
    for options in (["--from=2023-11-14"], ["--to=2023-11-15"], ["--from=2023-11-14T22:12:60Z"],
                    ["--from=2023-11-15T12:13:20+14:00"], ["--from=2020-02-29T00:00"]):
        result = run_collector("merge", "--no-counters", *options, folder, env=utc)
        assert near(lasting(json.loads(result.stdout)), lasting(trace)), options
    result = run_collector("merge", "--to=2023-11-14", folder, env=utc)
    assert "no event is in the selection, --to=2023-11-14" in result.stderr


@pytest.mark.long
def test_a_large_trace_is_said_to_be_one(make_gpu, run_collector):
    result = run_collector("merge", "-o", "/dev/null", make_gpu("bench", 900_000))
    [early] = result.stderr.splitlines()
    assert "/dev/null: more than 500 MB of text, which most viewers cannot load" in early
    assert "--max-size" in early and "--per-rank" not in early


@pytest.mark.long
def test_a_large_trace_says_so_while_it_is_written(make_gpu, collector):
    """Read up to there it waits for its reader, and is not at its end."""
    with Program([collector, "merge", "-o", "-", make_gpu("bench", 900_000)],
                 stdout=subprocess.PIPE, stderr=subprocess.PIPE) as merge:
        before, read = 490_000_000, 0
        while read < before:
            read += len(merge.stdout.read1(1 << 20))
        assert not select.select([merge.stderr], [], [], 0)[0]
        while read < 503_000_000:
            read += len(merge.stdout.read1(1 << 20))
        assert select.select([merge.stderr], [], [], 20)[0] and merge.poll() is None
        assert b"standard output: more than 500 MB of text" in merge.stderr.readline()


@pytest.mark.long
def test_workers_say_once_that_traces_are_large(make_gpu, run_collector, tmp_path):
    result = run_collector("merge", "-j2", "--per-rank", "-o", tmp_path / "traces",
                           make_gpu("bench", 900_000, 2))
    [early] = result.stderr.splitlines()
    assert "rank_0.pt.trace.json.gz: more than 500 MB of text" in early


# ---- what is not read --------------------------------------------------------------------------

BATCHES, BATCH_NS, EACH = 8, 4_000_000_000, 40


def batches(tmp_path, left=(), count=BATCHES, each=EACH):
    """Batches of launches, each with blocks of its own for calls, kernels, and steps; and ranges
    that are left open."""
    r = Recording()
    for name in left:
        r.add(MAIN, TYPES["push"], [0] * 6, name)
    with r.range("before"):
        r.launch(500)
    for batch in range(count):
        begin = (batch + 1) * BATCH_NS
        r.add(OTHER, TYPES["step"], [batch], begin=begin)
        r.add(OTHER, TYPES["push"], [0] * 6, f"batch {batch}", begin=begin)
        r.add(OTHER, TYPES["pop"], [0], begin=begin + 30 * 1000 * each)
        r.now, calls = begin, []
        r.call("cudaMalloc", [0x7f0000000000 + (batch << 20), 1 << 20, 0])  # for good
        for _ in range(each):
            r.now += 20000
            calls.append(r.call("cudaLaunchKernel", [0]))
        for i, call in enumerate(calls):
            r.now = begin + 21000 * i
            r.kernel("kernel", 700 + batch, call)
    return r.write(built(BUILD / "make_raw"), tmp_path / "data")


def rewritten(folder, name, change):
    """A copy; change(block, header, frame), bytearrays, may change a block."""
    path, = folder.glob("*.gpuprof")
    data = bytearray(path.read_bytes())
    at = stream_reader.read_header(bytes(data)).bytes
    for block in stream_reader.read_blocks(bytes(data), at, check=False)[0]:
        head = block.stored_at - 88
        header = data[head:block.stored_at]
        frame = data[block.stored_at:block.stored_at + block.stored_bytes]
        change(block, header, frame)
        struct.pack_into("<I", header, 84, stream_reader.crc32c(bytes(header[:84])))
        data[head:block.stored_at] = header
        data[block.stored_at:block.stored_at + block.stored_bytes] = frame
    copy = folder.parent / name
    copy.mkdir()
    (copy / path.name).write_bytes(data)
    return copy


def without_types(_, header, __):
    header[72:80] = bytes(8)


CALL, KERNEL = 1 << TYPES["call"], 1 << TYPES["kernel"]


@pytest.mark.parametrize("options, first, last", [
    (["--from=12s", "--to=20.5s"], 2, 4), (["--step=3:5"], 3, 4), (["--range=batch 4"], 4, 4)],
    ids=["time", "steps", "range"])
def test_blocks_of_which_a_piece_has_nothing_are_not_read(tmp_path, run_collector, options, first,
                                                          last):
    """With them damaged, and with headers that do not say what blocks have, it is the same. Tables
    of kernels and of functions want as little. The report wants work on both sides: of what the
    edges' idle time is a part."""
    folder = batches(tmp_path)

    def is_of(block, batch):
        return (batch + 1) * BATCH_NS <= block.begin < (batch + 2) * BATCH_NS

    def needless(block):
        before = any(is_of(block, b) for b in range(first))
        behind = last + 1 + (options[0][:6] == "--step")  # the next begins where the last one ends
        after = any(is_of(block, b) for b in range(behind, BATCHES))
        return ((block.types == KERNEL and (before or (after and options[0][:6] == "--from"))) or
                (block.types == CALL and after))

    damaged = []

    def damage(block, _, frame):
        if needless(block):
            damaged.append(block)
            frame[len(frame) // 2] ^= 0xff
    wanted = run_collector("merge", *options, folder)
    assert wanted.returncode == 0 and wanted.stderr == ""
    silent, broken = (rewritten(folder, name, change)
                      for name, change in (("silent", without_types), ("broken", damage)))
    assert len(damaged) >= 2
    for copy in (silent, broken):
        shown = run_collector("merge", *options, copy)
        assert (shown.returncode, shown.stderr, shown.stdout) == (0, "", wanted.stdout), copy
    both = run_collector("merge", *options, rewritten(broken, "both", without_types))
    assert both.returncode == 3 and "damaged" in both.stderr
    tables = ["report", "--table=cuda_gpu_kern_sum,functions", "--format=csv", *options]
    wanted, shown = run_collector(*tables, folder), run_collector(*tables, broken)
    assert wanted.returncode == 0 and wanted.stdout.count("\n") > 2
    assert (shown.returncode, shown.stderr, shown.stdout) == (0, "", wanted.stdout)
    assert run_collector("report", *options, broken).returncode == 3


RANGES = sum(1 << TYPES[name] for name in ("push", "pop", "step"))


@pytest.mark.parametrize("tables, types", [
    ("cuda_gpu_kern_sum,functions", CALL | RANGES), ("cuda_kern_exec_sum", CALL | RANGES),
    ("nvtx_sum", CALL), ("nvtx_gpu_proj_sum,cuda_kern_exec_sum", CALL)])
def test_calls_long_before_a_piece_are_not_read(tmp_path, run_collector, tables, types):
    """The last ones are, which made its work; what is around them only where ranges are asked
    for."""
    folder, damaged = batches(tmp_path, count=16, each=4000), []  # 16,384 are read
    question = ["report", f"--table={tables}", "--from=52.000025s", "--to=56.5s", "--format=csv"]

    def damage(block, _, frame):
        if block.begin < 4 * BATCH_NS and not block.types & ~types:
            damaged.append(block.types)
            frame[len(frame) // 2] ^= 0xff
    wanted = run_collector(*question, folder)
    shown = run_collector(*question, rewritten(folder, "early", damage))
    assert len(damaged) >= 3 and wanted.stdout.count("\n") > 1
    assert (shown.returncode, shown.stderr, shown.stdout) == (0, "", wanted.stdout)


def test_calls_before_their_ids_start_again(tmp_path, run_collector):
    """Correlation ids have 32 bits. Calls with small ones may follow, and their work."""
    r = Recording()
    for batch, first in enumerate((2**32 - 1 - 2 * EACH, 2**32 - 1 - EACH, 0)):
        r.calls, r.now = first, batch * BATCH_NS
        calls = [r.call("cudaLaunchKernel", [0]) for _ in range(EACH)]
        r.now += 2 * BATCH_NS
        for call in calls:
            r.kernel("kernel", 700, call)
    folder = r.write(built(BUILD / "make_raw"), tmp_path)
    for begin, end, wanted in ((11.9, 12.1, EACH), (15.9, 16.1, EACH), (11.9, 16.1, 2 * EACH)):
        text = run_collector("report", "--table=cuda_kern_exec_sum", f"--from={begin}",
                             f"--to={end}", "--format=csv", folder).stdout
        assert [int(row["instances"]) for row in csv_tables.table(text)] == [wanted] * 3


def test_a_link_far_from_its_call_and_its_work(tmp_path, run_collector):
    """It is in a block without calls."""
    r = Recording()
    for moment in range(2):
        r.now = moment * BATCH_NS
        call = r.call("cudaLaunchKernel", [0])
        with r.range("between", OTHER):
            r.now += BATCH_NS // 4
        r.calls += 1
        r.add(MAIN, TYPES["link"], [r.calls], call=call)
        with r.range("between", OTHER):
            pass
    r.now = 2 * BATCH_NS
    r.kernel("kernel", 700, 2)
    r.kernel("kernel", 700, 4)
    folder = r.write(built(BUILD / "make_raw"), tmp_path)
    text = run_collector("report", "--table=cuda_kern_exec_sum", "--from=7.9", "--format=csv",
                         folder).stdout
    assert [int(row["instances"]) for row in csv_tables.table(text)] == [2] * 3


def lengths(run_collector, folder, name, *options):
    """How long a range lasts: by the table, by its row, by the trace."""
    report = json.loads(run_collector("report", "--format=json", *options, folder).stdout)
    _, rows, _ = exported(run_collector, folder, *options)
    trace = json.loads(run_collector("merge", *options, folder).stdout)["traceEvents"]
    return [[row["total_ns"] for row in report["nvtx_sum"] if row["name"] == name],
            [int(row[3]) for row in rows if row[1] == name],
            [round(1000 * e["dur"]) for e in trace
             if e["ph"] == "X" and e["name"] == name and e["cat"] == "user_annotation"]]


def test_a_range_that_is_left_open_ends_with_its_process(tmp_path, make_records, run_collector):
    """Whatever others do later; in a piece, too, for which what its process does last is not
    read."""
    lines = []
    for rank, last in ((0, 500_000), (1, 900_000)):
        lines += [f"process {rank}", f"{TYPES['device']} 2 1 0 0 0 0 0 0,9,0 GPU",
                  f"{TYPES['push']} 1 {10_000 + rank} 0 0 0 0 0 0,0,0,0,0,0 left {rank}",
                  f"{TYPES['kernel']} 2 {last - 100} 100 0 0 0 0 0,1,7,1 "]
    folder = make_records(lines)
    assert lengths(run_collector, folder, "left 0") == [[490_000]] * 3
    assert lengths(run_collector, folder, "left 1") == [[889_999]] * 3
    for options in (["--to=100us"], ["--from=300us", "--to=400us"], ["--name=left"]):
        assert lengths(run_collector, folder, "left 0", *options) == [[490_000]] * 3, options
    late = run_collector("export", "--format=csv", "--from=600us", "--kind=range", folder).stdout
    assert "left 1" in late and "left 0" not in late
    cut = batches(tmp_path, left=["left"])
    whole = lengths(run_collector, cut, "left")
    assert whole[0][0] > BATCHES * BATCH_NS and whole == [whole[0]] * 3
    for options in (["--to=9s"], ["--step=2"], ["--range=batch 1"]):
        assert lengths(run_collector, cut, "left", *options) == whole, options


# ---- dump --------------------------------------------------------------------------------------

DUMPED = {"kernel": ("kernel", "work"), "copy": ("gpu_memcpy", "work"),
          "set": ("gpu_memset", "work"), "graph": ("gpu_graph", "work"), "sync": ("cuda_sync",),
          "memory": ("memory",), "push": ("range",), "pop": ("range",), "range_start": ("range",),
          "range_end": ("range",), "mark": ("mark",), "step": ("mark",), "pause": ("mark",),
          "overhead": ("overhead",)}
CALLED = {"launch": "launch|Launch", "copy": "Memcpy|Memset", "sync": "Synchronize",
          "alloc": "cudaMalloc|cudaFree"}


def kinds_of(line):
    word, _, rest = line.partition(" ")
    return DUMPED.get(word, ()) if word != "call" else (
        "call", *(kind for kind, names in CALLED.items() if re.match(f"\\w*({names})", rest)))


def number(line, key):
    found = re.search(rf" {key}=(\d+)", line)
    return int(found.group(1)) if found else 0


@pytest.mark.parametrize("options, has", [
    (["--from=100us", "--to=250us"], lambda line, at: 100000 <= at < 250000),
    (["--from=@1700000000", "--to=150us"], lambda line, at: at < 150000),
    (["--tid=1001"], lambda line, at: number(line, "tid") == 1001),
    (["--kind=kernel,sync"], lambda line, at: {"kernel", "sync"} & {*kinds_of(line)}),
    (["--kind=call", "--min-duration=1us"],
     lambda line, at: "call" in kinds_of(line) and number(line, "dur") >= 1000),
    (["--kind=work,range,mark", "--to=400us"],
     lambda line, at: {"work", "range", "mark"} & {*kinds_of(line)} and at < 400000),
    (["--name=^cudaMem|_number", "--kind=call,work"],
     lambda line, at: re.search(r"^call cudaMem|^kernel .* kernel=\"[^\"]*_number", line))])
def test_dump(options, has, make_gpu, run_verb):
    """Lines of the whole dump, by what they say of themselves."""
    folder = make_gpu("train", 2, 6)
    whole = run_verb("dump", folder).stdout.splitlines()
    first = min(number(line, "begin") for line in whole
                if kinds_of(line) or line.startswith("label "))
    wanted = [line for line in whole
              if line.split()[0] in ("file", "header", "losses") or
              (not line.startswith("block ") and has(line, number(line, "begin") - first))]
    assert run_verb("dump", *options, folder).stdout.splitlines() == wanted
    assert 4 * 2 < len(wanted) < len(whole) - 100


def test_dump_of_nothing(make_gpu, run_verb):
    folder = make_gpu("train", 1, 1)
    done = run_verb("dump", "--name=no such", folder, status=2)
    assert "no record is in the selection" in done.stderr
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"file", "header", "losses"}
    for words in (["--blocks", "--kind=call"], ["--from=2", "--to=1"], ["--step=1"], ["--name=("]):
        assert run_verb("dump", *words, folder, status=2).stderr.count("\n") == 1
