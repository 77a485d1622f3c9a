# SPDX-License-Identifier: Apache-2.0
"""What the device did: each of CUPTI's records as it was, once, tied to the call that made it."""

import collections
import json
import resource
import signal
import struct
import subprocess
import sys
import time

import cupti_client as cupti
import gpu_truth
import pytest
import stream_reader
import toolchain
import truth
from gpu_run import WORK, Run, check_whole, gpu_work, runner, timeless

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUPTI runs natively")
CONNECTED = ("auto", "cupti")


@pytest.fixture(name="run")
def fixture_run(library, tmp_path):
    return runner(library, tmp_path)


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
    wanted = {10, 1, 22, 2, 38, 17, 49, 50, 37} | ({51} if graphs == "whole" else set())
    assert set(kinds) == wanted
    assert kinds[22] == 1 and kinds[gpu_truth.GRAPH] == (4 if graphs == "whole" else 0)


def test_devices(run):
    """CUPTI tells of no device and no context (as a real one does): the driver is asked, and work
    says in which context it was."""
    done = run(cupti.build(source="device_work.c"), "run=20", "device=1", "run=20",
               status=0)
    found = {kind: [r for r in done.process.records
                    if r.type == stream_reader.TYPE_NUMBERS[kind]]
             for kind in ("device", "context", "kernel")}
    uuid = [struct.unpack(">QQ", b"simulated-gpu-%02d" % i) for i in range(2)]
    assert [(r.args, r.text) for r in found["device"]] == [
        ((i, 9, 0, 132, 2048, 32, 65536, 233472, 49152, 8 << 30, 2 * 1200000 * 4096 // 8, 1980000,
          *uuid[i], 32 << 20, 32), b"Simulated GPU") for i in range(2)]
    worked = {(r.args[1], r.args[0]) for r in found["kernel"]}
    assert sorted(r.args[:2] for r in found["context"]) == sorted(worked)
    assert {device for _, device in worked} == {0, 1}


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
    assert sorted(enabled) == [1, 2, 10, 17, 22, 37, 38, 49, 50]
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


def no_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


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


def test_kill_while_the_device_is_busy(run):
    """A buffer with work that is not over stays with CUPTI: none is large enough to be there long.
    """
    done = run(gpu_work(), "busy", "kill", status=-signal.SIGKILL, SIMCUDA_KERNEL_NS=1_000_000)
    launches = [c for c in done.process.calls() if "Launch" in c.symbol]
    there = {correlation for what, correlation, *_ in gpu_truth.rows(done.process)
             if what == "kernel"}
    missing = [c for c in launches if c.correlation not in there]
    assert len(launches) == 1500 and missing and not done.process.losses
    assert launches[-1].end - missing[0].begin < 1_000_000_000


@pytest.mark.parametrize("count", [1, 20])
def test_killed_before_any_record_came(run, run_collector, tmp_path, count):
    """Not even the writer may have heard of CUPTI."""
    done = run(gpu_work(), *["launch"] * count, "kill", status=-signal.SIGKILL,
               GPUPROF_GPU_FLUSH="60s")
    missing = count - sum(what == "kernel" for what, *_ in gpu_truth.rows(done.process))
    for _ in range(2):  # the second time recovered
        report = run_collector("report", "--format=json", tmp_path / "out")
        assert json.loads(report.stdout)["losses"].get("gpu_missing", 0) == missing
        screen = run_collector("report", tmp_path / "out").stdout.partition("\n\n")[0]
        assert ("  GPU        killed before CUPTI" in screen) == (missing == count), screen
        merged = run_collector("merge", "--strict", tmp_path / "out")
        assert merged.returncode == (3 if missing else 0)
        assert run_collector("recover", tmp_path / "out").returncode == 0


@pytest.fixture(name="missing")
def fixture_missing(run_collector, tmp_path):
    """missing(): work that report and merge say to be missing; both agree."""
    def missing():
        report = run_collector("report", "--format=json", tmp_path / "out")
        losses = json.loads(report.stdout)["losses"]
        merged = run_collector("merge", "--strict", tmp_path / "out", "-o",
                               tmp_path / "trace.json")
        trace = json.loads((tmp_path / "trace.json").read_text())
        assert trace["otherData"]["losses"] == losses
        assert merged.returncode == (3 if losses.get("gpu_missing") else 0), merged.stderr
        return losses.get("gpu_missing", 0)
    return missing


def test_a_wide_capture(run, missing):
    """All launches on its many streams are known to be captured, and none of those behind it."""
    done = run(gpu_work(), "wide-capture")
    launches = [c for c in done.process.calls() if c.cls == "launch"]
    assert [bool(c.flags & stream_reader.CAPTURED) for c in launches] == [True] * 300 + [False]
    assert done.process.counters["capture_overflow"] == missing() == 0


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_host_functions_are_no_work_of_the_device(run, missing, static):
    done = run(gpu_work(static=static), "launch", "host-functions", "launch", "sync")
    launches = collections.Counter(c.symbol for c in done.process.calls() if c.cls == "launch")
    assert launches["cuLaunchHostFunc"] == launches["cudaLaunchHostFunc"] == 5
    assert launches.total() == 12 and missing() == 0


@pytest.mark.parametrize("kinds", ["copy", "info", "set,graph,overhead"])
@pytest.mark.parametrize("graphs", ["nodes", "whole"])
def test_kernels_that_nobody_wants_are_not_missing(run, missing, kinds, graphs):
    done = run(gpu_work(), *WORK, GPUPROF_KINDS=kinds, GPUPROF_GRAPHS=graphs)
    assert done.process.meta["gpu_kinds"] == kinds
    assert missing() == 0


def test_kernels_that_are_not_to_be_had_are_missing(run, missing):
    """What else CUPTI says of a launch, as that its code was loaded, is not its work."""
    done = run(gpu_work(), *WORK, stderr=None, SIMCUPTI_UNSUPPORTED=10)
    assert done.status.endswith(", without kernels: not supported here")
    assert any(what == "overhead" for what, *_ in gpu_truth.rows(done.process))
    launches = [c for c in done.process.calls()
                if c.cls == "launch" and not c.flags & stream_reader.CAPTURED]
    assert missing() == len(launches) > 200


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_pauses_among_launches(run, missing, static):
    """No launch is recorded while kernels are not, but one that was open when they ended."""
    done = run(gpu_work(static=static), "launch", "pauses", "sync", SIMCUDA_LOG_MODE="counts")
    kind = stream_reader.TYPE_NUMBERS["pause"]
    pauses = sorted((r.begin, r.args[0]) for r in done.process.of_type(kind))
    assert [paused for _, paused in pauses] == [1, 0] * 50
    there = {correlation for what, correlation, *_ in gpu_truth.rows(done.process)
             if what == "kernel"}
    launches = {c.correlation for c in done.process.calls() if c.cls == "launch"}
    assert len(launches - there) <= 50 * 3
    assert len(there - launches) <= 50, "work without its call"
    assert missing() == 0


KILLED = {"work": ("work", "launches"), "graphs": ("graph", "sync", "graph", "launches", "graph"),
          "child-graphs": ("child-graphs", "20", "copies-graph"),
          "copies": ("sync", "copies-graph", "launch"), "late": ("work", "100", "copies-graph")}


@pytest.mark.parametrize("graphs", ["nodes", "whole"])
@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
@pytest.mark.parametrize("steps", KILLED)
def test_all_that_a_kill_took_is_counted(run, missing, steps, static, graphs):
    """By what the device was given to do: kernels, copies, fills, graphs."""
    done = run(gpu_work(static=static), "launch", "sync", *KILLED[steps], "kill", same_output=False,
               status=-signal.SIGKILL, GPUPROF_GRAPHS=graphs, GPUPROF_GPU_FLUSH="100ms",
               SIMCUDA_KERNEL_NS=50_000)
    given = {line.values["correlationId"] for line in gpu_truth.made(done.lines).values()
             if line.values["kind"] in gpu_truth.DEVICE_WORK}
    there = {correlation for what, correlation, *_ in gpu_truth.rows(done.process)
             if what in ("kernel", "copy", "set", "graph")}
    assert len(given) > 4 and missing() == len(given - there)


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


SIGNALS = {"abort": signal.SIGABRT, "assert": signal.SIGABRT, "terminate": signal.SIGABRT,
           "interrupt": signal.SIGINT,
           "raise": signal.SIGTERM, "group": signal.SIGTERM, "queue": signal.SIGRTMIN + 3,
           "thread": signal.SIGSEGV}


@pytest.mark.parametrize("end", SIGNALS)
def test_ends_by_a_signal_of_its_own(run, missing, end):
    """Nobody has waited for the last launches, nor asked CUPTI for them."""
    done = run(gpu_work(), *WORK, "launches", "20", end, status=-SIGNALS[end], stderr=None,
               GPUPROF_GPU_FLUSH="30s", preexec_fn=no_core)
    check_whole(done)
    assert len(done.of("cuptiActivityFlushAll")) <= 20 and missing() == 0
    assert done.process.end_reason is None  # it was a kill


def test_signals_that_end_nothing(run):
    """Work that is under way keeps its times, when a signal of the program's own is another's, is
    blocked, harmless or left by its handler."""
    done = run(gpu_work(), "launch", "sync", "harmless", "sync", SIMCUDA_KERNEL_NS=50_000_000)
    check_whole(done)
    calls = {c.args["grid"][0] for c in done.process.calls() if c.cls == "launch"}
    assert 99 in calls and timeless(done) == 0
    assert len(done.of("cuptiActivityFlushAll")) < 50  # nor is one that is often sent flushed for


def test_abort_in_a_signal_handler(run):
    """It interrupts a call that waits: what has ended is there, and what has not is counted."""
    done = run(gpu_work(), *WORK, "watchdog", status=-signal.SIGABRT, stderr=None,
               GPUPROF_GPU_FLUSH="30s", SIMCUDA_KERNEL_NS=50_000_000, preexec_fn=no_core)
    done.kinds()
    assert len(gpu_truth.made(done.lines)) == \
        len([line for line in done.lines if line.layer == "B" and
             line.values["kind"] in gpu_truth.KINDS])
    assert set(done.process.losses) == {"gpu_timeless"} and timeless(done) == 2


@pytest.mark.parametrize("end, status", [("abort", signal.SIGABRT), ("interrupt", signal.SIGINT)])
def test_a_flush_that_hangs_ends_nothing_later(run, end, status):
    begin = time.monotonic()
    run(gpu_work(), "launch", end, status=-status, stderr=None, SIMCUPTI_FLUSH_HANG=1,
        GPUPROF_EXIT_WAIT="300ms", preexec_fn=no_core)
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_what_was_waited_for_is_safe(run, missing, static):
    """A signal from outside may come at any time: CUPTI is asked soon after the program waited."""
    done = run(gpu_work(static=static), *WORK, "launches", "sync", "100", "kill",
               status=-signal.SIGKILL, GPUPROF_GPU_FLUSH="30s", SIMCUPTI_LATE=0)
    check_whole(done, static)
    assert missing() == 0


PYTHON_WORK = """
import ctypes, multiprocessing, time
cuda = ctypes.CDLL("libcudart.so.13")
def work(_):
    memory = ctypes.c_void_p()
    cuda.cudaMalloc(ctypes.byref(memory), 4096)
    for i in range(100):
        cuda.cudaMemsetAsync(memory, i, 4096, None)
        cuda.cudaStreamSynchronize(None)
        time.sleep(.0004)  # gpuprof rests longer when the program waits for the device often
"""
PYTHON_OTHER = PYTHON_WORK + "work(0)\nprint(flush=True)\ntime.sleep(60)"
PYTHON_OTHERS = """
import os, signal, subprocess, sys
others = []
for _ in range(2):
    group = others[0].pid if others else 0
    others += [subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE,
                                preexec_fn=lambda: os.setpgid(0, group))]
for other in others:
    other.stdout.read(1)
%s
for other in others:
    other.wait()
"""
PYTHON_ENDS = {
    "Ctrl-C": ("work(0)\nwork(0)\nraise KeyboardInterrupt", -signal.SIGINT),
    "pool": ("with multiprocessing.Pool(2) as pool:\n    pool.map(work, range(2), 1)", 0),
    "terminate": (PYTHON_OTHERS % "for other in others: other.terminate()", 0),
    "kill": (PYTHON_OTHERS % "for other in others: other.kill()", 0),
    "group": (PYTHON_OTHERS % "os.killpg(others[0].pid, signal.SIGTERM)", 0),
}


def run_python(run, text, *others, status=0, **env):
    return run(sys.executable, "-c", text, *others, status=status, stderr=None, count=None,
               same_output=False, GPUPROF_GPU_FLUSH="30s", LD_LIBRARY_PATH=toolchain.SIM, **env)


@pytest.mark.parametrize("end", PYTHON_ENDS)
def test_python_ends(run, end):
    """Python ends itself by a signal after Ctrl-C, and the processes of its pools from outside."""
    text, status = PYTHON_ENDS[end]
    runs = run_python(run, PYTHON_WORK + text, PYTHON_OTHER, status=status)
    assert sum(one.kinds()[gpu_truth.SET] for one in runs) == 200
    for one in runs:
        assert len(gpu_truth.made(one.lines)) == sum(one.kinds().values()) > 0


OTHER_NAMESPACE = """
import os, signal, subprocess, sys
other = subprocess.Popen([*sys.argv[2:], sys.executable, "-c", sys.argv[1]],
                         stdout=subprocess.PIPE)
other.stdout.read(1)
with open(f"/proc/{other.pid}/task/{other.pid}/children") as children:
    os.kill(int(children.read()), signal.SIGKILL)
other.wait()
"""


def test_killed_from_another_namespace(run):
    """To itself it is process 1."""
    unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespaces here")
    runs = run_python(run, PYTHON_WORK + OTHER_NAMESPACE + "work(0)", PYTHON_OTHER, *unshare)
    assert [one.kinds()[gpu_truth.SET] for one in runs] == [100, 100]


SPARED = PYTHON_WORK + """
import os, signal, subprocess, sys
if len(sys.argv) > 1:
    other = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE,
                             stdin=subprocess.PIPE)
    other.stdout.read(1)
    for number in [0, signal.SIGCONT, signal.SIGWINCH, signal.SIGTERM, signal.SIGINT] * 20:
        other.send_signal(number)
    other.communicate()
else:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, lambda *_: None)
    work(0)
    for _ in range(20):  # ends that have nothing to do with the device, in its parent's files
        child = os.fork() or time.sleep(60)
        os.kill(child, signal.SIGHUP if _ % 2 else signal.SIGKILL)
        os.waitpid(child, 0)
    print(flush=True)
    sys.stdin.read()
"""


def test_signals_that_end_no_other(run):
    """No process flushes for a signal that it outlives, nor for the end of its child."""
    [done] = run_python(run, SPARED, SPARED)
    assert done.kinds()[gpu_truth.SET] == 100 and timeless(done) == 0
    assert len(done.of("cuptiActivityFlushAll")) < 30


@pytest.mark.parametrize("hangs", [0, 1], ids=["stopped", "hangs"])
def test_the_killer_waits_for_no_answer_long(run, hangs):
    """0.1 s for a process whose flush hangs, and not at all for one that is stopped."""
    text = PYTHON_OTHERS % ("begin = time.monotonic()\nfor other in others:\n"
                            f"    os.kill(other.pid, {0 if hangs else signal.SIGSTOP})\n"
                            "    time.sleep(.01)\n    other.kill()\n"
                            f"assert {.2 * hangs} < time.monotonic() - begin < {.12 + .4 * hangs}")
    run_python(run, PYTHON_WORK + text, PYTHON_OTHER, SIMCUPTI_FLUSH_HANG=hangs)


# At its end it says so and stays, behind gpuprof's own end.
PYTHON_ENDED = """
import ctypes
libc = ctypes.CDLL(None)
libc.__cxa_atexit(libc.pause, None, None)
libc.__cxa_atexit(libc.perror, b"ends", None)
""" + PYTHON_WORK + "work(0)"


def test_the_killer_of_one_that_ends(run):
    """It waits for no answer of a process whose records are all there already."""
    text = (PYTHON_OTHERS % "begin = time.monotonic()\nfor other in others:\n    other.kill()\n"
            "assert time.monotonic() - begin < .1").replace("stdout=", "stderr=").replace(
                "stdout.read", "stderr.read")
    runs = run_python(run, PYTHON_WORK + text, PYTHON_ENDED)
    assert [one.kinds()[gpu_truth.SET] for one in runs] == [100, 100]


def test_often_waited_for(run):
    """However often: CUPTI is asked some 60 times a second at most."""
    done = run(gpu_work(), "launch", "sync", "often-wait", GPUPROF_GPU_FLUSH="30s")
    waits = sum(c.symbol == "cudaDeviceSynchronize" for c in done.process.calls())
    flushes = len(done.of("cuptiActivityFlushAll"))
    assert waits > 5000 and 2 < flushes < 300 / 16 + 20


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
    assert goes and any(goes[0] - 20_000_000_000 < at < goes[0] for at in flushes)


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
    assert done.done.stderr.count("\n") <= 2
    assert "the data up to then can be read" in done.done.stderr
    assert done.process.calls() and done.process.torn_bytes == 0
