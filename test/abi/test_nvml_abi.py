# SPDX-License-Identifier: Apache-2.0
"""What inject/ knows of NVML, against the real header of every version that is found: of
`make fetch-cuda`, of CUDA_HOME, and of the nvcc in PATH."""

import re

import pytest

from cuda_toolkits import ROOT, candidates, run

ABI = ROOT / "inject" / "device" / "nvml_abi.h"
FUNCTIONS = ROOT / "inject" / "device" / "nvml_functions.def"
RESULTS = ROOT / "formats" / "nvml_results.def"
FLAGS = ("-std=gnu11", "-w", "-I", str(ROOT / "inject"), "-I", str(ROOT / "formats"))
OURS = {"GPUPROF_INJECT_NVML_ABI_H", "NVML_GPM_METRICS_ROOM", "NVML_MEMORY_V2", "NVML_RESULT",
        "NVML_"}


def headers():
    """version -> folder"""
    found = {}
    for root in candidates():
        if (root / "include" / "nvml.h").exists():
            found[root.name] = root / "include"
    return found


@pytest.fixture(name="versions", scope="module")
def fixture_versions():
    if not headers():
        pytest.skip("not run: no nvml.h; make fetch-cuda")
    return headers()


def words_of(folder):
    text = (folder / "nvml.h").read_text(errors="replace")
    return set(re.findall(r"\w+", re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)))


def test_functions(versions, tmp_path):
    names = re.findall(r"^NVML_FUNCTION\((\w+)", FUNCTIONS.read_text(), re.MULTILINE)
    seen = set()
    for version, folder in versions.items():
        words = words_of(folder)
        (tmp_path / "declared.h").write_text("".join(
            f"#define DECLARED_{name} {int(name in words)}\n" for name in names))
        run("gcc", *FLAGS, "-fsyntax-only", "-I", str(folder), "-I", str(tmp_path),
            str(ROOT / "test" / "abi" / "check_nvml.c"))
        seen |= set(names) & words
        print(version, len(set(names) & words), "functions")
    assert seen == set(names)


def layout(folder, include, structures, numbers):
    """A line for each member's place and each number's value, as that header has it."""
    lines = [f'printf("{name} {member} %zu %zu\\n", offsetof({name}, {member}), '
             f"sizeof((({name} *)0)->{member}));"
             for name, members in structures.items() for member in members]
    lines += [f'printf("{name} %lld\\n", (long long){name});' for name in numbers]
    source = folder / "layout.c"
    source.write_text(f"#include <stddef.h>\n#include <stdio.h>\n#include {include[0]}\n"
                      "int main(void)\n{\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
    run("gcc", *FLAGS, *include[1:], str(source), "-o", str(folder / "layout"))
    return run(str(folder / "layout")).splitlines()


def test_structures_and_numbers(versions, tmp_path):
    text = re.sub(r"/\*.*?\*/", "", ABI.read_text(), flags=re.S)
    structures = {name: re.findall(r"(\w+)(?:\[\w+\])?;", re.sub(r"struct \{.*?\} ", "", body,
                                                                 flags=re.S))
                  for body, names in re.findall(
                      r"typedef (?:struct|union)[ \w]*\{\n(.*?)\n\} ([\w, ]+);", text, re.S)
                  for name in names.split(", ")}
    # As long as the newest version has it: only as many are touched as are asked for.
    structures["nvmlGpmMetricsGet_t"].remove("metrics")
    results = {f"NVML_{name}" for name in re.findall(r"^NVML_RESULT\((\w+)", RESULTS.read_text(),
                                                     re.MULTILINE)}
    numbers = set(re.findall(r"\b(NVML_\w+)", text)) - OURS | results
    assert len(structures) >= 8 and len(numbers) > 50
    seen = set()
    for version, folder in versions.items():
        words = words_of(folder)
        theirs = {n: [m for m in members if m in words]
                  for n, members in structures.items() if n in words}
        common = sorted(numbers & words)
        # 12.9 alone has other numbers for these: they are asked for from 580 (13.0) on.
        if "12.9" in version:
            common = [n for n in common if "CLOCKS_EVENT_REASON" not in n]
        ours = layout(tmp_path, ('"device/nvml_abi.h"',), theirs, common)
        assert ours == layout(tmp_path, ("<nvml.h>", "-I", str(folder)), theirs, common), version
        seen |= set(theirs) | set(common)
        assert {w for w in words if re.match("NVML_(SUCCESS$|ERROR_)", w)} <= results, version
    assert seen == set(structures) | numbers


def test_room_for_metrics(versions, tmp_path):
    ours = layout(tmp_path, ('"device/nvml_abi.h"',), {}, ["NVML_GPM_METRICS_ROOM"])
    for folder in versions.values():
        theirs = layout(tmp_path, ("<nvml.h>", "-I", str(folder)), {}, ["NVML_GPM_METRIC_MAX"])
        assert int(theirs[0].split()[1]) <= int(ours[0].split()[1])
