# SPDX-License-Identifier: Apache-2.0
"""gpuprof recover: one whole file of what a killed process has left, that says the same."""

import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import time

import conftest
import csv_tables
import launched
import pytest
import stream_reader
import toolchain

CORPUS = conftest.ROOT / "test" / "corpus"
PAIRS = sorted(p.stem for p in CORPUS.glob("live-*.live"))


def threads_stored(folder):
    """Those that have a block in the one stream file."""
    [stream] = folder.iterdir()
    data = stream.read_bytes()
    return {block.thread for block in
            stream_reader.read_blocks(data, stream_reader.read_header(data).bytes)[0]}


def last_alive(live):
    """When the process of a live file was last seen alive, in ns of its own."""
    data = live.read_bytes()
    return stream_reader.read_header(data).ns(int.from_bytes(data[2080:2088], "little"))


@pytest.fixture(name="killed")
def fixture_killed(library, tmp_path):
    """(folder of a killed process's data, its live file elsewhere)"""
    live = tmp_path / "live"
    live.mkdir()
    folder, link = toolchain.tiny()
    env = toolchain.environment(tmp_path / "data", library, GPUPROF_LIVE=live, GPUPROF_BUFFER="4M",
                                GPUPROF_CHUNK="64K", LD_LIBRARY_PATH=folder)
    with conftest.Program([toolchain.build("life.c", *link), "stay", "3000"], env=env,
                          stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"called\n"
        end = time.monotonic() + 30
        while len(threads_stored(tmp_path / "data")) < 4 and time.monotonic() < end:
            time.sleep(0.01)
        process.kill()
    [path] = live.iterdir()
    return tmp_path / "data", path


def trace(run_collector, folder):
    done = run_collector("merge", "--keep-live", folder)
    text = json.loads(done.stdout)
    for process in text["otherData"]["processes"]:
        process["meta"].pop("recovered", None)
        process.pop("end_reason", None)
    return done.returncode, text


def losses(run_collector, path):
    """Exit codes, and what the report says is missing."""
    codes = [run_collector("merge", *o, "--keep-live", "-o", "/dev/null", path).returncode
             for o in ((), ("--strict",))]
    done = run_collector("report", "--format=csv", "--table=losses", "--keep-live", path)
    return codes, csv_tables.table(done.stdout)


def test_says_the_same(run_collector, killed):
    folder, live = killed
    before, old = trace(run_collector, folder), losses(run_collector, folder)
    [process] = stream_reader.read_folder(folder)
    calls = process.calls()
    opened = [c for c in calls if c.flags & stream_reader.OPEN]
    assert len(opened) == 3
    done = run_collector("recover", folder)
    assert (done.returncode, done.stdout) == (0, "")
    assert f"unfinished calls: {len(opened)}\n" in done.stderr
    assert not live.exists()
    [stream] = folder.iterdir()
    assert stream.stat().st_mode & 0o777 == 0o600
    subprocess.run(["zstd", "-tq", stream], check=True)
    assert trace(run_collector, folder) == before and losses(run_collector, folder) == old
    [process] = stream_reader.read_folder(folder)
    assert process.end_reason == 3 and process.torn_bytes == 0 and not process.live_path

    def known(call):
        return call.symbol, call.tid, call.begin, call.flags, call.args
    assert list(map(known, process.calls())) == list(map(known, calls))
    assert len(calls) == 3 * 3001 + 100

    whole = stream.read_bytes()
    again = run_collector("recover", folder)
    assert again.returncode == 0 and "nothing to recover" in again.stderr
    assert stream.read_bytes() == whole


def test_report_names_open_calls(run_collector, killed):
    """Where a program hung: in which call, thread and process, and for how long."""
    folder, _ = killed
    run_collector("report", folder)  # moves the live file beside the other
    for recovered in (False, True):
        if recovered:
            assert run_collector("recover", folder).returncode == 0
        lines = run_collector("report", folder).stdout.split("\n\n")[1].splitlines()
        assert lines[0].startswith("calls that had not returned ") and len(lines) == 2 + 3
        stacks = run_collector("report", "--by=stack", "--symbols=none", folder).stdout
        assert stacks.split("\n\n")[1].splitlines() == lines
        row = r" +[0-9.]+ [mun]?s  cudaMemset ptr=0x0 .*, " \
              r"in thread (\d+) \([^)]+\) of .*, pid \d+\)"
        threads = {int(re.fullmatch(row, line)[1]) for line in lines[2:]}
        report = json.loads(run_collector("report", "--format=json", folder).stdout)
        assert {row["tid"] for row in report["open_calls"]} == threads and len(threads) == 3
        longest = max(row["max_ns"] for row in report["functions"]
                      if row["function"] == "cudaMemset")
        lasted = [row["lasted_ns"] for row in report["open_calls"]]
        assert lasted == sorted(lasted, reverse=True) and lasted[0] == longest
        assert {row["function"] for row in report["open_calls"]} == {"cudaMemset"}
        text = run_collector("report", "--format=csv", folder).stdout
        assert [(row["function"], int(row["lasted_ns"])) for row in
                csv_tables.tables(text)["open_calls"]] == [("cudaMemset", ns) for ns in lasted]


def test_open_call_until_the_kill(run_collector, library, tmp_path):
    """Nothing is recorded while a program hangs; that it lived on is known all the same."""
    tiny, link = toolchain.tiny()
    env = toolchain.environment(tmp_path / "data", library, GPUPROF_LIVE=tmp_path,
                                LD_LIBRARY_PATH=tiny)
    with conftest.Program([toolchain.build("life.c", *link), "stay", "1"], env=env,
                          stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        [live] = tmp_path.glob("gpuprof-*.live")
        times = []  # of gpuprof's thread; nothing else is recorded
        try:
            launched.wait_until(lambda: len(times) == 5 or last_alive(live) not in (0, *times)
                                and times.append(last_alive(live)))
        finally:
            process.kill()
    [recorded] = stream_reader.read_folder(tmp_path / "data")
    begin = max(c.begin for c in recorded.calls() if c.flags & stream_reader.OPEN)
    rows = json.loads(run_collector("report", "--format=json", tmp_path / "data").stdout)
    assert len(rows["open_calls"]) == 3
    lasted = min(row["lasted_ns"] for row in rows["open_calls"])
    assert lasted >= times[-1] - begin - 10_000  # two readings of a clock, each rounded


def test_killed_before_the_live_file_was_removed(run_collector, killed, tmp_path):
    folder, live = killed
    kept = tmp_path / "kept"
    shutil.copy(live, kept)
    assert run_collector("recover", folder).returncode == 0
    [stream] = folder.iterdir()
    before = trace(run_collector, folder)
    for place in (live, stream.with_suffix(".live")):
        shutil.copy(kept, place)
        assert trace(run_collector, folder) == before
        assert run_collector("recover", stream).returncode == 0
        assert not place.exists() and trace(run_collector, folder) == before


def test_no_room(run_collector, killed):
    """What cannot be written leaves everything as it was."""
    folder, live = killed
    [stream] = folder.iterdir()
    before = stream.read_bytes(), live.read_bytes()

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before[0]), len(before[0])))
    done = run_collector("recover", folder, preexec_fn=limit)
    assert done.returncode == 1 and "File too large" in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(folder.iterdir()) == [stream]
    assert (stream.read_bytes(), live.read_bytes()) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="not run: only root can read for others")
def test_root_leaves_it_to_its_owner(run_collector, killed):
    """Whoever made the recording can go on with it: the live file that merge moves beside it, and
    the whole file."""
    folder, live = killed
    [stream] = folder.iterdir()
    for path in (folder, stream, live):
        os.chown(path, 65534, 65534)
    stream.chmod(0o640)
    assert run_collector("merge", folder, "-o", "/dev/null").returncode == 0
    [moved] = folder.glob("*.live")
    assert (moved.stat().st_uid, moved.stat().st_mode & 0o777) == (65534, 0o600)
    assert run_collector("recover", folder).returncode == 0
    assert [path.name for path in folder.iterdir()] == [stream.name]
    assert (stream.stat().st_uid, stream.stat().st_mode & 0o777) == (65534, 0o640)


def test_running(run_collector, library, tmp_path):
    folder, link = toolchain.tiny()
    env = toolchain.environment(tmp_path / "data", library, LD_LIBRARY_PATH=folder,
                                GPUPROF_LIVE=tmp_path)
    with conftest.Program([toolchain.build("life.c", *link), "end", "pause"], env=env) as process:
        while not list(tmp_path.glob("data/*.gpuprof")):
            assert process.poll() is None
            time.sleep(0.01)
        done = run_collector("recover", tmp_path / "data")
        process.kill()
    assert done.returncode == 0 and "not recovered: its process still runs" in done.stderr
    assert list(tmp_path.glob("gpuprof-*.live"))


@pytest.mark.parametrize("name", PAIRS)
def test_damage_is_not_forgotten(run_collector, tmp_path, name):
    """Whatever was found wrong in the two files, the whole file says."""
    for suffix in (".gpuprof", ".live"):
        shutil.copy(CORPUS / f"{name}{suffix}", tmp_path)
    stream = tmp_path / f"{name}.gpuprof"
    before = losses(run_collector, stream)
    done = run_collector("recover", stream)
    if done.returncode:  # it cannot be read: then nothing is touched
        assert stream.with_suffix(".live").exists()
        assert stream.read_bytes() == (CORPUS / stream.name).read_bytes()
    else:
        assert not stream.with_suffix(".live").exists()
    assert losses(run_collector, stream) == before


@pytest.mark.parametrize("cut", [100, 20, 1])
def test_torn(run_collector, killed, cut):
    """A last block that was half written when the process died goes."""
    folder, _ = killed
    [stream] = folder.iterdir()
    data = stream.read_bytes()
    stream.write_bytes(data[:-cut])
    before = losses(run_collector, folder)
    assert run_collector("recover", folder).returncode == 0
    assert losses(run_collector, folder) == before
    subprocess.run(["zstd", "-tq", stream], check=True)


def test_nothing_to_recover(run_collector, killed):
    folder, _ = killed
    [stream] = folder.iterdir()
    assert "recovered: " in run_collector("recover", folder).stderr
    for path in (folder, stream):
        done = run_collector("recover", path)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == f"gpuprof: {path}: nothing to recover: it has no live file\n"


def test_no_room_is_not_answered_with_another_name(run_collector, killed):
    """It writes beside the file, and takes no name."""
    folder, _ = killed

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))
    done = run_collector("recover", folder, preexec_fn=limit)
    assert done.returncode == 1 and done.stderr.endswith(
        ": File too large; nothing was changed\n")


def test_wrong_usage(run_collector, tmp_path):
    assert run_collector("recover").returncode == 2
    assert run_collector("recover", "not-there").returncode == 2
    assert run_collector("recover", tmp_path).returncode == 2
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "a.txt", tmp_path / "folder" / "a.gpuprof"):
        path.write_text("no recording\n")
        for verb in ("recover", "report"):
            done = run_collector(verb, path)
            assert done.returncode == 2 and "not a gpuprof file; name a data" in done.stderr, verb
    for verb in ("recover", "report"):  # the user named the folder: that file is what is wrong
        assert run_collector(verb, tmp_path / "folder").returncode == 3, verb
    assert run_collector("recover", pathlib.Path("/dev/null")).returncode == 2


def test_file_of_a_process_that_had_no_time(run_collector, make_gpu):
    """The others are read all the same, whether it was named or found."""
    folder = make_gpu("train", 2, 20)
    empty = folder / "9.gpuprof"
    empty.touch()
    said = f"gpuprof: {empty}: the file is empty: the process was killed before it wrote"
    for paths in ((folder,), tuple(folder.iterdir())):
        done = run_collector("report", "--format=json", *paths)
        assert done.returncode == 3 and said in done.stderr
        assert json.loads(done.stdout)["processes"] == 2
    for verb in ("report", "recover"):
        done = run_collector(verb, empty)
        assert done.returncode == 3 and done.stderr.startswith(said), verb


def test_what_gpuprof_made_is_no_recording(run_collector, run_verb, make_gpu, tmp_path):
    folder = make_gpu("train", 1, 20)
    run_verb("report", "--partial", "--share=0/1", "-o", tmp_path / "part.0", folder)
    for verb in ("report", "merge", "recover"):
        done = run_collector(verb, tmp_path / "part.0")
        assert done.returncode == 2 and ("not a gpuprof file, but a part of a report; read it with "
                                         "'gpuprof report --combine'") in done.stderr
