# SPDX-License-Identifier: Apache-2.0
"""Recorders and readers that do not see the same pids, times and paths, as with containers."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import conftest
import csv_tables
import pytest
import stream_reader
import toolchain

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="the collector runs natively")

PID = ("unshare", "--pid", "--fork", "--kill-child")
SHIFTED = ("unshare", "--time", "--fork", "--kill-child", "--boottime", "100000",
           "--monotonic", "100000")


def need(namespace):
    """Starts what follows in it."""
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"not run: the kernel allows no {namespace[1][2:]} namespace here "
                    f"(unshare {namespace[1]})")
    return namespace


class Recorded:
    """A process that has made calls, and is in three more."""

    def __init__(self, library, folder, *before, count=10):
        self.data, self.live = folder / "data", folder / "live"
        self.live.mkdir(exist_ok=True)
        self.calls = 100 + 3 * (count + 1)
        tiny, link = toolchain.tiny()
        env = toolchain.environment(self.data, library, GPUPROF_LIVE=self.live,
                                    LD_LIBRARY_PATH=tiny)
        program = toolchain.build("life.c", *link)
        self.process = subprocess.Popen([*before, program, "stay", str(count)], env=env,
                                        stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"called\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()  # and its child with it
        self.process.wait()
        self.process.stdout.close()

    def lives(self):
        return sorted(self.live.iterdir())

    def kill(self):
        """The program itself, whoever has started it."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for pid in children.read_text(encoding="ascii").split() or [self.process.pid]:
            os.kill(int(pid), signal.SIGKILL)
        self.process.wait()


def said(collector, *arguments, before=()):
    done = subprocess.run([*before, collector, *arguments], capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 0, done
    return done


def notes(collector, data, before=()):
    """(stderr, what the csv says besides losses)"""
    done = said(collector, "report", "--format=csv", "--table=losses", data, before=before)
    return done.stderr, {row["name"] for row in csv_tables.table(done.stdout)
                         if row["kind"] == "note"}


def test_running_in_another_pid_namespace(library, collector, tmp_path):
    """Nobody out here knows its pid in there."""
    with Recorded(library, tmp_path, *need(PID)) as recorded:
        words = "another machine or in another "
        stderr, found = notes(collector, recorded.data)
        assert words in stderr and "killed" not in stderr and "may_run" in found
        done = said(collector, "merge", recorded.data, "-o", tmp_path / "trace.json")
        assert words in done.stderr and "killed" not in done.stderr
        losses = json.loads((tmp_path / "trace.json").read_text())["otherData"]["losses"]
        assert losses["may_run"] == 1 and "running" not in losses
        assert words in said(collector, "report", recorded.data).stdout
        assert "not recovered: its process may still run" in \
            said(collector, "recover", recorded.data).stderr
        assert len(recorded.lives()) == 1


def test_a_foreign_proc_says_nothing(library, collector, tmp_path):
    """In a new pid namespace, /proc is still the one outside: pid 1 there is another process."""
    with Recorded(library, tmp_path, *need(PID)) as recorded:
        [child] = pathlib.Path(f"/proc/{recorded.process.pid}/task/{recorded.process.pid}/children"
                               ).read_text(encoding="ascii").split()
        enter = ("nsenter", "--pid", "--target", child)
        stderr, found = notes(collector, recorded.data, before=enter)
        assert "killed" not in stderr and "may_run" in found and len(recorded.lives()) == 1


def test_first_thread_has_ended(library, collector, tmp_path):
    """A process whose first thread has ended shows as a zombie, and goes on."""
    (tmp_path / "live").mkdir()
    tiny, link = toolchain.tiny()
    env = toolchain.environment(tmp_path / "data", library, GPUPROF_LIVE=tmp_path / "live",
                                LD_LIBRARY_PATH=tiny)
    with conftest.Program([toolchain.build("life.c", *link), "leave-main", "for-long"],
                          env=env) as process:
        stat = pathlib.Path(f"/proc/{process.pid}/stat")
        while stat.read_text(encoding="latin-1").rpartition(")")[2].split()[0] != "Z" or \
                not list(tmp_path.glob("data/*.gpuprof")):
            time.sleep(0.001)
        stderr, found = notes(collector, tmp_path / "data")
        process.kill()
    assert "killed" not in stderr and "running" in found


@pytest.mark.parametrize("first", ["shifted", "plain"])
def test_shifted_clocks_on_one_time_line(library, collector, tmp_path, first):
    """CLOCK_MONOTONIC is not one clock for both, and they ran one after the other all the same."""
    shifted = need(SHIFTED)
    tiny, link = toolchain.tiny()
    program = toolchain.build("life.c", *link)
    env = toolchain.environment(tmp_path / "data", library, GPUPROF_LIVE=tmp_path,
                                LD_LIBRARY_PATH=tiny)
    begin = time.monotonic()
    for before in (shifted, ()) if first == "shifted" else ((), shifted):
        toolchain.run([*before, program, "calls"], env, status=3)
    most = time.monotonic() - begin
    said(collector, "merge", tmp_path / "data", "-o", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    times = [event["ts"] for event in events if event["ph"] == "X"]
    assert len(times) >= 12 and max(times) - min(times) < 1e6 * (most + 1)
    shifts = {p.header.monotonic_shift for p in stream_reader.read_folder(tmp_path / "data")}
    assert shifts == {0, 100000 * 10**9}


def test_live_file_in_a_folder_that_has_moved(library, collector, tmp_path):
    """A bind mount has another path outside: the live file lies beside the data, by its name."""
    box = tmp_path / "box"
    box.mkdir()
    with Recorded(library, box) as recorded:
        recorded.kill()
    [live] = recorded.lives()
    shutil.copytree(recorded.data, tmp_path / "without")
    moved = tmp_path / "moved"
    shutil.copytree(recorded.data, moved)
    shutil.copy(live, moved)
    shutil.rmtree(box)
    done = said(collector, "dump", moved)
    assert done.stdout.count("\ncall ") == recorded.calls
    assert "killed" in said(collector, "report", "--keep-live", moved).stderr
    assert (moved / live.name).exists()
    assert "recovered: " in said(collector, "recover", moved).stderr
    assert [path.suffix for path in moved.iterdir()] == [".gpuprof"]
    assert said(collector, "dump", moved).stdout.count("\ncall ") == recorded.calls
    # Where it is not, the path that was looked at is named.
    done = said(collector, "report", tmp_path / "without")
    assert f"its live file is missing: it is not in the same folder, and not at '{live}'" in \
        done.stderr
    assert "the last second or so" in done.stdout


def test_another_process_under_the_same_name(library, collector, tmp_path):
    """The file beside the data must be of the same process, whatever its name."""
    with Recorded(library, tmp_path) as recorded:
        recorded.kill()
    [live] = recorded.lives()
    other = tmp_path / "other"
    other.mkdir()
    with Recorded(library, other, count=20) as recorded_too:
        recorded_too.kill()
    shutil.copy(*recorded_too.lives(), recorded.data / live.name)
    dump = said(collector, "dump", recorded.data).stdout
    assert dump.count("\ncall ") == recorded.calls
    said(collector, "recover", recorded.data)
    assert (recorded.data / live.name).exists() and not live.exists()
