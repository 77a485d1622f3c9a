# SPDX-License-Identifier: Apache-2.0
"""Malformed and odd files: every verb gives the expected exit code and words, and valid output."""

import json
import pathlib
import re
import shlex

import pytest

HERE = pathlib.Path(__file__).resolve().parent


def read_table():
    for line in (HERE / "expected.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, code, strict, calls, text = shlex.split(line)
            yield name, int(code), int(strict), calls, text


CASES = list(read_table())


def check_rows(events):
    """Slices of one row nest or stay apart; times are numbers in order of their begin."""
    rows = {}
    for e in sorted(events, key=lambda e: e["ts"]):  # stable: of equal ones the outer is first
        begin = round(e["ts"] * 1000)
        end = begin + round(e["dur"] * 1000)
        assert begin >= 0 and end >= begin
        assert 0 <= e["pid"] < 2**32 and 0 <= e["tid"] < 2**32
        stack = rows.setdefault((e["pid"], e["tid"]), [])
        while stack and stack[-1] < begin:
            stack.pop()
        assert not stack or end <= stack[-1], e
        stack.append(end)


def test_table_is_complete():
    files = {path.stem for path in HERE.glob("*.gpuprof")}
    assert files == {case[0] for case in CASES}


@pytest.mark.parametrize("name,code,strict,calls,text", CASES, ids=[case[0] for case in CASES])
def test_file(run_collector, name, code, strict, calls, text):
    path = HERE / f"{name}.gpuprof"
    merged = run_collector("merge", "--keep-live", path, encoding="utf-8")
    assert merged.returncode == code, merged.stderr
    assert text in merged.stderr
    assert text or not merged.stderr, merged.stderr
    assert run_collector("merge", "--keep-live", "--strict", path).returncode == strict
    assert merged.stderr.count("\n") <= 2
    if calls == "-":
        assert merged.stdout == ""
    else:
        trace = json.loads(merged.stdout)
        events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        found = [e for e in events if e["cat"] in ("cuda_runtime", "cuda_driver")]
        assert len(found) == int(calls) == trace["otherData"]["calls"]
        check_rows(events)
        lost = [e for e in trace["traceEvents"] if e["name"].startswith("lost: ")]
        assert bool(lost) == (strict == 3)
    for verb in ("report", "dump"):
        options = ["--keep-live"] if verb == "report" else []
        result = run_collector(verb, *options, path, errors="replace")
        assert result.returncode == code, result.stderr
        assert text in result.stderr
        assert (calls == "-") == (result.stdout == "")
    result = run_collector("report", "--keep-live", "--format=json", path)
    if calls != "-":
        assert json.loads(result.stdout)["calls"] == int(calls)


def test_callbacks(run_collector):
    """CUPTI's number of a function, where a file has one that can be."""
    trace = json.loads(run_collector("merge", HERE / "api-unknown.gpuprof").stdout)
    numbers = {e["name"]: e["args"].get("cbid") for e in trace["traceEvents"] if e["ph"] == "X"}
    assert numbers == {"function_4": None, "function_5": None, "x": 2**32 - 1, "function_7": None}


def test_texts(run_collector):
    trace = json.loads(run_collector("merge", HERE / "texts.gpuprof", encoding="utf-8").stdout)
    launch, odd, many = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert launch["args"] == {"kernel": 'kernel"\\\n\ufffd(', "grid": [1, 0, 0]}
    assert odd["name"] == 'odd"\\\x01\ufffd' and odd["cat"] == "cuda_runtime"
    assert odd["args"] == {'a"\\\x02\ufffd': 'kernel"\\\n\ufffd(', "b": 1}
    assert many["cat"] == "cuda_driver" and len(many["args"]) == 14
    assert many["args"]["a"] == many["args"]["e"].replace("0x1000", 'kernel"\\\n\ufffd(')
    names = {e["name"]: e["args"] for e in trace["traceEvents"] if e["ph"] == "M"}
    assert names["thread_name"] == {"name": '\ufffdname"\n (tid 77)'} or \
        names["thread_name"] == {"name": '\ufffdname"\n'}
    process, = trace["otherData"]["processes"]
    assert process["meta"]["library"] == ["one", "two"] and process["meta"][""] == "empty key"
    assert process["notes"] == ["a note \ufffd\ufffd"]


def test_ranges_that_do_not_match(run_collector):
    """600 pushes, of which 512 are followed, and 300 pops; in all, more ends than beginnings."""
    made = run_collector("merge", HERE / "gpu-extreme.gpuprof", encoding="utf-8").stdout
    losses = json.loads(made)["otherData"]["losses"]
    assert losses["deep_ranges"] >= 600 - 512 and losses["unmatched_ranges"] > 0
    report = run_collector("report", "--format=json", HERE / "gpu-extreme.gpuprof",
                           encoding="utf-8").stdout
    assert json.loads(report)["losses"] == losses


def test_inputs_that_lead_nowhere(run_collector):
    dump = run_collector("dump", HERE / "operators-wild.gpuprof", errors="replace").stdout
    values = [line.partition(' values="')[2].partition('"')[0] for line in dump.splitlines()
              if line.startswith("op_inputs ")]
    assert sorted(values) == sorted([
        "float[4,16], 7, true, none, undefined, other, tensor, number", *["damaged"] * 6,
        "(damaged", "(none, damaged", "(1, ...)", "type_255[], (), ..."])


def test_silences_and_notes(run_collector):
    """Whatever silences claim, the causes add up to the idle time; a note is told once."""
    path = HERE / "silences-wild.gpuprof"
    report = json.loads(run_collector("report", "--format=json", path, encoding="utf-8").stdout)
    causes = {row["cause"] for row in report["idle"]}
    assert {"host", "waiting", "preempted", "unknown"} <= causes
    for device in report["gpu_time"]:
        parts = [name for name in device if re.fullmatch(r"idle_.*_ns", name)]
        assert sum(map(device.get, parts)) == device["idle_ns"]
    assert sum(row["total_ns"] for row in report["idle"]) == \
        sum(device["idle_ns"] for device in report["gpu_time"])
    notes = [note["text"] for note in report["notes"]]
    assert len(notes) == len(set(notes)) > 1 and all(notes)
    text = run_collector("report", path, encoding="utf-8").stdout
    assert text.count("the same") == 1 and "\x1b" not in text


def test_what_the_host_did(run_collector):
    """Whatever the records claim: tables say how many there were, parts of a time are no more than
    it, and nothing that a terminal obeys is shown."""
    path = HERE / "host-wild.gpuprof"
    report = json.loads(run_collector("report", "--format=json", path, encoding="utf-8").stdout)
    dump = run_collector("dump", path, errors="replace").stdout
    weights = [int(re.search(r" weight=(\d+)|$", line)[1] or 1) for line in dump.splitlines()
               if line.startswith("os_call ")]
    assert sum(row["calls"] for row in report["os"]) == sum(weights)
    assert sum(row["collections"] for row in report["gc"]) == dump.count("\ngc ")
    for row in report["samples"]:
        assert row["python_ns"] + row["native_ns"] + row["system_ns"] <= row["cpu_ns"]
    assert {row["file"] for row in report["imports"]} <= {"/me/a.py", "/me/b.py"}
    text = run_collector("report", "--full", path, encoding="utf-8").stdout
    assert "garbage collections" in text and "\x1b" not in text
    for by in ("--by=python-line", "--mine", "--by=stack", "--by=thread"):
        assert run_collector("report", by, path).returncode == 0


def test_whole_folder(run_collector):
    """A folder in which much is broken: what is whole comes out, the exit code says the rest."""
    merged = run_collector("merge", "--keep-live", HERE, encoding="utf-8")
    assert merged.returncode == 3
    trace = json.loads(merged.stdout)
    assert trace["otherData"]["unread_files"] == 5
    # All files were made for one and the same process.
    assert "left out: it repeats pid" in merged.stderr
