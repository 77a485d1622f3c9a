# SPDX-License-Identifier: Apache-2.0
"""What the device did: each of CUPTI's records as it was, once, tied to the call that made it."""

import collections
import functools
import resource
import signal

import cupti_client as cupti
import gpu_truth
import pytest
import stream_reader
import toolchain
import truth

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUPTI runs natively")
CONNECTED = ("auto", "cupti")
WORK = ("work", "graph", "launches", "sync")


@functools.lru_cache(maxsize=None)
def plain_output(command, settings):
    return toolchain.run(command, toolchain.environment(None, **dict(settings)), status=None).stdout


@functools.lru_cache(maxsize=None)
def callback_names(version):
    """(domain, id) -> symbol of a function that has callbacks in that version."""
    lines = cupti.bare(toolchain.SIM / cupti.VERSIONS[version][0])["name"]
    return {(int(d), int(i)): n.rpartition("_v")[0] if d == "2" else n
            for d, i, n in (line.split(" ") for line in lines)}


def gpu_work(major=13, static=False):
    return cupti.build(major, static=static, source="gpu_work.c")


class Run:
    """One process under gpuprof on the simulated CUDA and CUPTI."""

    def __init__(self, done, process, log, version):
        self.done, self.process, self.log, self.version = done, process, log, version
        self.lines = gpu_truth.read_log(log) if log else []
        self.status = process.meta.get("gpu_rows") if process else None

    def of(self, what):
        return [line for line in self.lines if line.layer == "P" and line.what == what]

    def kinds(self, **options):
        return gpu_truth.compare_rows(self.process, self.lines, **options)

    def called_back(self):
        """Names of the functions whose callbacks are on; the time at which the last came."""
        enabled = [line for line in self.of("cuptiEnableCallback") if line.result == 0]
        names = {callback_names(self.version)[line.values["domain"], line.values["cbid"]]
                 for line in enabled}
        return names, enabled[-1].begin if enabled else None

    def seen(self, static, front):
        """Does gpuprof see a line of the log? The hooks see what is not static; callbacks, once
        they are on, see what this version of CUPTI has."""
        names, since = self.called_back()

        def sees(line):
            if not static or front == "hooks":
                return not static or line.layer == "D"
            is_called_back = line.symbol in names or f"{line.symbol}_v2" in names
            return line.layer == "D" or bool(since) and line.begin > since and is_called_back
        return sees

    def pairs(self, static=False, front="auto"):
        return gpu_truth.pair(self.process, self.log, self.seen(static, front))


@pytest.fixture(name="run")
def fixture_run(library, tmp_path):
    def run(program, *steps, version="13.0", status=3, stderr="", count=1, same_output=True,
            timeout=60, preexec_fn=None, **settings):
        out, log = tmp_path / "out", tmp_path / "log"
        log.mkdir(exist_ok=True)
        env = toolchain.environment(out, library, **{
            "GPUPROF_GPU": "on", "SIMCUDA_LOG": log, "SIMCUPTI_LOG": 1,
            "GPUPROF_CUPTI": toolchain.SIM / cupti.VERSIONS[version][0],
            "GPUPROF_LIVE": tmp_path, **settings})
        done = toolchain.run([program, *steps], env, status=status, timeout=timeout,
                             preexec_fn=preexec_fn)
        if stderr is not None:
            assert done.stderr == stderr
        if same_output and status is not None and status >= 0:
            world = {k: v for k, v in settings.items() if k in ("SIMCUDA_KERNEL_NS",)}
            assert done.stdout == plain_output((program, *steps), tuple(world.items()))
        processes = stream_reader.read_folder(out) if out.exists() else []
        assert len(processes) == count
        logs = {int(p.name.partition(".")[0]): p for p in log.iterdir()}
        runs = [Run(done, p, logs.get(p.header.pid), version) for p in processes]
        return runs[0] if count == 1 else runs if count else \
            Run(done, None, *logs.values(), version)
    return run


def check_whole(run, static=False, front="auto", tied=True, **options):
    """Nothing is missing and nothing is lost; how many records of each kind."""
    kinds = run.kinds(**options)
    assert len(gpu_truth.made(run.lines)) == sum(kinds.values())
    assert not run.process.losses
    assert run.status.startswith("from CUPTI")
    pairs = run.pairs(static, front)
    count = gpu_truth.compare_correlation(run.process, run.lines, pairs,
                                          gpu_truth.blind(run.log, run.called_back()[0]))
    assert bool(count) == tied
    return kinds


# ---- Every way of reaching CUDA ------------------------------------------------------------------

STREAMS = {"legacy": (), "per-thread": ("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",)}
RUNTIME_WORK = ("basic", "graph", "fail", "threads", "8", "100")


def runtime_work(way, *flags):
    flags = {"12": toolchain.runtime(12), "13": toolchain.runtime(13), "static": toolchain.STATIC,
             "dlsym": (toolchain.runtime(12)[0], '-DVIA_DLSYM="libcudart.so.12"')}[way] + flags
    return toolchain.build("runtime_work.c", *flags)


@pytest.mark.parametrize("version", cupti.ORDER)
@pytest.mark.parametrize("way", ["12", "13", "static", "dlsym"])
@pytest.mark.parametrize("front", ["auto", "cupti", "hooks"])
def test_runtime(run, way, version, front):
    done = run(runtime_work(way), *RUNTIME_WORK, version=version, GPUPROF_FRONT=front)
    kinds = check_whole(done, way == "static", front, tied=front != "hooks")
    assert kinds[gpu_truth.KERNEL] > 800 and kinds[gpu_truth.MEMORY] > 20
    domains = {c.domain for c in done.process.calls()}
    if way == "static" and front != "hooks":
        assert "runtime" in domains


@pytest.mark.parametrize("version", cupti.ORDER)
def test_callbacks_of_the_runtime_alone(run, version):
    """For measuring what they cost: a shared runtime's calls are tied to their work."""
    done = run(runtime_work("13" if version == "13.0" else "12"), *RUNTIME_WORK, version=version,
               GPUPROF_FRONT="runtime")
    check_whole(done)
    names, _ = done.called_back()
    assert names and all(name.startswith(("cuda", "__cuda")) for name in names)


@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize("way", ["13", "static"])
def test_streams(run, way, streams):
    done = run(runtime_work(way, *STREAMS[streams]), *RUNTIME_WORK)
    check_whole(done, way == "static")


@pytest.mark.parametrize("way", ["linked", "dlsym", "getproc"])
@pytest.mark.parametrize("streams", STREAMS)
@pytest.mark.parametrize("front", CONNECTED)
def test_driver(run, way, streams, front):
    flags = {"linked": toolchain.DRIVER, "dlsym": ("-DVIA_DLSYM",), "getproc": ("-DVIA_GETPROC",)}
    program = toolchain.build("driver_work.c", *flags[way], *STREAMS[streams])
    check_whole(run(program, GPUPROF_FRONT=front), front=front)


@pytest.mark.parametrize("version", cupti.ORDER)
@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
@pytest.mark.parametrize("graphs", ["nodes", "whole"])
def test_every_kind(run, static, version, graphs):
    """Two devices, peer copies, pools, graphs, PTX, 8 threads."""
    done = run(gpu_work(cupti.VERSIONS[version][1], static), *WORK, "threads", version=version,
               GPUPROF_GRAPHS=graphs)
    kinds = check_whole(done, static)
    wanted = {10, 1, 22, 2, 38, 17, 49, 50, 8, 9, 37} | ({51} if graphs == "whole" else set())
    assert set(kinds) == wanted
    assert kinds[22] == 1 and kinds[gpu_truth.GRAPH] == (4 if graphs == "whole" else 0)


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
@pytest.mark.parametrize("graphs", ["nodes", "whole"])
def test_child_graphs(run, static, graphs):
    """A graph in a graph, launched two thousand times: four kernels a launch, or one record."""
    done = run(gpu_work(static=static), "child-graphs", GPUPROF_GRAPHS=graphs)
    check_whole(done, static)
    what = collections.Counter((what, correlation) for what, correlation, *_ in
                               gpu_truth.rows(done.process) if what in ("kernel", "graph"))
    launches = {c.correlation for c in done.process.calls() if "GraphLaunch" in c.symbol}
    kind, count = ("graph", 1) if graphs == "whole" else ("kernel", 4)
    assert len(launches) == 2000 and what == {(kind, c): count for c in launches}


@pytest.mark.parametrize("way", ["13", "static"])
@pytest.mark.parametrize("front", CONNECTED)
def test_nested(run, way, front):
    """Nested driver calls are records, too; the outer call alone has the correlation id."""
    done = run(runtime_work(way), *RUNTIME_WORK, GPUPROF_NESTED=1, GPUPROF_FRONT=front)
    check_whole(done, way == "static", front)
    nested = [c for c in done.process.calls() if c.flags & stream_reader.NESTED]
    assert len(nested) > 1000 and not any(c.correlation for c in nested)


def test_latency(run):
    done = run(gpu_work(), *WORK, GPUPROF_KINDS="kernel,latency", SIMCUDA_KERNEL_NS=30000)
    kinds = check_whole(done)
    assert set(kinds) == {gpu_truth.KERNEL}
    queued = [args[10] for what, _, args, _, _ in gpu_truth.rows(done.process)]
    assert sum(map(bool, queued)) > 100


# ---- How CUPTI is used ---------------------------------------------------------------------------

ZEROED, PER_THREAD = 5, 9


@pytest.mark.parametrize("version", cupti.ORDER)
@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_start(run, version, static):
    """Each thing once and in its order; callbacks for what is recorded and for nothing else."""
    done = run(gpu_work(cupti.VERSIONS[version][1], static), *WORK, version=version)
    asked = [line for line in sorted((line for line in done.lines if line.layer == "P"),
                                     key=lambda line: line.begin) if line.what.startswith("cupti")]
    order = [line.what for line in asked]
    steps = list(dict.fromkeys(what for what in order if "Flush" not in what and
                               "Latency" not in what))
    subscribe = "cuptiSubscribe_v2" if version == "13.0" else "cuptiSubscribe"
    assert steps == [subscribe, "cuptiSetThreadIdType", "cuptiActivitySetAttribute",
                     "cuptiActivityRegisterTimestampCallback", "cuptiActivityRegisterCallbacks",
                     "cuptiActivityEnable", "cuptiEnableCallback"]
    for once in (subscribe, steps[1], steps[3], steps[4]):
        assert order.count(once) == 1
    attributes = {line.values["attribute"]: line.values["value"] for line in asked
                  if line.what == "cuptiActivitySetAttribute" and line.result == 0}
    assert attributes == {ZEROED: 1} | ({PER_THREAD: 0} if version != "11.8" else {})
    enabled = [line.values["kind"] for line in asked if line.what == "cuptiActivityEnable"]
    assert sorted(enabled) == [1, 2, 8, 9, 10, 17, 22, 37, 38, 49, 50]
    names, _ = done.called_back()
    assert {"cuLaunchKernel", "cuGraphLaunch", "cuGraphLaunch_ptsz"} <= names
    wanted = {f.symbol for f in done.process.functions.values()}
    assert {name for name in names if not {name, f"{name}_v2"} & wanted} == set()
    assert any(name.startswith("cuda") for name in names) == static


def test_overheads_name_the_thread(run):
    """By the number that the system has for it, as everything else does."""
    done = run(gpu_work(), *WORK, "threads")
    named = {args[3] for what, _, args, *_ in gpu_truth.rows(done.process) if what == "overhead"}
    assert named and named <= {c.tid for c in done.process.calls()}


def test_overheads_do_not_leak(run):
    """Their data is ours to free: one block each."""
    steps = ["launches"] * 25 + ["sync", "300", "heap"]
    done = run(gpu_work(), *steps, *steps, SIMCUPTI_COMMAND_BUFFER=1, GPUPROF_GPU_FLUSH="20ms")
    made = [args for what, _, args, *_ in gpu_truth.rows(done.process) if what == "overhead"]
    assert len(made) >= 10000 and done.done.stdout.count("grown 0\n") == 2


# ---- Faults --------------------------------------------------------------------------------------

def host_rows(run, static=False):
    """All calls are there, and nothing of the device."""
    run.version, front = "13.0", "hooks"
    assert len(run.pairs(static, front)) > 100
    assert not gpu_truth.rows(run.process)


def absent(run, reason, static=False):
    host_rows(run, static)
    assert run.status.startswith("absent: ") and reason in run.status, run.status
    assert run.done.stderr == f"gpuprof: GPU rows {run.status}; host calls are recorded\n"


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
    absent(done, f"held by {holder}")


@pytest.mark.parametrize("switch, value, reason", [
    ("SUBSCRIBE", 35, "INSUFFICIENT_PRIVILEGES"), ("SUBSCRIBE", 33, "VIRTUALIZED_DEVICE"),
    ("SUBSCRIBE", 999, "UNKNOWN"), ("NEWER", 1, "libcupti"),
    ("UNSUPPORTED", "10,1,22,2,38,17,49,50,8,9,37", "none of the kinds")])
def test_refused(run, switch, value, reason):
    done = run(gpu_work(), *WORK, stderr=None, **{f"SIMCUPTI_{switch}": value})
    absent(done, reason)


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
    assert done.done.stderr == ("gpuprof: GPU rows without kernels, allocations: not supported "
                                "here\n")


ABSENT, LESS, LOST, WHOLE = "absent", "less", "lost", "whole"
FAILURES = {
    "cuptiSubscribe:1": ABSENT, "cuptiSubscribe_v2:1": ABSENT, "cuptiGetVersion:1": ABSENT,
    "cuptiSetThreadIdType:1": WHOLE, "cuptiActivitySetAttribute:*": WHOLE,
    "cuptiActivityRegisterTimestampCallback:1": ABSENT, "cuptiActivityRegisterCallbacks:1": ABSENT,
    **{f"cuptiActivityEnable:{i}": LESS for i in range(1, 12)}, "cuptiActivityEnable:*": ABSENT,
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
    said = done.done.stderr
    assert said.count("\n") == (what in (ABSENT, LESS) or "FlushAll" in failing), said
    losses = set(done.process.losses)
    if what == WHOLE:
        check_whole(done)
    elif what == ABSENT:
        assert not gpu_truth.rows(done.process) and not losses
        assert done.status.startswith("absent: ") and f"GPU rows {done.status}; host" in said
    elif what == LESS:
        done.kinds()
        assert not losses and ", without " in done.status
        assert f"GPU rows{done.status[done.status.index(',') :].rpartition(', without')[1][1:]}" \
            in said
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


def test_no_records_after_a_pause(run):
    """CUPTI that enables nothing any more is at its end, and that is said."""
    refused = ",".join(f"cuptiActivityEnable:{i}=999" for i in range(12, 23))
    done = run(gpu_work(), *PAUSED, stderr=None, SIMCUPTI_FAIL=refused)
    assert done.status == "absent: CUPTI enables no records any more after a pause"
    assert done.done.stderr == f"gpuprof: GPU rows {done.status}; host calls are recorded\n"
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
        ("cuptiActivityDisable", None), ("cuptiActivityEnableLatencyTimestamps", 0),
        ("cuptiUnsubscribe", None)]


@pytest.mark.parametrize("from_flush", [1, 2])
def test_flush_hangs(run, from_flush):
    """The program ends all the same, with all host rows, and it is counted."""
    done = run(gpu_work(), *WORK, SIMCUPTI_FLUSH_HANG=from_flush, GPUPROF_EXIT_WAIT="300ms",
               timeout=10)
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


def timeless(run):
    return sum(line.layer == "B" and line.values["kind"] in gpu_truth.DEVICE_WORK and
               not line.values["start"] for line in run.lines)


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
    assert lost > 100 and count > 20 and count + lost == len(gpu_truth.made(done.lines))


# ---- How processes live and end ------------------------------------------------------------------

def test_queries_start_nothing(run):
    done = run(gpu_work(), "init", "query", "100", count=0)
    assert not done.lines


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_late_recording(run, static):
    """The first recorded call comes long after cuInit and the contexts."""
    done = run(gpu_work(static=static), "init", "query", "300", *WORK)
    check_whole(done, static)


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_kill(run, static):
    """What CUPTI was asked for before is there, whole."""
    done = run(gpu_work(static=static), *WORK, "400", "kill", status=-signal.SIGKILL,
               GPUPROF_GPU_FLUSH="100ms", SIMCUPTI_LATE=0)
    kinds = done.kinds()
    assert kinds[gpu_truth.KERNEL] > 200
    assert len(gpu_truth.made(done.lines)) == sum(kinds.values())
    gpu_truth.compare_correlation(done.process, done.lines, done.pairs(static))


def test_kill_among_calls(run):
    done = run(gpu_work(), "launch", "churn", "kill", status=-signal.SIGKILL,
               GPUPROF_GPU_FLUSH="50ms", SIMCUDA_LOG_MODE="counts")
    assert len(gpu_truth.rows(done.process)) > 1000
    assert set(done.process.losses) <= {"gpu_timeless"}


@pytest.mark.parametrize("end", ["return", "_exit", "quick_exit", "leave-main"])
@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_ends(run, end, static):
    steps = () if end == "return" else (end,)
    done = run(gpu_work(static=static), *WORK, *steps, GPUPROF_GPU_FLUSH="30s")
    check_whole(done, static)
    assert sum(line.values["records"] for line in done.of("lost")) == 0


@pytest.mark.parametrize("end", ["return", "_exit", "quick_exit"])
def test_ends_among_calls(run, end):
    """Others are in callbacks, and stay there."""
    steps = () if end == "return" else (end,)
    done = run(gpu_work(), "launch", "churn", *steps, SIMCUDA_LOG_MODE="counts", stderr=None)
    assert len(gpu_truth.rows(done.process)) > 1000
    assert set(done.process.losses) <= {"gpu_timeless", "unrecorded"}


def test_end_with_work_running(run):
    done = run(gpu_work(), "sync", "launches", SIMCUDA_KERNEL_NS=5_000_000)
    assert timeless(done) > 50 and done.process.losses == {"gpu_timeless": timeless(done)}
    done.kinds()


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
@pytest.mark.parametrize("way", ["reset", "destroy"])
def test_context_goes(run, way, static):
    """What the device did before is asked for before."""
    done = run(gpu_work(static=static), *WORK, way, *WORK, GPUPROF_GPU_FLUSH="30s")
    check_whole(done, static)
    symbol = {"reset": "cuDevicePrimaryCtxReset_v2", "destroy": "cuCtxDestroy_v2"}[way]
    lines = [line for thread in truth.read_log(done.log) for line in thread]
    goes = [line.begin for line in lines if line.symbol.startswith(symbol.rpartition("_")[0])]
    flushes = [line.begin for line in done.of("cuptiActivityFlushAll")]
    assert goes and any(goes[0] - 1_000_000_000 < at < goes[0] for at in flushes)


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_fork_after(run, static):
    runs = run(gpu_work(static=static), *WORK, "fork", "launches", "sync", count=2)
    child, parent = sorted(runs, key=lambda r: r.process.header.parent_pid in
                           {x.process.header.pid for x in runs}, reverse=True)
    assert child.status == "absent: the process was forked after CUDA was initialised"
    assert {c.result for c in child.process.calls()} == {3} and not gpu_truth.rows(child.process)
    check_whole(parent, static)


def test_fork_before(run):
    runs = run(gpu_work(), "fork-work", *WORK, count=2)
    for one in runs:
        check_whole(one)


def test_exec(run, tmp_path):
    runs = run(gpu_work(), *WORK, "400", "exec", count=2, status=3, same_output=False,
               GPUPROF_GPU_FLUSH="100ms")
    logs = sorted((tmp_path / "log").iterdir(), key=lambda p: p.name.split(".")[1])
    assert len(logs) == 2
    for one, log in zip(sorted(runs, key=lambda r: r.process.header.monotonic_zero), logs):
        check_whole(Run(one.done, one.process, log, one.version))


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
@pytest.mark.parametrize("turn", range(4))
def test_threads_come_first(run, static, turn):
    """Eight at a time make the first recorded calls: all wait until CUPTI is there."""
    done = run(gpu_work(static=static), "threads", "sync")
    kernels = collections.Counter(correlation for what, correlation, *_ in
                                  gpu_truth.rows(done.process) if what == "kernel")
    launches = [c for c in done.process.calls() if "Launch" in c.symbol]
    assert len(launches) == 320 and not done.process.losses, turn
    assert kernels == collections.Counter(c.correlation for c in launches)


def test_short_lived_threads(run):
    check_whole(run(gpu_work(), "work", "short-lived", "short-lived", "sync"))


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
@pytest.mark.parametrize("front", CONNECTED)
def test_call_in_a_signal_handler(run, static, front):
    """It interrupts a call that waits; each is an event, with its own kernels."""
    done = run(gpu_work(static=static), "launch", "sync", "interrupted", "sync",
               GPUPROF_FRONT=front, SIMCUDA_KERNEL_NS=100_000_000)
    kinds = done.kinds()
    assert kinds[gpu_truth.KERNEL] == 4 and not done.process.losses
    kernels = {args[4][0]: correlation for what, correlation, args, _, _ in
               gpu_truth.rows(done.process) if what == "kernel"}
    calls = {c.args["grid"][0]: c for c in done.process.calls() if c.cls == "launch"}
    assert set(calls) == set(kernels) == {3, 5, 6, 77}
    waits = [c for c in done.process.calls() if c.symbol == "cudaDeviceSynchronize"]
    assert len(waits) == 3 and done.process.counters["stale"] == 0
    assert waits[1].begin < calls[77].begin and calls[77].end < waits[1].end
    for grid, call in calls.items():
        ids = {call.correlation} | {r.args[0] for r in done.process.of_type(22)
                                    if r.correlation == call.correlation}
        # CUPTI gives the work of a call inside another the other's id.
        assert kernels[grid] in ids or grid == 77 and kernels[grid] == waits[1].correlation


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
@pytest.mark.parametrize("front", CONNECTED)
def test_call_left_by_longjmp(run, static, front):
    done = run(gpu_work(static=static), "launch", "sync", "left", "sync", GPUPROF_FRONT=front,
               SIMCUDA_KERNEL_NS=100_000_000)
    done.kinds()
    assert not done.process.losses and done.process.counters["stale"] == 1
    stale = [c for c in done.process.calls() if c.flags & stream_reader.STALE]
    assert [c.symbol for c in stale] == ["cudaDeviceSynchronize"]
    kernels = {args[4][0]: correlation for what, correlation, args, _, _ in
               gpu_truth.rows(done.process) if what == "kernel"}
    calls = {c.args["grid"][0]: c.correlation for c in done.process.calls() if c.cls == "launch"}
    assert calls == kernels and set(calls) == {3, 5, 6, 7}


def test_recording_ends_early(run):
    """A file size limit stands for the full disk; the program goes on as it was."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
    done = run(gpu_work(), *WORK, *["threads", "launches"] * 8, stderr=None, preexec_fn=limit,
               GPUPROF_SEAL="10ms", GPUPROF_GPU_FLUSH="10ms", SIMCUDA_LOG="")
    assert done.done.stderr.count("\n") <= 2 and "what is there can be read" in done.done.stderr
    assert done.process.calls() and done.process.torn_bytes == 0
