# SPDX-License-Identifier: Apache-2.0
"""Disks, limits and system calls that fail: the program goes on, and what is there can be read."""

import errno
import json
import re
import resource
import shutil
import subprocess
import time

import conftest
import csv_tables
import pytest
import stream_reader
import toolchain

CALLS = 40 * 100 + 1  # of "slowly 40"


class Faulty:
    def __init__(self, library, run_collector, folder):
        self.library, self.collector, self.folder = library, run_collector, folder
        self.out = folder / "out"
        self.tiny, link = toolchain.tiny()
        self.program = toolchain.build("lossy.c", *link, f"-I{conftest.ROOT / 'inject'}")
        self.shim = toolchain.build("io_fault.c", "-shared", "-fPIC")

    def env(self, **settings):
        env = toolchain.environment(self.out, self.library, **{
            "GPUPROF_LIVE": self.folder, "GPUPROF_SEAL": "10ms", "GPUPROF_CHUNK": "16K",
            "LD_LIBRARY_PATH": self.tiny, **settings})
        env["LD_PRELOAD"] = f"{self.shim}:{env['LD_PRELOAD']}"
        return env

    def __call__(self, *arguments, preexec_fn=None, **settings):
        done = toolchain.run([self.program, *arguments], self.env(**settings), status=3,
                             preexec_fn=preexec_fn)
        assert done.stdout == ""
        return done.stderr

    def readable(self):
        """Each process's numbers of calls, in the recording and lost by its own count; every file
        is whole."""
        counts = []
        for process in stream_reader.read_folder(self.out) if self.out.exists() else ():
            assert process.torn_bytes == 0
            done = self.collector("merge", "--keep-live", process.path, "-o", "/dev/null")
            assert done.returncode == 0, done.stderr
            counts.append((len(process.of_type(stream_reader.CALL)), sum(
                process.counters[name] for name in ("unrecorded", "dropped"))))
        return counts


@pytest.fixture(name="faulty")
def fixture_faulty(library, run_collector, tmp_path):
    return Faulty(library, run_collector, tmp_path)


def said(stderr, *lines):
    """Exactly these lines, in words, and nothing else."""
    got = stderr.splitlines()
    assert len(got) == len(lines), stderr
    for text, pattern in zip(got, lines):
        assert re.fullmatch(f"gpuprof: {pattern}.*", text), text


ENDED = r"recording ended after [0-9]+\.[0-9]{3} s: cannot write '.*': "
OFF = "recording is off: "


@pytest.mark.parametrize("number, text", [
    (errno.ENOSPC, "No space left on device"), (errno.EDQUOT, "Disk quota exceeded"),
    (errno.EIO, "Input/output error"), (errno.EROFS, "Read-only file system")])
@pytest.mark.parametrize("skip", [1, 2, 5])
def test_writing_fails(faulty, number, text, skip):
    """One line says when and why; each call is recorded or counted."""
    said(faulty("slowly", "40", IO_FAULT=f"pwrite={number}@{skip}"), ENDED + text)
    [(recorded, lost)] = faulty.readable()
    assert recorded + lost == CALLS
    [process] = stream_reader.read_folder(faulty.out)
    assert process.counters["ended"] == 1


def test_writing_fails_before_the_start_is_over(faulty):
    """The writer is faster than the thread that starts it, as on a busy machine."""
    said(faulty("slowly", "10", IO_FAULT=f"pthread_create=-100@0,pwrite={errno.ENOSPC}@1",
                GPUPROF_CHUNK="64K"), ENDED + "No space left on device")
    [(recorded, lost)] = faulty.readable()
    assert recorded + lost == 10 * 100 + 1
    [process] = stream_reader.read_folder(faulty.out)
    assert process.counters["ended"] == 1


def test_file_size_limit(faulty, tmp_path):
    """No file may grow further: the early end, and how many calls came after it, are told."""
    faulty("slowly", "40")
    [whole] = faulty.out.glob("*.gpuprof")
    limit = whole.stat().st_size - 4_000  # functions are described in the greater part
    whole.unlink()

    def prepare():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    stderr = faulty("slowly", "40", preexec_fn=prepare)
    said(stderr, ENDED + "File too large")
    [stream] = faulty.out.glob("*.gpuprof")
    assert limit // 2 < stream.stat().st_size <= limit
    [process] = stream_reader.read_folder(faulty.out)
    recorded = len(process.of_type(stream_reader.CALL))
    assert process.counters["ended"] == 1 and 0 < recorded < CALLS
    lost = sum(process.counters[name] for name in ("unrecorded", "write_lost"))
    # Where the block that finds no room is gpuprof's own, its few records are lost, too.
    assert 0 <= recorded + lost - CALLS <= 10
    trace = tmp_path / "trace.json"
    done = faulty.collector("merge", "--strict", faulty.out, "-o", trace)
    assert done.returncode == 3 and "recordings that ended before their program" in done.stderr
    assert "second or so" not in done.stderr
    wanted = {"ended": 1, "unrecorded": process.counters["unrecorded"]}
    losses = json.loads(trace.read_text())["otherData"]["losses"]
    assert wanted.items() <= losses.items()
    rows = csv_tables.lost(
        faulty.collector("report", "--format=csv", "--table=losses", faulty.out).stdout)
    assert wanted.items() <= rows.items() and "not_ended" not in rows
    assert f"{wanted['unrecorded']:,}  calls made after recording had ended" in \
        faulty.collector("report", faulty.out).stdout


@pytest.mark.parametrize("on_full", ["wait", "drop"])
@pytest.mark.parametrize("skip", [1, 4])
def test_writing_hangs(faulty, on_full, skip):
    """A disk that does not answer: a thread waits for room no longer than it may, once and not for
    each call, and so does the end; all that found no room is counted. A silence would be
    a record more."""
    begin = time.monotonic()
    stderr = faulty("calls", "300000", IO_FAULT=f"pwrite=-60000@{skip}", GPUPROF_BUFFER="1M",
                    GPUPROF_WAIT="300ms", GPUPROF_EXIT_WAIT="300ms", GPUPROF_ON_FULL=on_full,
                    GPUPROF_SILENCE="off")
    assert time.monotonic() - begin < 20
    assert stderr.count("\n") <= 2 and all(line.startswith("gpuprof: ")
                                           for line in stderr.splitlines())
    [(recorded, lost)] = faulty.readable()
    assert recorded + lost == 300001 and recorded > 1000 and lost > 1000


@pytest.mark.parametrize("fault, line", [
    (f"pwrite={errno.ENOSPC}@0", OFF + ".*No space left"),
    (f"mkdir={errno.EROFS}@0", OFF + "cannot create the folder '.*': Read-only file system; "
     "set GPUPROF_OUT to another folder"),
    (f"open={errno.EACCES}@0", OFF + "cannot create '.*': Permission denied; "
     "set GPUPROF_OUT to another folder")])
def test_cannot_begin(faulty, fault, line):
    stderr = faulty("slowly", "5", IO_FAULT=fault)
    said(*[stderr] if stderr.count("\n") == 1 else [stderr.partition("\n")[2]], line)
    assert not faulty.readable() and not list(faulty.folder.glob("gpuprof-*.live"))


def test_folder_below_the_root(library):
    """It is not named with two slashes."""
    folder, link = toolchain.tiny()
    env = toolchain.environment("none", library, LD_LIBRARY_PATH=folder, GPUPROF_OUT="proc/none")
    done = toolchain.run([toolchain.build("life.c", *link), "calls", "1"], env, status=None,
                         cwd="/")
    assert "'/proc/none'" in done.stderr, done.stderr


@pytest.mark.parametrize("fault", [
    f"linkat={errno.EIO}@0", f"linkat={errno.EIO}@1", f"fallocate={errno.ENOSPC}@0",
    f"ftruncate={errno.EFBIG}@0", f"fallocate={errno.ENOSPC}@1"])
def test_live_file_fails(faulty, fault):
    """Then there is another way, or no live file; the recording is whole."""
    assert faulty("slowly", "40", IO_FAULT=fault) == ""
    assert faulty.readable() == [(CALLS, 0)]
    [process] = stream_reader.read_folder(faulty.out)
    assert len(process.said) == (process.meta["live"] == "memory")
    assert all(note.startswith("no live file: ") for note in process.said)


@pytest.mark.parametrize("skip", range(14))
def test_memory_fails(faulty, skip):
    """No memory at any place: recorded without something, or not at all, and said."""
    stderr = faulty("slowly", "5", IO_FAULT=f"mmap={errno.ENOMEM}@{skip}")
    counts = faulty.readable()
    lines = stderr.splitlines()  # a cause each: what failed first may not be all that fails
    assert len(lines) <= 2 and all(line.startswith("gpuprof: ") for line in lines)
    assert counts in ([], [(501, 0)]) or sum(counts[0]) == 501
    assert counts or lines[-1].startswith("gpuprof: " + OFF)


@pytest.mark.parametrize("fault", [
    f"pwrite={errno.EINTR}%2", f"fallocate={errno.EINTR}%5", f"pwrite={errno.EINTR}%7"])
def test_interrupted_calls(faulty, fault):
    assert faulty("slowly", "40", IO_FAULT=fault) == ""
    assert faulty.readable() == [(CALLS, 0)]


def test_signal_storm(faulty):
    assert faulty("storm", "300000") == ""
    assert faulty.readable() == [(300001, 0)]


@pytest.mark.parametrize("limit", [4, 6, 8, 16, 64])
def test_few_descriptors(faulty, limit):
    def prepare():
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    faulty.program = toolchain.build("lossy.c", *toolchain.tiny()[1],
                                     f"-I{conftest.ROOT / 'inject'}",
                                     f"-Wl,-rpath,{faulty.tiny}")
    bare = subprocess.run([faulty.program, "slowly", "5"], preexec_fn=prepare, check=False,
                          capture_output=True)
    assert bare.returncode == 3, bare.stderr
    done = toolchain.run([faulty.program, "slowly", "5"], faulty.env(), status=None,
                         preexec_fn=prepare)
    assert done.returncode == 3 and done.stderr.count("\n") <= 2
    counts = faulty.readable()
    assert counts == [(501, 0)] or done.stderr


@pytest.mark.parametrize("megabytes", [8, 16, 32, 64, 128, 256, 512, 1024])
def test_little_address_space(faulty, megabytes):
    def prepare():
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    stderr = faulty("slowly", "5", preexec_fn=prepare)
    counts = faulty.readable()
    assert stderr.count("\n") <= 2
    assert counts == [(501, 0)] or stderr.startswith("gpuprof: ")
    assert counts == [(501, 0)] or megabytes < 256


def test_folder_vanishes(faulty):
    """Somebody removes the data folder: what is recorded is gone, and the program does not care."""
    with conftest.Program([faulty.program, "slowly", "100"], env=faulty.env(),
                          stderr=subprocess.PIPE) as process:
        while not list(faulty.folder.glob("out/*.gpuprof")):
            assert process.poll() is None
            time.sleep(0.01)
        shutil.rmtree(faulty.out)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 3 and stderr.count(b"\n") <= 1
    assert not list(faulty.folder.glob("gpuprof-*.live"))
