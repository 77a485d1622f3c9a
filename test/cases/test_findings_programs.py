# SPDX-License-Identifier: Apache-2.0
"""Programs with one fault each, and the same work done right (src/faults.py), held against the
simulated CUDA's own log: where their devices' time went, why they stood idle, and at which line."""

import json

import fault_truth as fault
import pytest
import toolchain

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="Python runs natively")

OPTIONS = {"slow-loader": ["--pytorch=names"]}
LABEL = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
TOLERANCE = 0.05


def only(cost):
    """Of a program of one process."""
    def of(run):
        process, = run.processes
        return cost(process)
    return of


# What is idle by the log for the reason that the program was made for, and the reason.
IDLE = {
    "launch-bound": ("launch", only(fault.launches)),
    "host-bound": ("host", only(fault.own_code)),
    "sync-in-loop": ("sync", only(lambda process: fault.waited(process, "Synchronize"))),
    "slow-loader": ("loader", only(fault.own_code)),
    "allocation-churn": ("allocation", only(lambda process: fault.overlap(
        fault.calls_of(process, "cuMemAlloc", "cuMemFree"), fault.gaps(process.work)))),
    "start-up": ("start-up", lambda run: run.start_up(run.processes[0])),
}
SCENES = (*IDLE, "pageable-copies", "tiny-kernels", "one-stream", "fp32-gemm",
          "unfused-elementwise", "repeated-upload", "launch-blocking")


def recorded(run_collector, folder, scene, *words):
    """The run, and its report."""
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
    for row in told["gpu_time"]:
        process = by_pid[row["pid"]]
        causes = {key: ns for key, ns in row.items()
                  if key.startswith("idle_") and key not in ("idle_ns", "idle_share")}
        assert sum(causes.values()) == row["idle_ns"]
        assert causes["idle_unknown_ns"] <= row["idle_ns"] / 10, causes
        parts = [row[f"{part}_ns"] for part in ("compute", "communication", "copies", "idle")]
        assert sum(parts) == row["window_ns"] and row["stopped_ns"] == 0
        computed = fault.total(fault.union(process.kernels()))
        assert parts[0] == pytest.approx(computed, rel=0.001)
        assert parts[2] == pytest.approx(fault.copies_alone(process), rel=0.001, abs=1000)
        idle = fault.total(fault.gaps(process.work)) + run.start_up(process)
        behind = causes["idle_nothing_ns"]
        assert parts[3] == pytest.approx(idle + behind, rel=TOLERANCE, abs=20_000_000)


@pytest.mark.parametrize("words", [(), ("healthy",)], ids=["faulty", "healthy"])
@pytest.mark.parametrize("scene", SCENES)
def test_program(run_collector, tmp_path, scene, words):
    run, told = recorded(run_collector, tmp_path, scene, *words)
    check_time(run, told)
    if scene not in IDLE or words:
        return
    cause, cost = IDLE[scene]
    rows = [row for row in told["idle"] if row["cause"] == cause]
    assert sum(row["total_ns"] for row in rows) == pytest.approx(cost(run), rel=TOLERANCE)
    wanted = {"slow-loader": LABEL, "start-up": "import and the program's own start"}.get(scene)
    assert rows[0]["place"] == wanted if wanted else \
        rows[0]["place"].rpartition("(")[2].rstrip(")") in run.lines
