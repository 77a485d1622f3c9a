# SPDX-License-Identifier: Apache-2.0
"""Stacks of calls in the collector: symbols, traces, flame graphs, reports, from recordings made
by test/unit/make_stacks.c over binaries that the tests build."""

import collections
import csv
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
    """A stripped copy in `folder`, and its debug file beside it; `link`: the one names the other."""
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


def test_stripped_program_names_what_it_exports(run_verb, make_stacks, tmp_path):
    program = toolchain.build("frames.c", *FLAGS, "-rdynamic")
    copy, _ = stripped(program, tmp_path / "s")
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
