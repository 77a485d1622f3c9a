# SPDX-License-Identifier: Apache-2.0
"""merge --format=perfetto: by a second reader, it says what the JSON trace says, to the ns."""

import bisect
import collections
import gzip
import json
import re
import subprocess

import perfetto_reader
import pytest

import made_host
from made_stacks import stack_by_frames

KERNEL, USER = 1, 2  # modes of Perfetto's samples

@pytest.fixture(name="both")
def fixture_both(run_verb, tmp_path):
    def make(*arguments):
        for name in ("trace.json", "trace.pftrace"):
            run_verb("merge", *arguments, "-o", tmp_path / name)
        return (json.loads((tmp_path / "trace.json").read_text()),
                (tmp_path / "trace.pftrace").read_bytes())
    return make


def ns(us):
    return round(us * 1000)


def plain(value):
    """Without what protobuf does not tell apart: an empty array from an empty object. Keys are as
    trace_processor has them."""
    if isinstance(value, dict):
        return {re.sub(r"[.[\]]", "_", key): plain(v) for key, v in value.items()} or []
    return [plain(v) for v in value] if isinstance(value, list) else value


def by_text(rows):
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def innermost(of):
    """What is open in a row at a time: (row, its begin)."""
    rows = collections.defaultdict(list)
    for e in of:
        rows[e["pid"], e["tid"]].append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])))
    for spans in rows.values():
        spans.sort()

    def find(row, at):
        behind = bisect.bisect(rows[row], (at, 1 << 63))
        return row, next(begin for begin, end in reversed(rows[row][:behind]) if end >= at)
    return find


def compare_samples(trace, text, events):
    """Those of the CPU are Perfetto's own: each as often as it counts, with all of its frames."""
    found = [(row, at, tuple(name for name, _ in stack), mode)
             for row, at, stack, mode in trace.samples]
    expected = [((e["pid"], e["tid"]), ns(e["ts"]),
                 tuple(stack_by_frames(text, e)[::-1]) or ("[no stack]",),
                 KERNEL if e["args"].get("in kernel") else USER)
                for e in events for _ in range(e["args"].get("periods", 1))]
    assert sorted(found) == sorted(expected)


def compare(text, data):
    trace = perfetto_reader.Trace(data)
    events = text["traceEvents"]
    of = {ph: [e for e in events if e["ph"] == ph] for ph in "XiCMsf"}
    assert sum(map(len, of.values())) == len(events)
    compare_samples(trace, text, [e for e in of["i"] if e["cat"] == "cpu_sample"])
    of["i"] = [e for e in of["i"] if e["cat"] != "cpu_sample"]
    rows = [(e["cat"], e["name"], (e["pid"], e["tid"]), ns(e["ts"]), ns(e["dur"]),
             plain(e["args"])) for e in of["X"]]
    assert by_text(rows) == by_text([(*row[:5], plain(row[5])) for row in trace.slices])
    place = {"t": lambda e: (e["pid"], e["tid"]), "p": lambda e: (e["pid"], None),
             "g": lambda e: None}
    own = [row for row in trace.instants if row[1] in ("trace", "recording")]
    rows = [(e["cat"], e["name"], place[e["s"]](e), ns(e["ts"]), plain(e["args"]))
            for e in of["i"]]
    assert by_text(rows) == by_text([(*row[:4], plain(row[4]))
                                     for row in trace.instants if row not in own])
    rows = [((e["pid"], f"{e['name']} {key}"), ns(e["ts"]), value)
            for e in of["C"] for key, value in e["args"].items()]
    assert by_text(rows) == by_text(trace.counters)
    find = innermost(of["X"])
    places = {ph: {e["id"]: find((e["pid"], e["tid"]), ns(e["ts"])) for e in of[ph]} for ph in "sf"}
    events = {ph: {e[4]: find(e[1], e[2]) for e in trace.arrows if e[0] == ph} for ph in "sf"}
    arrows = trace.flows + [(events["s"][number], to) for number, to in events["f"].items()]
    assert by_text(arrows) == by_text((places["s"][number], to)
                                      for number, to in places["f"].items())
    assert all(e[3] == "fwdbwd" and e[5] == (e[0] == "f") for e in trace.arrows)
    named = {kind: {} for kind in ("process_name", "process_labels", "thread_name")}
    for e in of["M"]:
        if e["name"] in named:
            row = (e["pid"], e["tid"]) if e["name"] == "thread_name" else e["pid"]
            named[e["name"]][row] = e["args"].get("name", e["args"].get("labels"))
    assert named == {"process_name": trace.processes, "process_labels": trace.labels,
                     "thread_name": trace.threads}
    assert trace.clocks == {6: 0, 1: int(text["baseTimeNanoseconds"])}
    head = {key: value for key, value in text.items()
            if key not in ("traceEvents", "traceName", "otherData", "stackFrames")}
    assert {row[1]: plain(row[4]) for row in own} == {"trace": plain(head),
                                                     "recording": plain(text["otherData"])}
    return trace


@pytest.mark.parametrize("arguments", [("train", 2, 30), ("train", 1, 3), ("bench", 3000)])
def test_says_what_json_says(make_gpu, both, arguments):
    text, data = both(make_gpu(*arguments))
    trace = compare(text, data)
    assert trace.sequences == {1}
    if arguments[1] == 2:
        assert len(trace.slices) > 2000 and len(trace.flows) > 700
        assert len({row[0] for row in trace.counters}) >= 8


def test_a_piece_is_what_viewers_show_first(make_gpu, both):
    """Not from where a range began that reaches into it."""
    folder = make_gpu("train", 2, 20)
    text, data = both(folder, "--step=3:5")
    steps = [e for e in text["traceEvents"] if e["name"] in ("ProfilerStep#3", "ProfilerStep#4")]
    assert min(e["ts"] for e in text["traceEvents"] if e["name"] == "epoch") < 100
    shown = compare(text, data).shown
    assert shown[2] == ns(min(e["ts"] for e in steps))
    assert shown[5] - ns(max(e["ts"] + e["dur"] for e in steps)) in (0, 1)  # a slice has its own
    assert not compare(*both(folder, "--kind=kernel")).shown


def test_its_bytes_do_not_depend_on_its_name(make_gpu, run_verb, tmp_path):
    folder = make_gpu("train", 2, 3)
    for name in ("first.pftrace", "again.pftrace"):
        run_verb("merge", folder, "-o", tmp_path / name)
    assert (tmp_path / "first.pftrace").read_bytes() == (tmp_path / "again.pftrace").read_bytes()


def test_operators(make_ops, both):
    text, data = both(make_ops(2, 3000, 5))
    assert any(row[0] == "cpu_op" for row in compare(text, data).slices)


def test_what_the_host_did(make_stacks, both):
    trace = compare(*both(make_stacks(*made_host.HOST)))
    assert len(trace.samples) == 6
    assert {stack for _, _, stack, _ in trace.samples} == {
        (("<module> (train.py:40)", "home/me/train.py"),
         ("tokenize (data.py:81)", "home/me/data.py")),
        (("<module> (train.py:40)", "home/me/train.py"),
         ("forward (model.py:7)", "home/me/model.py")),
        (("<module> (train.py:40)", "home/me/train.py"),
         ("forward (model.py:7)", "home/me/model.py"),
         ("libtrain.so+0x100", "nowhere/libtrain.so")), (("[no stack]", ""),)}


def test_texts_of_every_kind(make_ranges, both):
    names = ['quote " and \\ backslash \\" at the \\end\\',
             "tab\tbell\x07 escape\x1b", "ünïcödé ☃ 𝄞",
             "}{][,:", '{"ph":"X"}', "\\u0041", "a" * 4000, "\udcff not UTF-8 \udc80"]
    lines = ["thread 1", "domain 1 10 it's \"one\""]
    for number, name in enumerate(names):
        lines += [f"push {1000 * number + 100} 1 {name}", f"pop {1000 * number + 600} 1"]
    text, data = both(make_ranges(lines))
    trace = compare(text, data)
    shown = [row[1] for row in sorted(trace.slices, key=lambda row: row[3])
             if not row[1].startswith("ProfilerStep")]
    assert shown[:6] == names[:6] and len(shown) == len(names)


@pytest.mark.parametrize("kind", [("gpu", "train", 2, 60), ("gpu", "bench", 20000),
                                  ("ops", 2, 20000, 5)], ids=["steps", "launches", "operators"])
def test_size(make_gpu, make_ops, both, run_verb, tmp_path, kind):
    """Against the JSON with the same arguments; packets are compressed unless the file is."""
    folder = {"gpu": make_gpu, "ops": make_ops}[kind[0]](*kind[1:])
    text, data = both(folder)
    run_verb("merge", folder, "-o", tmp_path / "trace.pftrace.gz")
    whole = gzip.decompress((tmp_path / "trace.pftrace.gz").read_bytes())
    size = (tmp_path / "trace.json").stat().st_size
    assert len(whole) < size / 2.5 and len(data) < size / 8
    assert not any(50 in perfetto_reader.one(p) for _, p in perfetto_reader.fields(whole))


def test_a_piece_of_limited_size(make_gpu, run_verb, tmp_path):
    folder = make_gpu("train", 2, 60)
    run_verb("merge", folder, "--rank=1", "--max-size=100K", "-o", tmp_path / "x.pftrace")
    data = (tmp_path / "x.pftrace").read_bytes()
    assert 70 << 10 < sum(len(p) + 4 for p in perfetto_reader.packets(data)) < 105 << 10
    trace = perfetto_reader.Trace(data)
    [other] = [row[4] for row in trace.instants if row[1] == "recording"]
    assert other["left_out"]["calls"]["count"] > 0
    assert {row[2][0] for row in trace.slices} == {1, 1000}


@pytest.mark.parametrize("how", [("-o", "trace.pftrace"), ("--format=perfetto", "-o", "trace")])
def test_export_makes_it_too(make_gpu, run_verb, tmp_path, how):
    folder = make_gpu("train", 1, 3)
    made = []
    for verb in (["merge", "--format=perfetto"], ["export"]):
        work = tmp_path / verb[0]
        work.mkdir()
        run_verb(*verb, folder, *(how if verb[0] == "export" else how[-2:]), cwd=work)
        made.append((work / how[-1]).read_bytes())
    assert made[0] == made[1]


def test_full_disk(make_gpu, run_collector):
    done = run_collector("merge", "--format=perfetto", "-o", "/dev/full", make_gpu("bench", 20000))
    assert done.returncode == 1 and "No space left" in done.stderr
    assert done.stderr.count("\n") == 1


def test_of_ranks(make_gpu, run_verb, tmp_path):
    """In an archive, and by itself each."""
    folder = make_gpu("train", 2, 3)
    run_verb("merge", "--format=perfetto", folder, "-o", tmp_path / "x.zip")
    listed = subprocess.run(["unzip", "-Z1", tmp_path / "x.zip"], check=True, capture_output=True,
                            text=True).stdout.split()
    assert listed == ["perfetto_manifest.json", "rank_0.pftrace", "rank_1.pftrace"]
    run_verb("merge", "--format=perfetto", "--per-rank", folder, "-o", tmp_path / "ranks")
    for rank in range(2):
        path = tmp_path / "ranks" / f"rank_{rank}.pftrace.gz"
        trace = perfetto_reader.Trace(gzip.decompress(path.read_bytes()))
        assert {row[2][0] for row in trace.slices} == {rank, 1001 - rank}
