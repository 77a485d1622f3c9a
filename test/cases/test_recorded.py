# SPDX-License-Identifier: Apache-2.0
"""What is recorded now (inject/record/recorded.h): who asked for less, in every pair and order."""

import bisect
import collections
import subprocess

import conftest
import cupti_client as cupti
import pytest
import stream_reader
import toolchain
from stream_reader import CALL, NOTE, PAUSE, STEP_DOWN

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="built with the library's archives")

CALLS, ROUNDS = 40, 400
PHASE_ARGUMENT = {"cudaLaunchKernel": 3, "cudaEventRecord": 0, "cudaMalloc": 1}
PROGRAM, CLIENT, GOVERNOR, CONTROL = range(4)


@pytest.fixture(name="asked", scope="module")
def fixture_asked(tmp_path_factory):
    target = tmp_path_factory.mktemp("asked") / "asked"
    archives = [conftest.BUILD / "pic" / name for name in ("libinject.a", "libformats.a")]
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-g", "-D_GNU_SOURCE",
                    f"-I{conftest.ROOT}/inject", f"-I{conftest.ROOT}/formats",
                    *(toolchain.SOURCES / f"{part}.c" for part in
                      ("asked", "stress_calls", "stress_finish")), "-lc", *archives, "-o", target,
                    "-pthread", "-l:libzstd.a"], check=True)
    return target


def run(asked, tmp_path, *arguments):
    done = subprocess.run([asked, *arguments], capture_output=True, text=True, check=False,
                          timeout=60, env={"GPUPROF_OUT": str(tmp_path / "out"),
                                           "GPUPROF_LIVE": str(tmp_path), "GPUPROF_WAIT": "60s"})
    assert done.returncode == 3 and done.stderr == ""
    lines = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    return lines, stream_reader.read_folder(tmp_path / "out")


def changes(process):
    """asker -> [(time, is it off?)], as the stream states it."""
    stated = collections.defaultdict(list)
    for record in sorted(process.records, key=lambda r: r.begin):
        if record.type == PAUSE:
            stated[CONTROL if record.args[1] else PROGRAM].append((record.begin, record.args[0]))
        elif record.type == NOTE:
            stated[CLIENT].append((record.begin, int(b"another client" in record.text)))
        elif record.type == STEP_DOWN:
            stated[GOVERNOR].append((record.begin, int(record.code == 1)))
    return stated


def is_off(stated, time):
    i = bisect.bisect(stated, (time, 2))
    return stated[i - 1][1] if i else 0


def check(process, phases):
    """Every call is recorded, or of a time that is stated as off, or counted as passed by."""
    stated = changes(process)
    counts = collections.defaultdict(collections.Counter)
    for call in process.of_type(CALL):
        symbol = process.functions[call.code].symbol
        number = call.args[PHASE_ARGUMENT[symbol]]
        counts[number][symbol] += 1
        for asker, word in enumerate(phases[number][:4]):
            assert is_off(stated[asker], call.begin) == bool(word), (number, asker)
    passed = 0
    for number, (by_program, client, governor, control, turned) in phases.items():
        program = by_program | control  # which ask for the same
        count = counts.pop(number, collections.Counter())
        assert count["cudaMalloc"] == CALLS
        assert count["cudaEventRecord"] == (0 if program or governor else CALLS)
        if program or not governor:
            assert count["cudaLaunchKernel"] == (0 if program else CALLS)
        else:
            assert count["cudaLaunchKernel"] < CALLS
            passed += 2 * CALLS - count["cudaLaunchKernel"]
        assert turned == program | client | governor
    assert not counts and process.counters["passed_by"] == passed and not process.losses
    for asker, times in stated.items():  # on and off in turn: each change is stated, and once
        assert [off for _, off in times] == [1 - i % 2 for i in range(len(times))], asker


def test_every_pair(asked, tmp_path):
    lines, processes = run(asked, tmp_path)
    by_process = collections.defaultdict(dict)
    for pid, number, *words in lines:
        by_process[pid][number] = words
    assert len(processes) == 25 == len(by_process)
    for process in processes:
        check(process, by_process[process.header.pid])
    parent = max(processes, key=lambda p: len(by_process[p.header.pid]))
    assert {asker: len(times) for asker, times in changes(parent).items()} == \
        {PROGRAM: 24, CLIENT: 24, GOVERNOR: 24, CONTROL: 24}
    for process in processes:  # what the program said holds in a child; the rest was the parent's
        first, second = [by_process[process.header.pid][number]
                         for number in sorted(by_process[process.header.pid])[:2]]
        if process is not parent:
            before = by_process[parent.header.pid][min(by_process[process.header.pid]) - 100001]
            assert first == [before[PROGRAM], 0, 0, 0, before[PROGRAM]]
            assert second in ([0, 0, 0, 0, 0], first)


def test_race(asked, tmp_path):
    """Askers at the same time: when all have returned, the sum holds, and the stream says so."""
    lines, [process] = run(asked, tmp_path, "race", str(ROUNDS))
    stated = changes(process)
    assert len(lines) == ROUNDS and len({asked_for for asked_for, *_ in lines}) > 4
    for asked_for, off, turned, is_paused in lines:
        assert asked_for == off == turned and is_paused == (asked_for & 1)
    bits = {PROGRAM: 1, CLIENT: 4, GOVERNOR: 8}
    calls = [c for c in process.of_type(CALL) if "Malloc" in process.functions[c.code].symbol]
    assert len(calls) == (1 + 2 * ROUNDS) * CALLS
    for i, call in enumerate(calls):
        if i >= CALLS and i // CALLS % 2 == 0:  # between two rounds
            assert call.args[1] == lines[i // CALLS // 2 - 1][0]
            for asker, bit in bits.items():
                assert is_off(stated[asker], call.begin) == bool(call.args[1] & bit), (i, asker)
    assert not process.losses


def test_overtaken(asked, tmp_path):
    """What another one asks for and takes back, while a feature turns, is not what it leaves out
    from then on."""
    lines, [process] = run(asked, tmp_path, "overtaken")
    assert len(lines) == 8 and all(asked_for == turned for asked_for, turned in lines), lines
    assert not process.losses


def test_inside_what_is_left_out(asked, tmp_path):
    """A call that was left out stays so to its end, with what CUDA calls inside it, though
    recording goes on in its middle; what the program itself calls there is recorded."""
    lines, [process] = run(asked, tmp_path, "inner")
    counts = collections.Counter((call.symbol, call.args["event"]) for call in process.calls()
                                 if "EventRecord" in call.symbol)
    numbers = [number for number, _ in lines]
    assert len(numbers) == 21
    expected = {("cudaEventRecord", 200): 1}
    for number in numbers:
        expected["cudaEventRecord", 200 + number] = 2
        case = (number - 1) % 7
        if case == 6 or (case == 1 and number != 9):  # 9: by callbacks alone
            expected["cudaEventRecord", 100 + number] = 1
    assert counts == expected
    assert lines == [(number, 1) for number in numbers], "a thread stays on its long way"
    assert not process.losses


@pytest.mark.parametrize("static, rest", [(False, []), (True, []), (True, ["rest"])],
                         ids=["hooks", "callbacks", "callbacks that were off"])
def test_pause_beside_captures(library, tmp_path, static, rest):
    """While recording is stopped and some stream captures, events are recorded. CUDA's own part of
    a call that was left out before the capture began is none."""
    program = cupti.build(source="gpu_work.c", static=static)
    env = toolchain.environment(tmp_path / "out", library, GPUPROF_LIVE=tmp_path, GPUPROF_GPU="on",
                                GPUPROF_GPU_FLUSH="10ms")
    toolchain.run([program, "init", "launch", "stop", *rest, "beside-captures"], env, status=3)
    process, = stream_reader.read_folder(tmp_path / "out")
    counts = collections.Counter(call.symbol for call in process.calls())
    del counts["cudaLaunchKernel"], counts["cuLaunchKernel"]
    assert counts.pop("cudaEventRecord") > 0
    # A call that began while callbacks were off may show its own part, one in each thread.
    assert counts.pop("cuEventRecord", 0) <= (4 if rest else 0)
    assert counts == {"cudaStreamBeginCapture": 500, "cudaStreamEndCapture": 500}


@pytest.mark.parametrize("front", ["auto", "cupti", "static"])
def test_starts_beside_calls(library, tmp_path, front):
    """Recording goes on in the middle of calls: what CUDA calls inside them is no call."""
    program = cupti.build(source="gpu_work.c", static=front == "static")
    env = toolchain.environment(tmp_path / "out", library, GPUPROF_LIVE=tmp_path, GPUPROF_GPU="on",
                                GPUPROF_FRONT="auto" if front == "static" else front)
    toolchain.run([program, "init", "launch", "beside-starts"], env, status=3)
    process, = stream_reader.read_folder(tmp_path / "out")
    counts = collections.Counter(call.symbol for call in process.calls())
    assert counts["cudaEventRecord"] and not counts["cuEventRecord"]
