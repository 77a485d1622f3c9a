# SPDX-License-Identifier: Apache-2.0
"""One event per call, and no call silenced, however a call is left."""

import collections
import signal

import pytest
import stream_reader
import toolchain


@pytest.fixture(name="record")
def fixture_record(library, tmp_path):
    """Runs a program on the tiny runtime: (its result, process, what arrived at the runtime)."""
    def record(source, *arguments, compiler="gcc", flags=(), status=3, lost=(), **settings):
        folder, link = toolchain.tiny()
        program = toolchain.build(source, *link, *flags, compiler=compiler)
        log, out = tmp_path / "tiny.log", tmp_path / "out"
        settings = {"TINY_LOG": log, "LD_LIBRARY_PATH": folder, **settings}
        env = toolchain.environment(out, library, **settings)
        done = toolchain.run([program, *arguments], env, status=status)
        assert done.stderr == ""
        [process] = stream_reader.read_folder(out)
        assert set(process.losses) <= set(lost), process.losses
        lines = log.read_text().splitlines() if settings["TINY_LOG"] else []
        arrived = [tuple(line.split()[2:]) for line in lines]
        return done, process, arrived
    return record


def events(process, **wanted):
    """symbol -> number of events, nested ones apart."""
    return dict(collections.Counter(c.symbol for c in process.calls()
                                    if not c.flags & stream_reader.NESTED))


def of(process, symbol):
    return [c for c in process.calls() if c.symbol == symbol]


def first(calls):
    """The first argument of each."""
    return [next(iter(c.args.values())) for c in calls]


def stale(calls):
    return [bool(c.flags & stream_reader.STALE) for c in calls]


@pytest.mark.parametrize("depth", ["shallow", "same", "deep"])
@pytest.mark.parametrize("nested", ["0", "1"])
@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
def test_siglongjmp(record, depth, nested, optimise):
    _, process, arrived = record("leave.c", f"jump-{depth}", flags=(optimise,),
                                 GPUPROF_NESTED=nested)
    assert events(process) == dict(collections.Counter(symbol for symbol, _ in arrived))
    syncs = of(process, "cudaStreamSynchronize")
    assert stale(syncs) == [True, True] and first(syncs) == [0x55, 0x55]
    mallocs = of(process, "cudaMalloc")
    assert stale(mallocs) == [False] * 7
    assert [m.args["bytes"] for m in mallocs] == [1000, 1, 2, 3, 1, 2, 3]
    assert process.counters["stale"] == 2


def test_siglongjmp_from_anywhere(record):
    """Out of registrations and launches, our own code included: no lock stays, no name is lost."""
    _, process, _ = record("leave.c", "names", TINY_LOG="", lost=["dropped"])
    # A jump between the two steps by which a call is noted as open: one that came not to CUDA.
    assert process.counters["dropped"] < 300
    names = {r.args[0]: r.text for r in process.of_type(stream_reader.NAME)}
    launched = {c.args["kernel"] for c in process.calls() if "kernel" in c.args}
    assert len(launched) > 1000 and launched <= set(names)
    assert set(names.values()) == {b"a kernel of the round"}


@pytest.mark.parametrize("scenario", ["handler", "altstack"])
@pytest.mark.parametrize("nested", ["0", "1"])
def test_signal_handler_calls(record, scenario, nested):
    """The user's own call is an event, even in the middle of another one."""
    _, process, arrived = record("leave.c", scenario, GPUPROF_NESTED=nested)
    assert events(process) == dict(collections.Counter(symbol for symbol, _ in arrived))
    syncs, memsets = of(process, "cudaStreamSynchronize"), of(process, "cudaMemset")
    assert first(syncs) == [0x55, 0x56] and stale(memsets) == [False] * 2
    assert [m.args["bytes"] for m in of(process, "cudaMalloc")] == [1000, 1, 2, 3, 1, 2, 3]
    assert stale(of(process, "cudaMalloc")) == [False] * 7
    assert stale(syncs) == [False] * 2
    for sync, memset in zip(syncs, memsets):
        assert sync.begin <= memset.begin <= memset.end <= sync.end


@pytest.mark.parametrize("nested", ["0", "1"])
def test_killed_inside(record, nested):
    """A kill shows every call that was open, the outermost first, however much came in between."""
    _, process, _ = record("leave.c", "die", status=-signal.SIGKILL, GPUPROF_NESTED=nested,
                           GPUPROF_CHUNK="16K")
    opened = [c for c in process.calls() if c.flags & stream_reader.OPEN]
    assert [c.symbol for c in opened if not c.flags & stream_reader.NESTED] == [
        "cudaStreamSynchronize", "cudaMemset"]
    assert [next(iter(c.args.values())) for c in opened[:1]] == [0x55]
    assert [c.args["bytes"] for c in opened if c.symbol == "cudaMemset"] == [77]
    assert [m.args["bytes"] for m in of(process, "cudaMalloc")] == [1000, *range(1, 3001)]
    assert process.counters["stale"] == 0


@pytest.mark.parametrize("scenario", ["cancel", "cancel-cleanup", "exit"])
def test_thread_leaves(record, scenario):
    done, process, arrived = record("leave.c", scenario)
    if scenario != "exit":
        assert "cancelled 1" in done.stdout
    assert events(process) == dict(collections.Counter(symbol for symbol, _ in arrived))
    syncs = of(process, "cudaStreamSynchronize")
    assert stale(syncs) == [True] and first(syncs) == [0x55]
    assert [m.args["bytes"] for m in of(process, "cudaMemset")] == [88]  # the key's destructor
    assert process.counters["stale"] == 1


def test_coroutines(record):
    _, process, arrived = record("leave.c", "coroutines")
    assert events(process) == dict(collections.Counter(symbol for symbol, _ in arrived))


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
def test_exception(record, compiler, optimise):
    done, process, arrived = record("throw.cc", compiler=compiler, flags=(optimise,))
    assert done.stdout == "".join(f"caught: from inside {i}\n" for i in (1, 2, 3))
    assert events(process) == dict(collections.Counter(symbol for symbol, _ in arrived))
    syncs = of(process, "cudaStreamSynchronize")
    assert stale(syncs) == [True] * 3 and first(syncs) == [1, 2, 3]


def counted(record, scenario, amount, lost=("unrecorded",), **settings):
    """All that arrived is recorded or counted, once: (calls, process)."""
    done, process, _ = record("other_stacks.c", scenario, amount, TINY_LOG="", lost=lost,
                              **settings)
    calls = process.calls()
    assert int(done.stdout) == len(calls) + sum(process.losses.values()), process.losses
    assert process.counters["stale"] == sum(stale(calls))
    return calls, process


@pytest.mark.parametrize("scenario", ["altstack", "far"])
@pytest.mark.parametrize("threshold", ["off", "0"])
def test_handler_on_another_stack(record, scenario, threshold):
    """A signal's handler, far from the frames that it interrupts, calls CUDA."""
    calls, process = counted(record, scenario, 2000, GPUPROF_BACKTRACE_THRESHOLD=threshold)
    handlers = [c for c in calls if c.symbol == "cudaMemset"]
    assert len(handlers) > 10 and not any(stale(calls))
    calls.sort(key=lambda c: c.begin)
    assert not [c for c in calls if c.flags & stream_reader.OPEN]


@pytest.mark.parametrize("scenario", ["synchronise", "synchronise-far"])
def test_interrupted_on_another_stack_is_as_long_as_it_was(record, scenario):
    calls, _ = counted(record, scenario, 0)
    [sync] = [c for c in calls if c.symbol == "cudaStreamSynchronize"]
    inside = [c for c in calls if c.symbol == "cudaMemset"]
    assert sync.end - sync.begin >= 200_000_000 and len(inside) >= 4
    assert all(sync.begin < c.begin <= c.end < sync.end for c in inside)
    assert not any(stale(calls))


def test_jump_out_of_a_handler_on_another_stack(record):
    """Left from there in the middle of any call, of our own code too: nobody is silenced."""
    done, process, _ = record("other_stacks.c", "jump", 2000, TINY_LOG="",
                              lost=["unrecorded", "dropped"])
    calls, lost = process.calls(), sum(process.losses.values())
    # One that was left before it came to the runtime is recorded, too, or counted.
    assert 0 <= len(calls) + lost - int(done.stdout) <= 2000
    assert process.counters["stale"] == sum(stale(calls))
    # Where the writer gets no processor, each jump may leave a wait for room, and lose what waited.
    assert lost < 2 * 2000
    last = sorted(calls, key=lambda c: c.begin)[-20:]
    assert [c.symbol for c in last[-2:]] == ["cudaLaunchKernel", "cudaMalloc"]
    assert not any(stale(last))


@pytest.mark.parametrize("scenario, amount", [("coroutines", 3000), ("destroyed", 1000)])
def test_calls_of_coroutines(record, scenario, amount):
    """They wait in the middle of calls, come back in any order, or never."""
    calls, _ = counted(record, scenario, amount)
    assert len(calls) > 10000
    if scenario != "destroyed":
        assert not any(stale(calls))


@pytest.mark.parametrize("amount", [1000, 1001, 999])
def test_calls_of_coroutines_that_move(record, amount):
    """Each call ends on another thread than it began on, and is recorded as it was."""
    done, process, _ = record("other_stacks.c", "moved", amount, TINY_LOG="",
                              GPUPROF_BACKTRACE_THRESHOLD="off")
    calls = process.calls()
    left = [c for c in calls if c.flags & (stream_reader.STALE | stream_reader.OPEN)]
    assert len(calls) == int(done.stdout) and len(left) == 0
    assert {c.result for c in calls if c.symbol == "cudaLaunchKernel"} == {0}
    ordered = sorted((c for c in calls if c.symbol != "cudaMemset"), key=lambda c: c.begin)
    assert not [c for c in zip(ordered, ordered[1:]) if c[0].end > c[1].begin]


def test_killed_in_a_handler_on_another_stack(record):
    done, process, _ = record("other_stacks.c", "killed", 2000, TINY_LOG="",
                              status=-signal.SIGKILL, lost=["unrecorded"],
                              GPUPROF_BACKTRACE_THRESHOLD="off")
    calls = process.calls()
    # The one that the handler interrupted may be noted as open, and has not arrived.
    assert 0 <= len(calls) + sum(process.losses.values()) - int(done.stdout) <= 1
    opened = [c for c in sorted(calls, key=lambda c: c.begin) if c.flags & stream_reader.OPEN]
    assert len(opened) <= 2 and not any(stale(calls))
