# SPDX-License-Identifier: Apache-2.0
"""The stacks of calls, symbolised by binutils and compared with what the source says."""

import bisect
import functools
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess

import cupti_client
import pytest
import stream_reader
import toolchain

MODULE_FRAME, ADDRESS_FRAME = 0, 1
CUT = 1
TOOLS = f"{toolchain.CROSS}-" if toolchain.CROSS else ""
OPTIONS = ["-O0", "-O2", "-O3", "-O2 -fomit-frame-pointer", "-O2 -fno-omit-frame-pointer"]


@functools.lru_cache(maxsize=None)
def symbols(path):
    """(addresses, names) of a file's functions."""
    lines = subprocess.run([f"{TOOLS}nm", "-C", "--defined-only", path], capture_output=True,
                           text=True, check=True).stdout.splitlines()
    found = sorted((int(line.split()[0], 16), line.split(None, 2)[2]) for line in lines
                   if line.split()[1] in "tTwW")
    return [address for address, _ in found], [name for _, name in found]


class Stacks:
    """What a process's MODULE and STACK records say."""

    def __init__(self, process):
        self.process = process
        self.modules = {
            r.args[0]: (r.text.decode().partition(" ")[2], *r.args[1:], r.text.decode())
            for r in process.of_type(stream_reader.MODULE)}
        self.flags, self.frames = {}, {}
        for record in process.of_type(stream_reader.STACK):
            number, flags = record.args
            assert number not in self.frames, "one number, one meaning"
            self.flags[number] = flags
            self.frames[number] = struct.unpack(f"<{len(record.text) // 8}Q", record.text)

    def places(self, number):
        """(file, address in it, just behind the call) of each frame; file None: in no module."""
        for frame in self.frames[number]:
            if frame >> 60 == MODULE_FRAME:
                yield self.modules[frame >> 40 & 0xFFFFF][0], frame & 0xFFFFFFFFFF
            else:
                assert frame >> 60 == ADDRESS_FRAME
                yield None, frame & (1 << 60) - 1

    def names(self, number, own):
        """The functions of the frames that are in files whose name has `own`; others are None."""
        for path, address in self.places(number):
            if path is None or own not in path:
                yield None
                continue
            addresses, names = symbols(path)
            name = names[bisect.bisect_right(addresses, address - 1) - 1]
            yield re.sub(r"(\.(constprop|isra|part|cold)[.\d]*| \[clone.*)+$", "", name)

    def lines(self, number, own):
        """What stands in the source where each frame is, those of inlined functions too."""
        for path, address in self.places(number):
            if path and own in path:
                places = subprocess.run([f"{TOOLS}addr2line", "-ie", path, hex(address - 1)],
                                        capture_output=True, text=True, check=True).stdout
                for place in places.splitlines():
                    source, _, line = place.partition(" ")[0].rpartition(":")
                    yield (pathlib.Path(source).read_text().splitlines()[int(line) - 1].strip()
                           if line.isdigit() else None)

    def of_calls(self):
        return [r.stack for r in self.process.of_type(stream_reader.CALL)]


NOT_READY = 600

OWN = "call frame information (libunwind: {})"
READY, UNLOADED = OWN.format("where call frame information fails"), OWN.format("an object was "
                                                                               "unloaded")
SOURCES = {"libunwind": ["libunwind", UNLOADED], "own-first": [READY, UNLOADED],
           "own": [OWN.format("switched off")]}


@pytest.fixture(name="unwinder", params=SOURCES)
def fixture_unwinder(request):
    if request.param != "own":
        toolchain.need_unwinder()
    return request.param


@pytest.fixture(name="record")
def fixture_record(library, unwinder, tmp_path):
    """All cases by libunwind, by our own reader, and by both: they are to agree."""
    def run(program, *arguments, processes=1, **settings):
        settings.setdefault("GPUPROF_BACKTRACE_THRESHOLD", "0")
        settings["GPUPROF_UNWINDER"] = unwinder
        env = toolchain.environment(tmp_path / "out", library, **settings)
        done = toolchain.run([program, *arguments], env)
        assert done.stderr == ""
        found = stream_reader.read_folder(tmp_path / "out")
        assert len(found) == processes
        for process in found:
            assert not process.losses
            # A child may end before its writer comes to say it.
            if "stacks" in process.meta or process is found[0]:
                assert process.meta["stacks"] in SOURCES[unwinder]
        return [Stacks(process) for process in found]
    return run


def build(*flags):
    return toolchain.build("stacks.c", *flags, *toolchain.runtime(12))


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("way", ["aligned", "sized", "plain"])
def test_stacks_chain(record, options, way):
    [stacks] = record(build(*options.split()), way)
    callers = ["leaf_call", "middle", *([way] if way != "plain" else []), "main"]
    calls = stacks.of_calls()
    assert len(calls) == (5 if way == "plain" else 1) and all(calls)
    for number in set(calls):
        names = list(stacks.names(number, "stacks-"))
        assert names[:len(callers)] == callers
        # From there on it is the C library's, and the program's own _start.
        assert names[-1] == "_start" and set(names[len(callers):-1]) == {None}
        assert stacks.flags[number] == 0
    if options == "-O0" and way == "plain":
        assert len(set(calls)) == 1  # each stack is stored once


def test_strange(record, unwinder):
    """A frame that is found by a register which our own reader does not follow."""
    [stacks] = record(build("-O2"), "strange")
    [number] = stacks.of_calls()
    names, callers = list(stacks.names(number, "stacks-")), ["leaf_call", "middle", "strange"]
    if unwinder == "own" or toolchain.CROSS:
        assert names == callers
    else:
        assert names[:4] == [*callers, "main"] and names[-1] == "_start"
    assert stacks.flags[number] == 0


@pytest.mark.parametrize("unwinder", ["own-first", "own"], indirect=True)
def test_untold(record):
    """The stack ends at a frame that is found by a pointer which its callee put elsewhere."""
    [stacks] = record(build("-O2"), "untold")
    [number] = stacks.of_calls()  # libunwind goes on, to an address where there is no code
    assert list(stacks.names(number, "stacks-")) == ["leaf_call", "middle", "untold", "by_pointer"]


def test_modules(record):
    program = build("-O2")
    [stacks] = record(program)
    path, bias, begin, end, text = next(m for m in stacks.modules.values() if "stacks-" in m[0])
    assert os.path.samefile(path, program) and bias <= begin < end
    notes = subprocess.run([f"{TOOLS}readelf", "-n", program], capture_output=True, text=True,
                           check=True).stdout
    assert f"Build ID: {text.partition(' ')[0]}\n" in notes


@pytest.mark.skipif(bool(toolchain.CROSS), reason="the emulator is the loader's loader")
def test_run_by_the_loader(library, tmp_path):
    """The program is the program, not the loader that was told to run it."""
    program = build("-O2")
    headers = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True,
                             check=True).stdout
    loader = re.search(r"interpreter: (\S+)\]", headers)[1]
    env = toolchain.environment(tmp_path, library, GPUPROF_BACKTRACE_THRESHOLD="0")
    toolchain.run([loader, program], env)
    [process] = stream_reader.read_folder(tmp_path)
    stacks = Stacks(process)
    assert os.path.samefile(process.meta["exe"], program)
    number = stacks.of_calls()[0]
    assert list(stacks.names(number, "stacks-"))[:3] == ["leaf_call", "middle", "main"]


@pytest.mark.parametrize("depth", [1, 2, 59, 60, 100, 3000])
def test_recursion(record, depth):
    [stacks] = record(build("-O2", "-fno-optimize-sibling-calls", "-fno-inline"), "recursive",
                      depth, GPUPROF_BACKTRACE_DEPTH=62)
    [number] = stacks.of_calls()
    names = list(stacks.names(number, "stacks-"))
    whole = ["leaf_call", "middle"] + (depth + 1) * ["recursive"] + ["main"]
    if len(whole) >= 62:
        assert names == whole[:62] and stacks.flags[number] == CUT
    else:
        assert names[:len(whole)] == whole
        assert (len(names) == 62) == (stacks.flags[number] == CUT) or len(names) == 62


@pytest.mark.parametrize("way, caller", [("thread", "thread_main"), ("destructor", "destroy"),
                                         ("coroutine", "coroutine")])
def test_other_stacks(record, way, caller):
    [stacks] = record(build("-O2", "-fomit-frame-pointer"), way)
    [number] = stacks.of_calls()
    names = list(stacks.names(number, "stacks-"))
    assert names[:3] == ["leaf_call", "middle", caller]
    assert set(names[3:]) <= {None}  # how a thread or context begins


def test_small_stack(record):
    """The smallest that a thread may have: 16 KiB, of which the thread's own data takes some."""
    [stacks] = record(build("-O2"), "small")
    first, number = stacks.of_calls()
    assert first and list(stacks.names(number, "stacks-"))[:3] == ["leaf_call", "middle",
                                                                  "thread_main"]


@pytest.mark.parametrize("way", ["signal", "altstack"])
def test_signal_handler(record, way):
    """The call from the handler is recorded, and has no stack; the next one has."""
    [stacks] = record(build("-O2"), way)
    handler, number = stacks.of_calls()
    assert handler == 0 and stacks.process.counters["stackless"] == 1
    assert list(stacks.names(number, "stacks-"))[:3] == ["leaf_call", "middle", "main"]
    assert stacks.process.calls()[0].args["bytes"] == signal.SIGUSR1


@pytest.mark.parametrize("when", ["first", "later"])
@pytest.mark.parametrize("settings", [{}, {"GPUPROF_BACKTRACE_THRESHOLD": "0"}],
                         ids=["slow", "all"])
def test_small_stack_of_a_handler(library, tmp_path, when, settings):
    """SIGSTKSZ, which has no room for a walk nor for the start of a recording, with a guard below.
    The handler's calls have no stack; the others, which it interrupts, have theirs."""
    folder, link = toolchain.tiny()
    env = toolchain.environment(tmp_path, library, LD_LIBRARY_PATH=folder, **settings)
    done = toolchain.run([toolchain.build("handler_stack.c", *link), when, 8192], env, timeout=30)
    [process] = stream_reader.read_folder(tmp_path)
    calls = process.calls()
    stacks = {record.begin: record.stack for record in process.of_type(stream_reader.CALL)}
    handled = [stacks[call.begin] for call in calls if call.args["bytes"] == signal.SIGALRM]
    counted = process.counters["unrecorded"]
    assert done.stderr == "" and len(calls) + counted == 200 + int(done.stdout)
    assert handled and not any(handled) and (any(stacks.values()) or not settings)


def test_fork(record):
    parent, child = record(build("-O2"), "fork", processes=2)
    [number] = parent.of_calls()
    assert list(parent.names(number, "stacks-"))[:3] == ["leaf_call", "middle", "forked"]
    [number] = child.of_calls()
    assert number == 1  # its file's own
    assert list(child.names(number, "stacks-"))[:5] == ["leaf_call", "middle", "aligned", "forked",
                                                       "main"]


def test_forks(library, unwinder, tmp_path):
    """No child waits for what the thread held that had its stack taken at the fork."""
    env = toolchain.environment(tmp_path, library, GPUPROF_BACKTRACE_THRESHOLD="0",
                                GPUPROF_UNWINDER=unwinder, GPUPROF_BUFFER="1M")
    done = toolchain.run([build("-O2", "-fno-inline"), "forks", 60], env)
    found = stream_reader.read_folder(tmp_path)
    assert len(found) == 61
    taken = 0
    for process in sorted(found, key=lambda p: p.header.monotonic_zero)[1:]:
        stacks = Stacks(process)
        [number] = stacks.of_calls()
        if number:
            taken += 1
            names = list(stacks.names(number, "stacks-"))
            assert names[:6] == [*4 * ["deep_free"], "forks", "main"]
        else:  # the loader was locked for ever, which is said
            assert "the loader was busy" in done.stderr
    assert taken > 10


def test_exceptions(record):
    """Thrown through frames that other threads have walked, and that are being walked."""
    program = toolchain.build("stacks_throw.cpp", "-O2", *toolchain.runtime(12), compiler="g++")
    [stacks] = record(program, 4, 200)
    calls = stacks.of_calls()
    # A round at depth 0 to 3 makes one call, one for each guard, and one after it.
    assert len(calls) == 4 * 50 * sum(1 + (depth + 1) + 1 for depth in range(4)) and all(calls)
    chains = set()
    for number in set(calls):
        names = [name for name in stacks.names(number, "stacks_throw") if name]
        names = ["Guard" if "Guard" in name else name for name in names]
        chains.add(tuple(names[:names.index("attempt(int)") + 1]))
    fails = ["fail(int)"]
    assert chains == {("call_of(unsigned long)", *rest, "attempt(int)") for rest in
                      [(), *((*(depth * fails),) for depth in range(1, 5)),
                       *(("Guard", *(depth * fails)) for depth in range(1, 5))]}


NAMED = "libunwind.so.8"


def state_of(library, folder, *arguments, program=None, **settings):
    """(what is said of the source of stacks, them), with libunwind allowed."""
    env = toolchain.environment(folder, library, GPUPROF_BACKTRACE_THRESHOLD="0", **settings)
    done = toolchain.run([program or build("-O2"), *arguments], env)
    assert done.stderr == ""
    [process] = stream_reader.read_folder(folder)
    stacks = Stacks(process)
    assert all(stacks.of_calls()) and stacks.of_calls()
    for number in stacks.of_calls():
        assert list(stacks.names(number, "stacks-"))[:2] == ["leaf_call", "middle"]
    return process.meta["stacks"], stacks


@pytest.fixture(name="needs_unwinder")
def fixture_needs_unwinder():
    toolchain.need_unwinder()


@pytest.mark.usefixtures("needs_unwinder")
def test_bound_at_once(library, tmp_path):
    assert state_of(library, tmp_path, LD_BIND_NOW="1")[0] == "libunwind"


@pytest.mark.usefixtures("needs_unwinder")
def test_own_libunwind_linked(library, tmp_path):
    program = build("-O2", "-Wl,--no-as-needed", f"-l:{NAMED}")
    state, _ = state_of(library, tmp_path, program=program)
    assert state == OWN.format("the program has a libunwind of its own")


@pytest.mark.usefixtures("needs_unwinder")
@pytest.mark.parametrize("is_late", [False, True])
def test_own_libunwind_opened(library, tmp_path, is_late):
    """After ours was loaded, it stays in use, and meets nothing of the other one's."""
    state, stacks = state_of(library, tmp_path, "unwinder", NAMED, *["late"] * is_late)
    assert state == ("libunwind" if is_late else
                     OWN.format("the program has a libunwind of its own"))
    assert len(stacks.of_calls()) == 4 + is_late


def test_no_libunwind(library, tmp_path):
    """The library alone, in another folder, as somebody may have copied it."""
    alone = tmp_path / "libgpuprof.so"
    shutil.copy(library, alone)
    state, _ = state_of(alone, tmp_path / "out")
    assert state == OWN.format("libgpuprof-unwind.so is not beside libgpuprof.so")


@pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUPTI runs natively")
@pytest.mark.parametrize("link, front", [("shared", "cupti"), ("static", "auto")])
def test_calls_that_only_cupti_saw(library, unwinder, tmp_path, link, front):
    flags = toolchain.STATIC if link == "static" else toolchain.runtime(13)
    env = toolchain.environment(
        tmp_path, library, GPUPROF_BACKTRACE_THRESHOLD="0", GPUPROF_UNWINDER=unwinder,
        GPUPROF_GPU="on", GPUPROF_FRONT=front,
        GPUPROF_CUPTI=toolchain.SIM / cupti_client.VERSIONS["13.0"][0])
    toolchain.run([toolchain.build("stacks.c", "-O2", *flags)], env)
    [process] = stream_reader.read_folder(tmp_path)
    stacks = Stacks(process)
    numbers = [r.stack for r in process.of_type(stream_reader.CALL)]
    assert len(numbers) >= 5 and all(numbers)
    for number in numbers[-5:]:
        names = list(stacks.names(number, "stacks-"))
        # What is linked in statically is the program's own code.
        begin = names.index("leaf_call")
        assert (begin == 0) == (link == "shared")
        assert names[begin:begin + 3] == ["leaf_call", "middle", "main"]


def test_plugins(record):
    """One is unloaded and another mapped, in its place if the loader wills, with other frames."""
    link = toolchain.runtime(12)
    parts = [toolchain.build("stacks_plugin.c", "-O2", "-shared", "-fPIC", f"-DNAMED={name}",
                             f"-DROOM={room}", *link)
             for name, room in (("first", 16), ("second", 4000), ("third", 160))]
    [stacks] = record(build("-O2"), "plugins", *parts, parts[0])
    calls = stacks.of_calls()
    assert len(calls) == 8 and calls[0::2] == calls[1::2]
    for number, name in zip(calls[::2], ("first", "second", "third", "first")):
        names = list(stacks.names(number, "stacks"))
        assert names[:4] == [name, "plugin_call", "plugins", "main"]
    places = {path: begin for path, _, begin, _, _ in stacks.modules.values()}
    if not toolchain.CROSS:
        assert len({places[str(p)] for p in parts}) < len(parts)  # it did will


@pytest.mark.parametrize("identity", ["sha1", "none"])
def test_reloaded(record, identity):
    """Unloads make no stacks: what did not change is the same, and so is a build loaded again."""
    times = 1000 if not toolchain.CROSS else 30
    plugin = toolchain.build("stacks_plugin.c", "-O2", "-shared", "-fPIC", "-DNAMED=named",
                             "-DROOM=16", f"-Wl,--build-id={identity}", *toolchain.runtime(12))
    [stacks] = record(build("-O2"), "reload", plugin, times)
    calls = stacks.of_calls()
    assert len(calls) == 2 * times and all(calls)
    assert len(set(calls[0::2])) == 1
    begins = {begin for path, _, begin, _, _ in stacks.modules.values() if path == str(plugin)}
    if identity == "none":  # who could tell that it is the same?
        assert len(set(calls[1::2])) == len(begins) > 10
    else:
        assert len(set(calls[1::2])) == len(begins) == 1
    for number in {*calls[:2], *calls[-2:]}:
        names = list(stacks.names(number, "stacks"))
        assert "reloaded" in names[:3] and names[0] in ("leaf_call", "named")


def test_cxx(record):
    program = toolchain.build("stacks_inlined.cpp", "-O2", *toolchain.runtime(12), compiler="g++")
    [stacks] = record(program)
    calls = stacks.of_calls()
    assert len(calls) == 1 + 100 * 5 and all(calls)
    assert list(stacks.lines(calls[0], "stacks_inlined"))[:4] == [
        "cudaMalloc(&memory, bytes);", "innermost(count * sizeof(T));", "tensor.allocate(100);",
        "work::fill();"]
    for i, number in enumerate(calls[1:5]):  # each destructor below the frames that are still there
        names = list(stacks.names(number, "stacks_inlined"))
        assert names[:6 - i] == ["work::Guard::~Guard()", *(4 - i) * ["work::fail(int)"], "main"]
    assert list(stacks.names(calls[5], "stacks_inlined"))[0] == "main"
    assert len(set(calls)) == 6


@pytest.mark.parametrize("settings, expected", [
    ({"GPUPROF_BACKTRACE_THRESHOLD": "off"}, 0),
    ({"GPUPROF_BACKTRACE_THRESHOLD": "60s"}, 0),
    ({"GPUPROF_BACKTRACE_THRESHOLD": "off", "GPUPROF_BACKTRACE": "alloc,launch"}, 5),
    ({"GPUPROF_BACKTRACE_THRESHOLD": "off", "GPUPROF_BACKTRACE": "copy,sync"}, 0),
    ({"GPUPROF_BACKTRACE_THRESHOLD": "0"}, 5)])
def test_settings(library, tmp_path, settings, expected):
    env = toolchain.environment(tmp_path, library, GPUPROF_SILENCE="off", **settings)
    toolchain.run([build("-O2")], env)
    [process] = stream_reader.read_folder(tmp_path)
    stacks = Stacks(process)
    assert len([n for n in stacks.of_calls() if n]) == expected
    is_off = settings == {"GPUPROF_BACKTRACE_THRESHOLD": "off"}
    assert process.meta["stacks"].startswith("absent: ") == is_off


def test_calls_that_fail(library, tmp_path):
    """However short, but not for ever: an error may be all that comes from there on."""
    for settings, expected in (({}, 1000), ({"GPUPROF_BACKTRACE_THRESHOLD": "off"}, 0),
                               ({"GPUPROF_BACKTRACE_THRESHOLD": "off",
                                 "GPUPROF_BACKTRACE": "graph"}, 0)):
        out = tmp_path / "-".join(("out", *settings))
        env = toolchain.environment(out, library, **{"GPUPROF_BACKTRACE_THRESHOLD": "60s",
                                                     "GPUPROF_SILENCE": "off", **settings})
        toolchain.run([build("-O2"), "failing", "1100"], env)
        [process] = stream_reader.read_folder(out)
        stacks = Stacks(process)
        calls = process.of_type(stream_reader.CALL)
        failed = [c for c in calls if c.result not in (0, NOT_READY)]
        assert len(failed) == 1100 and len(calls) >= 3300
        assert sum(c.result == NOT_READY for c in calls) == 1100
        assert {bool(c.stack) for c in calls if c.result in (0, NOT_READY)} == {False}
        assert [bool(c.stack) for c in failed] == [True] * expected + [False] * (1100 - expected)
        for number in {c.stack for c in failed if c.stack}:
            assert list(stacks.names(number, "stacks-"))[:2] == ["failing", "main"]


def test_slow_calls_only(library, tmp_path):
    """The first call, which sets CUDA up, is slow; of the others, none takes ten milliseconds."""
    env = toolchain.environment(tmp_path, library, GPUPROF_BACKTRACE_THRESHOLD="10ms",
                                GPUPROF_SILENCE="off")
    toolchain.run([build("-O2")], env)
    [process] = stream_reader.read_folder(tmp_path)
    for call in process.of_type(stream_reader.CALL):
        assert bool(call.stack) == (call.duration >= 10_000_000)
