# SPDX-License-Identifier: Apache-2.0
"""merge --max-size: what is left out, and that nothing of it is forgotten."""

import collections
import io
import json
import re
import zipfile

import pytest

from conftest import ROOT

CORPUS = ROOT / "test" / "corpus"

KINDS = {**dict.fromkeys(("kernel", "gpu_memcpy", "gpu_memset", "gpu_graph", "cuda_sync",
                          "overhead"), "gpu_work"),
         "cuda_runtime": "calls", "cuda_driver": "calls",
         "nvtx": "ranges", "user_annotation": "ranges"}
SAID = "ProfilerStep", "recording stopped"  # by gpuprof itself
SLACK_NS = 1  # what touches is shown 1 ns apart; all that is recorded here takes some 100 ns


def lasting(trace):
    """By kind: how often each (name, begin and duration in ns) is there."""
    found = {kind: collections.Counter() for kind in KINDS.values()}
    for e in trace["traceEvents"]:
        if e["ph"] in "Xi" and e.get("cat") in KINDS and not e["name"].startswith(SAID):
            found[KINDS[e["cat"]]][e["name"], 10 * round(e["ts"] * 100),
                                   10 * round(e.get("dur", 0) * 100)] += 1
    return found


def counters(trace, name):
    return [(e["pid"], e["ts"], e["args"]) for e in trace["traceEvents"]
            if e["ph"] == "C" and e["name"] == name]


@pytest.fixture(name="merged")
def fixture_merged(run_verb):
    """Of a folder the trace, as JSON, and what is said of it."""
    def merge(*arguments):
        done = run_verb("merge", *arguments)
        return json.loads(done.stdout), len(done.stdout.encode()), done.stderr
    return merge


@pytest.fixture(name="folder")
def fixture_folder(make_gpu):
    return make_gpu("train", 2, 40)


@pytest.mark.parametrize("share", [0.9, 0.7, 0.5, 0.2])
def test_the_longest_stay(folder, merged, share):
    whole, bytes_all, _ = merged(folder)
    most = int(bytes_all * share)
    thin, size, said = merged(folder, f"--max-size={most}")
    assert 0.88 * most < size <= most
    rule = thin["otherData"]["left_out"]
    before, after = lasting(whole), lasting(thin)
    edge = collections.Counter()
    for kind, events in before.items():
        assert not after[kind] - events, "nothing is new"
        gone = events - after[kind]
        assert all(e[2] < rule["all_ns"] + SLACK_NS for e in gone)
        assert all(e[2] >= rule["some_ns"] - SLACK_NS for e in after[kind])
        assert rule[kind]["count"] == sum(gone.values())
        assert abs(rule[kind]["total_ns"] - sum(e[2] * n for e, n in gone.items())) <= \
            SLACK_NS * max(1, sum(gone.values()))
        for name, events_of in (("all", events), ("gone", gone)):
            edge[name] += sum(n for e, n in events_of.items()
                              if rule["some_ns"] <= e[2] < rule["all_ns"])
    assert sum(rule[kind]["count"] for kind in before) > 100
    if edge["all"] > 400:  # spread evenly, by number as by time
        assert edge["gone"] / edge["all"] == pytest.approx(1 - rule["share"], abs=0.1)
    left = sum(rule[kind]["count"] for kind in before)
    assert f"--max-size left out {left} calls, ranges and GPU activities: those shorter than " in \
        said
    for name in ("GPU busy", "launches", "GPU memory", "copies (GB/s)"):
        assert counters(thin, name) == counters(whole, name), "tracks are of everything"


@pytest.mark.parametrize("share", [0.7, 0.3, 0.03])
def test_the_size_is_met(make_gpu, run_verb, tmp_path, share):
    """Where what is left out takes half as much again along: arrows go with either end."""
    folder = make_gpu("bench", 20000)
    most = int(share * len(run_verb("merge", folder).stdout))
    run_verb("merge", folder, f"--max-size={most}", "-o", "x.json")
    assert 0.88 * most < (tmp_path / "x.json").stat().st_size <= most


def test_arrows_have_both_ends(folder, merged):
    _, bytes_all, _ = merged(folder)
    thin, *_ = merged(folder, f"--max-size={bytes_all // 3}")
    slices = collections.defaultdict(list)
    for e in thin["traceEvents"]:
        if e["ph"] == "X":
            slices[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    ends = [e for e in thin["traceEvents"] if e["ph"] in "sf" and e["cat"] == "ac2g"]
    assert ends
    for e in ends:
        assert any(begin <= e["ts"] <= end for begin, end in slices[e["pid"], e["tid"]])


def test_what_fits_is_whole(folder, merged):
    whole, *_ = merged(folder)
    thin, _, said = merged(folder, "--max-size=1G")
    rule = thin["otherData"].pop("left_out")
    assert thin == whole and not said
    assert all(rule[kind] == {"count": 0, "total_ns": 0} for kind in ("calls", "ranges"))


def test_each_trace_has_room(folder, run_verb, tmp_path):
    run_verb("merge", "--max-size=200K", folder, "-o", tmp_path / "all.zip")
    with zipfile.ZipFile(io.BytesIO((tmp_path / "all.zip").read_bytes())) as archive:
        traces = [name for name in archive.namelist() if name.startswith("rank")]
        assert len(traces) == 2
        for name in traces:
            data = archive.read(name)
            assert 100 << 10 < len(data) <= 200 << 10
            assert json.loads(data)["otherData"]["left_out"]["calls"]["count"]


def test_of_a_piece(folder, merged):
    """What is not in the piece is not left out of it."""
    options = ("--rank=1", "--step=5:15")
    whole, bytes_all, _ = merged(folder, *options)
    thin, size, _ = merged(folder, *options, f"--max-size={bytes_all // 2}")
    assert size <= bytes_all // 2
    before, after = lasting(whole), lasting(thin)
    for kind, events in before.items():
        assert thin["otherData"]["left_out"][kind]["count"] == sum((events - after[kind]).values())


def test_failed_and_open_calls_stay(make_records, merged):
    folder = make_records(["process 7", *(f"1 1 {1000 * i} {100 + i} 0 0 cudaMalloc 1 1,2 "
                                          for i in range(1, 900))])
    paths = "--keep-live", folder, CORPUS / "live-good.gpuprof"
    whole, bytes_all, _ = merged(*paths)
    thin, *_ = merged(*paths, f"--max-size={bytes_all // 2}")
    kept = [[e["name"] for e in trace["traceEvents"]
             if e["ph"] == "X" and {"error", "open"} & set(e["args"])] for trace in (whole, thin)]
    assert kept[0] == kept[1] and len(kept[0]) == 2
    assert thin["otherData"]["left_out"]["calls"]["count"] > 10


@pytest.mark.parametrize("size, status, text", [
    ("2K", 2, "is too small"),
    ("lots", 2, "'lots' is no size, such as 400M"), ("0", 2, "'0' is no size"),
    ("-5M", 2, "is no size")])
def test_sizes_that_cannot_be(run_collector, folder, tmp_path, size, status, text):
    done = run_collector("merge", f"--max-size={size}", folder, "-o", tmp_path / "x.json")
    assert done.returncode == status and text in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "x.json").exists()


NAMED = re.compile(r"; give --max-size=([0-9]+K) or more")


@pytest.mark.parametrize("made", [("train", 2, 40), ("late", 2, 30), ("bench", 2000)], ids=str)
def test_the_size_that_is_named_is_enough(make_gpu, run_collector, tmp_path, made):
    """And there are no sizes above it that cannot be met."""
    folder = make_gpu(*made)
    least = run_collector("merge", folder, "--max-size=1K", "-o", "x.json")
    assert least.returncode == 2 and least.stderr.count("\n") == 1
    named = int(NAMED.search(least.stderr)[1][:-1])
    for kib in sorted({named + named * i // 16 for i in range(12)}):
        done = run_collector("merge", folder, f"--max-size={kib}K", "-o", "x.json")
        assert done.returncode == 0, done.stderr
        size = (tmp_path / "x.json").stat().st_size
        assert size <= kib << 10 and (kib == named or size > 0.88 * (kib << 10))
    less = run_collector("merge", folder, f"--max-size={named * 4 // 5}K", "-o", "y.json")
    assert less.returncode == 2 and NAMED.search(less.stderr)[1] == f"{named}K"


def test_what_a_refusal_says(folder, run_collector):
    done = run_collector("merge", "--max-size=1K", "--per-rank", "-o", "x", folder)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert " is too small for rank_0.pt.trace.json.gz: names, counters, memory, steps and " in \
        done.stderr
    assert done.stderr.endswith(" or more, or select less (--step, --rank)\n")
