# SPDX-License-Identifier: Apache-2.0
"""Symbols of the frames of stacks: from binaries that the tests build, with their debugging
information in every form and place that it has."""

import os
import shutil
import socket
import subprocess
import time

import pytest

import toolchain
from conftest import need
from made_stacks import FLAGS, TRAIN, build_frames, build_id, folded, offsets_of, one_call
from web_server import serve

INLINED = ["outer (frames.c:18)", "middle (frames.c:12)", "innermost (frames.c:7)"]
NO_DEBUGINFOD = "libdw asks nobody: is libdebuginfod1 there? ./scripts/check installs it"


@pytest.fixture(scope="module")
def frames():
    return build_frames()


def symbols(run_verb, folder, *options, **more):
    """The frames of the only call, outermost first, and what was said of the modules."""
    result = run_verb("flame", folder, *options, **more)
    stack, = folded(result.stdout)
    said = [line for line in result.stderr.splitlines() if "symbols of" in line]
    return stack.split(";")[:-1], said


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
    need(compiler)
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
    need("dwz")
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
    program = build_frames("-no-pie", "-fno-pie")
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


def test_stripped_program_names_what_it_exports(run_verb, make_stacks, tmp_path):
    program = build_frames("-rdynamic")
    copy, debug = stripped(program, tmp_path / "s")
    debug.unlink()
    module = f"module 1 {build_id(program)} {copy}"
    found, _ = symbols(run_verb, make_stacks(*one_call(module, offsets_of(program)["inlined"])))
    assert found == ["outer (frames)"]


def test_binary_replaced_by_another_build(run_verb, make_stacks, frames, tmp_path):
    """It is not used, and this is said once; the right one is found elsewhere."""
    other = build_frames("-DOTHER_BUILD")
    inlined = offsets_of(frames)["inlined"]
    place = tmp_path / "bin" / "frames"
    place.parent.mkdir()
    shutil.copy(other, place)
    lines = one_call(f"module 1 {build_id(frames)} {place}", inlined)
    again = [f"module 2 {build_id(frames)} {place}", "stack 2 0 2+1234 1+5678"]
    folder = make_stacks(*lines, *again)
    found, said = symbols(run_verb, folder)
    assert found == [f"frames+0x{inlined}"]
    assert said == \
        ["gpuprof: symbols of 1 module: frames: not used: the file here has another build "
                    "id than the recorded one"]
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


def test_folder_of_symbols_that_is_not_there(run_verb, make_stacks, tmp_path):
    folder = make_stacks(*TRAIN)
    said = run_verb("flame", folder, "--symbols=/nowhere/at/all", status=2).stderr
    assert said == ("gpuprof: flame: --symbols: '/nowhere/at/all' is not a folder with binaries or "
                    "debug files, nor 'none'\n")
    (tmp_path / "file").write_text("")
    assert "--symbols: 'file' is not a folder" in run_verb("report", folder, "--symbols=file",
                                                           status=2).stderr
    assert "--symbols:" not in run_verb("flame", folder, "--symbols=none").stderr


def test_folder_of_symbols_without_the_file(run_verb, make_stacks, tmp_path):
    folder = make_stacks("process 0", "meta stacks=made up", "module 1 - /nowhere/gone.so",
                         "stack 1 0 1+11d0", "call cudaMalloc 1000 500 1 1 4096")
    (tmp_path / "other").mkdir()
    said = run_verb("flame", folder, "--symbols=other").stderr
    assert "gone.so: no such file here or in other; shown as module+offset\n" in said


def test_what_is_missing_is_said_once(run_verb, make_stacks, tmp_path):
    """Stacks, places of idle time and of memory are looked up one after the other."""
    folder = make_stacks("process 0", "meta stacks=made up", "module 1 - /nowhere/gone.so",
                         "stack 1 0 1+11d0", "call cudaMalloc 1000 500 1 1 4096",
                         "call cudaLaunchKernel 5000 500 2 1 0", "kernel 1 9000 900 2",
                         "call cudaLaunchKernel 50000 500 3 1 0", "kernel 1 52000 900 3")
    (tmp_path / "other").mkdir()
    for words in (["--by=stack"], [], ["-o", "x.html"], ["--by=python-line", "--format=json"]):
        said = run_verb("report", folder, "--symbols=other", *words).stderr
        assert said.count("gone.so: no such file here or in other") == 1, words


def test_debuginfod(run_verb, make_stacks, frames, tmp_path, monkeypatch):
    """Asked if, and only if, the variable says where it is."""
    identity, inlined = build_id(frames), offsets_of(frames)["inlined"]
    asked = []

    def find(path):
        asked.append(path)
        known = path == f"/buildid/{identity}/executable"
        return (frames.read_bytes(), "application/octet-stream") if known else None

    folder = make_stacks(*one_call(f"module 1 {identity} /nowhere/frames", inlined))
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    with serve(find) as url:
        assert symbols(run_verb, folder)[0] == [f"frames+0x{inlined}"] and not asked
        monkeypatch.setenv("DEBUGINFOD_URLS", url.rstrip("/"))
        found, _ = symbols(run_verb, folder)
    assert asked, NO_DEBUGINFOD
    assert found == INLINED


def test_silent_debuginfod(run_verb, make_stacks, tmp_path, monkeypatch):
    """A server that takes a question and never answers costs its time once, not for each module."""
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
    assert "debuginfod did not answer" in result.stderr, NO_DEBUGINFOD
    assert took_s < 20
    assert f"symbols of {modules} modules" in result.stderr
    assert "no such file here or from debuginfod" in result.stderr
    assert result.stdout.count(".so+0x100") == modules
