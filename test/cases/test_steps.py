# SPDX-License-Identifier: Apache-2.0
"""A signal at every instruction of the library: its handler calls, jumps, fills the buffer."""

import collections
import shutil
import signal

import pytest
import stream_reader
import toolchain

pytestmark = pytest.mark.skipif(toolchain.CROSS != "" or not shutil.which("gcc"),
                                reason="no single-stepping under an emulator")

FUNCTIONS = {1: "cudaMalloc", 2: "cudaLaunchKernel", 3: "cudaMemset"}


class Steps:
    def __init__(self, library, folder):
        self.library, self.folder = library, folder
        self.log, self.live = folder / "arrived", folder / "live"
        self.tiny, link = toolchain.tiny()
        self.program = toolchain.build("stepped.c", *link)
        self.tracer = toolchain.build("step.c")

    def __call__(self, number, handler, first=0, stride=1, lead=0, calls=1, status=3, **settings):
        """(how many signals were sent, the process, what arrived at the runtime in order)."""
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        # Single-stepped, every call is a slow one; stacks have tests of their own below.
        settings.setdefault("GPUPROF_BACKTRACE_THRESHOLD", "off")
        # Threads are asked to time calls by the clock, which goes on between the steps.
        settings.setdefault("GPUPROF_SEAL", "60s")
        settings.setdefault("GPUPROF_BUFFER", "4M")
        env = toolchain.environment(out, self.library, LD_LIBRARY_PATH=self.tiny, **settings)
        done = toolchain.run([self.tracer, int(number), first, stride, lead, self.program,
                              self.log, handler, calls], env, status=status, timeout=120)
        processes = stream_reader.read_folder(out)
        toolchain.remove_live(processes)
        with open(self.log, "rb") as log:
            [count] = memoryview(log.read(8)).cast("Q")
            words = memoryview(log.read(8 * count)).cast("Q")
        arrived = [(FUNCTIONS[w >> 32], w & 0xFFFFFFFF) for w in words]
        assert len(set(arrived)) == len(arrived)
        process = min(processes, key=lambda p: p.header.monotonic_zero)
        return int(done.stdout), process, arrived


@pytest.fixture(name="steps")
def fixture_steps(library, tmp_path):
    return Steps(library, tmp_path)


def key(call):
    return call.symbol, call.args["stream" if "stream" in call.args else "bytes"]


def check(process, arrived, missing=(), stale=False):
    """Each call that arrived is recorded once, but for `missing` functions' and those counted."""
    calls = process.calls()
    recorded = collections.Counter(key(c) for c in calls)
    assert not [k for k, count in recorded.items() if count > 1]
    if not stale:
        assert set(recorded) <= set(arrived)
        assert not [c for c in calls if c.flags & (stream_reader.STALE | stream_reader.OPEN)]
        assert process.counters["stale"] == 0
    else:  # noted as open, and left before it came to the runtime
        early = {key(c) for c in calls if c.flags & stream_reader.STALE}
        assert set(recorded) - set(arrived) <= early
    lost = set(arrived) - set(recorded)
    assert {symbol for symbol, _ in lost} <= set(missing), (lost, process.losses)
    assert len(lost) == sum(process.losses.values()), process.losses
    return lost


# Of what takes long, each so many-th instruction; by `make check-long` each of the finer ones.
def finer(*values):
    return pytest.param(*values, marks=pytest.mark.long)


@pytest.mark.parametrize("handler, stride", [("call", 11), ("inner-call", 89), finer("call", 1),
                                             finer("inner-call", 13)])
@pytest.mark.parametrize("nested", ["0", "1"])
def test_handler_calls(steps, handler, nested, stride):
    sent, process, arrived = steps(signal.SIGUSR1, handler, stride=stride, GPUPROF_NESTED=nested)
    assert sent > 30
    lost = check(process, arrived, missing=["cudaMemset"])
    assert 0 < len(lost) < sent  # where it interrupted ourselves, its call passes unrecorded


@pytest.mark.parametrize("handler, stride", [
    ("alt-call", 29), ("alt-inner-call", 211), finer("alt-call", 1)])
def test_handler_calls_on_another_stack(steps, handler, stride):
    sent, process, arrived = steps(signal.SIGUSR1, handler, stride=stride)
    assert sent > 5
    lost = check(process, arrived, missing=["cudaMemset"])
    assert 0 < len(lost) < sent


@pytest.mark.parametrize("handler, stride", [
    ("jump", 11), ("jump-below", 11), ("inner-jump", 89), ("alt-jump", 37), finer("jump", 1),
    finer("inner-jump", 13)])
def test_handler_jumps(steps, handler, stride):
    sent, process, arrived = steps(signal.SIGUSR1, handler, stride=stride)
    assert sent > 10
    # Left while the records of calls inside calls changed places, these are dropped, and counted.
    lost = check(process, arrived, missing=FUNCTIONS.values(), stale=True)
    assert len(lost) <= (10 if handler == "inner-jump" else 0)


@pytest.mark.parametrize("handler, stride", [("range", 11), ("inner-range", 89)])
def test_handler_makes_ranges(steps, handler, stride):
    """A range and the call in it are both recorded, or both counted."""
    sent, process, arrived = steps(signal.SIGUSR1, handler, stride=stride,
                                   NVTX_INJECTION64_PATH=steps.library)
    assert sent > 20
    sets = [c.args for c in process.calls() if c.symbol == "cudaMemset"]
    ranges = [int(r.text) for r in process.of_type(stream_reader.PUSH)]
    assert ranges == [args["bytes"] for args in sets if args["value"]] and ranges
    lost = {n for symbol, n in arrived if symbol == "cudaMemset"} - {a["bytes"] for a in sets}
    assert len(ranges) + len(lost) == sent and lost
    assert sum(process.losses.values()) == 3 * len(lost)


@pytest.mark.parametrize("stride", [17, finer(2)])
def test_handler_forks(steps, stride):
    """The child comes back to the middle of our own code, and leaves its parent's memory alone."""
    sent, process, arrived = steps(signal.SIGUSR1, "fork", stride=stride, calls=2)
    assert sent > 15
    check(process, arrived)
    times = [c.begin for c in process.calls()]
    assert times == sorted(times)
    ends = [c.end for c in process.calls()]
    assert all(end <= begin for end, begin in zip(ends, times[1:]))


@pytest.mark.parametrize("stride", [31, finer(3)])
def test_handler_changes_chunks(steps, stride):
    sent, process, arrived = steps(signal.SIGUSR1, "fill-few", stride=stride, GPUPROF_CHUNK="16K")
    assert sent > 10
    check(process, arrived, missing=["cudaMalloc"])


@pytest.mark.parametrize("stride", [31, finer(3)])
def test_handler_fills(steps, stride):
    """The buffer is full when the handler returns: the interrupted thread has no chunk any more."""
    sent, process, arrived = steps(signal.SIGUSR1, "fill", stride=stride, GPUPROF_BUFFER="1M",
                                   GPUPROF_CHUNK="512K", GPUPROF_ON_FULL="drop")
    assert sent > 10
    check(process, arrived, missing=FUNCTIONS.values())


@pytest.mark.parametrize("handler, stride", [("call", 307), finer("inner-call", 1499)])
def test_timed_calls(steps, handler, stride):
    """The handler comes at some of the instructions of calls whose cost is timed."""
    # The steps are what makes a call long enough for the clock to say that it is to be timed.
    sent, process, arrived = steps(signal.SIGUSR1, handler, stride=stride, lead=2000, calls=12,
                                   GPUPROF_SEAL="10ms")
    assert sent > 5
    check(process, arrived, missing=FUNCTIONS.values())
    assert any(r.args[1] for r in process.of_type(stream_reader.COST))


@pytest.mark.parametrize("handler, stride", [("call", 61), finer("inner-call", 131),
                                             finer("call", 2), finer("inner-call", 41)])
def test_killed(steps, handler, stride):
    steps(signal.SIGUSR1, handler, stride=1 << 20)  # one that lives has the table of functions
    first = 0
    while True:
        sent, process, arrived = steps(signal.SIGKILL, handler, first=first, status=None)
        if not sent:
            break
        calls = process.calls()
        keys = [key(c) for c in calls]
        assert len(set(keys)) == len(keys)
        # Those that returned, and those that did not, if they came so far: a kill at the moment
        # when one inside another is completed hides the outer one.
        in_flight = 3 if handler == "inner-call" else 1
        assert set(arrived[:-in_flight]) <= set(keys)
        whole = [key(c) for c in calls if not c.flags & stream_reader.OPEN]
        assert set(whole) <= set(arrived)
        assert len(set(keys) - set(arrived)) <= 1
        first += stride
    assert first > 60


def has_meaning(process):
    """Each stack that a call names is defined, once, in the file that the kill left."""
    defined = [r.args[0] for r in process.of_type(stream_reader.STACK)]
    named = {r.stack for r in process.of_type(stream_reader.CALL) if r.stack}
    assert len(set(defined)) == len(defined) and named <= set(defined)
    modules = {r.args[0] for r in process.of_type(stream_reader.MODULE)}
    for record in process.of_type(stream_reader.STACK):
        for frame in memoryview(record.text).cast("Q"):
            assert frame >> 60 or frame >> 40 in modules
    return len(named)


@pytest.fixture(name="stack_steps", params=["libunwind", "own"])
def fixture_stack_steps(request, steps):
    """Every call has its stack taken: by libunwind, whose instructions count, too, or by us."""
    if request.param == "libunwind":
        toolchain.need_unwinder()

    def run(number, handler, **arguments):
        sent, process, arrived = steps(number, handler, GPUPROF_BACKTRACE_THRESHOLD="0",
                                       GPUPROF_UNWINDER=request.param, **arguments)
        if "stacks" in process.meta or number != signal.SIGKILL:  # or it ended before that
            assert process.meta["stacks"].startswith(
                "libunwind" if request.param == "libunwind" else "call frame information")
        return sent, process, arrived
    # Its first look at a place, and each one after it was left by a jump, is a long way.
    run.coarser = 7 if request.param == "libunwind" else 1
    return run


@pytest.mark.parametrize("handler, stride", [("call", 97), ("alt-call", 397), ("inner-call", 499)])
def test_handler_calls_in_stacks(stack_steps, handler, stride):
    sent, process, arrived = stack_steps(signal.SIGUSR1, handler, stride=stride)
    assert sent > 5 and has_meaning(process)
    lost = check(process, arrived, missing=["cudaMemset"])
    calls = process.of_type(stream_reader.CALL)
    # The others of its calls come from a signal handler, too, and have no stack. All others do.
    assert process.counters["stackless"] == sent - len(lost) == len([c for c in calls
                                                                     if not c.stack])


@pytest.mark.parametrize("handler, stride", [("jump", 97), finer("inner-jump", 499)])
def test_handler_jumps_out_of_stacks(stack_steps, handler, stride):
    sent, process, arrived = stack_steps(signal.SIGUSR1, handler,
                                         stride=stride * stack_steps.coarser)
    assert sent > 3 and has_meaning(process)
    lost = check(process, arrived, missing=FUNCTIONS.values(), stale=True)
    assert len(lost) <= 10


def test_killed_in_stacks(stack_steps):
    first, named = 0, 0
    while True:
        sent, process, arrived = stack_steps(signal.SIGKILL, "call", first=first, status=None)
        if not sent:
            break
        named += has_meaning(process)
        calls = [r.args for r in process.of_type(stream_reader.CALL)]
        assert len(set(calls)) == len(calls) >= len(arrived) - 1
        first += 1511 * stack_steps.coarser
    assert first > 3000 and named


@pytest.mark.parametrize("handler, stride", [
    ("pass-call", 397), ("pass-inner-call", 499), ("pass-jump", 397), ("pass-inner-jump", 499),
    ("pass-fork", 311)])
def test_passed_calls(steps, handler, stride):
    """All calls are recorded or passed by, once, at whichever instruction the handler comes."""
    sent, process, arrived = steps(signal.SIGUSR1, handler, stride=stride, calls=2,
                                   GPUPROF_OVERHEAD_MAX="0.0001%", GPUPROF_SEAL="1s")
    assert sent > 3
    calls = process.calls()
    recorded = collections.Counter(key(c) for c in calls)
    passed = process.counters["passed_by"]
    assert max(recorded.values()) == 1 and passed > 10000
    lost = set(arrived) - set(recorded)
    # A call that was left before it came to the runtime may be recorded, or counted.
    early = len(set(recorded) - set(arrived))
    jumps = sent if "jump" in handler else 0
    assert early <= jumps
    assert 0 <= passed + sum(process.losses.values()) - len(lost) <= jumps - early
    assert not [k for k in lost if k[0] == "cudaMalloc" and "inner" not in handler]
    weights = [r.weight for r in process.of_type(stream_reader.CALL) if r.weight]
    assert all(weight > 1 for weight in weights)
    # The last launch and the last copy that are recorded stand for nobody after them.
    assert -198 * 2 - jumps <= sum(weight - 1 for weight in weights) - passed <= 0
