# SPDX-License-Identifier: Apache-2.0
"""Programs with one fault each, and the same work done right (src/faults.py), held against the
simulated CUDA's own log: where their devices' time went, why they stood idle, and what the first
finding is: the fault, with what it costs and where. What is done right has none."""

import json
import re
import shlex

import fault_truth as fault
import pytest
import toolchain

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="Python runs natively")

OPTIONS = {"slow-loader": ["--pytorch=names"], "one-stream": ["--backtrace=launch,copy"],
           "pageable-copies": ["--backtrace=launch,copy"],
           "repeated-upload": ["--backtrace=launch,copy"],
           "rotated-uploads": ["--backtrace=launch,copy"],
           "two-faults": ["--backtrace=launch,copy,sync"],
           **dict.fromkeys(("server", "loader-workers", "gil", "crowded"), ["--sample", "--os"])}
TOLERANCE = 0.05
TINY_NS, START_NS = 5000, 2000
TICK_NS = 20_000_000  # the kernel tells when a process began in steps of half of it
ATTEMPTS = 3
# What is no line: a label, what there is before any line, and another rank.
LINELESS = {"slow-loader": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            "start-up": None, "straggler": None}
# Programs whose finding is another's.
KINDS = {"loss-item": "sync-in-loop", "converges": "sync-in-loop",
         "waiting-free": "allocation-churn", "compile-in-step": "start-up",
         "compile-once": "start-up",
         "checkpoints": "sync-in-loop"}
# What to run next where the line is known; of Python --mine.
NEXT = {"pageable-copies": "--by=stack", "allocation-churn": "--by=stack",
        "sync-in-loop": "--table=idle"}
STILL_NS = 40_000_000  # less idle time than any finding needs
HANGS_NS = 3 * 10**9  # that the program gives itself
START_UP_NS = 900_000_000  # on a busy machine a start may be a finding of its own: it needs 1 s


def only(cost):
    """Of a program of one process."""
    def of(run):
        process, = run.processes
        return cost(process)
    return of


def device_time(word):
    return only(lambda process: sum(kernel.ns for kernel in process.kernels(word)))


# What each fault costs by the log, nanoseconds of the device that it costs most, and what is idle
# because of it; the cause of that; what the evidence names first, if not a line of the program.
START = "import and the program's start"


def behind_copies(process):
    """Waits that are a copy's: what is idle in the call itself is that copy's staging."""
    return fault.waited(process, "Memcpy") - fault.within(process, "Memcpy")


FAULTS = {
    "launch-bound": (only(fault.launches), "launch", None),
    "host-bound": (only(fault.own_code), "host", None),
    "sync-in-loop": (only(lambda process: fault.waited(process, "Synchronize")), "sync", None),
    "loss-item": (only(behind_copies), "sync", None),
    "converges": (only(behind_copies), "sync", None),
    "slow-loader": (only(fault.own_code), "loader",
                    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
    "allocation-churn": (only(lambda process: fault.within(process, "cuMemAlloc", "cuMemFree")),
                         "allocation", None),
    "waiting-free": (only(lambda process: fault.waited(process, "cuMemFree")), "allocation", None),
    "start-up": (lambda run: run.start_up(run.processes[0]), "start-up", START),
    "compile-in-step": (lambda run: run.start_up(run.processes[0]) +
                        fault.total(fault.gaps(run.processes[0].work)), "start-up", None),
    "compile-once": (lambda run: run.start_up(run.processes[0]) +
                     fault.total(fault.gaps(run.processes[0].work)), "start-up", None),
    "checkpoints": (only(lambda process: fault.waited(process, "Synchronize")), "sync", None),
    "straggler": (lambda run: fault.late(run.processes)[1], "communication", "rank 2"),
    "exposed-communication": (lambda run: max(fault.exposed(run.processes)), None, "nccl"),
    "pageable-copies": (only(lambda process: fault.copies_alone(process) +
                             fault.within(process, "cuMemcpy")), None, "Pageable"),
    "one-stream": (only(fault.copies_alone), None, "Pinned"),
    "repeated-upload": (only(lambda process: fault.alone(process.copies()[1:],
                                                         process.kernels())), None, "Pinned"),
    "tiny-kernels": (only(lambda process: sum(min(kernel.ns, START_NS)
                                              for kernel in process.kernels()
                                              if kernel.ns < TINY_NS)), None, "gemm"),
    "fp32-gemm": (device_time("sgemm"), None, "sgemm"),
    "unfused-elementwise": (only(fault.chains), None, "elementwise"),
    "launch-blocking": (only(lambda process: fault.total(fault.gaps(process.work))), None, None),
}


def recorded(run_collector, folder, scene, *words):
    """The run, and its report."""
    folder.mkdir(exist_ok=True)
    run = fault.Run(folder, scene, *words,
                    options=["--backtrace=launch", *OPTIONS.get(scene, [])])
    done = run_collector("report", "--format=json", run.data)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    start_up = max(map(run.start_up, run.processes))
    if KINDS.get(scene, scene) != "start-up" and start_up > START_UP_NS:
        told["findings"] = [row for row in told["findings"] if row["id"] != "start-up"]
    return run, told


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


@pytest.mark.parametrize("scene", FAULTS)
def test_fault_is_the_first_finding(run_collector, tmp_path, scene):
    for attempt in range(ATTEMPTS):  # until the machine lets the program's own code run
        run, told = recorded(run_collector, tmp_path / str(attempt), scene)
        time, = told["gpu_time"][:1]
        if scene != "host-bound" or time["idle_host_ns"] > time["idle_preempted_ns"]:
            break
    check_time(run, told)
    cost, cause, named = FAULTS[scene]
    busy = 0  # others of the machine's had the processor: nobody is blamed for that
    if cause:
        idle = sum(row["total_ns"] for row in told["idle"] if row["cause"] == cause)
        if cause == "host":
            busy = sum(row["total_ns"] for row in told["idle"]
                       if row["cause"] in ("preempted", "waiting"))
            idle += busy
        waits = sum(fault.waits(run.processes))  # also for ranks that were late at times
        assert idle == pytest.approx(waits or cost(run), rel=TOLERANCE)
    first = told["findings"][0]
    kind = KINDS.get(scene, scene)
    assert first["id"] == kind
    assert kind != "start-up" or len(told["findings"]) == 1
    assert first["ns"] + busy == pytest.approx(cost(run), rel=TOLERANCE)
    row = first["evidence"][0]
    # A busy machine may take longer over a call than the device over what it asks for.
    names = [row["name"] for row in first["evidence"]]
    assert any((named or row["where"] or "no line") in name for name in names)
    for where in (first["where"], row["where"]):
        if scene == "straggler" and where:  # who waits, and what the late one did before
            assert re.fullmatch(r"3 GPUs wait; AllReduce of 4, last \d+ times, [\d.]+ ms behind, "
                                r"at straggler \(faults.py:\d+\)", where), where
        elif scene in LINELESS:
            assert where == LINELESS[scene]
        else:
            assert re.fullmatch(r".* \((faults.py:\d+)\)", where)[1] in run.lines
    if kind in NEXT:
        option = NEXT[kind].replace("--by=stack", "--mine")
        assert first["next"] == f"gpuprof report {option} {run.data}"
    # The table has that place, with that time; an item() waits at two lines.
    if kind == "host-bound":
        assert first["next"].startswith("gpuprof run --sample --os ")
    if kind in ("sync-in-loop", "host-bound") and scene != "loss-item":
        shown = run_collector("report", "--table=idle", run.data, "--format=json").stdout
        place = first["where"].removeprefix("after ")  # what is in the wait is the machine's
        times = [row["total_ns"] for row in json.loads(shown)["idle"]
                 if row["cause"] == cause and row["place"].removeprefix("after ") == place]
        assert sum(times) == pytest.approx(first["ns"], rel=TOLERANCE)
    if scene == "exposed-communication":
        assert sum(row["ns"] for row in first["evidence"]) == first["ns"]


# Which cause has most of the time in which the GPU waits.
WAITERS = {"server": "waiting", "loader-workers": "waiting", "gil": "waiting"}


@pytest.mark.parametrize("scene", [*WAITERS, "crowded"])
def test_who_waits_is_not_blamed(run_collector, tmp_path, scene):
    """Only the program's own code that ran is; the place has both ends and the line."""
    run, told = recorded(run_collector, tmp_path, scene)
    check_time(run, told)
    time, = told["gpu_time"]
    between = sum(time[f"idle_{cause}_ns"] for cause in ("host", "waiting", "preempted"))
    found = {row["id"]: row for row in told["findings"]}
    if scene == "crowded":
        assert time["idle_preempted_ns"] > 0.3 * between > 30_000_000
        blamed = found.get("host-bound", {"ns": time["idle_host_ns"]})  # if it is enough for one
        assert blamed["ns"] <= time["idle_host_ns"]
        # What others have the processor for while gpuprof looks is no cost of gpuprof's.
        looks, = (row for row in told["own_cost"]["classes"] if row["name"] == "silence")
        assert looks["total_ns"] < 200_000 * looks["count"]
        return
    assert between - time["idle_host_ns"] > 0.8 * between > 80_000_000
    assert time["idle_waiting_ns"] > 0.3 * between
    # What the host did is known, and still nobody is, but for the one who holds the GIL.
    assert found.keys() - {"start-up"} == ({"gil-contention"} if scene == "gil" else set())
    row = max((row for row in told["idle"] if row["cause"] == "waiting"),
              key=lambda row: row["total_ns"])
    assert line_of(run, row["place"])


@pytest.mark.parametrize("scene, debug", (
    ("launch-bound", "-g"), ("pageable-copies", "-g"), ("allocation-churn", "-g"),
    ("sync-in-loop", "-g"), ("sync-in-loop", "-g0"), ("loss-item", "-g"), ("hang", "-g")))
def test_where_a_fault_is_in_c(run_collector, tmp_path, scene, debug):
    """The line of the program; of one without debugging information, the function."""
    program = toolchain.build("faults.c", *toolchain.DRIVER, debug)
    run = fault.Run(tmp_path, scene, options=["--backtrace=launch,sync,copy,alloc"],
                    program=[program], source="faults.c")
    done = run_collector("report", "--format=json", run.data)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    first = told["findings"][0]
    kind = KINDS.get(scene, scene)
    assert first["id"] == kind
    function = scene.replace("-", "_")
    places = [f"{function} ({line})" for line in run.lines]
    if debug == "-g0":
        places = [f"{function} ({program.name})"]
    where = first["where"].removeprefix("after ")  # the wait that leaves the GPU idle
    assert where in places and first["evidence"][0]["where"] == first["where"]
    assert (where != first["where"]) == (kind == "sync-in-loop")
    if kind in NEXT:  # without -g, too: to record it again would bring no line, either
        assert first["next"] == f"gpuprof report {NEXT[kind]} {run.data}"
        assert where in run_collector(*shlex.split(first["next"])[1:]).stdout
    if scene == "launch-bound":
        assert first["next"] == f"gpuprof report --by=stack {run.data}"
    if scene == "hang":
        assert [call["line"] for call in told["open_calls"]] == [first["where"]]
        assert first["next"] == f"gpuprof report --table=open_calls {run.data}"
        held = told["losses"].get("gpu_missing")  # by CUPTI, if no buffer was complete
        screen = run_collector("report", run.data).stdout.partition("\n\n")[0]
        says = f"  held back  {held} kernels, copies and fills: "
        assert (says in screen) == (held is not None)
        assert "kernels, copies and fills that are not recorded" not in screen
        return
    assert ("Compile the program with -g" in first["advice"]) == (debug == "-g0")
    cost, cause, _ = FAULTS[scene]
    least = most = cost(run)
    if scene == "launch-bound":
        # The program has no code between its launches. The time there is gpuprof's, within a
        # recorded call but outside the log's, and on a busy machine it is no small part.
        process, = run.processes
        most = fault.total(fault.gaps(process.work))
    assert least * (1 - TOLERANCE) <= first["ns"] <= most * (1 + TOLERANCE)
    idle = [row["place"] for row in told["idle"] if row["cause"] == (cause or "copy")]
    assert idle[0].removeprefix("after ") in places


def line_of(run, place):
    return re.fullmatch(r".* \((faults.py:\d+)\)", place)[1] in run.lines


def test_contents_that_rotate(run_collector, tmp_path):
    """Each of the four is new once."""
    run, told = recorded(run_collector, tmp_path, "rotated-uploads")
    check_time(run, told)
    process, = run.processes
    again = process.copies()[4:]
    first = told["findings"][0]
    assert first["id"] == "repeated-upload"
    assert first["ns"] == pytest.approx(fault.alone(again, process.kernels()), rel=TOLERANCE)
    evidence, = first["evidence"]
    assert evidence["count"] == len(again) == 36
    assert line_of(run, first["where"]) and line_of(run, evidence["where"])


def test_uploads_of_a_graph(run_collector, tmp_path):
    """What its nodes upload is not looked at (GUIDE): it is no finding, and the time is told."""
    run, told = recorded(run_collector, tmp_path, "graph-upload")
    check_time(run, told)
    process, = run.processes
    assert len(process.copies()) == 40
    assert [row["id"] for row in told["findings"]] == ["one-stream"]
    assert told["findings"][0]["ns"] == pytest.approx(fault.copies_alone(process), rel=TOLERANCE)


def test_two_faults(run_collector, tmp_path):
    """Each has its line and its time; together they have no more than the kernels left."""
    run, told = recorded(run_collector, tmp_path, "two-faults")
    check_time(run, told)
    process, = run.processes
    time, = told["gpu_time"]
    rows = {row["id"]: row for row in told["findings"]}
    assert {"sync-in-loop", "pageable-copies"} <= set(rows)  # a busy machine may add its own
    copied, waited = run.lines
    assert rows["pageable-copies"]["where"].endswith(f"({copied})")
    assert rows["sync-in-loop"]["where"].endswith(f"({waited})")
    assert sum(row["ns"] for row in rows.values()) <= time["idle_ns"] + time["copies_ns"]
    # What of a wait another fault's call was late by is not charged to it.
    assert rows["sync-in-loop"]["ns"] == pytest.approx(fault.waited(process, "Synchronize"),
                                                       rel=3 * TOLERANCE)
    alone = fault.copies_alone(process)
    assert alone * (1 - TOLERANCE) < rows["pageable-copies"]["ns"]
    staged = fault.within(process, "cuMemcpy")
    assert rows["pageable-copies"]["ns"] < (alone + staged) * (1 + TOLERANCE)


@pytest.mark.parametrize("scene", [*FAULTS, *WAITERS, "hang", "loading-thread"])
def test_what_is_done_right_has_no_finding(run_collector, tmp_path, scene):
    for attempt in range(ATTEMPTS):  # until the machine has let it be
        run, told = recorded(run_collector, tmp_path / str(attempt), scene, "healthy")
        idle = max(fault.total(fault.gaps(process.work)) for process in run.processes)
        if idle + max(fault.waits(run.processes)) < STILL_NS:
            break
    check_time(run, told)
    assert told["findings"] == told["open_calls"] == []


def test_hang_is_explained(run_collector, tmp_path):
    """By itself: nothing asked for stacks before the program began to wait."""
    run = fault.Run(tmp_path, "hang", options=[])
    done = run_collector("report", "--format=json", run.data)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    process, = run.processes
    hung, = (call for call in process.calls if not call.end)
    endless = process.work[-1]
    assert endless.end > hung.begin + HANGS_NS
    call, = told["open_calls"]
    assert call["function"] == hung.what and call["line"].endswith(f"({run.lines[0]})")
    assert call["lasted_ns"] == pytest.approx(HANGS_NS, rel=TOLERANCE)
    first = told["findings"][0]
    assert first["id"] == "hang" and first["ns"] == pytest.approx(HANGS_NS, rel=TOLERANCE)
    assert first["evidence"][0]["name"] == call["line"]
    launch, = told["unfinished"]
    assert launch["kernel"] == endless.values["name"]
    assert launch["age_ns"] == pytest.approx(HANGS_NS, rel=TOLERANCE)
