# SPDX-License-Identifier: Apache-2.0
"""GPU rows where CUPTI is missing, held, refuses, fails, hangs, loses or tells strange times."""

import collections
import shutil

import cupti_client as cupti
import gpu_truth
import pytest
import stream_reader
import toolchain
import truth
from gpu_run import WORK, callback_names, check_whole, gpu_work, runner, timeless

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUPTI runs natively")


@pytest.fixture(name="run")
def fixture_run(library, tmp_path):
    return runner(library, tmp_path)


def host_rows(run, static=False):
    """All calls are there, and nothing of the device."""
    run.version, front = "13.0", "hooks"
    assert len(run.pairs(static, front)) > 100
    assert not gpu_truth.rows(run.process)


def absent(run, reason, static=False):
    host_rows(run, static)
    assert run.status.startswith("absent: ") and reason in run.status, run.status
    assert run.done.stderr == "" and not run.process.said  # the status says it


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_no_libcupti(run, tmp_path, static):
    folder = tmp_path / "bare"
    folder.mkdir()
    for name in ("libcuda.so.1", "libcudart.so.13"):
        (folder / name).symlink_to(toolchain.SIM / name)
    done = run(gpu_work(static=static), *WORK, stderr=None, LD_LIBRARY_PATH=folder,
               GPUPROF_CUPTI="", CUDA_HOME="")
    absent(done, "libcupti", static)
    assert done.lines == []


def test_no_such_libcupti(run):
    absent(run(gpu_work(), *WORK, stderr=None, GPUPROF_CUPTI="/nowhere/libcupti.so"), "/nowhere")


@pytest.mark.parametrize("version, holder", [
    ("13.0", "CUPTI for nsys"), ("12.4", "another profiler"), ("11.8", "another profiler")])
def test_held(run, version, holder):
    done = run(gpu_work(), *WORK, version=version, stderr=None, SIMCUPTI_HOLDER="nsys")
    absent(done, f"{holder} already uses CUPTI")


@pytest.mark.parametrize("switch, value, reason", [
    ("SUBSCRIBE", 35, "INSUFFICIENT_PRIVILEGES"), ("SUBSCRIBE", 33, "VIRTUALIZED_DEVICE"),
    ("SUBSCRIBE", 999, "UNKNOWN"), ("NEWER", 1, "libcupti"),
    ("UNSUPPORTED", "10,1,22,2,38,17,49,50,8,9,37", "none of the requested activity kinds")])
def test_refused(run, switch, value, reason):
    done = run(gpu_work(), *WORK, stderr=None, **{f"SIMCUPTI_{switch}": value})
    absent(done, reason)


def test_refused_ones_beside_one_that_fits(run, tmp_path):
    """Of a toolkit for another driver: the one in LD_LIBRARY_PATH, of the same soname, is taken."""
    name, home = cupti.VERSIONS["13.0"][0], tmp_path / "cuda"
    for folder in ("extras/CUPTI/lib64", "lib64"):
        (home / folder).mkdir(parents=True)
        shutil.copy(toolchain.SIM / name, home / folder / name)
    done = run(gpu_work(static=True), *WORK, GPUPROF_CUPTI="", CUDA_HOME=home,
               SIMCUPTI_REFUSED_BELOW=home)
    check_whole(done, static=True)
    assert f", {toolchain.SIM / name}, since the driver refuses {home}/extras/" in done.status


@pytest.mark.parametrize("version", ["11.8", "12.4", "12.9", "13.0", "13.1", "13.5"])
def test_real_libcupti_without_a_gpu(run, version):
    """It loads, and says in its own way that there is no driver for it: the program runs on."""
    found = sorted(cupti.REAL.glob(f"{version}/lib/libcupti.so.1*"))
    if not found:
        pytest.skip(f"not run: no CUPTI {version} in {cupti.REAL} (make fetch-cupti)")
    done = run(gpu_work(), *WORK, stderr=None, GPUPROF_CUPTI=found[0])
    reason = {"11.8": "CUPTI_ERROR_NOT_INITIALIZED", "12.4": "CUPTI_ERROR_NOT_INITIALIZED",
              "12.9": "CUPTI_ERROR_NOT_INITIALIZED", "13.5": "does not start (error 999"}
    absent(done, reason.get(version, "does not work with this driver: CUPTI_ERROR_UNKNOWN"))
    assert str(found[0]) in done.status


def test_turned_off(run):
    done = run(gpu_work(), *WORK, GPUPROF_GPU="off")
    host_rows(done)
    assert done.status == "absent: turned off (GPUPROF_GPU)" and not done.lines


def test_unsupported_kinds(run):
    done = run(gpu_work(), *WORK, stderr=None, SIMCUPTI_UNSUPPORTED="10,49")
    kinds = check_whole(done)
    assert gpu_truth.KERNEL not in kinds and kinds[gpu_truth.SET]
    assert done.status.endswith("without kernels, allocations: not supported here")
    assert done.done.stderr == ""


ABSENT, LESS, LOST, WHOLE = "absent", "less", "lost", "whole"
FAILURES = {
    "cuptiSubscribe:1": ABSENT, "cuptiSubscribe_v2:1": ABSENT, "cuptiGetVersion:1": ABSENT,
    "cuptiSetThreadIdType:1": WHOLE, "cuptiActivitySetAttribute:*": WHOLE,
    "cuptiActivityRegisterTimestampCallback:1": ABSENT, "cuptiActivityRegisterCallbacks:1": ABSENT,
    **{f"cuptiActivityEnable:{i}": LESS for i in range(1, 10)}, "cuptiActivityEnable:*": ABSENT,
    "cuptiEnableCallback:1": LESS, "cuptiEnableCallback:40": LESS, "cuptiEnableCallback:*": LESS,
    "cuptiGetCallbackName:*": LESS,
    "cuptiActivityFlushAll:1": LOST, "cuptiActivityFlushAll:*": LOST,
    "cuptiActivityGetNumDroppedRecords:*": WHOLE, "cuptiActivityGetNextRecord:*": ABSENT,
    "cuptiActivityGetNextRecord:1000": LOST, "cuptiUnsubscribe:*": WHOLE}


@pytest.mark.parametrize("failing, version", [
    (failing, version) for failing in FAILURES for version in cupti.ORDER
    if version == "13.0" or "Subscribe" in failing or "FlushAll" in failing])
def test_calls_of_cupti_fail(run, failing, version):
    """Whichever it is: the calls are there, and what is missing of the device is said once."""
    what = FAILURES[failing]
    if failing.startswith("cuptiSubscribe") and ("_v2" in failing) != (version == "13.0"):
        what = WHOLE  # that version does not have it, or it is not asked
    done = run(gpu_work(cupti.VERSIONS[version][1]), *WORK, "threads", version=version, stderr=None,
               SIMCUPTI_FAIL=f"{failing}=999", GPUPROF_GPU_FLUSH="100ms")
    assert done.done.stderr == ""
    assert [note.startswith("GPU rows may be missing") for note in done.process.said] == \
        [True] * ("FlushAll" in failing)
    losses = set(done.process.losses)
    if what == WHOLE:
        check_whole(done)
    elif what == ABSENT:
        assert not gpu_truth.rows(done.process) and not losses
        assert done.status.startswith("absent: ")
    elif what == LESS:
        done.kinds()
        assert not losses and ", without " in done.status
    else:
        assert losses == {"gpu_unflushed" if "FlushAll" in failing else "gpu_damaged"}
    assert len(done.pairs(front="hooks")) > 400


PAUSED = ("launches", "sync", "stop", "launches", "sync", "start", "launches", "sync")


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_pause(run, static):
    """What is launched between gpuprof_stop() and gpuprof_start() is nobody's."""
    done = run(gpu_work(static=static), *PAUSED)
    launches = [c for c in done.process.calls() if "Launch" in c.symbol]
    kernels = collections.Counter(correlation for what, correlation, *_ in
                                  gpu_truth.rows(done.process) if what == "kernel")
    assert len(launches) == 400 and not done.process.losses
    assert kernels == collections.Counter(c.correlation for c in launches)


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_allocations_in_a_pause(run, static):
    """Who has which memory is known afterwards, from calls and from the device's records."""
    done = run(gpu_work(static=static), "launch", "stop", "launch", "allocate", "start", "sync")
    paused, again = sorted((r.begin, r.args[0]) for r in done.process.of_type(stream_reader.PAUSE))
    assert paused[1] and not again[1]
    inside = [c for c in done.process.calls() if paused[0] < c.begin < again[0]]
    assert [c.symbol for c in inside] == ["cudaMalloc", "cudaFree"] * 10 or static
    assert len(inside) == 20
    memory = [r for r in done.process.records
              if r.type == stream_reader.TYPE_NUMBERS["memory"] and r.begin > paused[0]]
    assert [r.correlation for r in sorted(memory, key=lambda r: r.begin)] == \
        [c.correlation for c in inside]
    assert sum(what == "kernel" for what, *_ in gpu_truth.rows(done.process)) == 1


def switched(done):
    """What became of callbacks while the program ran: (time, is on, domain and id)."""
    return [(line.begin, line.values["enable"], (line.values["domain"], line.values["cbid"]))
            for line in done.of("cuptiEnableCallback") if line.result == 0]


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_callbacks_rest_in_a_pause(run, static):
    """After a second those that nobody needs are off, and they are on again before recording is."""
    done = run(gpu_work(static=static), "launches", "sync", "stop", "rest", "launches", "allocate",
               "sync", "start", "launches", "sync", GPUPROF_GPU_FLUSH="10ms")
    launches = [c for c in done.process.calls() if "Launch" in c.symbol]
    kernels = collections.Counter(correlation for what, correlation, *_ in
                                  gpu_truth.rows(done.process) if what == "kernel")
    assert len(launches) == 400 and not done.process.losses
    assert kernels == collections.Counter(c.correlation for c in launches)
    assert sum("alloc" in c.symbol.lower() for c in done.process.calls()) >= 10
    states = switched(done)
    off, on = ([s for s in states if s[1] == enable] for enable in (0, 1))
    again = on[len({key for *_, key in on}):]
    assert sorted(s for *_, s in off) == sorted(s for *_, s in again) and len(off) > 50
    names = {callback_names("13.0")[key] for *_, key in off}
    assert any("Launch" in name for name in names) and not any("Alloc" in name for name in names)
    # The log is of all calls that reached the driver, recorded or not.
    made = sorted(line.begin for thread in truth.read_log(done.log) for line in thread
                  if line.layer == "D" and "Launch" in line.symbol)
    paused, resumed = made[200:400], made[400:]
    assert max(s[0] for s in off) < min(paused)
    assert max(paused) < min(s[0] for s in again) and max(s[0] for s in again) < min(resumed)


def test_long_pause_among_launches(run):
    """What is launched in it is nobody's until calls are recorded again: callbacks and kinds of
    records are on before. One call of each thread may begin in the same moment as either."""
    done = run(gpu_work(), "launch", "long-pause", "sync", SIMCUDA_LOG_MODE="counts",
               GPUPROF_GPU_FLUSH="10ms", GPUPROF_FRONT="cupti")
    calls = {c.correlation for c in done.process.calls() if "Launch" in c.symbol}
    rows = {row[1] for row in gpu_truth.rows(done.process) if row[0] == "kernel"}
    assert len(rows & calls) > 1000 and len(rows - calls) <= 3 * 2 and len(calls - rows) <= 3


def test_callbacks_of_open_calls_do_not_rest(run):
    """The end of a call that was recorded before the stop is still told. Between that end and the
    start they may go off: on a busy machine it takes a while from one to the other."""
    done = run(gpu_work(static=True), "launch", "wait-begin", "stop", "rest", "wait-end", "start",
               "sync", GPUPROF_GPU_FLUSH="10ms")
    [waited] = [line for thread in truth.read_log(done.log) for line in thread
                if line.layer == "D" and line.end - line.begin > 10**9]
    assert not [when for when, enable, _ in switched(done) if not enable and when < waited.end]
    assert max(c.end - c.begin for c in done.process.calls()) > 10**9 and not done.process.losses
    assert not done.process.counters["stale"]


@pytest.mark.parametrize("steps, flags", [
    (("stop", "capture-begin", "start", "capture-launch", "capture-end", "capture-launch"),
     [stream_reader.CAPTURED, 0]),
    (("capture-begin", "capture-launch", "stop", "capture-end", "start", "capture-launch"),
     [stream_reader.CAPTURED, 0])], ids=["begins", "ends"])
def test_captures_across_a_pause(run, steps, flags):
    """A capture that begins or ends in it is known as one; only what is none has a kernel."""
    done = run(gpu_work(), "init", *steps, "sync")
    launches = [c for c in done.process.calls() if "Launch" in c.symbol]
    assert [c.flags & stream_reader.CAPTURED for c in launches] == flags
    kernels = [correlation for what, correlation, *_ in gpu_truth.rows(done.process)
               if what == "kernel"]
    assert kernels == [c.correlation for c in launches if not c.flags & stream_reader.CAPTURED]


def test_pause_that_ends_in_a_child(run, tmp_path):
    """CUPTI is the parent's: nobody calls it in a forked child."""
    done = run(gpu_work(), "launch", "sync", "stop", "fork-start", "start", "launch", "sync")
    assert len([c for c in done.process.calls() if "Launch" in c.symbol]) == 2
    logs = set((tmp_path / "log").iterdir()) - {done.log}
    assert not [line.what for log in logs for line in gpu_truth.read_log(log)]


def test_pause_while_cupti_starts(run):
    """What is launched in it is nobody's; what comes after it is whole."""
    done = run(gpu_work(), "stop-early", "launches", "sync", "start", "launch", "sync",
               SIMCUPTI_ENABLE_US=20000)
    launches = [c for c in done.process.calls() if "Launch" in c.symbol]
    kernels = collections.Counter(correlation for what, correlation, *_ in
                                  gpu_truth.rows(done.process) if what == "kernel")
    assert len(launches) == 2 and launches[1].correlation in kernels
    assert set(kernels) <= {c.correlation for c in launches}


def test_pause_where_graphs_lose_their_ids(run):
    """CUPTI 13.0 gives graph launches wrong ids in each session but the first: none is taken."""
    piece = ("graph", "launches", "sync")
    done = run(gpu_work(), *piece, "stop", *piece, "start", *piece, SIMCUPTI_GRAPH_DEFECT=1)
    calls = {c.correlation: c.symbol for c in done.process.calls()
             if "Launch" in c.symbol and not c.flags & stream_reader.CAPTURED}
    kernels = [r for r in done.process.records
               if r.type == stream_reader.TYPE_NUMBERS["kernel"]]
    untied = [r for r in kernels if not r.correlation]
    pause = min(r.begin for r in done.process.records
                if r.type == stream_reader.TYPE_NUMBERS["pause"])
    assert untied and all(r.args[12] and r.begin > pause for r in untied)
    assert all(("Graph" in calls[r.correlation]) == (r.args[12] != 0)
               for r in kernels if r.correlation)
    assert done.process.losses.keys() == {"graph_untied"}
    assert done.process.losses["graph_untied"] >= len(untied)
    assert "graph launches after the first session not correlated with their calls" in done.status


def test_no_records_after_a_pause(run):
    """CUPTI that enables nothing any more is at its end, and that is said."""
    refused = ",".join(f"cuptiActivityEnable:{i}=999" for i in range(10, 19))
    done = run(gpu_work(), *PAUSED, stderr=None, SIMCUPTI_FAIL=refused)
    assert done.status == "absent: CUPTI enabled no activity again after a pause"
    assert done.done.stderr == ""
    assert sum(what == "kernel" for what, *_ in gpu_truth.rows(done.process)) == 200


def test_what_is_left_to_others(run):
    """CUPTI that is of no use any more costs nobody anything, and is free for whoever comes."""
    done = run(gpu_work(), *PAUSED, stderr=None, GPUPROF_KINDS="kernel,latency",
               SIMCUPTI_FAIL="cuptiActivityEnable:2=999")
    assert done.status.startswith("absent: ")
    lines = [line for line in sorted((line for line in done.lines if line.layer == "P"),
                                     key=lambda line: line.begin) if line.what.startswith("cupti")]
    refused = max(i for i, line in enumerate(lines) if line.what == "cuptiActivityEnable")
    assert [(line.what, line.values.get("enable")) for line in lines[refused + 1:]
            if not line.what.startswith("cuptiActivityFlush")] == [  # of what came before the pause
        ("cuptiActivityEnableLatencyTimestamps", 0), ("cuptiUnsubscribe", None)]


@pytest.mark.parametrize("from_flush", [1, 2])
def test_flush_hangs(run, from_flush):
    """The program ends all the same, with all host rows, and it is counted."""
    done = run(gpu_work(), *WORK, SIMCUPTI_FLUSH_HANG=from_flush, GPUPROF_EXIT_WAIT="300ms",
               timeout=30)
    assert len(done.pairs()) > 100
    done.kinds()
    assert done.process.losses == {"gpu_unflushed": 1}


@pytest.mark.parametrize("version", cupti.ORDER)
@pytest.mark.parametrize("settings", [
    {"LATE": 3}, {"LATE": 1}, {"DISORDER": 0}, {"DISORDER": 60}, {"BUFFER_BYTES": 1000},
    {"BUFFER_BYTES": 1000, "LATE": 2, "DISORDER": 30}], ids=str)
def test_order(run, settings, version):
    """In whatever order and pieces the records come, they are all there."""
    settings = {f"SIMCUPTI_{k}": v for k, v in settings.items()}
    check_whole(run(gpu_work(), *WORK, "threads", version=version, GPUPROF_GPU_FLUSH="20ms",
                    GPUPROF_GPU_BUFFER="4G", **settings))


@pytest.mark.parametrize("version", cupti.ORDER)
def test_dropped(run, version):
    done = run(gpu_work(), *WORK, "threads", version=version, SIMCUPTI_DROP=7)
    done.kinds()
    dropped = sum(line.values["records"] for line in done.of("dropped"))
    assert dropped > 50 and done.process.losses == {"gpu_dropped": dropped}


@pytest.mark.parametrize("version", cupti.ORDER)
def test_zero_times(run, version):
    done = run(gpu_work(), *WORK, version=version, SIMCUPTI_ZERO=5)
    done.kinds()
    assert timeless(done) > 30 and done.process.losses == {"gpu_timeless": timeless(done)}


@pytest.mark.parametrize("clock", ["realtime", "early"])
@pytest.mark.parametrize("steps", [(), ("query", "300")], ids=["at-once", "late"])
def test_other_clock(run, clock, steps):
    """Records that stay in the clock of before are told by their time."""
    done = run(gpu_work(), *steps, *WORK, SIMCUPTI_CLOCK=clock)
    done.kinds(clock=False, tolerance=1_000_000)
    assert not done.process.losses
    starts = [line.values["start"] for line in done.lines
              if line.layer == "B" and line.values["kind"] in gpu_truth.DEVICE_WORK]
    assert min(starts) > 1e18 if clock == "realtime" or steps else max(starts) > 1e18


@pytest.mark.parametrize("settings", [
    {"CLOCK_STEP_S": 3600, "CLOCK_STEP_MS": 700}, {"CLOCK_STEP_S": -3600, "CLOCK_STEP_MS": 700},
    {"CLOCK_FAST_PPM": 20000}], ids=str)
def test_other_clock_is_set(run, library, settings):
    """CLOCK_REALTIME is set, and runs at a rate of its own: what it said of records holds for the
    time at which it said it."""
    clock = toolchain.build("clock_set.c", "-shared", "-fPIC")
    steps = ["launches", "sync", "300", "launches", "sync", "900", "launches", "sync", "100"]
    done = run(gpu_work(), *steps, SIMCUPTI_CLOCK="realtime", GPUPROF_GPU_FLUSH="50ms",
               LD_PRELOAD=f"{library}:{clock}", **settings)
    done.kinds(clock=False, tolerance=2_000_000)
    assert not done.process.losses


def test_drift(run):
    done = run(gpu_work(), *WORK, SIMCUPTI_DRIFT_PPM=500)
    check_whole(done, tolerance=2_000_000)


@pytest.mark.parametrize("version", cupti.ORDER)
def test_buffers_run_out(run, version):
    """No more memory than was said: what does not fit is counted."""
    done = run(gpu_work(), "launches", "launches", "sync", "launches", "sync", version=version,
               GPUPROF_GPU_BUFFER="4M", SIMCUPTI_BUFFER_BYTES=3000, SIMCUDA_KERNEL_NS=500_000)
    assert len(done.pairs()) == 602
    count = len(gpu_truth.rows(done.process))
    lost = done.process.losses.pop("gpu_dropped")
    assert list(done.process.losses) == ["gpu_dropped"]
    assert lost > 50 and count > 20 and count + lost == len(gpu_truth.made(done.lines))
