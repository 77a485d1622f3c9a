# SPDX-License-Identifier: Apache-2.0
"""NVTX: what a program says by it is in the recording, exactly. Our own client and the real one."""

import collections
import json
import os
import pathlib
import signal
import struct
import subprocess

import conftest
import pytest
import stream_reader
import toolchain
from stream_reader import LABEL, MARK, POP, PUSH, RANGE_END, RANGE_START

SAID = (PUSH, POP, RANGE_START, RANGE_END, MARK, LABEL)
TEXT_MAX = 4096
DOMAIN_MAX, STRING_MAX = 1023, 1 << 18

# The real ones, where `make fetch-cuda` has put them.
REAL = conftest.BUILD / "cuda"
CLIENTS = {
    "own": (),
    "nvtx3-12.4": ("nvtx-12.4", "nvtx3/nvToolsExt.h", ()),
    "nvtx3-13.0": ("nvtx-13.0", "nvtx3/nvToolsExt.h", ()),
    "legacy": ("nvtx-12.4", "nvToolsExt.h", ("libnvToolsExt.so.1",)),
}


def client_flags(client):
    if client == "own":
        return ()
    folder, header, libraries = CLIENTS[client]
    if not (REAL / folder / "include" / header).exists():
        pytest.skip(f"not run: no {folder} in {REAL} (make fetch-cuda)")
    return (f"-I{REAL / folder / 'include'}", f"-DREAL_NVTX=<{header}>", "-Wno-unused-parameter",
            *(str(REAL / folder / "lib" / name) for name in libraries),
            f"-Wl,-rpath,{REAL / folder / 'lib'}")


class Runner:
    def __init__(self, library, folder, client):
        self.library, self.folder, self.client = library, folder, client
        self.out, self.live = folder / "out", folder / "live"
        self.live.mkdir()
        self.tiny, link = toolchain.tiny()
        self.program = toolchain.build("nvtx_work.c", *link, *client_flags(client))

    def env(self, **settings):
        settings = {"GPUPROF_LIVE": self.live, "LD_LIBRARY_PATH": self.tiny, **settings}
        return toolchain.environment(self.out, self.library, **settings)

    def __call__(self, *arguments, status=3, stderr="", **settings):
        done = toolchain.run([self.program, *arguments], self.env(**settings), status=status)
        assert done.stderr == stderr
        return done.stdout.splitlines()

    def processes(self):
        return stream_reader.read_folder(self.out)

    def nothing_left(self):
        return not self.out.exists() and not list(self.live.iterdir())


@pytest.fixture(name="nvtx", params=list(CLIENTS))
def fixture_nvtx(request, library, tmp_path):
    return Runner(library, tmp_path, request.param)


@pytest.fixture(name="own")
def fixture_own(library, tmp_path):
    return Runner(library, tmp_path, "own")


def said(process, thread=None, types=SAID):
    """(type, arguments, text) of what the program said, in order."""
    return [(r.type, r.args, r.text.decode()) for r in process.records
            if r.type in types and (thread is None or r.thread == thread)]


def event(text="", domain=0, category=0, color=0, payload_type=0, payload=0, message=0):
    return (domain, category, color, payload_type, payload, message), text


def push(*args, **kw):
    return (PUSH, *event(*args, **kw))


def mark(*args, **kw):
    return (MARK, *event(*args, **kw))


def start(range_id, *args, **kw):
    words, text = event(*args, **kw)
    return RANGE_START, (range_id, *words), text


def pop(domain=0):
    return POP, (domain,), ""


def end(range_id, domain=0):
    return RANGE_END, (range_id, domain), ""


def label(kind, handle, text, domain=0):
    return LABEL, (kind, handle, domain), text


# ---- Each function -------------------------------------------------------------------------------

def ids_of(lines):
    [line] = [line for line in lines if line.startswith("ids ")]
    ids = [int(word) for word in line.split()[1:]]
    assert len(set(ids)) == len(ids) and 0 not in ids
    return ids


def test_core(nvtx):
    lines = nvtx("core")
    assert lines[:7] == ["push 0", "push 1", "push 2", "pop 2", "pop 1", "pop 0", "pop -1"]
    first, second, third = ids_of(lines)
    [process] = nvtx.processes()
    tid = process.of_type(stream_reader.THREAD)[0].args[0]
    tenth = struct.unpack("<Q", struct.pack("<d", 0.1))[0]
    assert said(process) == [
        mark("mark ex", category=7, color=0x80FF0102, payload_type=2, payload=2**64 - 5),
        mark("mark a"), mark("mark \u20ac \U0001F600 w"),
        label(3, 7, "seven"), label(3, 8, "\u00e4cht"),
        label(4, tid, "the main one"), label(4, 4000000, "another"),
        push("push ex", payload_type=3, payload=tenth), push("push a"), push("push w"),
        pop(), pop(), pop(),
        start(first, "start ex", payload_type=5, payload=2**32 - 1), start(second, "start a"),
        start(third, "start w"), end(second), end(first), end(third)]
    assert not process.losses


def test_double_as_text(own, run_collector):
    """As many digits as it takes to read the same number again, and no more."""
    own("core")
    trace = json.loads(run_collector("merge", own.out).stdout)
    assert [e["args"]["payload"] for e in trace["traceEvents"] if e["name"] == "push ex"] == ["0.1"]
    rows = run_collector("export", "--format=jsonl", own.out).stdout.splitlines()
    assert [e["args"]["payload"] for e in map(json.loads, rows) if e["name"] == "push ex"] == [
        "0.1"]


def test_domains(nvtx):
    lines = nvtx("domains")
    one, two, again = (int(word) for word in lines[0].split()[1:])
    string, wide, string_again = (int(word) for word in lines[1].split()[1:])
    assert one == again and string == string_again and len({0, one, two}) == 3
    assert string != wide and 0 not in (string, wide)
    assert lines[2:8] == ["push 0", "push 0", "push 1", "pop 1", "pop 0", "pop 0"]
    first, second = ids_of(lines)
    [process] = nvtx.processes()
    assert said(process) == [
        label(1, one, "one"), label(1, two, "t\u03c9o"),
        label(2, string, "a string", one), label(2, wide, "a w\u00efde string", one),
        label(3, 1, "first", one), label(3, 1, "also first", two),
        mark("", one, message=string), push("", one, message=string),
        push("wide \u00fc", two), push("wide \u00fc", one), pop(one), pop(one), pop(two),
        start(first, "started", one), start(second, "started", two), end(first, one),
        end(second, two), label(0x10001, 0x1234567890, "a thing", one), mark("started", two)]


def test_payloads(nvtx):
    """Of a payload of NVTX's extension its schema, its size and its first 32 bytes."""
    nvtx("payloads")
    [process] = nvtx.processes()
    comm, rest = 0xfeedc0ffee0ddf00, (3 | 4 << 32)
    short, long = ((1 << 24) + 8, 24, comm, 4096, rest), ((1 << 24) + 8, 40, comm, 4096, rest, 5)
    letters, nothing = (7, 3, 0x636261), (9, 0)
    records = [(kind, args) for kind, args, _ in said(process) if kind != LABEL]
    [string] = [args[1] for kind, args, _ in said(process) if kind == LABEL and args[0] == 2]
    head = (1, 0, 0, 0, 0, string)
    [range_id] = [args[0] for kind, args in records if kind == RANGE_START]
    assert records == [
        (PUSH, head + short), (POP, (1,)), (PUSH, head + long), (POP, (1,)), (MARK, head + long),
        (PUSH, head + letters), (POP, (1,)), (RANGE_START, (range_id, *head, *letters)),
        (RANGE_END, (range_id, 1)), *[(PUSH, head), (POP, (1,))] * 3,
        (PUSH, head + nothing), (POP, (1,))]


def test_names_of_cuda_objects(own):
    own("names")
    [process] = own.processes()
    assert said(process) == [
        label(0x40001, 1, "device"), label(0x40001, 2, "d\u00ebvice"),
        label(0x40002, 0x1000, "context"), label(0x40002, 0x2000, "context w"),
        label(0x40003, 0x3000, "stream"), label(0x40003, 0x4000, "stream w"),
        label(0x40004, 0x5000, "event"), label(0x40004, 0x6000, "event w"),
        label(0x50000, 0, "device"), label(0x50000, 2**32 - 1, "device w"),
        label(0x50001, 0x7000, "stream"), label(0x50001, 0x8000, "stream w"),
        label(0x50002, 0x9000, "event"), label(0x50002, 0xA000, "event w"),
        label(0x50001, 0x7000, "renamed"), label(0x50001, 0x7000, "stream")]


def test_texts_are_cut(own):
    own("cut")
    [process] = own.processes()
    texts = [text for kind, _, text in said(process) if kind == MARK]
    assert texts == ["x" * TEXT_MAX, "x" * TEXT_MAX, "x" * (TEXT_MAX - 2),
                     "\u20ac" * (TEXT_MAX // 3), "\ufffd|\ufffd", "", "", "",
                     "a schema's payload"]
    assert [a for kind, a, _ in said(process) if kind == MARK] == \
        [(0,) * 6] * 7 + [(0, 5, 0, 0, 0, 0), (0,) * 6]
    assert [text for kind, _, text in said(process) if kind == LABEL] == ["x" * (TEXT_MAX - 2)]
    assert process.counters["texts_truncated"] == 4 and not process.losses


def test_tables_are_bounded(own):
    lines = own("limits")
    assert lines == [f"last {DOMAIN_MAX}", "string 0"]
    [process] = own.processes()
    labels = [(args[0], args[1], text) for kind, args, text in said(process) if kind == LABEL]
    named = [(handle, text) for kind, handle, text in labels if kind == 1]
    assert named == [(i + 1, f"domain {i}") for i in range(DOMAIN_MAX - 1)] + \
        [(DOMAIN_MAX, "(other domains)")]
    strings = [text for kind, _, text in labels if kind == 2]
    assert strings == [f"string {i}" for i in range(STRING_MAX - DOMAIN_MAX)]
    assert [args[0] for kind, args, _ in said(process) if kind == MARK] == [DOMAIN_MAX, 0]
    assert process.losses == {"ranges_dropped": 1100 - 1022 + 270000 - len(strings)}


def test_many_domains_at_a_time(own):
    """Six of them have levels on a thread; the others' ranges are recorded just the same."""
    lines = own("broad")
    assert lines == ["0 0 0 0 0 0 -2 -2 -2 " * 2 + "-1"] * 2
    [process] = own.processes()
    wanted = [push("broad", i) for i in range(1, 10)] + [pop(i) for i in range(1, 10)]
    assert [r for r in said(process) if r[0] != LABEL] == wanted * 2


# ---- When nothing is recorded --------------------------------------------------------------------

def test_alone_leaves_nothing(nvtx):
    lines = nvtx("alone")
    assert lines[:7] == ["push 0", "push 1", "push 2", "pop 2", "pop 1", "pop 0", "pop -1"]
    ids_of(lines[:8])
    assert nvtx.nothing_left()


def test_open_before_the_first_call(nvtx):
    """Ranges that are open when the recording begins have their own begin; others are not there."""
    lines = nvtx("before")
    assert lines == ["pop 1", "pop 0", "pop 0", "pop -1"]
    [process] = nvtx.processes()
    records = said(process)
    [range_id] = [args[0] for kind, args, _ in records if kind == RANGE_START]
    [string] = [args[1] for kind, args, _ in records if kind == LABEL and args[0] == 2]
    assert records == [
        label(1, 1, "one"), label(2, string, "kept", 1), push("outer"),
        push("", 1, message=string), push("inner"), start(range_id, "started"),
        pop(), pop(1), pop(), end(range_id)]
    [call] = process.calls()
    begins = [r.begin for r in process.records if r.type in (PUSH, RANGE_START)]
    assert begins == sorted(begins) and call.begin - begins[-1] >= 20_000_000
    assert begins[0] > 0


def test_more_open_than_are_kept(own):
    own("deep")
    [process] = own.processes()
    assert said(process) == [push(str(i)) for i in range(512)] + [pop()] * 512
    assert process.losses == {"ranges_dropped": 88}


def test_threads_leave_ranges_open(own):
    """2000 ranges left open by threads that are gone do not keep the table full."""
    own("many")
    [process] = own.processes()
    assert [r for r in said(process) if r[0] != LABEL] == [push("kept"), pop()]


def test_switched_off(own):
    lines = own("core", GPUPROF_NVTX="off")
    assert lines[0] == "push -2" and lines[-1] == "ids 0 0 0"
    [process] = own.processes()
    assert said(process) == []


# ---- Threads, libraries, processes ---------------------------------------------------------------

def test_threads(own):
    own("threads")
    [process] = own.processes()
    assert not process.losses
    threads = collections.defaultdict(list)
    for record in process.records:
        if record.type in (PUSH, POP, stream_reader.CALL):
            threads[record.thread].append(
                record.text.decode() if record.type == PUSH else record.type)
    names = {words[0]: words for words in threads.values() if words[0] != stream_reader.CALL}
    assert set(names) == {f"early {i}" for i in range(6)}
    for i in range(6):
        wanted = [f"early {i}"]
        for k in range(1000):
            wanted += [f"{i} {k}"] + [stream_reader.CALL] * (i % 2 == 0) + [POP]
        assert names[f"early {i}"] == wanted + [POP]


def test_several_libraries(own):
    """Each has its own copy of NVTX's client side; some are unloaded."""
    flags = ("-DPLUGIN", "-shared", "-fPIC")
    plugins = [toolchain.build("nvtx_work.c", *flags, f"-DCOPY={i}") for i in range(4)]
    lines = own("plugins", *plugins)
    assert lines == ["main 0"] + ["domain 1", "push 1", "pop 1"] * 4 + ["main 0"]
    [process] = own.processes()
    wanted = [push("main"), label(1, 1, "shared")]
    for plugin in plugins:
        wanted += [push(str(plugin)), pop()]
    assert said(process) == wanted + [pop()]


def test_constructor_under_the_launcher(own, collector):
    """A library that is initialised before ours finds us, if the launcher has named us."""
    early = toolchain.build("nvtx_work.c", "-DPLUGIN", "-shared", "-fPIC")
    _, link = toolchain.tiny()
    program = toolchain.build("nvtx_work.c", "-Wl,--no-as-needed", str(early), *link)
    env = own.env(NVTX_EARLY="1")
    del env["LD_PRELOAD"]
    command = [collector, "run", "-o", own.out, "--quiet", program, "late"]
    assert toolchain.run(command, env, status=3).stderr == ""
    [process] = own.processes()
    assert said(process) == [push("constructor")]


def test_inside_calls(own):
    own("inside")
    [process] = own.processes()
    kinds = [r.type for r in process.records if r.type in (stream_reader.CALL, PUSH, POP)]
    assert kinds == [stream_reader.CALL, PUSH, POP] * 2
    for call in process.calls():
        inside = [r for r in process.records if r.type in (PUSH, POP)
                  and call.begin <= r.begin <= call.end]
        assert [r.type for r in inside] == [PUSH, POP]


def test_signal_handler(own):
    """Its ranges nest in what they interrupt, wherever that is, or are counted as not recorded."""
    own("handler")
    [process] = own.processes()
    assert set(process.losses) <= {"unrecorded"}
    depth, handled, count = 0, 0, collections.Counter()
    for kind, _, text in said(process):
        depth += 1 if kind == PUSH else -1
        assert 0 <= depth <= 3
        count[text] += 1
        handled += text == "handler"
    assert depth == 0 and count["outer"] == count["inner"] >= 100000
    calls = [c for c in process.calls() if c.symbol == "cudaMemset"]
    assert handled >= 20
    assert len(calls) == handled  # its range and its call see the same


@pytest.mark.parametrize("scenario", ["fork", "fork-before"])
def test_children(own, scenario):
    own(scenario)
    processes = own.processes()
    parent_records = scenario == "fork"
    assert len(processes) == 1 + parent_records  # none of the child that makes no CUDA call
    if parent_records:
        assert said(processes[0]) == [label(1, 1, "parent's"), push("outer"), push("inner"), pop(),
                                      pop()]
    own_ranges = [push("child"), pop()]
    if not parent_records:  # what is open at the fork is open in the child as well
        own_ranges = [push("outer"), *own_ranges, pop()]
    assert said(processes[-1]) == [label(1, 1, "parent's"), *own_ranges, mark("child's end")]


def test_exit(own):
    own("late", NVTX_LATE="1")
    [process] = own.processes()
    assert said(process) == [mark("exit handler"), mark("destructor")]
    assert not list(own.live.iterdir())


def test_kill(own):
    own("kill", status=-signal.SIGKILL)
    [process] = own.processes()
    [range_id] = [args[0] for kind, args, _ in said(process) if kind == RANGE_START]
    assert said(process) == [push("early"), push("open"), start(range_id, "started")]


# ---- Who is named in the environment -------------------------------------------------------------

PRINT = "echo ${NVTX_INJECTION64_PATH-unset}"


def test_somebody_else_is_kept(own, tmp_path):
    other = tmp_path / "other.c"
    other.write_text("#include <unistd.h>\n"
                     "int InitializeInjectionNvtx2(void *t)\n"
                     "{ return t ? (int)write(1, \"other\\n\", 6) : 0; }\n")
    injected = tmp_path / "libother.so"
    subprocess.run(["gcc", "-shared", "-fPIC", other, "-o", injected], check=True)
    lines = own("core", NVTX_INJECTION64_PATH=injected)
    assert lines[0] == "other" and lines[1] == "push -2"
    [process] = own.processes()
    assert said(process) == []


@pytest.mark.parametrize("way", ["preload", "relative", "launcher", "launcher-off", "other", "off"])
def test_variable(own, collector, way):
    env = own.env()
    command, wanted = ["sh", "-c", PRINT], str(own.library)
    if way == "relative":
        folder = pathlib.Path(os.path.realpath(own.folder))
        env["LD_PRELOAD"] = "./" + os.path.relpath(own.library, folder)
        wanted = f"{folder}/{env['LD_PRELOAD']}"
    elif way.startswith("launcher"):
        del env["LD_PRELOAD"]
        switch = ["--nvtx=off"] if way == "launcher-off" else []
        command = [str(collector), "run", "-o", str(own.out), "--quiet", *switch, *command]
        wanted = "unset" if switch else wanted
    elif way == "other":
        env["NVTX_INJECTION64_PATH"] = wanted = "/somebody/else.so"
    elif way == "off":
        env["GPUPROF_NVTX"], wanted = "off", "unset"
    done = toolchain.run(command, env, status=0, cwd=own.folder)
    assert done.stdout == wanted + "\n"
    assert own.nothing_left()


def test_dump(own, run_collector):
    own("domains")
    done = run_collector("dump", own.out)
    assert done.returncode == 0
    lines = [line.split(" thread=")[0] for line in done.stdout.splitlines()]
    lines = [line.split() for line in lines if line.split()[0] in ("label", "push", "pop", "mark")]
    assert [w for w in lines[0] if not w.startswith("begin=")] == [
        "label", "kind=domain", "handle=1", "domain=0", 'text="one"']
    pushes = [[w for w in words if not w.startswith("begin=")] for words in lines
              if words[0] == "push"]
    assert pushes[0][:7] == ["push", "domain=1", "category=0", "color=0x0",
                             "payload_type=none", "payload=0x0", "message=0x3"]
    assert ["pop", "domain=2"] in [[words[0], words[2]] for words in lines]
