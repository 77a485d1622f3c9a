# SPDX-License-Identifier: Apache-2.0
"""Processes and threads that begin and end in every way: each call is recorded, once."""

import collections
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time

import conftest
import pytest
import stream_reader
import toolchain


class Runner:
    def __init__(self, library, folder):
        self.library, self.folder = library, folder
        self.out, self.live, self.log = folder / "out", folder / "live", folder / "tiny.log"
        self.live.mkdir()
        self.tiny, link = toolchain.tiny()
        self.program = toolchain.build("life.c", *link)

    def env(self, **settings):
        settings = {"GPUPROF_LIVE": self.live, "TINY_LOG": self.log, "LD_LIBRARY_PATH": self.tiny,
                    **settings}
        return toolchain.environment(self.out, self.library, **settings)

    def __call__(self, *arguments, status=3, stderr="", settings=None, **options):
        env = self.env(**(settings or {}))
        done = toolchain.run([self.program, *arguments], env, status=status, **options)
        if stderr is not None:
            assert done.stderr == stderr
        return done

    def arrived(self):
        """(pid, tid) -> calls that arrived at the runtime, in order."""
        threads = collections.defaultdict(list)
        for line in self.log.read_text().splitlines():
            pid, tid, symbol, argument = line.split()
            threads[int(pid), int(tid)].append((symbol, int(argument)))
        return dict(threads)

    def recorded(self, processes=None):
        """The same from the recording; calls that were open at the end come last."""
        threads = collections.defaultdict(list)
        processes = processes or self.processes()
        for process in sorted(processes, key=lambda p: p.header.monotonic_zero):
            assert not process.losses
            for call in process.calls():
                label = "stream" if "stream" in call.args else "bytes"
                threads[process.header.pid, call.tid].append((call.symbol, call.args[label]))
        return dict(threads)

    def processes(self):
        processes = stream_reader.read_folder(self.out)
        for process in processes:
            done = subprocess.run(["zstd", "-tq", process.path], capture_output=True, check=False)
            assert done.returncode == 0, done.stderr
        return processes

    def leftovers(self):
        return sorted(self.live.iterdir())


@pytest.fixture(name="life")
def fixture_life(library, tmp_path):
    return Runner(library, tmp_path)


# ---- Nothing before the first recorded call ------------------------------------------------------

def nothing_left(life):
    return not life.out.exists() and not life.leftovers()


def test_queries_leave_nothing(life):
    life("queries")
    assert nothing_left(life)


@pytest.mark.parametrize("settings", [{}, {"GPUPROF_GAPS": "on"}])
def test_a_sandbox_sees_no_system_call(life, settings):
    """Of a process that records nothing, one that would be killed for asking who it is."""
    life("sandbox", settings=settings)
    assert nothing_left(life)


def test_driver_queries_leave_nothing(life):
    program = toolchain.build("queries.c", *toolchain.DRIVER)
    toolchain.run([program], life.env(LD_LIBRARY_PATH=toolchain.SIM), status=3)
    assert nothing_left(life)


@pytest.mark.parametrize("command", [
    ["bash", "-c", "for i in 1 2 3; do (echo $i | cat; bash -c 'true; sleep 0'); done; exit 3"],
    ["bash", "-c", "echo 'int main(void){return 0;}' | gcc -x c - -o $0 && $0; exit 3"],
    [sys.executable, "-c", "import json, threading, subprocess, ctypes, sqlite3, sys\n"
                           "subprocess.run(['true'])\nsys.exit(3)"],
    [sys.executable, "-c", "import multiprocessing, sys\nif __name__ == '__main__':\n"
                           " with multiprocessing.Pool(2) as p: print(p.map(abs, [1, -2]))\n"
                           " sys.exit(3)"]],
    ids=["shell", "compiler", "python", "multiprocessing"])
def test_others_leave_nothing(life, command):
    command = [str(life.folder / "a.out") if c == "$0" else c for c in command]
    if "gcc" in command[-1]:
        command.append(str(life.folder / "a.out"))
    plain = subprocess.run(command, capture_output=True, check=False)
    done = toolchain.run(command, life.env(), status=3)
    assert done.stdout.encode() == plain.stdout and done.stderr.encode() == plain.stderr
    assert nothing_left(life)


# ---- Children ------------------------------------------------------------------------------------

@pytest.mark.parametrize("scenario, count, output", [
    ("fork-after", 2, "child 7\n"), ("fork-before", 2, "child 7\n"),
    ("fork-_exit", 2, "child 7\n"), ("fork-silent", 1, "child 7\n"), ("_Fork", 2, "child 7\n"),
    ("clone", 2, "child 7\n"), ("double-fork", 3, "child 4\n"), ("fork-inside", 2, ""),
    ("vfork", 3, "vfork 9\nvfork and exec 3\nspawn 3\n"), ("exec", 2, "")])
def test_children(life, scenario, count, output):
    done = life(scenario)
    assert done.stdout == output
    processes = life.processes()
    assert len(processes) == count
    assert life.recorded(processes) == life.arrived()
    assert len({p.header.process_id for p in processes}) == count
    assert len({p.path.name for p in processes}) == count
    by_pid = {p.header.pid: p for p in processes}
    for process in processes:
        parent = by_pid.get(process.header.parent_pid)
        if parent and scenario != "exec":
            assert parent.header.start_time <= process.header.start_time
        if process.end_reason:  # else it may have ended before that was written
            assert process.meta["cmdline"].startswith(str(life.program))
    if scenario == "exec":  # nobody told us: the rest is in the live file
        assert len(life.leftovers()) == 1 and len({p.header.pid for p in processes}) == 1
        assert [p.end_reason for p in processes].count(None) == 1
    else:
        assert life.leftovers() == []
        assert {p.end_reason for p in processes} <= {1, 2}
    assert sum(p.counters["stale"] for p in processes) == 0


def test_names_do_not_collide(life):
    """One folder, processes with one pid and one start time: as in containers."""
    for _ in range(3):
        life("calls")
    names = [p.path.name for p in life.processes()]
    assert len(set(names)) == 3
    host = os.uname().nodename.replace("/", "_")[:64]
    for process in life.processes():
        head = f"{host}.{process.header.pid}.{process.header.start_time}-"
        assert process.path.name.startswith(head)
        assert process.path.name[len(head):] == process.header.process_id[:4].hex() + ".gpuprof"


def test_pid_namespace(life):
    """Two containers' processes with pid 1."""
    unshare = ["unshare", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("not run: the kernel allows no pid namespace here (unshare --pid)")
    with conftest.Program([*unshare, life.program, "pause", "3"], env=life.env(),
                          stdout=subprocess.PIPE) as running:  # or its namespace's number is free
        assert running.stdout.readline() == b"called\n"
        toolchain.run([*unshare, life.program, "calls"], life.env(), status=3)
        running.kill()
    first, second = life.processes()
    assert first.header.pid == second.header.pid == 1
    assert first.header.pid_namespace not in (0, second.header.pid_namespace)


# ---- Threads -------------------------------------------------------------------------------------

def test_many_threads(life):
    begin = time.monotonic()
    life("threads", "10000", settings={"TINY_LOG": ""})
    took = time.monotonic() - begin
    [process] = life.processes()
    assert not process.losses
    threads = collections.Counter(c.thread for c in process.calls())
    assert len(threads) == 10000
    assert collections.Counter(threads.values()) == {1: 3334, 2: 3333, 3: 3333}
    assert len(process.of_type(stream_reader.THREAD)) == 10000
    assert len(process.blocks) < 2 * 10000 + 100
    assert life.leftovers() == []
    assert took < 30


@pytest.mark.parametrize("on_full", ["wait", "drop"])
def test_more_threads_than_chunks(life, on_full):
    """Threads that do nothing keep no others from being recorded: each has a chunk of its own."""
    life("idle", "300", settings={"GPUPROF_BUFFER": "1M", "GPUPROF_CHUNK": "64K", "TINY_LOG": "",
                                  "GPUPROF_ON_FULL": on_full}, stderr=None)
    [process] = life.processes()
    counts = collections.Counter(c.thread for c in process.calls())
    assert len(counts) == 301 and not set(process.losses) - {"dropped"}
    assert sorted(counts.values())[:300] == [3] * 300
    assert max(counts.values()) + process.losses.get("dropped", 0) == 20000
    if on_full == "wait":
        assert not process.losses


def test_destructors_of_threads(life):
    life("destructors")
    assert life.recorded() == life.arrived()
    assert sorted(len(calls) for calls in life.arrived().values()) == [3, 5]


# ---- Ends ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("way, status, reason", [
    ("return", 3, 1), ("_exit", 3, 2), ("_Exit", 3, 2), ("quick_exit", 3, 2), ("handler", 15, 2),
    ("abort", -signal.SIGABRT, None), ("kill", -signal.SIGKILL, None),
    ("segv", -signal.SIGSEGV, None), ("term", -signal.SIGTERM, None)])
def test_end_with_threads_calling(life, way, status, reason):
    """Whatever arrived at CUDA before the end is in the stream file or in the live file."""
    life("end", way, status=status, preexec_fn=no_core)
    [process] = life.processes()
    recorded, arrived = life.recorded([process]), life.arrived()
    assert set(recorded) == set(arrived) and len(arrived) == 4
    opened = {c.tid for c in process.calls() if c.flags & stream_reader.OPEN}
    assert len(opened) <= 3 + (way == "kill")
    for (pid, tid), calls in arrived.items():
        got = recorded[pid, tid]
        if tid in opened and len(got) == len(calls) + 1:
            got.pop()  # it had begun, and not come to CUDA
        assert got == calls
    assert process.end_reason == reason


def no_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def test_live_file_moved_beside(life):
    """A collector may keep a dead process's live file next to its stream file."""
    life("end", "kill", status=-signal.SIGKILL)
    kept = life.recorded()
    [live] = life.leftovers()
    [stream] = life.out.glob("*.gpuprof")
    shutil.move(live, stream.with_suffix(".live"))
    [process] = life.processes()
    assert process.live_path == stream.with_suffix(".live")
    assert life.recorded([process]) == kept


def test_live_file_of_a_thread_that_sleeps(library, tmp_path, run_collector):
    """It might have gone on while the process ended; where it did not, a reader takes it away."""
    folder, link = toolchain.tiny()
    env = toolchain.environment(tmp_path / "out", library, GPUPROF_LIVE=tmp_path,
                                LD_LIBRARY_PATH=folder)
    toolchain.run([toolchain.build("asleep.c", *link, "-pthread")], env)
    [live] = tmp_path.glob("*.live")
    said = run_collector("report", "--keep-live", tmp_path / "out").stdout
    assert live.exists() and "2 threads, 2 calls" in said
    for _ in range(2):
        assert run_collector("report", tmp_path / "out").stdout == said
        assert not list(tmp_path.rglob("*.live"))


def test_calls_in_exit_handlers(life):
    life("end", "exit-handlers", settings={"LIFE_DESTRUCTOR": "1"})
    [process] = life.processes()
    assert life.recorded([process]) == life.arrived()
    assert [c.args["bytes"] for c in process.calls()] == [1, 2, 4001, 4002]
    assert life.leftovers() == []


@pytest.mark.parametrize("last", ["others", "alone"])
def test_first_thread_ends_by_pthread_exit(life, last):
    """The process ends with its last thread, as it does without us, exit handlers and all."""
    plain = toolchain.environment(life.out, LD_LIBRARY_PATH=life.tiny, LIFE_DESTRUCTOR="1")
    begin = time.monotonic()
    toolchain.run([life.program, "leave-main", last], plain, status=0)
    took = time.monotonic() - begin
    life("leave-main", last, status=0,
         settings={"LIFE_DESTRUCTOR": "1", "GPUPROF_EXIT_WAIT": "60s"}, timeout=50)
    assert time.monotonic() - begin < 2 * took + 30
    [process] = life.processes()
    recorded, arrived = life.recorded([process]), life.arrived()
    assert sorted(recorded.values()) == sorted(arrived.values())
    assert sorted(map(len, arrived.values())) == [2, 2, 3, 6]
    assert recorded == arrived
    assert process.end_reason == 1 and process.counters["stale"] == 0
    assert life.leftovers() == []


def test_standard_live_file_is_removed(life):
    life("calls", settings={"GPUPROF_LIVE": ""})
    [process] = life.processes()
    path = pathlib.Path(process.header.live_path)
    assert path.parent in (pathlib.Path("/dev/shm"), life.out) and not path.exists()


def test_killed_while_starting(life):
    """At whatever point: no file without contents, no live file that nothing leads to."""
    killer = toolchain.build("kill_at.c")
    steps = []
    for step in range(0, 2000, 3):
        out, live = life.folder / f"out{step}", life.folder / f"live{step}"
        live.mkdir()
        settings = {"GPUPROF_OUT": out, "GPUPROF_LIVE": live, "TINY_LOG": ""}
        done = toolchain.run([killer, step, life.program, "calls"], life.env(**settings),
                             status=None)
        if done.returncode == 9:
            pytest.skip(toolchain.NO_TRACING)
        assert done.returncode == 0, done
        if done.stdout == "started\n":
            break
        processes = stream_reader.read_folder(out)
        assert len(list(out.iterdir())) == len(processes) if out.exists() else not processes
        assert {str(path) for path in live.iterdir()} <= {p.header.live_path for p in processes}
        steps.append((len(processes), len(list(live.iterdir()))))
    assert done.stdout == "started\n" and len(steps) > 20
    # In between, for a few instructions: a stream file whose live file is not there yet.
    assert {(0, 0), (1, 1)} <= set(steps) <= {(0, 0), (1, 0), (1, 1)}


def test_no_files_without_names(life):
    """A file system that has none: the files have names from the beginning."""
    shim = toolchain.build("kill_at.c", "-DNO_UNNAMED", "-shared", "-fPIC")
    life("calls", settings={"LD_PRELOAD": f"{shim}:{life.library}"})
    [process] = life.processes()
    assert life.recorded([process]) == life.arrived() and process.header.live_path
    assert life.leftovers() == []


# ---- Descriptors, folders, disks -----------------------------------------------------------------

def test_daemon(life):
    own = life.folder / "own"
    own.mkdir()
    life("daemon", own, settings={"GPUPROF_SEAL": "10ms"})
    for _ in range(300):
        if (own / "done").exists() and not life.leftovers():
            break
        time.sleep(0.05)
    assert (own / "done").exists()
    for i in range(40):
        assert (own / f"own.{i}").read_text() == f"file {i} round 19\n"
    assert life.recorded() == life.arrived()
    assert sum(map(len, life.arrived().values())) == 5 + 3 + 20 * 50


def test_chdir(life):
    env = {"GPUPROF_OUT": "relative/folder", "GPUPROF_SEAL": "10ms", "GPUPROF_LIVE": "live"}
    life("chdir", "5", settings=env, cwd=life.folder)
    life.out = life.folder / "relative" / "folder"
    assert life.recorded() == life.arrived()


def one_line(text):
    return text.count("\n") == 1 and text.startswith("gpuprof: ")


@pytest.mark.parametrize("folder", ["/dev/null/x", "/proc/x", "/sys/kernel/x/y", "x" * 300])
def test_folder_cannot_be_made(life, folder):
    done = life("calls", settings={"GPUPROF_OUT": folder}, stderr=None)
    assert one_line(done.stderr) and folder[:100] in done.stderr
    assert life.leftovers() == []
    assert len(next(iter(life.arrived().values()))) == 6


def test_live_folder_cannot_be_used(life):
    """Then there is no live file; the recording still is whole."""
    life("calls", settings={"GPUPROF_LIVE": "/proc/x"})
    [process] = life.processes()
    [note] = process.said
    assert note.startswith("no live file: ")
    assert process.header.live_path == "" and process.meta["live"] == "memory"
    assert life.recorded([process]) == life.arrived()


def small_disk(folder, size):
    """A tmpfs of that size; unmounted by unmount()."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder],
                          capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("not run: the kernel allows no mount of a tmpfs here")


@pytest.fixture(name="disk")
def fixture_disk(tmp_path):
    folder = tmp_path / "disk"
    yield folder
    subprocess.run(["umount", folder], capture_output=True, check=False)


@pytest.mark.parametrize("size", ["4k", "48k"])
def test_full_disk(life, disk, size):
    small_disk(disk, size)
    life.out = disk / "out"
    done = life("many", "200000", stderr=None,
                settings={"GPUPROF_SEAL": "10ms", "TINY_LOG": "", "GPUPROF_OUT": life.out})
    assert one_line(done.stderr), done.stderr
    whole_prefix(life)
    [process] = life.processes()
    if process.functions:  # every call is an event, or counted as not recorded
        assert process.counters["ended"] == 1
        assert len(process.calls()) + process.counters["unrecorded"] == 200000


def whole_prefix(life):
    """What is on disk can be read, and begins with the first calls."""
    for process in life.processes():
        assert process.torn_bytes == 0
        if not process.functions:  # there was not even room for the first block
            assert not process.blocks
            continue
        sizes = [c.args["bytes"] for c in process.calls() if not c.live]
        assert sizes == list(range(1, len(sizes) + 1))


def test_full_live_disk(life, disk):
    small_disk(disk, "600k")
    life.live = disk
    life("many", "20000", settings={"GPUPROF_LIVE": disk, "TINY_LOG": ""})
    [process] = life.processes()
    assert not process.losses
    [note] = process.said
    assert note.startswith("no live file: ")
    assert [c.args["bytes"] for c in process.calls()] == list(range(1, 20001))


@pytest.mark.parametrize("limit", [0, 100, 20000, 1 << 20])
@pytest.mark.parametrize("ignored", [False, True])
def test_file_size_limit(life, limit, ignored):
    """RLIMIT_FSIZE: neither our stream nor our live file may bring SIGXFSZ upon the program."""
    def prepare():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN if ignored else signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    done = life("many", "60000", stderr=None, preexec_fn=prepare,
                settings={"GPUPROF_SEAL": "10ms", "TINY_LOG": ""})
    assert done.stderr.count("\n") <= 2 and "gpuprof: " in done.stderr or limit >= 1 << 20
    if life.out.exists():
        whole_prefix(life)


