# SPDX-License-Identifier: Apache-2.0
"""Stacks of calls in the collector: symbols, traces, flame graphs, reports, from recordings made
by test/unit/make_stacks.c over binaries that the tests build."""

import collections
import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import zipfile
import xml.etree.ElementTree

import pytest

import toolchain
from conftest import BUILD, built


@pytest.fixture
def make_stacks(tmp_path):
    """make_stacks(LINES): a folder with the recording that the lines of a script describe."""
    def make(*lines, name="data"):
        folder = tmp_path / name
        folder.mkdir()
        script = "\n".join(lines) + "\n"
        subprocess.run([built(BUILD / "make_stacks"), folder], check=True, timeout=60,
                       input=script.encode("utf-8", "surrogateescape"))
        return folder
    return make


@pytest.fixture
def run_verb(run_collector):
    def run(*arguments, status=0, **options):
        result = run_collector(*arguments, **options)
        assert result.returncode == status, result.stderr
        return result
    return run


def offsets_of(program):
    """What a program of frames.h prints: label -> offset in hexadecimal digits."""
    output = subprocess.run([program], check=True, capture_output=True, text=True, timeout=20)
    return dict(line.split() for line in output.stdout.splitlines() if len(line.split()) == 2)


def build_id(program):
    notes = subprocess.run(["readelf", "-n", program], check=True, capture_output=True, text=True)
    return re.search(r"Build ID: ([0-9a-f]+)", notes.stdout)[1]


def one_call(module, offset):
    return ("process 0", "meta stacks=made up", module, f"stack 1 0 1+{offset}",
            "call cudaMalloc 1000 500 1 1 4096")


def folded(text):
    lines = [line.rpartition(" ") for line in text.splitlines()]
    return {stack.split(";", 1)[1]: int(number) for stack, _, number in lines}


# ---- symbols ------------------------------------------------------------------------------------

FLAGS = ("-O2", "-Wl,--build-id=sha1", "-fno-ipa-icf")


@pytest.fixture(scope="module")
def frames():
    return toolchain.build("frames.c", *FLAGS)


def symbols(run_verb, folder, *options, **more):
    """The frames of the only call, outermost first, and what was said of the modules."""
    result = run_verb("flame", folder, *options, **more)
    stack, = folded(result.stdout)
    said = [line for line in result.stderr.splitlines() if "symbols of" in line]
    return stack.split(";")[:-1], said


INLINED = ["outer (frames.c:18)", "middle (frames.c:12)", "innermost (frames.c:7)"]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_inlined_functions(run_verb, make_stacks, compiler):
    program = toolchain.build("frames.c", *FLAGS[:2], compiler=compiler)
    offsets = offsets_of(program)
    module = f"module 1 {build_id(program)} {program}"
    assert symbols(run_verb, make_stacks(*one_call(module, offsets["inlined"]))) == (INLINED, [])
    found, _ = symbols(run_verb, make_stacks(*one_call(module, offsets["plain"]), name="plain"))
    assert found == ["plain (frames.c:24)"]


def compiled(compiler, folder, *flags):
    """frames.c, compiled and linked in `folder`, where what is left beside it stays."""
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    folder.mkdir()
    command = [compiler, "-g", "-O2", "-D_GNU_SOURCE", *flags]
    if compiler == "gcc":
        command.append("-fno-ipa-icf")  # clang does not fold functions, nor know of it
    subprocess.run([*command, "-c", toolchain.SOURCES / "frames.c"], cwd=folder, check=True)
    subprocess.run([*command, "-Wl,--build-id=sha1", "frames.o", "-o", "frames", "-ldl"],
                   cwd=folder, check=True)
    return folder / "frames"


@pytest.mark.parametrize("flags", ["", "-gsplit-dwarf", "-gz", "-g1", "-flto",
                                   "-fdebug-types-section", "-no-pie -fno-pie"])
@pytest.mark.parametrize("dwarf", [4, 5])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_forms_of_debugging_information(run_verb, make_stacks, tmp_path, compiler, dwarf, flags):
    program = compiled(compiler, tmp_path / "built", f"-gdwarf-{dwarf}", *flags.split())
    base = min(int(line.split()[2], 16) for line in subprocess.run(
        ["readelf", "-lW", program], check=True, capture_output=True,
        text=True).stdout.splitlines() if line.strip().startswith("LOAD"))
    offset = f"{int(offsets_of(program)['inlined'], 16) + base:x}"
    folder = make_stacks(*one_call(f"module 1 {build_id(program)} {program}", offset))
    assert symbols(run_verb, folder) == (INLINED, [])
    if flags == "-gsplit-dwarf":
        (program.parent / "frames.dwo").unlink()
        assert symbols(run_verb, folder) == (["outer (frames.c:7)"], [])


def test_debug_file_that_two_share(run_verb, make_stacks, tmp_path):
    """dwz puts what is the same in two debug files into a third one."""
    if not shutil.which("dwz"):
        pytest.skip("dwz is not installed")
    program = compiled("gcc", tmp_path / "built", "-gdwarf-4")
    other = compiled("gcc", tmp_path / "other", "-gdwarf-4", "-DOTHER_BUILD")
    inlined = offsets_of(program)["inlined"]
    folder = make_stacks(*one_call(f"module 1 {build_id(program)} {program}", inlined))
    common = tmp_path / "common.debug"
    subprocess.run(["dwz", "-m", common, "-M", common, program, other], check=True)
    assert common.exists() and symbols(run_verb, folder) == (INLINED, [])
    common.unlink()  # and the names with it; the lines are known
    assert symbols(run_verb, folder) == (
        ["outer (frames.c:18)", "? (frames.c:12)", "? (frames.c:7)"], [])


def test_templates(run_verb, make_stacks):
    program = toolchain.build("frames_cxx.cc", "-O2", "-Wl,--build-id", compiler="g++")
    offsets = offsets_of(program)
    module = f"module 1 {build_id(program)} {program}"
    found, _ = symbols(run_verb, make_stacks(*one_call(module, offsets["template"])))
    assert found == ["shapes::box<int, 3>::fill(int) (frames_cxx.cc:9)"]
    found, _ = symbols(run_verb, make_stacks(*one_call(module, offsets["lambda"]), name="lambda"))
    name, = found
    assert "main" in name and "lambda(int)" in name and name.endswith("(frames_cxx.cc:18)")


def test_program_that_does_not_move(run_verb, make_stacks):
    """Its bias is 0: the addresses are the file's."""
    program = toolchain.build("frames.c", *FLAGS, "-no-pie", "-fno-pie")
    base = min(int(line.split()[2], 16) for line in subprocess.run(
        ["readelf", "-lW", program], check=True, capture_output=True,
        text=True).stdout.splitlines() if line.strip().startswith("LOAD"))
    offset = f"{int(offsets_of(program)['inlined'], 16) + base:x}"
    module = f"module 1 {build_id(program)} {program}"
    assert symbols(run_verb, make_stacks(*one_call(module, offset)))[0] == INLINED


def stripped(program, folder, link=None):
    """A stripped copy in `folder`, and its debug file beside it; `link`: it names that."""
    folder.mkdir()
    copy, debug = folder / "frames", folder / "frames.debug"
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", *([f"--add-gnu-debuglink={debug}"] if link else []),
                    program, copy], check=True)
    return copy, debug


def test_separate_debug_file(run_verb, make_stacks, frames, tmp_path):
    """Found beside the program by its name, or in a .build-id tree or a folder by --symbols."""
    inlined, identity = offsets_of(frames)["inlined"], build_id(frames)
    copy, debug = stripped(frames, tmp_path / "linked", link=True)
    folder = make_stacks(*one_call(f"module 1 {identity} {copy}", inlined))
    assert symbols(run_verb, folder) == (INLINED, [])
    debug.unlink()
    assert symbols(run_verb, folder) == ([f"frames+0x{inlined}"], [])

    _, debug = stripped(frames, tmp_path / "plain")
    tree = tmp_path / "tree" / ".build-id" / identity[:2]
    tree.mkdir(parents=True)
    debug.rename(tree / f"{identity[2:]}.debug")
    assert symbols(run_verb, folder, f"--symbols={tmp_path}/tree") == (INLINED, [])
    assert symbols(run_verb, folder, "--symbols", "tree") == (INLINED, [])
    assert symbols(run_verb, folder, "--symbols=none") == ([f"frames+0x{inlined}"], [])


def test_folder_with_a_colon(run_verb, make_stacks, frames, tmp_path):
    """Its debug file, named by a link in the stripped program, in a folder whose name has one."""
    inlined, identity = offsets_of(frames)["inlined"], build_id(frames)
    copy, debug = stripped(frames, tmp_path / "linked", link=True)
    folder = make_stacks(*one_call(f"module 1 {identity} {copy}", inlined))
    place = tmp_path / "a:b" / copy.relative_to("/").parent
    place.mkdir(parents=True)
    debug.rename(place / debug.name)
    assert symbols(run_verb, folder) == ([f"frames+0x{inlined}"], [])
    assert symbols(run_verb, folder, "--symbols=a:b") == (INLINED, [])


def test_stripped_program_names_what_it_exports(run_verb, make_stacks, tmp_path):
    program = toolchain.build("frames.c", *FLAGS, "-rdynamic")
    copy, debug = stripped(program, tmp_path / "s")
    debug.unlink()
    module = f"module 1 {build_id(program)} {copy}"
    found, _ = symbols(run_verb, make_stacks(*one_call(module, offsets_of(program)["inlined"])))
    assert found == ["outer (frames)"]


def test_binary_replaced_by_another_build(run_verb, make_stacks, frames, tmp_path):
    """It is not used, and this is said once; the right one is found elsewhere."""
    other = toolchain.build("frames.c", *FLAGS, "-DOTHER_BUILD")
    inlined = offsets_of(frames)["inlined"]
    place = tmp_path / "bin" / "frames"
    place.parent.mkdir()
    shutil.copy(other, place)
    lines = one_call(f"module 1 {build_id(frames)} {place}", inlined)
    again = [f"module 2 {build_id(frames)} {place}", "stack 2 0 2+1234 1+5678"]
    folder = make_stacks(*lines, *again)
    found, said = symbols(run_verb, folder)
    assert found == [f"frames+0x{inlined}"]
    assert said == ["gpuprof: symbols of 1 module: frames: the file here has another build id than "
                    "the one recorded, and is not used"]
    root = tmp_path / "root" / place.relative_to("/")
    root.parent.mkdir(parents=True)
    shutil.copy(frames, root)
    assert symbols(run_verb, folder, "--symbols=root") == (INLINED, [])
    shutil.copy(frames, tmp_path / "frames")
    assert symbols(run_verb, folder, f"--symbols={tmp_path}") == (INLINED, [])


def test_missing_and_strange_files(run_verb, make_stacks, frames, tmp_path):
    text = tmp_path / "text.so"
    text.write_text("no ELF file\n" * 100)
    os.mkfifo(tmp_path / "fifo.so")
    damaged = tmp_path / "damaged.so"
    data = bytearray(frames.read_bytes())
    damaged.write_bytes(data[:len(data) // 2])
    modules = ["/nowhere/gone.so", text, tmp_path / "fifo.so", damaged, tmp_path, "[vdso]"]
    folder = make_stacks("process 0", "meta stacks=made up",
                         *(f"module {i + 1} - {path}" for i, path in enumerate(modules)),
                         "stack 1 0 " + " ".join(f"{i + 1:x}+11d0" for i in range(len(modules))),
                         "call cudaMalloc 1000 500 1 1 4096")
    found, said = symbols(run_verb, folder)
    assert found[::-1][:2] == ["gone.so+0x11d0", "text.so+0x11d0"] and len(found) == len(modules)
    assert any("no such file here" in line and "gone.so" in line for line in said)
    assert any("cannot be read as an ELF file" in line and "text.so" in line for line in said)


def test_damaged_debugging_information(run_verb, make_stacks, frames, tmp_path):
    """Wherever bytes of the file are wrong, the verb ends well and shows some name."""
    data = bytearray(frames.read_bytes())
    inlined = offsets_of(frames)["inlined"]
    lines, stacks = ["process 0", "meta stacks=made up"], []
    state = 12345
    for number in range(1, 41):
        changed = bytearray(data)
        for _ in range(number * 3):
            state = (state * 1103515245 + 12345) % 2**31
            changed[64 + state % (len(data) - 64)] = state >> 8 & 0xff
        path = tmp_path / f"d{number}.so"
        path.write_bytes(changed)
        lines.append(f"module {number} - {path}")
        stacks.append(f"{number:x}+{inlined}")
    folder = make_stacks(*lines, f"stack 1 0 {' '.join(stacks)}",
                         "call cudaMalloc 1000 500 1 1 4096")
    found, _ = symbols(run_verb, folder)
    assert len(found) >= 40


def test_debuginfod(run_verb, make_stacks, frames, tmp_path, monkeypatch):
    """Asked if, and only if, the variable says where it is."""
    import http.server
    import threading
    identity, inlined = build_id(frames), offsets_of(frames)["inlined"]
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            known = self.path == f"/buildid/{identity}/executable"
            self.send_response(200 if known else 404)
            self.end_headers()
            if known:
                self.wfile.write(frames.read_bytes())

        def log_message(self, *_):
            pass

    folder = make_stacks(*one_call(f"module 1 {identity} /nowhere/frames", inlined))
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert symbols(run_verb, folder)[0] == [f"frames+0x{inlined}"] and not asked
            monkeypatch.setenv("DEBUGINFOD_URLS", f"http://127.0.0.1:{server.server_address[1]}")
            found, _ = symbols(run_verb, folder)
        finally:
            server.shutdown()
            thread.join()
    if not asked:
        pytest.skip("libdw has no libdebuginfod here")
    assert found == INLINED


def test_silent_debuginfod(run_verb, make_stacks, tmp_path, monkeypatch):
    """A server that takes a question and never answers costs its time once, not for each module."""
    import socket
    import time
    modules = 40
    folder = make_stacks(
        "process 0", "meta stacks=x",
        *(f"module {i + 1} {i:040x} /nowhere/lib{i}.so" for i in range(modules)),
        "stack 1 0 " + " ".join(f"0{i + 1:x}+100" for i in range(modules)),
        "call cudaMalloc 1000 500 1 1 4096")
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        monkeypatch.setenv("DEBUGINFOD_URLS", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
        monkeypatch.setenv("DEBUGINFOD_TIMEOUT", "1")
        begin = time.monotonic()
        result = run_verb("flame", folder)
        took_s = time.monotonic() - begin
    if "debuginfod has given nothing" not in result.stderr:
        pytest.skip("libdw has no libdebuginfod here")
    assert took_s < 20
    assert f"symbols of {modules} modules" in result.stderr
    assert "no such file here or from debuginfod" in result.stderr
    assert result.stdout.count(".so+0x100") == modules


# ---- what is made of them -----------------------------------------------------------------------

TRAIN = (
    "process 0", "meta stacks=libunwind", "meta python=3.11.7",
    "module 1 - /nowhere/libtrain.so",
    "python 1 40 /home/me/train.py\t<module>",
    "python 2 12 /home/me/train.py\tTrainer.step",
    "python 3 7 /home/me/model.py\tModel.forward",
    "stack 1 0 1+100 p3 p2 p1 1+2000",
    "stack 2 0 1+100 p2 p1 1+2000",
    "stack 3 2 1+300 p3 p2 p1",  # borrowed
    "stack 4 1 1+400 adead",  # cut, and without Python frames
    "push 900 forward",
    "call cudaLaunchKernel 1000 500 11 1 0",
    "call cudaLaunchKernel 1600 300 16 1 0",
    "call cudaMalloc 2000 100000 12 2 4096",
    "call cudaLaunchKernel 200000 700 13 3 0",
    "call cudaLaunchKernel 300000 900 14 4 0",
    "call cudaFree 400000 300 15 0 0",  # without a stack
    "pop 500000",
    "name 1 _Z4gemmPf",
    "kernel 1 2000 30000 11", "kernel 1 33000 7000 16", "kernel 1 210000 40000 13",
    "kernel 2 310000 5000 14", "kernel 2 410000 100 15",
)
MODULE, STEP, FORWARD = "<module> (train.py:40)", "Trainer.step (train.py:12)", \
    "Model.forward (model.py:7)"
BORROWED = "[borrowed: the thread that waits for this one]"
CUT = "[cut: deeper frames are not recorded]"
FIRST = ("libtrain.so+0x2000", MODULE, STEP, FORWARD, "libtrain.so+0x100", "cudaLaunchKernel")
SECOND = ("libtrain.so+0x2000", MODULE, STEP, "libtrain.so+0x100", "cudaMalloc")
THIRD = (MODULE, STEP, FORWARD, BORROWED, "libtrain.so+0x300", "cudaLaunchKernel")
FOURTH = (CUT, "[range forward]", "0xdead", "libtrain.so+0x400", "cudaLaunchKernel")
WEIGHTS = {
    "host": {FIRST: 800, SECOND: 100000, THIRD: 700, FOURTH: 900, ("[no stack]",): 300},
    "gpu": {(*FIRST, "gemm(float*)"): 37000, (*THIRD, "gemm(float*)"): 40000,
            (*FOURTH, "kernel 2"): 5000, ("[no stack]",): 100},
    "calls": {FIRST: 2, SECOND: 1, THIRD: 1, FOURTH: 1, ("[no stack]",): 1},
    "bytes": {SECOND: 4096},
}


@pytest.mark.parametrize("weight", WEIGHTS)
def test_folded(run_verb, make_stacks, weight):
    result = run_verb("flame", make_stacks(*TRAIN), "--weight", weight)
    assert folded(result.stdout) == {";".join(stack): value
                                     for stack, value in WEIGHTS[weight].items()}
    assert all(line.startswith("rank 0: python train.py (testhost, pid 1000);")
               for line in result.stdout.splitlines())
    left_out = "100 ns of work on the GPU (1 kernel or" if weight == "gpu" else \
        "1 call without a stack (300 ns"
    assert left_out in result.stderr


def test_folded_by_thread_and_process(run_verb, make_stacks):
    lines = list(TRAIN) + ["process 1", "meta stacks=x", *TRAIN[3:]]
    result = run_verb("flame", make_stacks(*lines), "--threads", "--format=folded")
    roots = collections.Counter(";".join(line.rpartition(" ")[0].split(";")[:2])
                                for line in result.stdout.splitlines())
    assert roots == {f"rank {rank}: python train.py (testhost, pid {pid});{child}": count
                     for rank, pid in ((0, 1000), (1, 1001))
                     for child, count in ((f"python (thread {pid})", 4), ("[no stack]", 1))}
    assert result.stdout.count("[range forward]") == 1  # the other is no process of Python


def test_nothing_to_show(run_verb, make_stacks):
    folder = make_stacks("process 0", "meta stacks=absent: switched off",
                         "call cudaMalloc 1000 500 1 0 4096")
    for name in ("x.txt", "x.svg", "x.json"):
        result = run_verb("flame", folder, "-o", name)
        assert "nothing to show" in result.stderr and "absent: switched off" in result.stderr


def test_why_there_are_none(run_verb, make_stacks):
    """Each reason once, with how many processes give it."""
    old, off = "Python older than 3.11: this version is not known", "switched off"
    lines = []
    for rank, (stacks, python) in enumerate(((None, old), (off, None), (None, old), (None, None))):
        lines += [f"process {rank}",
                  f"meta stacks={'absent: ' + stacks if stacks else 'libunwind'}",
                  f"meta python={'absent: ' + python if python else '3.11.2'}",
                  "call cudaMalloc 1000 500 1 0 4096"]
    folder = make_stacks(*lines)
    wanted = {f"stacks absent in 1 of 4 processes: {off}",
              f"Python frames absent in 2 of 4 processes: {old}"}
    said = run_verb("flame", folder).stderr.splitlines()
    assert wanted <= {line.removeprefix("gpuprof: flame: ") for line in said}
    text = run_verb("report", "--by=python-line", folder).stdout
    assert wanted <= set(text.splitlines())
    _, report = rows_of(run_verb, folder, "python-line")
    assert report["stacks_absent"] == [{"reason": off, "processes": 1}]
    assert report["python_absent"] == [{"reason": old, "processes": 2}]


def check_speedscope(document):
    """The rules of speedscope's schema for what is used of it."""
    assert set(document) <= {"$schema", "shared", "profiles", "name", "activeProfileIndex",
                             "exporter"}
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert isinstance(document["exporter"], str) and isinstance(document["name"], str)
    frames = document["shared"]["frames"]
    for frame in frames:
        assert isinstance(frame["name"], str) and set(frame) <= {"name", "file", "line", "col"}
        assert isinstance(frame.get("file", ""), str) and isinstance(frame.get("line", 0), int)
    for profile in document["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples",
                                "weights"}
        assert profile["type"] == "sampled"
        assert profile["unit"] in ("none", "nanoseconds", "microseconds", "milliseconds",
                                   "seconds", "bytes")
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= index < len(frames) for sample in profile["samples"] for index in sample)
        assert profile["startValue"] == 0 and profile["endValue"] == sum(profile["weights"])
    assert 0 <= document["activeProfileIndex"] < max(1, len(document["profiles"]))


@pytest.mark.parametrize("weight", WEIGHTS)
def test_speedscope(run_verb, make_stacks, tmp_path, weight):
    run_verb("flame", make_stacks(*TRAIN), "-o", "x.speedscope.json", "--weight", weight)
    document = json.loads((tmp_path / "x.speedscope.json").read_text())
    check_speedscope(document)
    profile, = document["profiles"]
    names = [frame["name"] for frame in document["shared"]["frames"]]
    found = {tuple(names[index] for index in sample): value
             for sample, value in zip(profile["samples"], profile["weights"])}
    expected = dict(WEIGHTS[weight])
    expected.pop(("[no stack]",), None)
    assert found == expected
    assert profile["unit"] == {"calls": "none", "bytes": "bytes"}.get(weight, "nanoseconds")
    if weight == "host":
        frame = document["shared"]["frames"][names.index(STEP)]
        assert frame == {"name": STEP, "file": "/home/me/train.py", "line": 12}
        assert "1 call without a stack (300 ns)" in document["name"]


def rectangles(path):
    """label -> (x, width, y) of an SVG's frames."""
    found = {}
    for group in xml.etree.ElementTree.parse(path).getroot():
        if group.get("class") == "f":
            title, rectangle = group[0].text, group[1]
            found.setdefault(title.rpartition(": ")[0], []).append(
                (float(rectangle.get("x")), float(rectangle.get("width")),
                 float(rectangle.get("y"))))
    return found


def test_svg(run_verb, make_stacks, tmp_path):
    folder = make_stacks(*TRAIN)
    run_verb("flame", folder, "-o", "x.svg")
    found = rectangles(tmp_path / "x.svg")
    whole, = found["all"]
    assert whole[:2] == (10, 1180)
    malloc, = found["cudaMalloc"]
    assert abs(malloc[1] - 1180 * 100000 / 102400) < 0.02
    step = max(found[STEP])
    assert step[2] > malloc[2]  # who called stands below
    assert step[0] <= malloc[0] + 0.01 and malloc[0] + malloc[1] <= step[0] + step[1] + 0.01
    texts = [e.text for e in xml.etree.ElementTree.parse(tmp_path / "x.svg").getroot().iter()
             if e.tag.endswith("}text")]
    assert "time of calls on the host: 102.400 us of calls with a stack" in texts
    assert any("1 call without a stack (300 ns)" in (text or "") for text in texts)
    assert STEP in texts  # wide enough
    again = (tmp_path / "x.svg").read_bytes()
    run_verb("flame", folder, "--format=svg", "-o", "y")
    assert (tmp_path / "y").read_bytes() == again


def trace_of(tmp_path, name):
    return json.loads((tmp_path / name).read_text())


def stack_by_frames(trace, event):
    names, at = [], event.get("sf")
    while at is not None:
        frame = trace["stackFrames"][str(at)]
        assert set(frame) <= {"name", "category", "parent"}
        names.append(frame["name"])
        at = frame.get("parent")
    return names


def test_trace(run_verb, make_stacks, tmp_path):
    run_verb("merge", make_stacks(*TRAIN), "-o", "trace.json")
    trace = trace_of(tmp_path, "trace.json")
    calls = {event["args"]["correlation"]: event for event in trace["traceEvents"]
             if event.get("cat") == "cuda_runtime"}
    for number, stack in ((11, FIRST), (16, FIRST), (12, SECOND), (13, THIRD), (14, FOURTH)):
        outwards = list(stack[-2::-1])
        assert stack_by_frames(trace, calls[number]) == outwards
        assert calls[number]["args"]["stack"] == " | ".join(outwards)
    assert "sf" not in calls[15] and "stack" not in calls[15]["args"]
    assert calls[11]["sf"] == calls[16]["sf"]
    categories = {frame["name"]: frame["category"] for frame in trace["stackFrames"].values()}
    assert categories[STEP] == "/home/me/train.py"
    assert categories["libtrain.so+0x100"] == "/nowhere/libtrain.so"
    assert not any("sf" in event for event in trace["traceEvents"] if event.get("cat") == "kernel")


def test_trace_without_gpu_work(run_verb, make_stacks, tmp_path):
    """The trace is that of a recording without stacks, with the stacks."""
    host = [line for line in TRAIN if not line.startswith(("kernel", "name"))]
    run_verb("merge", make_stacks(*host), "-o", "a.json")
    without = [line for line in host if not line.startswith(("stack", "module", "python"))]
    run_verb("merge", make_stacks(*without, name="without"), "-o", "b.json")
    with_stacks, plain = trace_of(tmp_path, "a.json"), trace_of(tmp_path, "b.json")
    assert with_stacks.pop("stackFrames") and "stackFrames" not in plain
    for event in with_stacks["traceEvents"]:
        event.pop("sf", None)
        event.get("args", {}).pop("stack", None)
    assert with_stacks["traceEvents"] == plain["traceEvents"]


def test_traces_of_ranks(run_verb, make_stacks, tmp_path):
    lines = [*TRAIN, "process 1", "meta stacks=x", "python 1 3 other.py\tmain", "stack 1 0 p1",
             "call cudaMalloc 1000 500 11 1 64"]
    folder = make_stacks(*lines)
    run_verb("merge", folder, "-o", "traces.zip")
    with zipfile.ZipFile(tmp_path / "traces.zip") as archive:
        traces = {name: json.loads(archive.read(name)) for name in archive.namelist()
                  if name.startswith("rank_")}
    assert len(traces) == 2
    for name, trace in traces.items():
        names = {frame["name"] for frame in trace["stackFrames"].values()}
        assert ("main (other.py:3)" in names) == name.startswith("rank_1")
        assert (STEP in names) == name.startswith("rank_0")
        assert all(stack_by_frames(trace, event) for event in trace["traceEvents"]
                   if "sf" in event)


# ---- the report ---------------------------------------------------------------------------------

def rows_of(run_verb, folder, by):
    report = json.loads(run_verb("report", f"--by={by}", "--format=json", folder).stdout)
    return report[f"calls_by_{by.replace('-', '_')}"], report


def test_report_by_stack(run_verb, make_stacks):
    rows, report = rows_of(run_verb, make_stacks(*TRAIN), "stack")
    found = {(row["call"], *row["frames"]): row for row in rows}
    assert set(found) == {stack[::-1] for stack in (FIRST, SECOND, THIRD, FOURTH)}
    first, third = found[FIRST[::-1]], found[THIRD[::-1]]
    assert (first["calls"], first["host_ns"], first["gpu_work"], first["gpu_ns"]) == \
        (2, 800, 2, 37000)
    assert found[SECOND[::-1]]["bytes"] == 4096
    assert abs(found[SECOND[::-1]]["share"] - 100000 / 102700) < 0.0001
    assert third["borrowed"] and not first["borrowed"]
    assert report["without_stack"] == {"calls": 1, "host_ns": 300, "gpu_work": 1, "gpu_ns": 100,
                                       "bytes": 0}
    assert [row["host_ns"] for row in rows] == sorted((row["host_ns"] for row in rows),
                                                      reverse=True)


def test_report_by_python_line(run_verb, make_stacks):
    """A recursion counts once for its line; a range stands in for Python frames."""
    recursion = ["python 4 3 /home/me/deep.py\tdeep", "stack 5 0 p4 p4 p4 p1",
                 "call cudaMalloc 600000 50 20 5 1"]
    rows, _ = rows_of(run_verb, make_stacks(*TRAIN, *recursion), "python-line")
    found = {(row["range"] or row["function"], row["borrowed"]): row for row in rows}
    assert len(found) == len(rows)
    values = {key: (row["calls"], row["host_ns"], row["gpu_ns"], row["calls_all"],
                    row["host_ns_all"], row["gpu_ns_all"]) for key, row in found.items()}
    assert values == {
        ("Trainer.step", False): (1, 100000, 0, 3, 100800, 37000),
        ("Model.forward", False): (2, 800, 37000, 2, 800, 37000),
        ("<module>", False): (0, 0, 0, 4, 100850, 37000),
        ("deep", False): (1, 50, 0, 1, 50, 0),
        ("forward", False): (1, 900, 5000, 1, 900, 5000),
        ("Model.forward", True): (1, 700, 40000, 1, 700, 40000),
        ("Trainer.step", True): (0, 0, 0, 1, 700, 40000),
        ("<module>", True): (0, 0, 0, 1, 700, 40000),
    }
    assert (found["deep", False]["file"], found["deep", False]["line"]) == ("/home/me/deep.py", 3)


def test_report_as_text_and_csv(run_verb, make_stacks):
    folder = make_stacks(*TRAIN)
    text = run_verb("report", "--by=stack", folder).stdout
    assert "\ncalls by stack\n" in text and "(no stack: below the threshold" in text
    assert "median and p95" not in text  # that table, and no other
    assert "gpuprof run --backtrace=launch,copy,graph_launch records a stack" in text
    lines = [line.split("  ")[-1].strip() for line in text.splitlines()]
    at = lines.index("cudaMalloc", lines.index("stack, the innermost frame first"))
    assert lines[at:at + 5] == list(SECOND[::-1])
    text = run_verb("report", "--by=python-line", folder).stdout
    assert re.search(r"97\.4% +100\.000 us +1 +4\.0 KiB +100\.800 us +37\.000 us +"
                     r"Trainer\.step \(/home/me/train\.py:12\)\n", text)
    assert "Model.forward (/home/me/model.py:7) [borrowed]\n" in text
    assert "  range forward\n" in text
    table = list(csv.DictReader(io.StringIO(
        run_verb("report", "--by=python-line", "--format=csv", folder).stdout), strict=True))
    rows = [(row["kind"], row["function"], row["domain"], row["calls"], row["total_ns"])
            for row in table if row["kind"].startswith("python")]
    assert ("python_line", "range forward", "gpu", "1", "5000") in rows
    assert ("python_line_all", "Trainer.step (/home/me/train.py:12)", "host", "3", "100800") in rows
    stacks = list(csv.DictReader(io.StringIO(
        run_verb("report", "--by=stack", "--format=csv", folder).stdout), strict=True))
    row = next(row for row in stacks if row["kind"] == "stack" and "cudaMalloc" in row["function"])
    assert row["function"] == " | ".join(SECOND[::-1]) and row["bytes"] == "4096"
    assert all(row[name].isdigit() for row in stacks for name in list(stacks[0])[3:])


# ---- hostile and odd ----------------------------------------------------------------------------

HOSTILE = ('a;b"c\\d<e>&\'f\\ng|</title><script>alert(1)</script>]]>\ufffe\udcff\x01 {}'
           '\u202e\u2067\x9b2J\x85')


def test_hostile_names(run_verb, make_stacks, tmp_path):
    """No name breaks a line, a JSON document or an SVG."""
    long = "x" * 3000 + "é" * 2000
    folder = make_stacks(
        "process 0", "meta stacks=x", "meta python=3.11", f"module 1 - /nowhere/{HOSTILE}",
        f"python 1 5 {HOSTILE}\t{HOSTILE}", f"python 2 0 f\t{long}", "stack 1 0 1+1 p1 p2",
        "stack 2 0 1+1", f"push 500 {HOSTILE}", "call cudaLaunchKernel 1000 500 1 1 0",
        "call cudaLaunchKernel 2000 500 2 2 0", "pop 3000", f"name 1 {HOSTILE}",
        "kernel 1 3000 10 1")
    for weight in ("host", "gpu"):
        text = run_verb("flame", folder, "--weight", weight).stdout
        assert all(re.fullmatch(r"[^\x00-\x1f]+ [0-9]+", line) for line in text.splitlines())
        lines = text.splitlines()
        assert len(lines) == (2 if weight == "host" else 1)
        assert {line.count(";") for line in lines} <= {3, 4, 5}
        run_verb("flame", folder, "--weight", weight, "-o", "x.json")
        check_speedscope(json.loads((tmp_path / "x.json").read_text()))
        run_verb("flame", folder, "--weight", weight, "-o", "x.svg")
        root = xml.etree.ElementTree.parse(tmp_path / "x.svg").getroot()
        assert sum(element.tag.endswith("}script") for element in root.iter()) == 1
    run_verb("merge", folder, "-o", "t.json")
    trace = trace_of(tmp_path, "t.json")
    names = {frame["name"] for frame in trace["stackFrames"].values()}
    assert any(name.startswith("a;b\"c\\d<e>&'f g|") for name in names)
    assert any(name.startswith("xxx") and name.endswith("...") and len(name) < 520
               for name in names)
    for by in ("stack", "python-line"):
        rows_of(run_verb, folder, by)
        text = run_verb("report", f"--by={by}", folder).stdout
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
        table = run_verb("report", f"--by={by}", "--format=csv", folder).stdout
        list(csv.DictReader(io.StringIO(table), strict=True))


def test_records_that_mean_nothing(run_verb, make_stacks, tmp_path):
    """They are counted, and what they would have said is shown as unknown."""
    folder = make_stacks(
        "process 0", "meta stacks=x",
        "module 0 - /zero", "module 1048576 - /large", "module 3 xyz /strange",
        "module 4 - ", "module 5 abc /odd", "python 0 1 f\tg", "python 7 1 without a zero",
        "stack 0 0 p1", "stack 8 0",
        "stack 1 255 p1 3+10 9+5 w3000000000000001 wffffffffffffffff a0",
        "call cudaMalloc 1000 500 1 1 64", "call cudaMalloc 2000 500 2 99 64")
    result = run_verb("flame", folder)
    for verb in (["flame"], ["report"], ["report", "--by=stack"], ["dump"],
                 ["merge", "-o", "t.json"]):
        said = run_verb(*verb, folder).stderr
        assert said.count("records of stacks that cannot be used: 9") == 1, verb
    assert list(folded(result.stdout)) == [
        ";".join([CUT, "0x0", "0xfffffffffffffff", "0x1", "unknown module+0x5",
                  "unknown module+0x10", "[unknown place in Python code]", BORROWED, "cudaMalloc"]),
        "[no stack]"]
    run_verb("flame", folder, "--strict", status=3)
    json.loads((tmp_path / "t.json").read_text())


def test_more_frames_than_are_kept(run_verb, make_stacks):
    """What is beyond the limit is said, and the numbers still add up."""
    places, depth = 2**19 + 5000, 1000
    stacks = range(places // depth)
    folder = make_stacks(
        "process 0", "meta stacks=x",
        *(f"python {i} {i} f.py\tf" for i in range(1, places)),
        *(f"stack {k + 1} 0 " + " ".join(f"p{k * depth + i + 1:x}" for i in range(depth))
          for k in stacks),
        *(f"call cudaMalloc {1000 + 10 * k} 5 {k + 1} {k + 1} 64" for k in stacks))
    result = run_verb("flame", folder)
    assert re.search(r"stacks: more than can be kept: 0 stacks and modules, \d+ frames and 0 names "
                     "are left out", result.stderr)
    assert sum(folded(result.stdout).values()) == 5 * len(stacks)


def test_deep_stack(run_verb, make_stacks, tmp_path):
    """The deepest stack that a record can hold."""
    frames = " ".join(f"p{1 + i % 7}" for i in range(1024))
    folder = make_stacks("process 0", "meta stacks=x",
                         *(f"python {i} {i} f.py\tfunction_{i}" for i in range(1, 8)),
                         f"stack 1 0 {frames}", "call cudaMalloc 1000 500 1 1 64")
    stack, = folded(run_verb("flame", folder).stdout)
    assert stack.count(";") == 1024
    run_verb("flame", folder, "-o", "x.svg")
    assert sum(map(len, rectangles(tmp_path / "x.svg").values())) == 1024 + 3
    run_verb("merge", folder, "-o", "t.json")
    trace = trace_of(tmp_path, "t.json")
    event = next(event for event in trace["traceEvents"] if "sf" in event)
    assert len(stack_by_frames(trace, event)) == 1024
    assert len(event["args"]["stack"]) <= 4096 and event["args"]["stack"].endswith("| ...")


def test_deeper_than_is_drawn(run_verb, make_stacks, frames, tmp_path):
    """Inlined functions have frames of their own."""
    address = " ".join([f"1+{offsets_of(frames)['inlined']}"] * 500)
    folder = make_stacks("process 0", "meta stacks=x", f"module 1 {build_id(frames)} {frames}",
                         f"stack 1 0 {address}", "call cudaMalloc 1000 500 1 1 64")
    run_verb("flame", folder, "-o", "x.svg")
    assert "303 frames deeper than 1200 are left out" in (tmp_path / "x.svg").read_text()
    assert sum(map(len, rectangles(tmp_path / "x.svg").values())) == 1200


def test_narrow_frames_are_drawn_together(run_verb, make_stacks, tmp_path):
    """What is too narrow to be seen keeps its place, and the file stays small."""
    count = 50000
    folder = make_stacks(
        "process 0", "meta stacks=x", f"python {count + 1} 1 f.py\tin_the_middle",
        *(f"python {i} {i} f.py\t{'a' if i % 2 else 'z'}_{i}" for i in range(1, count + 1)),
        *(f"stack {i} 0 p{i:x}" for i in range(1, count + 2)),
        *(f"call cudaMalloc {1000 + 10 * i} 10 {i} {i} 64" for i in range(1, count + 1)),
        f"call cudaMalloc 9000000 {10 * count} 99 {count + 1} 64")
    run_verb("flame", folder, "-o", "x.svg")
    found = rectangles(tmp_path / "x.svg")
    left, right = sorted(found.pop(f"[{count // 2:,} narrow frames]"))
    (middle,) = found.pop("in_the_middle (f.py:1)")
    assert left[2] == middle[2] == right[2]
    assert [round(x) for x, *_ in (left, middle, right)] == [10, 305, 895]
    assert [round(width) for _, width, _ in (left, middle, right)] == [295, 590, 295]
    assert len(found) == 3 and (tmp_path / "x.svg").stat().st_size < 10000
    assert f"{2 * count:,} frames narrower than 0.1 px are drawn together" in \
        (tmp_path / "x.svg").read_text()


def test_dump(run_verb, make_stacks):
    made = run_verb("dump", make_stacks(*TRAIN)).stdout.splitlines()
    lines = [line for line in made if line.split()[0] in ("module", "python", "stack")]
    assert lines[0] == ('module begin=200 module=1 bias=0x7f0000000000 begin=0x7f0000000000 '
                        'end=0x7f0000100000 text="- /nowhere/libtrain.so" thread=1 tid=1000')
    assert lines[2] == ('python begin=200 location=2 line=12 '
                        'text="/home/me/train.py\\u0000Trainer.step" thread=1 tid=1000')
    assert lines[-1] == "stack begin=300 stack=4 flags=1 frames=1+0x400,0xdead thread=1 tid=1000"
    assert any(line.startswith("call cudaMalloc ") and line.endswith(" stack=2") for line in made)


def test_compressed_by_name(run_verb, make_stacks, tmp_path):
    """.gz behind it does not change what a name stands for."""
    folder = make_stacks(*TRAIN)
    for name in ("x.svg", "x.json", "x.folded"):
        run_verb("flame", folder, "-o", name)
        run_verb("flame", folder, "-o", f"{name}.gz")
        assert gzip.decompress((tmp_path / f"{name}.gz").read_bytes()) == \
            (tmp_path / name).read_bytes()


def test_folder_of_symbols_that_is_not_there(run_verb, make_stacks, tmp_path):
    folder = make_stacks(*TRAIN)
    said = run_verb("flame", folder, "--symbols=/nowhere/at/all").stderr
    assert "gpuprof: --symbols: /nowhere/at/all: No such file or directory\n" in said
    (tmp_path / "file").write_text("")
    assert "--symbols: file: is not a folder" in run_verb("flame", folder, "--symbols=file").stderr
    assert "--symbols:" not in run_verb("flame", folder, "--symbols=none").stderr


def test_wrong_usage(run_verb, make_stacks):
    folder = make_stacks(*TRAIN)
    assert "--weight" in run_verb("flame", folder, "--weight=time", status=2).stderr
    assert "folded|speedscope|svg" in run_verb("flame", folder, "--format=csv", status=2).stderr
    recording = next(folder.glob("*.gpuprof"))
    assert "not overwritten" in run_verb("flame", folder, "-o", recording, status=2).stderr


# ---- recorded -----------------------------------------------------------------------------------

def test_recorded_program(library, program, run_verb, tmp_path):
    """From the program's source, through the library, to the flame graph."""
    demo = program("demo")
    lines = (toolchain.HERE.parent / "programs" / "demo.c").read_text().splitlines()
    environment = toolchain.environment(tmp_path / "data", library, GPUPROF_BACKTRACE_THRESHOLD=0)
    subprocess.run([demo], env=environment, check=True, capture_output=True, timeout=120)
    found = run_verb("flame", "--weight=calls", "data").stdout.splitlines()
    assert len(found) > 20 and not any("[no stack]" in line for line in found)
    for line in found:
        frames = line.rpartition(" ")[0].split(";")
        call, caller = frames[-1], frames[-2]
        place = re.fullmatch(r"\w+ \(demo\.c:([0-9]+)\)", caller)
        if place and call != "cudaLaunchKernel":
            assert f"{call}(" in lines[int(place[1]) - 1], line
    places = "".join(rf";{name} \(demo\.c:\d+\)" for name in ("main", "train", "trainer_init"))
    assert any(re.search(rf"{places};cudaMalloc \d+$", line) for line in found)
    run_verb("merge", "data", "-o", "trace.json")
    trace = trace_of(tmp_path, "trace.json")
    stacks = [event["args"]["stack"] for event in trace["traceEvents"] if "sf" in event]
    assert len(stacks) > 100 and any("trainer_init (demo.c:" in stack for stack in stacks)


def test_sums_are_the_reports(library, program, run_verb, tmp_path):
    """However the calls are put together, nothing is lost and nothing counts twice."""
    environment = toolchain.environment(tmp_path / "data", library, GPUPROF_GPU="on",
                                        GPUPROF_BACKTRACE_THRESHOLD="5us")
    subprocess.run([program("demo")], env=environment, check=True, capture_output=True, timeout=120)
    by_stack, report = rows_of(run_verb, "data", "stack")
    by_line, _ = rows_of(run_verb, "data", "python-line")
    wanted = {"host_ns": sum(row["total_ns"] for row in report["functions"]),
              "calls": sum(row["calls"] for row in report["functions"]),
              "gpu_ns": sum(row["total_ns"] for table in ("cuda_gpu_kern_sum",
                                                          "cuda_gpu_mem_time_sum")
                            for row in report[table])}
    without = report["without_stack"]
    assert by_stack and all(0 < without[key] < wanted[key] for key in wanted)
    for rows in (by_stack, by_line):
        assert {key: sum(row[key] for row in rows) + without[key] for key in wanted} == wanted
    for weight, key in (("host", "host_ns"), ("gpu", "gpu_ns"), ("calls", "calls"),
                        ("bytes", "bytes")):
        lines = run_verb("flame", "data", f"--weight={weight}").stdout.splitlines()
        shown = sum(int(line.rpartition(" ")[2]) for line in lines)
        assert shown == sum(row[key] for row in by_stack) + without[key]
