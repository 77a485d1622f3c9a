# SPDX-License-Identifier: Apache-2.0
"""A program that hangs, running and killed: in which call, from where, and what of the device's
work had not finished. Where it hangs the program says itself, before it does."""

import json
import re
import shlex
import shutil
import signal
import subprocess

import conftest
import launched
import pytest
import stream_reader
import toolchain
from test_python import python_flags

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="Python runs natively")

SCRIPT = toolchain.SOURCES / "hang_python.py"
PYTHON = "/usr/bin/python3"


class Hung:
    """A program that hangs, under gpuprof."""

    def __init__(self, command, library, tmp_path, **settings):
        self.data = tmp_path / "data"
        env = toolchain.environment(self.data, library, **{
            "GPUPROF_GPU": "on", "GPUPROF_CUPTI": toolchain.SIM / "libcupti.so.12",
            "GPUPROF_LIVE": tmp_path, "SIMCUDA_ENDLESS": "endless",
            "GPUPROF_SILENCE": "off", **settings})
        self.program = conftest.Program([str(word) for word in command], env=env, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.said = []
        for line in self.program.stdout:
            if line.strip() == "hangs":
                break
            self.said.append(line.rstrip("\n").split("\t"))

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.program.kill()
        self.program.communicate()

    def read(self):
        [process] = stream_reader.read_folder(self.data)
        return process


def dumped(collector, data):
    """The lines of the dump; of the call that is open, its words."""
    lines = subprocess.run([collector, "dump", data], capture_output=True, text=True,
                           check=False, timeout=180).stdout.splitlines()
    opened = [line for line in lines if line.startswith("call ") and line.endswith(" open")]
    return lines, opened


def frames_of(lines, number):
    """(file, function, line) of a stack's Python frames, innermost first; None: another frame."""
    places = {}
    for line in lines:
        if line.startswith("python "):
            text = json.loads(re.search(r'text=(".*?(?<!\\)")', line)[1])
            file, function = text.split("\0")
            places[re.search(r"location=(\d+)", line)[1]] = \
                [file, function.rpartition(".")[2], re.search(r" line=(\d+)", line)[1]]
    [stack] = {re.search(r"frames=(\S+)", line)[1] for line in lines
               if re.match(rf"stack .*\bstack={number} ", line)}
    return [places[word.removeprefix("python:")] if word.startswith("python:") else None
            for word in stack.split(",")]


@pytest.mark.parametrize("scene, number", [("main", signal.SIGKILL), ("thread", signal.SIGTERM)])
def test_where_python_hangs(library, collector, tmp_path, scene, number):
    """Its frames are read while it hangs, by default, and nothing of them is lost by a kill."""
    with Hung([PYTHON, SCRIPT, scene, "first", "endless", "behind"], library, tmp_path) as hung:
        def has_stack():
            return any("stack=" in line for line in dumped(collector, hung.data)[1])
        launched.wait_until(has_stack, 120)
        running = dumped(collector, hung.data)
        hung.program.send_signal(number)
        hung.program.wait()
        killed = dumped(collector, hung.data)
    for lines, opened in (running, killed):
        [call] = opened
        assert call.startswith("call cudaStreamSynchronize ")
        assert frames_of(lines, re.search(r" stack=(\d+)", call)[1]) == hung.said


@pytest.fixture(name="extensions", scope="module")
def fixture_extensions(tmp_path_factory):
    """The folder of the module python_cuda."""
    folder = tmp_path_factory.mktemp("extensions")
    module = toolchain.build("python_cuda.c", *python_flags(), *toolchain.runtime(12))
    (folder / "python_cuda.abi3.so").symlink_to(module)
    return folder


@pytest.mark.parametrize("scene", ["wait_for", "wait_held"])
@pytest.mark.parametrize("backtrace", ["", "sync"])
def test_where_an_extension_hangs(library, collector, extensions, tmp_path, scene, backtrace):
    """With the GIL or without: the line of Python that called it; where stacks of such calls are
    taken, the extension's own line, and that one behind it."""
    with Hung([PYTHON, SCRIPT, scene, "endless"], library, tmp_path, PYTHONPATH=extensions,
              GPUPROF_BACKTRACE=backtrace) as hung:
        def is_told():
            call = report(collector, hung.data)[1]
            return call and call.get("line") and call["lasted_ns"] > 1_200_000_000
        launched.wait_until(is_told, 120)
        hung.program.kill()
        hung.program.wait()
        found, call = report(collector, hung.data)
    _, function, line = hung.said[0]
    python = f"{function} ({SCRIPT.name}:{line})"
    source = (toolchain.SOURCES / "python_cuda.c").read_text().splitlines()
    [number] = [number for number, text in enumerate(source, 1) if text.endswith("// waits here")]
    where = f"synchronize (python_cuda.c:{number})" if backtrace else python
    assert call["line"] == call["stack"][0] == where and python in call["stack"]
    assert found["findings"][0]["id"] == "hang" and found["findings"][0]["where"] == where

SECOND_NS = 1_000_000_000


def hang_work():
    return toolchain.build("hang_work.c", *toolchain.runtime(12), *toolchain.DRIVER)


def test_where_c_hangs(library, collector, tmp_path):
    """The stack that --backtrace has taken of each call at its begin."""
    with Hung([hang_work(), "kernel"], library, tmp_path, GPUPROF_BACKTRACE="sync") as hung:
        def is_open():
            return any("cudaStreamSynchronize" in line
                       for line in dumped(collector, hung.data)[1])
        launched.wait_until(is_open, 120)
        hung.program.kill()
        hung.program.wait()
        [call] = [call for call in hung.read().of_type(stream_reader.CALL)
                  if call.flags & stream_reader.OPEN]
        assert hung.read().meta["env.GPUPROF_BACKTRACE"] == "sync"  # what runs again asks for it
        assert call.stack and f" stack={call.stack} " in dumped(collector, hung.data)[1][0]
        done = subprocess.run([collector, "report", "--by=stack", hung.data], check=False,
                              capture_output=True, text=True, timeout=180)
    names = re.findall(r"\b(wait_for_kernel|main) \(hang_work", done.stdout)
    assert names[:2] == ["wait_for_kernel", "main"], done.stdout


def test_names_are_looked_up_for_who_sees_them(library, collector, tmp_path):
    """That its program is gone is told where the call is shown, with any number of processors."""
    program = shutil.copy(hang_work(), tmp_path / "gone")
    with Hung([program, "kernel"], library, tmp_path, GPUPROF_BACKTRACE="sync") as hung:
        launched.wait_until(lambda: report(collector, hung.data)[1], 120)
        hung.program.kill()
        hung.program.wait()
    (tmp_path / "gone").unlink()
    for table, is_told in (("functions", 0), ("ranks,arrivals", 0), ("open_calls", 1)):
        for jobs in ("-j1", "-j2"):
            done = subprocess.run([collector, "report", jobs, "--keep-live", f"--table={table}",
                                   hung.data], capture_output=True, text=True, check=False,
                                  timeout=180)
            assert done.stderr.count("symbols of 1 module: gone") == is_told, (jobs, done.stderr)


def report(collector, data):
    """As JSON; the longest of the open calls, or None."""
    done = subprocess.run([collector, "report", "--keep-live", "--format=json", data], timeout=180,
                          capture_output=True, text=True, check=False)
    found = json.loads(done.stdout) if done.stdout else {"open_calls": []}
    return found, found["open_calls"][0] if found["open_calls"] else None


def hung_report(collector, hung):
    """Once its call has been open for long, running, and then killed."""
    def is_hung():
        call = report(collector, hung.data)[1]
        return call and call["lasted_ns"] > 1_200_000_000
    launched.wait_until(is_hung, 120)
    running = report(collector, hung.data)
    hung.program.kill()
    hung.program.wait()
    return running, report(collector, hung.data)


def rows(found, *states):
    return [(row.get("kernel", row["function"]), row["launches"], row["state"])
            for row in found["unfinished"] if row["state"] in states]


STACKS = "--backtrace=launch,library,sync,copy,alloc"

SCENES = {
    "kernel": ({}, "cudaStreamSynchronize", [("endless(float*)", 2, "waited for")]),
    "reduce": ({"SIMCUDA_ENDLESS": "AllReduce"}, "cudaStreamSynchronize",
               [("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 2, "waited for")]),
    "malloc": ({"SIMCUDA_FAIL": "cudaMalloc:1=hang"}, "cudaMalloc", []),
    "value": ({}, "cudaStreamSynchronize", []),
    "host": ({}, "cudaStreamSynchronize", [("cudaLaunchHostFunc", 3, "waited for")]),
    "event": ({}, "cudaEventSynchronize", [("endless(float*)", 1, "waited for")]),
}


@pytest.mark.parametrize("scene", SCENES)
def test_what_had_not_finished(library, collector, tmp_path, scene):
    settings, function, expected = SCENES[scene]
    with Hung([hang_work(), scene], library, tmp_path, **settings) as hung:
        for found, call in hung_report(collector, hung):
            assert call["function"] == function and len(found["open_calls"]) == 1
            assert found["findings"][0]["id"] == "hang"
            assert found["findings"][0]["next"] == shlex.join(  # it has no stack
                ["gpuprof", "run", STACKS, str(hang_work()), scene])
            waited = rows(found, "waited for", "device not recorded")
            if scene == "host":  # the record of the kernel before it may have come
                waited = [(name, max(count, 3), state) for name, count, state in waited]
            assert waited == expected
            assert all(row["age_ns"] >= call["lasted_ns"] for row in found["unfinished"])
            # Of the other stream, which has ended, the record may lie in CUPTI's buffer.
            assert set(rows(found, "may have ended")) <= {("first(float*)", 1, "may have ended")}


def test_how_to_get_its_stack(library, collector, tmp_path):
    with Hung([hang_work(), "malloc"], library, tmp_path,
              SIMCUDA_FAIL="cudaMalloc:1=hang") as hung:
        for found, _ in hung_report(collector, hung):
            assert f" {STACKS} " in found["findings"][0]["next"]


def test_who_works_is_in_a_call(library, collector, tmp_path):
    """What has been open for less than a second is no news of a program that runs."""
    with Hung([hang_work(), "kernel"], library, tmp_path) as hung:
        text = subprocess.run([collector, "report", hung.data], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        def lasted_ns():
            call = report(collector, hung.data)[1]
            return call["lasted_ns"] if call else 0
        assert "\n  open  " not in f"\n{text}" or lasted_ns() >= SECOND_NS
        launched.wait_until(lambda: lasted_ns() >= SECOND_NS, 120)
        text = subprocess.run([collector, "report", hung.data], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        assert "\n  open  " in f"\n{text}"


def test_what_had_not_finished_without_the_device(library, collector, tmp_path):
    with Hung([hang_work(), "kernel"], library, tmp_path, GPUPROF_GPU="off") as hung:
        for found, _ in hung_report(collector, hung):
            assert rows(found, "waited for", "may have ended", "device not recorded") == \
                [("endless(float*)", 2, "device not recorded")]


@pytest.mark.parametrize("number", [signal.SIGALRM, signal.SIGTERM, signal.SIGUSR1])
def test_a_watchdog_ends_it(library, collector, tmp_path, number):
    """By _exit in a signal handler on the thread that hangs; unless that has left the call."""
    with Hung([hang_work(), "kernel"], library, tmp_path) as hung:
        def is_hung():
            call = report(collector, hung.data)[1]
            return call and call["lasted_ns"] > 1_200_000_000
        launched.wait_until(is_hung, 120)
        hung.program.send_signal(number)
        assert hung.program.wait() == 7
        assert hung.read().end_reason == 2
        found, call = report(collector, hung.data)
    left = list(tmp_path.glob("gpuprof*"))
    if number == signal.SIGUSR1:
        assert not left and not found["open_calls"]
        assert hung.read().counters["stale"] == 1
        [sync] = [row for row in found["functions"] if row["function"] == "cudaStreamSynchronize"]
        assert sync["calls"] == 1
    else:
        assert len(left) == 1 and len(found["open_calls"]) == 1
        assert call["function"] == "cudaStreamSynchronize" and call["lasted_ns"] > 1_200_000_000
        assert rows(found, "waited for") == [("endless(float*)", 2, "waited for")]


def test_a_rank_that_does_not_come(library, collector, tmp_path):
    """The one that waits has the collective in its stream; the other has not, and no call open."""
    command = [hang_work(), "reduce"]
    with Hung(command, library, tmp_path, SIMCUDA_ENDLESS="AllReduce", RANK=0) as waits, \
            Hung(command, library, tmp_path, SIMCUDA_ENDLESS="AllReduce", RANK=1) as stays:
        hung_report(collector, waits)
        launched.wait_until(lambda: report(collector, waits.data)[0]["overview"]["quiet"], 120)
        found, call = report(collector, waits.data)
        stays.program.kill()
        stays.program.wait()
        killed, _ = report(collector, waits.data)
    for each in (found, killed):
        assert call["pid"] == waits.program.pid and len(each["open_calls"]) == 1
        assert [row["rank"] for row in each["overview"]["quiet"]] == ["1"]
        assert [(row["pid"], row["kernel"]) for row in each["unfinished"]
                if row["state"] == "waited for"] == \
            [(waits.program.pid, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_host_code_that_hangs(library, collector, tmp_path, number):
    """No record tells of it but that there are none: in reports and `top`, alive and ended."""
    with Hung([hang_work(), "outside"], library, tmp_path, RANK=3,
              GPUPROF_BACKTRACE="sync") as hung:
        def is_quiet():
            return report(collector, hung.data)[0]["overview"]["quiet"]
        launched.wait_until(is_quiet, 120)
        [quiet] = is_quiet()
        top = [subprocess.run([collector, "top", "--once", *words, hung.data], check=True,
                              capture_output=True, text=True, timeout=180).stdout
               for words in ([], ["--format=json"])]
        hung.program.send_signal(number)
        hung.program.wait()
        [ended] = is_quiet()
        text = subprocess.run([collector, "report", hung.data], capture_output=True, text=True,
                              check=True, timeout=180).stdout
    [row] = json.loads(top[1])["processes"]
    assert row["quiet_seconds"] > 5 and row["open_call"] is None
    assert re.search(r"recording .* no call for [\d.]+ s$", top[0].splitlines()[1])
    for each, until in (quiet, "now"), (ended, "killed" if number == signal.SIGKILL else "end"):
        assert each["until"] == until and each["function"] == "cudaStreamSynchronize"
        assert (each["rank"], each["pid"]) == ("3", hung.program.pid)
        assert each["line"].startswith("wait_outside (hang_work.c:")
    assert quiet["since_ns"] == ended["since_ns"] < 60e9
    assert 5e9 <= quiet["for_ns"] < ended["for_ns"] < quiet["for_ns"] + 120e9
    until = {"killed": "it was killed", "end": "its end"}[ended["until"]]
    assert re.match(rf"  quiet      no call for [\d.]+ s until {until}, in rank 3: its last call "
                    r"was cudaStreamSynchronize, at [\d.]+ \w+; its newest stack is at "
                    r"wait_outside", text)


LAUNCHES = [f"call cudaLaunchKernel {second}000000000 1000 {second} 0 0" for second in range(1, 61)]
QUIET = {  # name: what it did, and for how many seconds it is said to have made no call
    "works": ([*LAUNCHES, "push 67500000000 idle"], 7.499999),
    "worked before": ([*LAUNCHES, "push 64500000000 idle"], None),
    "is often": ([LAUNCHES[0], LAUNCHES[8], "push 16500000000 idle"], None),
    "for longer": ([LAUNCHES[0], LAUNCHES[8], "push 17500000000 idle"], 8.499999),
    "launches nothing": (["call cudaMalloc 1000 1000 1 0 4096", "push 9000000000 idle"], None),
}


@pytest.mark.parametrize("what", QUIET)
def test_who_makes_no_call(make_stacks, run_verb, what):
    lines, seconds = QUIET[what]
    data = make_stacks("process 5", *lines)
    said = json.loads(run_verb("report", "--format=json", data).stdout)["overview"]["quiet"]
    assert [(row["rank"], row["for_ns"] / 1e9) for row in said] == [("5", seconds)][:bool(seconds)]
    text = run_verb("report", data).stdout
    assert text.count("  quiet  ") == bool(seconds)
    assert not seconds or " in rank 5: its last call was cudaLaunchKernel, at " in text
    piece = run_verb("report", "--to=5", data).stdout  # not all of it is read
    assert "  quiet  " not in piece and "  wall time" in piece


def test_the_likeliest_is_told(library, collector, tmp_path):
    """Not the first of those that have no record, if its like has ended before: its line, too."""
    command = [PYTHON, SCRIPT, "main", "first", "waited_for", "first", "endless", "behind"]
    with Hung(command, library, tmp_path) as hung:
        launched.wait_until(lambda: (report(collector, hung.data)[1] or {}).get("line"), 120)
        hung.program.kill()
        hung.program.wait()
        found, call = report(collector, hung.data)
        text = subprocess.run([collector, "report", hung.data], capture_output=True, text=True,
                              check=True, timeout=180).stdout
    assert rows(found, "waited for") == [("endless", 3, "waited for")]
    file, function, line = hung.said[0]
    assert call["line"] == f"{function} ({SCRIPT.name}:{line})" and call["stack"][0] == call["line"]
    assert [line.strip() for line in text.splitlines()].index(call["line"]) > 0
    assert "endless, or another of 3, on stream " in text
    assert file == str(SCRIPT)
