# SPDX-License-Identifier: Apache-2.0
"""The simulated CUPTI keeps what its README promises: driven by a client of its own."""

import collections
import signal
import subprocess
import sys

import cupti_client as cupti
import pytest
import toolchain
from conftest import need
from cupti_client import KERNEL, MEMCPY, MEMCPY2, MEMSET, ORDER, OVERHEAD, SYNC

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUPTI runs natively")
START = ("subscribe", "system-ids", "clock", "buffers", "enable")
ABORTED = -signal.SIGABRT
LONG_NS = 300_000_000  # kernels take half to one and a half of it


@pytest.fixture(name="versions", params=ORDER)
def fixture_version(request):
    return request.param


def test_exports(versions):
    """What a version does not have, it does not have here either."""
    missing = set(cupti.run(versions, "version").lines["missing"])
    assert missing == {"11.8": {"cuptiSubscribe_v2", "cuptiGetGraphExecId"},
                       "12.4": {"cuptiSubscribe_v2"}, "13.0": set()}[versions]
    number = cupti.run(versions, "version").lines["version"]
    assert number == ["0 " + {"11.8": "18", "12.4": "22", "13.0": "130001"}[versions]]


def test_attributes(versions):
    """Standard values and sizes; setting them before the callbacks is fine."""
    found = cupti.run(versions, "subscribe", "attributes",
                      CUPTI_ATTRIBUTES="0=-1,5=1,8=-1,9=-1").lines["attribute"]
    pinned = 0 if versions == "13.0" else 1
    thread = {"11.8": "9 1 0 8", "12.4": "9 0 0 1", "13.0": "9 0 1 1"}[versions]
    assert found == ["0 0 3200000 8", "5 0 0 1", f"8 0 {pinned} 1", thread]


# ---- records ------------------------------------------------------------------------------


def log_of(folder, layer, what=None):
    return [line for line in cupti.read_log(folder)
            if line[0] == layer and what in (None, line[1])]


def comparable(values):
    return {k: v for k, v in values.items() if k not in ("record", "kind", "buffer", "length")}


def test_every_record(versions, tmp_path):
    """What was made is what was delivered is what the client read; once each."""
    found = cupti.run(versions, *START, "work", "flush", SIMCUDA_LOG=tmp_path, SIMCUPTI_LOG=1,
                      SIMCUDA_LOG_GPU=1)
    made = {line[5]["record"]: line for line in log_of(tmp_path, "A")}
    sent = {line[5]["record"]: line for line in log_of(tmp_path, "B")}
    assert made and made.keys() == sent.keys() and len(found.records) == len(sent)
    in_log = collections.Counter((line[5]["kind"], *sorted(comparable(line[5]).items()))
                                 for line in sent.values())
    printed = collections.Counter((kind, *sorted(comparable(values).items()))
                                  for kind, values in found.records)
    assert in_log == printed
    kinds = collections.Counter(kind for kind, _ in found.records)
    assert kinds[KERNEL] == 14 and kinds[MEMCPY2] == 1 and kinds[cupti.EVENT] == 1
    assert kinds[MEMSET] == 4 and kinds[MEMCPY] == 4 and kinds[cupti.POOL] == 3
    assert kinds[cupti.DEVICE] == kinds[cupti.CONTEXT] == 0 and kinds[cupti.STREAM] == 2


def test_log_survives_a_kill(versions, tmp_path):
    """What was made is in the log, though nothing was delivered; and by which calls."""
    cupti.run(versions, *START, "launches", "kill", kinds="10", SIMCUDA_LOG=tmp_path,
              SIMCUPTI_LOG=1, status=-signal.SIGKILL)
    made = log_of(tmp_path, "A")
    assert len(made) == 200 and not log_of(tmp_path, "B")
    launches = {line[6] for line in log_of(tmp_path, "R", "cudaLaunchKernel")}
    assert {line[6] for line in made} == launches and len(launches) == 200


TRUTH_KEYS = ("stream_id", "device", "exec", "name", "grid", "block", "shared", "bytes", "kind")
COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "DtoD"}


def told_work(line):
    """A delivered record in the terms of the driver's log."""
    v = line[5]
    place = (line[2], line[3], v["streamId"], v["deviceId"], v["graphId"] or None)
    if v["kind"] == KERNEL:
        shape = [",".join(str(v[part + axis]) for axis in "XYZ") for part in ("grid", "block")]
        return ("kernel", *place, v["name"], *shape,
                None if v["graphId"] else v["dynamicSharedMemory"], None, None)
    what, kind = ("memset", None) if v["kind"] == MEMSET else ("memcpy", COPIES[v["copyKind"]])
    return (what, *place, None, None, None, None, v["bytes"], kind)


def test_records_are_the_work(versions, tmp_path):
    """The device records are what the driver's own log says the device did."""
    found = cupti.run(versions, *START, "work", "flush", SIMCUDA_LOG=tmp_path, SIMCUPTI_LOG=1,
                      SIMCUDA_LOG_GPU=1)
    truth = collections.Counter(
        (what, start, end, *(values.get(k) for k in TRUTH_KEYS))
        for _, what, start, end, _, values, _ in log_of(tmp_path, "G") if what != "graph")
    told = collections.Counter(told_work(line) for line in log_of(tmp_path, "B")
                               if line[5]["kind"] in (KERNEL, MEMCPY, MEMCPY2, MEMSET))
    assert truth and truth == told
    for _, values in found.records:
        if "start" in values:
            assert 0 < values["start"] <= values["end"]
    # The client's clock is the driver's: what it reads is what the log has, to the microsecond.
    starts = sorted(line[2] for line in log_of(tmp_path, "B") if line[5]["kind"] == KERNEL)
    for told_ns, read_ns in zip(starts, sorted(v["start"] for v in found.of(KERNEL))):
        assert abs(told_ns - read_ns) < 100_000
    [peer] = found.of(MEMCPY2)
    assert (peer["srcDeviceId"], peer["dstDeviceId"], peer["copyKind"]) == (0, 1, 10)
    assert {v["copyKind"] for v in found.of(MEMCPY)} == {1, 2, 8}
    assert {v["type"] for v in found.of(SYNC)} == {1, 2, 3, 4}
    assert {v["memoryPoolOperationType"] for v in found.of(cupti.POOL)} == {1, 2, 3}
    assert {v["memoryOperationType"] for v in found.of(cupti.MEMORY2)} == {1, 2}


def test_correlation(versions):
    """Each launch's API record and its kernel share an id, over both layers and in a graph."""
    found = cupti.run(versions, *START, "work", "flush")
    runtime = {v["correlationId"]: v for v in found.of(cupti.RUNTIME)}
    driver = {v["correlationId"] for v in found.of(cupti.DRIVER)}
    names = {int(i): n for d, i, n in (line.split(" ") for line in cupti.bare(
        toolchain.SIM / cupti.VERSIONS[versions][0])["name"]) if d == "2"}
    assert len(runtime) == len(found.of(cupti.RUNTIME))
    kernels = collections.Counter(v["correlationId"] for v in found.of(KERNEL))
    for correlation, count in kernels.items():
        name = names[runtime[correlation]["cbid"]]
        assert correlation not in driver  # nested in the runtime call: no record of its own
        assert (name, count) in (("cudaLaunchKernel_v7000", 1), ("cudaGraphLaunch_v10000", 2))
    assert list(kernels.values()).count(2) == 2
    nodes = [v for v in found.of(KERNEL) if v["graphId"]]
    assert len(nodes) == 4 and len({v["graphNodeId"] for v in nodes}) == 2
    assert all(not v["graphNodeId"] for v in found.of(KERNEL) if not v["graphId"])


def test_graph_trace(versions):
    """One record for each launch, and none of its nodes."""
    found = cupti.run(versions, *START, "graph", "flush", kinds="51,10,1,2")
    assert len(found.of(cupti.GRAPH)) == 2
    assert not found.of(KERNEL) and not found.of(MEMCPY) and not found.of(MEMSET)
    assert all(v["graphId"] and v["end"] > v["start"] for v in found.of(cupti.GRAPH))


def test_events_come_with_synchronization(versions):
    asked = cupti.run(versions, *START, "work", "flush", kinds="36,10")
    assert asked.results["enable-36"] == 21 and not asked.of(cupti.EVENT)
    got = cupti.run(versions, *START, "work", "flush", kinds="38")
    [event] = got.of(cupti.EVENT)
    assert event["correlationId"] and ("deviceTimestamp" in event) == (versions == "13.0")


def test_overheads(versions):
    """Loading at the first launch, the compiler, full queues; the data of the last is malloc'ed."""
    found = cupti.run(versions, *START, "launches", "work", "flush", SIMCUPTI_COMMAND_BUFFER=50)
    kinds = collections.Counter(v["overheadKind"] for v in found.of(OVERHEAD))
    assert kinds[1] == 1
    if versions == "11.8":
        assert set(kinds) == {1}
        return
    assert kinds[5 << 16] == 2 and kinds[6 << 16] == 4
    assert all(v["length"] == 50 for v in found.of(OVERHEAD) if v["overheadKind"] == 6 << 16)


def test_overhead_data_is_the_clients_to_free():
    """It is a block of its own: freed it is no leak, kept it is one."""
    need("valgrind")
    steps = (*START, "launches", "flush", "finalize")
    settings = {"kinds": "17", "SIMCUPTI_COMMAND_BUFFER": 100, "SIMCUPTI_FINALIZE": "allow"}
    tool = ["valgrind", "-q", "--leak-check=full", "--show-leak-kinds=definite"]
    clean = cupti.run("13.0", *steps, wrap=tool, **settings)
    leaky = cupti.run("13.0", "keep-data", *steps, wrap=tool, **settings)
    assert len(clean.of(OVERHEAD)) == len(leaky.of(OVERHEAD)) == 4
    assert "definitely lost" not in clean.done.stderr and "Invalid" not in clean.done.stderr
    assert "24 bytes in 2 blocks are definitely lost" in leaky.done.stderr


def test_disorder(versions):
    """Records change places; with 0 they do not, and every third can come much later."""
    mixed = cupti.run(versions, *START, "launches", "sync", "flush", kinds="10")
    straight = cupti.run(versions, *START, "launches", "sync", "flush", kinds="10",
                         SIMCUPTI_DISORDER=0)
    late = cupti.run(versions, *START, "launches", "sync", "flush", "flush", "launches", "sync",
                     "flush", "flush", "flush", kinds="10", SIMCUPTI_LATE=3, SIMCUPTI_DISORDER=0)
    ids = [[v["gridId"] for v in run.of(KERNEL)] for run in (mixed, straight, late)]
    assert ids[0] != sorted(ids[0]) and ids[1] == sorted(ids[1]) == sorted(ids[0])
    assert ids[2] != sorted(ids[2]) and sorted(ids[2]) == list(range(1, 401))


# ---- callbacks ----------------------------------------------------------------------------


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_callbacks(versions, static):
    """Only those that are enabled, in pairs on the calling thread, with their arguments."""
    found = cupti.run(versions, "subscribe", "callbacks", "threads", "work", static=static,
                      CUPTI_CALLBACKS="2:211,1:307,2:31,3:3,4:1")
    ids = collections.Counter((d, c) for _, d, c, _ in found.callbacks)
    assert set(ids) == {(2, 211), (1, 307), (2, 31), (3, 3), (4, 1)}
    api = [c for c in found.callbacks if c[1] in (1, 2)]
    open_calls = collections.defaultdict(list)
    for site, domain, cbid, values in api:
        stack = open_calls[values["tid"]]
        if site == 0:
            if stack:
                assert (stack[-1][0], domain, stack[-1][2]["correlation"]) == \
                    (2, 1, values["correlation"])
            assert values["data"] == 1000000 + values["correlation"] and values["result"] == -1
            stack.append((domain, cbid, values))
        else:
            entered = stack.pop()
            assert entered[:2] == (domain, cbid) and values["result"] == 0
            assert values["data"] == entered[2]["data"]
    assert not any(open_calls.values()) and len(open_calls) == 3
    launches = [v for _, d, c, v in api if (d, c) == (2, 211) and "kernel" in v]
    assert {"_Z4gemmPKfS0_Pfi", "_Z4adamPfS_S_fi"} == {v["kernel"] for v in launches}
    assert {v["name"] for v in launches} == {"cudaLaunchKernel_v7000"}
    assert ("4,1,1", "32,1,1", 0) in {(v["grid"], v["block"], v["shared"]) for v in launches}
    assert {(v["bytes"], v["kind"]) for _, d, c, v in api if (d, c) == (2, 31)} == {(65536, 1)}


def test_callback_ids_that_are_none(versions):
    """Ids of newer versions are refused, and so are those of the next domain."""
    first = {"11.8": (434, 677), "12.4": (468, 754), "13.0": (523, 807)}[versions]
    known = ",".join(f"{d}:{n - 1}" for d, n in zip((2, 1), first))
    unknown = ",".join(f"{d}:{n}" for d, n in zip((2, 1), first))
    found = cupti.run(versions, "subscribe", "callbacks",
                      CUPTI_CALLBACKS=f"{known},{unknown},9:1")
    assert [found.results[f"callback-{d}:{n - 1}"] for d, n in zip((2, 1), first)] == [0, 0]
    assert [found.results[f"callback-{d}:{n}"] for d, n in zip((2, 1), first)] == [1, 1]
    assert found.results["callback-9:1"] == 1


def test_one_subscriber(versions):
    found = cupti.run(versions, "subscribe", "subscribe2", "unsubscribe", "subscribe2")
    assert found.results["subscribe"] == 0 and found.results["unsubscribe"] == 0
    if versions == "13.0":
        assert found.results["subscribe2"] == 39
        assert found.lines["holder"] == ["CUPTI for unknown", ""]
    held = cupti.run(versions, "subscribe", "subscribe2", SIMCUPTI_HOLDER="nsys")
    assert held.results["subscribe"] == 39
    assert held.lines["holder"] == (["CUPTI for nsys"] if versions == "13.0" else [])


def test_ids(versions):
    found = cupti.run(versions, "subscribe", "launch", "ids").lines["id"]
    stream, thread_stream, device = (line.split(" ") for line in found)
    assert stream[1] == thread_stream[1] == device[1] == "0"
    assert device[2] == "0" and stream[2] != thread_stream[2]


# ---- buffers and flushes ------------------------------------------------------------------


@pytest.mark.parametrize("own", [0, 1], ids=["shared", "per-thread"])
def test_buffers_of_threads(own):
    """With attribute 9 each thread's records lie in buffers of its own."""
    found = cupti.run("13.0", "attributes", *START, "threads", "launch", "sync", "flush",
                      kinds="5", CUPTI_ATTRIBUTES=f"9={own}")
    assert len(found.buffers) == (3 if own else 1)
    threads = [[]]
    for line in found.text.splitlines():
        if line.startswith("buffer "):
            threads.append([])
        elif line.startswith("record 5"):
            threads[-1].append(line.partition("threadId=")[2].partition("\t")[0])
    assert all(len(set(t)) == (1 if own else 3) for t in threads[1:])
    assert sum(map(len, threads)) == len(found.of(5)) >= 404


def test_zeroed_buffers(versions):
    """The library clears a buffer, or insists on a clear one."""
    cleared = cupti.run(versions, "dirty", *START, "launch", "sync", "flush", kinds="10")
    assert len(cleared.of(KERNEL)) == 1
    broken = cupti.run(versions, "attributes", "dirty", *START, "launch", "sync", "flush",
                       kinds="10", CUPTI_ATTRIBUTES="5=1", status=ABORTED)
    assert "sim-cupti: ZEROED_OUT_ACTIVITY_BUFFER is 1 and byte 0" in broken.done.stderr
    fine = cupti.run(versions, "attributes", *START, "launch", "sync", "flush", kinds="10",
                     CUPTI_ATTRIBUTES="5=1")
    assert len(fine.of(KERNEL)) == 1


def test_no_buffer(versions):
    """Before API 27 a refused buffer is a crash; later it is lost records."""
    steps = (*START, "launches", "sync", "flush", "dropped", "dropped")
    settings = {"kinds": "10", "CUPTI_BUFFER": 2160, "CUPTI_BUFFERS": 3, "SIMCUPTI_DISORDER": 0}
    if versions != "13.0":
        found = cupti.run(versions, *steps, status=ABORTED, **settings)
        assert "sim-cupti: the client gave no buffer: this version crashes" in found.done.stderr
        return
    found = cupti.run(versions, *steps, **settings)
    assert len(found.of(KERNEL)) == 30 and found.lines["dropped"] == ["0 170", "0 0"]


def test_dropped_records(versions):
    found = cupti.run(versions, *START, "launches", "sync", "flush", "dropped", "dropped",
                      kinds="10", SIMCUPTI_DROP=10)
    assert len(found.of(KERNEL)) == 180 and found.lines["dropped"] == ["0 20", "0 0"]


def test_small_buffers(versions):
    """The library fills less than it is given: many buffers, all walkable."""
    found = cupti.run(versions, *START, "launches", "sync", "flush", kinds="10",
                      SIMCUPTI_BUFFER_BYTES=1000)
    count = {"11.8": 40, "12.4": 50, "13.0": 50}[versions]  # 5 or 4 records in each
    assert len(found.buffers) == count and len(found.of(KERNEL)) == 200
    assert all(valid <= 1000 for _, valid in found.buffers)


def test_flushes(versions):
    """0 keeps what is not complete, 1 gives it away without times."""
    found = cupti.run(versions, *START, "launch", "flush", "flush-forced", kinds="10",
                      SIMCUDA_KERNEL_NS=LONG_NS)
    assert [v["start"] for v in found.of(KERNEL)] == [0]
    assert found.text.index("result flush 0") < found.text.index("record 10")
    waited = cupti.run(versions, *START, "launch", "flush", "sync", "flush", kinds="10",
                       SIMCUDA_KERNEL_NS=LONG_NS)
    assert [v["start"] > 0 for v in waited.of(KERNEL)] == [True]
    assert waited.text.index("step sync") < waited.text.index("record 10")


def test_flush_period(versions):
    """The worker gives away full buffers only."""
    found = cupti.run(versions, *START, "period", "launches", "sync", "sleep", "flush",
                      kinds="10", CUPTI_BUFFER=2160)
    before = found.text[:found.text.index("step flush")]
    assert 0 < before.count("record 10") < 200 and len(found.of(KERNEL)) == 200


def test_at_exit(tmp_path, versions):
    """A handler registered after cuInit runs before the driver's own, one before it too late."""
    early = cupti.run(versions, "at-exit", *START, "launch", "sync", kinds="10",
                      SIMCUDA_LOG=tmp_path, SIMCUPTI_LOG=1)
    late = cupti.run(versions, *START, "launch", "sync", "at-exit", kinds="10")
    assert early.results["flush-at-exit"] == (999 if versions == "13.0" else 15)
    assert not early.records and late.results["flush-at-exit"] == 0
    assert len(late.of(KERNEL)) == 1
    assert [line[5]["records"] for line in log_of(tmp_path, "P", "lost")] == [1]


def test_child(versions):
    found = cupti.run(versions, *START, "launch", "sync", "child", "flush", kinds="10")
    assert found.lines["child"] == ["hung"] and len(found.of(KERNEL)) == 1


def test_flush_that_hangs(versions):
    with pytest.raises(subprocess.TimeoutExpired) as hung:
        cupti_run_bounded(versions, *START, "launch", "sync", "flush", "launch", "flush",
                          SIMCUPTI_FLUSH_HANG=2)
    text = hung.value.stdout.decode()
    assert text.count("result flush 0") == 1 and text.count("step flush\n") == 2


def cupti_run_bounded(version, *steps, **settings):
    name, major = cupti.VERSIONS[version]
    env = toolchain.environment(None, CUPTI_KINDS="10", CUPTI_LIB=name, **settings)
    toolchain.run([cupti.build(major), *steps], env, timeout=5)


# ---- time ---------------------------------------------------------------------------------

REALTIME_MIN = 10**17


def kernel_times(version, *steps, **settings):
    found = cupti.run(version, *steps, kinds="10", **settings)
    return [(v["start"], v["end"]) for v in found.of(KERNEL)]


def test_clock_domains(versions):
    """CLOCK_REALTIME unless a callback says otherwise, or a switch that it does not."""
    own = ("subscribe", "clock", "buffers", "enable", "launches", "sync", "flush")
    plain = ("subscribe", "buffers", "enable", "launches", "sync", "flush")
    assert all(start > REALTIME_MIN for start, _ in kernel_times(versions, *plain))
    assert all(start < REALTIME_MIN for start, _ in kernel_times(versions, *own))
    wrong = kernel_times(versions, *own, SIMCUPTI_CLOCK="realtime")
    assert len(wrong) == 200 and all(start > REALTIME_MIN for start, _ in wrong)
    early = kernel_times(versions, "subscribe", "launch", *own[1:], SIMCUPTI_CLOCK="early")
    assert len(early) == 200 and all(start > REALTIME_MIN for start, _ in early)
    fresh = kernel_times(versions, *own, SIMCUPTI_CLOCK="early")
    assert all(start < REALTIME_MIN for start, _ in fresh)


def test_timestamp(versions):
    found = cupti.run(versions, "timestamp", "clock", "timestamp").lines["timestamp"]
    before, after = ([int(t) for t in line.split(" ")] for line in found)
    assert before[0] > REALTIME_MIN and abs(after[0] - after[1]) < 1_000_000_000


def test_second_clock_spoils_the_first_records(versions):
    times = kernel_times(versions, *START, "clock", "launches", "sync", "flush",
                         SIMCUPTI_DISORDER=0)
    assert [start > end for start, end in times] == [True] * 4 + [False] * 196


def test_zero_timestamps(versions):
    times = kernel_times(versions, *START, "launches", "sync", "flush", SIMCUPTI_ZERO=4)
    assert times.count((0, 0)) == 50 and len(times) == 200


def test_drift(versions, tmp_path):
    """The device's clock runs away between two samples, here by a tenth."""
    found = cupti.run(versions, *START, "launch", "sync", "flush", kinds="10",
                      SIMCUDA_KERNEL_NS=LONG_NS, SIMCUPTI_DRIFT_PPM=100000, SIMCUDA_LOG=tmp_path,
                      SIMCUPTI_LOG=1)
    [truth] = log_of(tmp_path, "B")
    [values] = found.of(KERNEL)
    error_ns = values["end"] - truth[3]
    assert 0.05 * LONG_NS / 2 < error_ns < 0.2 * 1.5 * LONG_NS + 100_000_000


def test_latency_timestamps(versions):
    found = cupti.run(versions, *START, "latency", "launches", "sync", "flush", kinds="10")
    assert all(0 < v["queued"] <= v["start"] + 1000 for v in found.of(KERNEL))
    without = cupti.run(versions, *START, "launches", "sync", "flush", kinds="10")
    assert all(v["queued"] == 0 for v in without.of(KERNEL))


# ---- the beginning ------------------------------------------------------------------------


def test_implicit_initialisation(versions, tmp_path):
    """CUPTI initialises the driver if nobody did, and says so; its worker comes with a kind."""
    for folder, steps, implicit in (("a", ("subscribe",), 1), ("b", ("init", "subscribe"), 0)):
        (tmp_path / folder).mkdir()
        cupti.run(versions, *steps, SIMCUDA_LOG=tmp_path / folder, SIMCUPTI_LOG=1)
        [line] = log_of(tmp_path / folder, "P", "attached")
        assert line[5]["implicit"] == implicit
        assert not log_of(tmp_path / folder, "P", "worker")
    (tmp_path / "c").mkdir()
    cupti.run(versions, *START, SIMCUDA_LOG=tmp_path / "c", SIMCUPTI_LOG=1)
    assert len(log_of(tmp_path / "c", "P", "worker")) == 1
    called = [line[1] for line in log_of(tmp_path / "c", "P") if line[1].startswith("cupti")]
    assert called[:3] == ["cuptiSubscribe", "cuptiSetThreadIdType",
                          "cuptiActivityRegisterTimestampCallback"]


def test_no_driver(versions):
    """Without a device, with a code of the tester's choice, and older than the library."""
    none = 999 if versions == "13.0" else 15
    assert cupti.run(versions, "subscribe", SIMCUDA_DEVICES=0).results["subscribe"] == none
    assert cupti.run(versions, "subscribe", SIMCUPTI_SUBSCRIBE=35).results["subscribe"] == 35
    newer = cupti.run(versions, *START, SIMCUPTI_NEWER=1, kinds="10")
    assert newer.results["subscribe"] == newer.results["enable-10"] == 15
    if versions == "13.0":
        old = cupti.run(versions, "subscribe", SIMCUDA_DRIVER_VERSION=12040)
        assert old.results["subscribe"] == 15


def test_unsupported_kinds(versions):
    found = cupti.run(versions, *START, "graph", "flush", SIMCUPTI_UNSUPPORTED="51,38",
                      kinds="51,38,10")
    assert [found.results[f"enable-{k}"] for k in (51, 38, 10)] == [27, 27, 0]
    assert len(found.of(KERNEL)) == 4 and not found.of(SYNC) and not found.of(cupti.GRAPH)


# ---- misuse -------------------------------------------------------------------------------

MISUSE = {
    "cuda in a callback": ("cudaMalloc called inside the cudaLaunchKernel callback",
                           ("subscribe", "callbacks", "cuda-in-callback", "launch")),
    "flush in request": ("cuptiActivityFlushAll called inside the client's buffer request",
                         (*START, "flush-in-request", "launches", "sync", "flush")),
    "flush in complete": ("cuptiActivityFlushAll called inside the client's buffer completed",
                          (*START, "flush-in-complete", "launch", "sync", "flush")),
    "lock inversion": ("lock inversion: the client's buffer ",
                       (*START, "launch", "sync", "locked")),
    "lock inversion of two threads": ("lock inversion: ",
                                      ("takes-lock", *START, "inversion")),
    "flush in destroy": ("inside a STREAM_DESTROY_STARTING callback: a deadlock",
                         (*START, "callbacks", "flush-in-destroy", "destroy")),
    "wrong buffer": ("with a record of another buffer", ("walk-wrong",)),
    "buffer not completed": ("on a buffer that has not been completed",
                             (*START, "launches", "walk-held")),
    "attribute": ("attribute 5 changed after cuptiActivityRegisterCallbacks",
                  (*START, "attributes")),
    "finalize": ("cuptiFinalize called", (*START, "finalize")),
    "serialising kind": ("kind KERNEL serialises", ("subscribe", "enable")),
}


@pytest.mark.parametrize("name", MISUSE)
def test_misuse(versions, name):
    message, steps = MISUSE[name]
    found = cupti.run(versions, *steps, status=ABORTED, CUPTI_CALLBACKS="2:211,3:4",
                      CUPTI_ATTRIBUTES="5=1",
                      SIMCUPTI_LOCK_MS=300 if name.startswith("lock") else 30000,
                      kinds="3" if name == "serialising kind" else "10")
    [line] = found.done.stderr.splitlines()
    assert line.startswith("sim-cupti: ") and message in line


def test_names_end_with_finalize(versions):
    steps = (*START, "launch", "sync", "flush", "finalize")
    cupti.run(versions, *steps, SIMCUPTI_FINALIZE="allow", kinds="10")
    found = cupti.run(versions, *steps, "use-name", SIMCUPTI_FINALIZE="allow", kinds="10",
                      status=ABORTED)
    assert found.done.stderr == "sim-cupti: a name was used after cuptiFinalize\n"


# ---- other clients ------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["kineto", "holder"])
def test_other_client_alone(versions, which):
    done = toolchain.run([cupti.other_client(versions), which], toolchain.environment(None))
    started, stopped = done.stdout.splitlines()
    assert started == f"{which} started 0"
    if which == "kineto":
        assert stopped.startswith("kineto stopped buffers=") and "kernels=200" in stopped
    else:
        assert stopped == "holder stopped callbacks=402"


def test_kineto_steals(versions):
    """Callbacks, clock and kinds are the last one's: the first sees nothing, then has to ask."""
    steps = (*START, "launches", "sync", "other_client-start", "launches", "sync", "flush",
             "other_client-stop", "launches", "sync", "flush", "buffers", "enable", "launches",
             "sync", "flush")
    found = cupti.run(versions, *steps, kinds="10", LD_PRELOAD=cupti.other_client_library(versions))
    # The other client even gets what was recorded for the first one.
    assert "kernels=400" in found.text and len(found.of(KERNEL)) == 200
    assert found.text.index("record 10") > found.text.rindex("step launches")
    flushed = [*steps[:7], "flush", *steps[7:]]
    kept = cupti.run(versions, *flushed, kinds="10",
                     LD_PRELOAD=cupti.other_client_library(versions))
    assert "kernels=200" in kept.text and len(kept.of(KERNEL)) == 400


def test_holder_holds(versions):
    found = cupti.run(versions, "subscribe", "subscribe2", OTHER_CLIENT="holder",
                      LD_PRELOAD=cupti.other_client_library(versions))
    assert "holder started 0" in found.text and found.results["subscribe"] == 39
    if versions == "13.0":
        assert found.lines["holder"][-1] == "CUPTI for the holder"


def test_two_versions_in_one_process():
    """The driver is traced by one library; the other's client finds it taken."""
    found = cupti.run("13.0", "subscribe", OTHER_CLIENT="holder",
                      LD_PRELOAD=cupti.other_client_library("12.4"))
    assert "holder started 0" in found.text and found.results["subscribe"] == 39


def test_beside_gpuprof(versions, library, tmp_path):
    """gpuprof's hooks are calls of the program to it: nothing is lost, doubled or forbidden."""
    steps = (*START, "callbacks", "launches", "work", "threads", "flush")
    alone = cupti.run(versions, *steps, CUPTI_CALLBACKS="2:211")
    beside = cupti.run(versions, *steps, CUPTI_CALLBACKS="2:211", LD_PRELOAD=library,
                       GPUPROF_OUT=tmp_path, GPUPROF_GPU="off")
    assert len(beside.callbacks) == len(alone.callbacks) == 2 * 612
    count = [collections.Counter(kind for kind, _ in run.records) for run in (alone, beside)]
    assert count[0] == count[1] and list(tmp_path.glob("*.gpuprof"))


# ---- several subscribers (13.5) ----

SUBSCRIBERS = """
import ctypes, sys
cupti = ctypes.CDLL(sys.argv[1])
P = ctypes.c_void_p
class Params(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("old", ctypes.c_char_p),
                ("bytes", ctypes.c_size_t), ("allow", ctypes.c_uint8), ("pad", ctypes.c_uint8 * 7)]
NOOP = ctypes.CFUNCTYPE(None, P, ctypes.c_int, ctypes.c_uint, P)(lambda *_: None)
REQUEST = ctypes.CFUNCTYPE(None, P, P, P, P)(lambda *_: None)
COMPLETE = ctypes.CFUNCTYPE(None, P, ctypes.c_size_t, ctypes.c_size_t, P)(lambda *_: None)
handles = {}
def v1(name):
    handles[name] = P()
    return cupti.cuptiSubscribe(ctypes.byref(handles[name]), NOOP, None)
def v2(name, allow, size=40):
    handles[name] = P()
    old = ctypes.create_string_buffer(64)
    code = cupti.cuptiSubscribe_v2(ctypes.byref(handles[name]), NOOP, None, ctypes.byref(
        Params(size, name.encode(), ctypes.cast(old, ctypes.c_char_p), 64, allow)))
    return (code, old.value.decode()) if code else code
def leave(name):
    return cupti.cuptiUnsubscribe(handles[name])
def attribute(name, number, value=None, kind=ctypes.c_uint8):
    got, size = kind(value or 0), ctypes.c_size_t(ctypes.sizeof(kind))
    which = cupti.cuptiActivityGetAttribute_v2 if value is None else \\
        cupti.cuptiActivitySetAttribute_v2
    code = which(handles.get(name), number, ctypes.byref(size), ctypes.byref(got))
    return code if code or value is not None else ("is", got.value)
def enable(name, kind=10):
    return cupti.cuptiActivityEnable_v2(handles[name], kind, None)
def register(name):
    return cupti.cuptiActivityRegisterCallbacks_v2(handles[name], REQUEST, COMPLETE)
dropped = ctypes.c_size_t()
for step in sys.argv[2:]:
    print(step, eval(step))
"""


def subscribers(*steps, **settings):
    library = toolchain.SIM / cupti.VERSIONS["13.5"][0]
    env = toolchain.environment(None, **settings)
    done = toolchain.run([sys.executable, "-c", SUBSCRIBERS, library, *steps], env)
    return [line[len(step) + 1:] for step, line in zip(steps, done.stdout.splitlines())]


def test_first_subscriber_chooses():
    """Alone or not: for all who come, and for ever."""
    state = "attribute(None, 12)"
    assert subscribers(state, "v2('a', 1)", state, "v2('b', 1)", "v2('c', 0)", "v1('d')",
                       "leave('a')", "leave('b')", "v2('e', 0)", "v2('f', 1)") == [
        "('is', 2)", "0", "('is', 1)", "0", "(39, 'CUPTI for a')", "39", "0", "0", "(39, '')", "0"]
    assert subscribers("v2('a', 0)", state, "v2('b', 1)", "leave('a')", "v2('c', 1)") == [
        "0", "('is', 0)", "(39, 'CUPTI for a')", "0", "(39, '')"]
    assert subscribers("v1('a')", "v2('b', 1)", "leave('a')", state, "v2('b', 1)") == [
        "0", "(39, 'CUPTI for unknown')", "0", "('is', 2)", "0"]
    # The structure of 13.0 does not say.
    assert subscribers("v2('a', 1, 32)", state, "v2('b', 1)") == [
        "0", "('is', 2)", "(39, 'CUPTI for a')"]
    assert subscribers("v2('a', 1)", SIMCUPTI_SOLE="1") == ["(39, '')"]  # an older driver


def test_scopes_do_not_mix():
    """Whichever functions were used first, the others are refused, though their user has left."""
    assert subscribers("v2('a', 1)", "register('a')", "enable('a')", "cupti.cuptiActivityEnable(1)",
                       "cupti.cuptiActivityGetNumDroppedRecords(None, 0, ctypes.byref(dropped))",
                       "cupti.cuptiActivityGetNumDroppedRecords_v2(handles['a'], None, 0, "
                       "ctypes.byref(dropped))", "leave('a')", "cupti.cuptiActivityEnable(1)") == [
        "0", "0", "0", "14", "14", "0", "0", "14"]
    assert subscribers("v2('a', 0)", "cupti.cuptiActivityEnable(1)", "enable('a')",
                       "register('a')") == ["0", "0", "14", "14"]


def test_what_sharing_refuses():
    """What is the process's alone; the subscriber's own attributes are there instead."""
    assert subscribers("v2('a', 1)", "v2('b', 1)", "cupti.cuptiSetThreadIdType(1)",
                       "cupti.cuptiActivityEnableAllocationSource(1)",
                       "cupti.cuptiActivityRegisterTimestampCallback(REQUEST)",
                       "cupti.cuptiActivityFlushPeriod(100)",
                       "attribute('a', 21, 1, ctypes.c_int)", "attribute('a', 15, 1)",
                       "attribute('b', 12, 1)", "attribute('a', 13, 1)",
                       "attribute('a', 22, 0, ctypes.c_size_t)") == [
        "0", "0", "27", "27", "27", "27", "0", "0", "1", "27", "0"]
    assert subscribers("v2('a', 1)", "attribute('a', 22, 4096, ctypes.c_size_t)",
                       SIMCUPTI_SOLE_CLOCK="1") == ["0", "27"]


def test_graph_level_is_everybodys():
    """The first value holds, whoever leaves, and only before kinds are enabled."""
    assert subscribers("v2('a', 1)", "v2('b', 1)", "enable('b', 51)", "attribute('a', 20, 1)",
                       "enable('b', 51)", "leave('a')", "attribute('b', 20, 0)",
                       "attribute('b', 20)") == ["0", "0", "14", "0", "0", "0", "7", "('is', 1)"]
