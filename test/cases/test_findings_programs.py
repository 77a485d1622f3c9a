# SPDX-License-Identifier: Apache-2.0
"""Programs with one fault each, and the same work done right (src/faults.py), held against the
simulated CUDA's own log: where their devices' time went, why they stood idle, and at which line."""

import json
import re

import fault_truth as fault
import pytest
import toolchain

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="Python runs natively")

OPTIONS = {"slow-loader": ["--pytorch=names"]}
TOLERANCE = 0.05
TICK_NS = 20_000_000  # the kernel tells when a process began in steps of half of it


def only(cost):
    """Of a program of one process."""
    def of(run):
        process, = run.processes
        return cost(process)
    return of


# What is idle by the log for the reason that the program was made for, the reason, and the place
# if it is no line of the program.
START = "import and the program's own start"
IDLE = {
    "launch-bound": (only(fault.launches), "launch", None),
    "host-bound": (only(fault.own_code), "host", None),
    "sync-in-loop": (only(lambda process: fault.waited(process, "Synchronize")), "sync", None),
    "slow-loader": (only(fault.own_code), "loader",
                    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
    "allocation-churn": (only(lambda process: fault.within(process, "cuMemAlloc", "cuMemFree")),
                         "allocation", None),
    "start-up": (lambda run: run.start_up(run.processes[0]), "start-up", START),
    "straggler": (lambda run: sum(fault.waits(run.processes)), "communication", "rank 2"),
}
SCENES = (*IDLE, "exposed-communication", "pageable-copies", "one-stream", "tiny-kernels",
          "fp32-gemm", "unfused-elementwise", "launch-blocking", "repeated-upload", "hang")


def recorded(run_collector, folder, scene, *words):
    """The run, and its report."""
    folder.mkdir(exist_ok=True)
    run = fault.Run(folder, scene, *words,
                    options=["--backtrace=launch", *OPTIONS.get(scene, [])])
    done = run_collector("report", "--format=json", run.data)
    assert done.returncode == 0, done.stderr
    return run, json.loads(done.stdout)


def check_time(run, told):
    """Where the time went: what the log has; each nanosecond once, and of what is idle not much for
    no reason."""
    by_pid = {process.pid: process for process in run.processes}
    assert sorted(row["pid"] for row in told["gpu_time"]) == sorted(by_pid)
    waits = dict(zip(by_pid, fault.waits(run.processes)))
    for row in told["gpu_time"]:
        process = by_pid[row["pid"]]
        causes = {key: ns for key, ns in row.items()
                  if key.startswith("idle_") and key not in ("idle_ns", "idle_share")}
        assert sum(causes.values()) == row["idle_ns"]
        assert causes["idle_unknown_ns"] <= row["idle_ns"] / 10, causes
        computes, communicates, copies, idle = (
            row[f"{part}_ns"] for part in ("compute", "communication", "copies", "idle"))
        assert computes + communicates + copies + idle == row["window_ns"]
        assert row["stopped_ns"] == 0
        computing, wait = process.computing(), waits[process.pid]
        assert computes == pytest.approx(fault.total(fault.union(computing)), rel=0.001)
        assert copies == pytest.approx(fault.copies_alone(process), rel=0.001, abs=1000)
        alone = fault.alone(process.kernels("nccl"), computing)
        assert communicates + wait == pytest.approx(alone, rel=0.01, abs=TICK_NS / 10)
        stood = fault.total(fault.gaps(process.work)) + run.start_up(process) + wait
        assert idle == pytest.approx(stood + causes["idle_nothing_ns"], rel=0.01, abs=TICK_NS)


@pytest.mark.parametrize("scene", IDLE)
def test_idle_time_is_the_faults(run_collector, tmp_path, scene):
    run, told = recorded(run_collector, tmp_path, scene)
    check_time(run, told)
    cost, cause, place = IDLE[scene]
    rows = [row for row in told["idle"] if row["cause"] == cause]
    assert sum(row["total_ns"] for row in rows) == pytest.approx(cost(run), rel=TOLERANCE)
    assert rows[0]["place"] == place if place else \
        re.fullmatch(r".* \((faults.py:\d+)\)", rows[0]["place"])[1] in run.lines


@pytest.mark.parametrize("scene", [scene for scene in SCENES if scene not in (*IDLE, "hang")])
def test_devices_time(run_collector, tmp_path, scene):
    check_time(*recorded(run_collector, tmp_path, scene))


@pytest.mark.parametrize("scene", SCENES)
def test_what_is_done_right(run_collector, tmp_path, scene):
    run, told = recorded(run_collector, tmp_path, scene, "healthy")
    check_time(run, told)
    assert told["open_calls"] == []
