# SPDX-License-Identifier: Apache-2.0
"""What a kill, or a full disk, took of the GPU's work is not recorded, and not idle; what hangs, or
stands still, is told as ever."""

import json
import subprocess
import time

import conftest
import pytest
import stream_reader
import toolchain
from stream_reader import CALL, PAUSE, TYPE_NUMBERS
from test_idle import MAIN, NO_CUPTI, STEP_DOWN, US, Script, check_sums
from test_partial import check_equal, make_parts

SECOND = 1_000_000  # us
MS = 1000 * US      # ns


def without_end(folder):
    """The recording of a process that was killed has no last block, which says how it ended."""
    for path in folder.iterdir():
        data = path.read_bytes()
        last = stream_reader.read_blocks(data, stream_reader.read_header(data).bytes)[0][-1]
        path.write_bytes(data[:last.stored_at - 88])
    return folder


def gpu_time(run_verb, folder, *words):
    done = run_verb("report", "--format=json", "--table=gpu_time,idle", *words, folder)
    return check_sums(json.loads(done.stdout))["gpu_time"]


def behind(s, us):
    """So long behind the end of the last work, which is 104 us behind its call."""
    s.now = s.last + 104 + us


def launches(s, us=300, function="cudaLaunchKernel", flags=0):
    """Five calls, the first so long behind the work, then one that makes none: until 535 us."""
    behind(s, us)
    for _ in range(5):
        s.call(function, 5, flags=flags)
        s.now += 50
    s.call("cudaFree", 10)


def launched_before(s):
    """Before the end of the work, whose launch is the first of two."""
    s.now = s.last + 50
    s.call("cudaLaunchKernel", 5)
    behind(s, 200)
    s.call("cudaFree", 10)


def launched_and_stood_still(s):
    launches(s)
    s.now += 3 * SECOND
    s.call("cudaFree", 10)


def stopped(s):
    """From there on nothing was recorded in any case."""
    launches(s)
    s.add(PAUSE, MAIN, s.now + 10, 0, args=(1,))
    s.add(PAUSE, MAIN, s.now + 210, 0, args=(0,))
    s.now += 300
    s.call("cudaFree", 10)


def without_rows(s):
    """--overhead-max has given them up 10 us behind the work."""
    s.add(STEP_DOWN, MAIN, s.last + 104 + 10, 0, code=NO_CUPTI, text="CUPTI off")
    launches(s)


def on_another_stream(s):
    """Of the second of two launches there is work, so that of the first there would be, too."""
    behind(s, 10)
    s.call("cudaLaunchKernel", 5)
    s.launch(lasts=100)
    behind(s, 40)
    s.call("cudaFree", 10)


# By scene: what is not recorded, and the idle time behind the last work, in us
SCENES = {
    "launched": (launches, 285, 300),
    "a graph": (lambda s: launches(s, function="cudaGraphLaunch"), 285, 300),
    "captured": (lambda s: launches(s, flags=1), 0, 585),
    "nested": (lambda s: launches(s, flags=2), 0, 585),
    "no launch": (lambda s: launches(s, function="cudaFree"), 0, 585),
    "launched before": (launched_before, 210, 0),
    "stood still": (launched_and_stood_still, 220, 300 + 65 + 3 * SECOND + 10),
    "stopped": (stopped, 285 + 310, 300),
    "without rows": (without_rows, 575, 10),
    "another stream": (on_another_stream, 0, 50),
}


@pytest.mark.parametrize("name", SCENES)
def test_what_a_kill_took_is_not_idle(name, run_verb, make_records):
    """Behind the last work that is known, from the first launch of which there is none."""
    scene, lost, nothing = SCENES[name]
    s = Script()
    s.launch(lasts=100)
    scene(s)
    folder = make_records(s.text())
    [ended] = gpu_time(run_verb, folder)
    without_end(folder)
    [row] = gpu_time(run_verb, folder)
    assert (row["stopped_ns"], row["idle_nothing_ns"]) == (lost * US, nothing * US)
    if name not in ("stopped", "without rows"):
        assert ended["stopped_ns"] == 0
    assert ended["idle_nothing_ns"] == row["idle_nothing_ns"] + row["stopped_ns"] - \
        ended["stopped_ns"]
    assert {key: row[key] for key in row if key not in ("stopped_ns", "idle_nothing_ns", "idle_ns",
                                                        "idle_share")} == \
        {key: ended[key] for key in ended if key not in ("stopped_ns", "idle_nothing_ns", "idle_ns",
                                                         "idle_share")}


def test_pieces_and_parts_of_it(run_verb, make_records):
    """They add up to the whole, and parts are as the whole."""
    scripts = []
    for rank in range(2):
        s = Script(rank)
        s.launch(lasts=100)
        launches(s, 300 + 100 * rank)
        scripts.append(s)
    folder = without_end(make_records(line for s in scripts for line in s.text()))
    whole = gpu_time(run_verb, folder)
    assert [row["stopped_ns"] for row in whole] == [285 * US] * 2
    cuts = ["0", "350us", "500us", "600us", "10s"]
    sums = {}
    for begin, end in zip(cuts, cuts[1:]):
        for row in gpu_time(run_verb, folder, f"--from={begin}", f"--to={end}"):
            sums[row["pid"]] = sums.get(row["pid"], 0) + row["stopped_ns"]
    assert sums == {row["pid"]: 285 * US for row in whole}
    check_equal(run_verb, folder, make_parts(run_verb, folder, 2)[::-1])


@pytest.mark.parametrize("is_killed", [True, False])
def test_nobody_else_is_blamed_for_it(is_killed, run_verb, make_records):
    """Rank 2 comes 100 us late to each of ten collectives, rank 1 by 20 us; of the last six of rank
    2 there are no kernels. If it was killed, they may be lost; else it took no part in them."""
    scripts = []
    for rank, late in enumerate((0, 20, 100)):
        s = Script(rank)
        for n in range(10):
            s.now = 1_000_000 + 1000 * n + late
            if rank == 2 and n >= 4:
                s.call("cudaLaunchKernel", 5)
            else:
                s.launch(after=10, lasts=300 - late, kernel=3)
        scripts.append(s)
    folder = make_records(line for s in scripts for line in s.text())
    if is_killed:
        without_end(folder)
    made = json.loads(run_verb("report", "--format=json", "--table=arrivals,ranks,idle",
                               folder).stdout)
    [row] = made["arrivals"]
    waits = {row["place"]: row["total_ns"] // US for row in made["idle"]
             if row["cause"] == "communication"}
    assert (row["rank"], row["last"]) == ("2", 4)
    assert made["arrivals_missed"] == {"kernel": 0, "number": 0, "time": 0, "piece": 0,
                                       "lost": 6 * is_killed}
    assert row["count"] == (4 if is_killed else 10)
    assert waits == {"rank 2": 4 * 180, ("a rank, maybe one that is not here" if is_killed
                                         else "rank 1"): 6 * 20}
    check_equal(run_verb, folder, make_parts(run_verb, folder, 3)[::-1])


def test_it_is_said_how_much_was_recorded(run_verb, make_records):
    s = Script()
    s.launch(lasts=100)
    launches(s)
    folder = without_end(make_records(s.text()))
    [row] = gpu_time(run_verb, folder)
    share = 100 - 100 * row["stopped_ns"] / row["window_ns"]
    assert f"\n  recorded   {share:.1f}% of the GPUs' time; shares refer to that" in \
        run_verb("report", folder).stdout or share > 99.9


# ---- on the simulated CUDA -----------------------------------------------------------------------

def killed(library, tmp_path, scene, **settings):
    """What is recorded of it; its kernels last some 20 ms."""
    env = toolchain.environment(tmp_path / "data", library, **{
        "GPUPROF_GPU": "on", "GPUPROF_CUPTI": toolchain.SIM / "libcupti.so.12",
        "GPUPROF_LIVE": tmp_path, "GPUPROF_GPU_FLUSH": "100ms", "SIMCUDA_KERNEL_NS": 20_000_000,
        "SIMCUDA_ENDLESS": "endless", **settings})
    program = toolchain.build("killed_work.c", *toolchain.runtime(12), *toolchain.DRIVER)
    with conftest.Program([program, scene], env=env, text=True,
                          stdout=subprocess.PIPE) as running:
        assert running.stdout.readline() == "now\n"
        time.sleep(1.3 if scene == "hangs" else 0.05)
        if scene != "ends":
            running.kill()
    [process] = stream_reader.read_folder(tmp_path / "data")
    return process


@pytest.mark.parametrize("scene", ["ahead", "waits", "hangs", "polls", "ends"])
def test_a_program_that_is_killed(library, tmp_path, run_verb, scene):
    """One that works on did so until its end; of one that hangs, or stands still, what CUPTI kept
    behind the kernel that does not end is a moment; what ends by itself has lost nothing."""
    process = killed(library, tmp_path, scene)
    kernels = process.of_type(TYPE_NUMBERS["kernel"])
    calls = process.of_type(CALL)
    launched = [r for r in calls if "Launch" in process.functions[r.code].symbol]
    known = {r.correlation for r in kernels}
    made = max(r.begin for r in launched if r.correlation in known)
    lost = [r.begin for r in launched if r.begin > made]
    begin = max([min(lost, default=0), *(r.end for r in kernels)])
    end = max(r.end for r in calls)
    [row] = gpu_time(run_verb, tmp_path / "data")
    if scene in ("ahead", "waits"):
        assert abs(row["stopped_ns"] - (end - begin if lost else 0)) < 20 * MS
        assert row["idle_nothing_ns"] < 700 * MS  # of which 600 it rests
    if scene == "ahead":
        assert row["stopped_ns"] > 500 * MS
    elif scene == "polls":
        assert row["stopped_ns"] < 300 * MS and row["idle_nothing_ns"] > 1000 * MS
    elif scene != "waits":
        assert row["stopped_ns"] == 0
