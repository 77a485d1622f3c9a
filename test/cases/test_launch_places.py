# SPDX-License-Identifier: Apache-2.0
"""Which line a launch is told to be at, of programs in which functions stand between that line and
the call: those that nvcc and clang make, and the program's own (src/launches.cpp)."""

import json
import re
import shutil

import conftest
import fault_truth
import pytest
import toolchain

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="one machine's compilers are enough")

MARKED = toolchain.SOURCES / "launches.cpp"


def marked(word):
    """name -> "launches.cpp:12" of the lines that end with it."""
    found = {}
    for number, line in enumerate(MARKED.read_text().splitlines(), 1):
        if match := re.search(rf"; +// {word} (.*)$", line):
            found[match[1]] = f"{MARKED.name}:{number}"
    return found


def launching(source):
    """The lines with <<<...>>>."""
    return {f"{source.name}:{number}"
            for number, line in enumerate(source.read_text().splitlines(), 1) if ">>>(" in line}


AT, FROM = marked("at"), marked("from")
CALLED = {"a wrapper": ("one", "the next", "another function"),
          "a wrapper of a wrapper": ("here", "there"),
          "what is inlined": ("where it is inlined",)}
PLACES = {(AT[name], FROM[caller] if caller else None)
          for name in AT for caller in CALLED.get(name, (None,))}
LINE = re.compile(r"\(([^()]*:\d+)\)")


def recorded(folder, program):
    data = folder / "data"
    world = {**fault_truth.WORLD, "LD_LIBRARY_PATH": toolchain.SIM}
    toolchain.run([conftest.ROOT / "scripts" / "gpuprof", "run", "--quiet", "-o", data,
                   "--backtrace=launch", "--silence=off", "--", program],
                  toolchain.environment(None, **world), status=None)
    return data


def end_of(place):
    """Of a place between two calls, or before one, that one."""
    return re.sub(r"^(before |between .* and \w+ in )", "", place)


def lines_of(place):
    """Its line, and where that was called."""
    line, *caller = LINE.findall(place)
    assert (", called at " in place) == bool(caller) and len(caller) < 2, place
    return line, caller[0] if caller else None


def idle_places(run_collector, data):
    told = json.loads(run_collector("report", "--format=json", data).stdout)
    return [end_of(row["place"]) for row in told["idle"]
            if row["cause"] in ("host", "launch")], told


def innermost(run_collector, data):
    """The lines that the graph of one's own frames has around launches."""
    graph = run_collector("flame", "--mine", "--weight=calls", data).stdout
    return {LINE.findall(line)[-1] for line in graph.splitlines() if "aunchKernel" in line}


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_line_of_a_launch(run_collector, tmp_path, level):
    program = toolchain.build("launches.cpp", *toolchain.DRIVER, level, "-fno-ipa-icf",
                              compiler="g++")  # the same code is not made one function
    data = recorded(tmp_path, program)
    places, told = idle_places(run_collector, data)
    assert {lines_of(place) for place in places} == PLACES
    finding, = (row for row in told["findings"] if row["id"] == "host-bound")
    assert lines_of(end_of(finding["where"])) in PLACES
    assert innermost(run_collector, data) == set(AT.values())
    source = run_collector("report", f"--source={MARKED.parent}", "--format=json", data).stdout
    calls = {f"{MARKED.name}:{row['line']}": row["calls"]
             for row in json.loads(source)["source_lines"] if row["calls"]}
    assert {line for line in AT.values() if calls[line] % 4 == 0} == set(AT.values())


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.skipif(not shutil.which("nvcc"), reason="not run: no nvcc in PATH")
def test_line_as_nvcc_makes_it(run_collector, tmp_path, level):
    source, program = toolchain.SOURCES / "kernels.cu", tmp_path / "kernels"
    toolchain.run(["nvcc", "-arch=compute_80", "-g", level, source, "-o", program, "-cudart=none",
                   "-Xlinker", toolchain.SIM / "libcudart.so.13", "-Xlinker",
                   "--allow-shlib-undefined"], None)
    data = recorded(tmp_path, program)
    assert innermost(run_collector, data) == launching(source)
    assert {lines_of(place)[0] for place in idle_places(run_collector, data)[0]
            if ".cu" in place} <= launching(source)


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.skipif(not shutil.which("clang++"), reason="not run: no clang++ in PATH")
def test_line_as_clang_makes_it(run_collector, tmp_path, level):
    source, program = toolchain.SOURCES / "kernels_clang.cu", tmp_path / "kernels"
    toolchain.run(["clang++", "-g", level, "-x", "cuda", "--cuda-host-only", "-nocudainc",
                   "-nocudalib", "-Xclang", "-target-sdk-version=11.2", source, "-x", "none",
                   toolchain.SIM / "libcudart.so.12", "-Wl,--allow-shlib-undefined",
                   "-o", program], None)
    assert innermost(run_collector, recorded(tmp_path, program)) == launching(source)


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_function_of_a_launch(run_collector, tmp_path, level):
    """As nvcc leaves it without -g: with the static runtime's functions inside, if it took that."""
    program = toolchain.build("launches.cpp", *toolchain.DRIVER, level, "-fno-ipa-icf", "-g0",
                              compiler="g++")
    places, _ = idle_places(run_collector, recorded(tmp_path, program))
    names = {re.sub(r" \(launches-\w+\)| \[clone [^]]*]", "", place) for place in places}
    assert not [name for name in names if "stub" in name or "cuda" in name], names
    assert {"by_nvcc(float*, int*)", "by_clang(float*)", "scale(float*)", "run(float*)", "only()",
            "launch(int), called at first()", "launch(int), called at second()"} <= names
