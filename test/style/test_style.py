# SPDX-License-Identifier: Apache-2.0
"""The rules that a program can check: includes, names, licences, format, headers, scripts."""

import re
import subprocess

import pytest

import check_includes
from conftest import need

FILES = check_includes.tree_files()
PARTS = ("inject", "formats", "collector")
OWN_HEADERS = [path for path in FILES if path.suffix == ".h" and path.parts[0] in PARTS]
C_FILES = [str(path) for path in FILES if path.suffix in (".c", ".h")]
SHELL_FILES = [str(path) for path in FILES if not path.suffix
               and re.match(rb"#!.*\bsh\b", (check_includes.ROOT / path).read_bytes()[:80])]


def run(*command):
    return subprocess.run(command, cwd=check_includes.ROOT, capture_output=True, text=True,
                          check=False)


def test_includes_names_and_licences():
    assert list(check_includes.violations()) == []


@pytest.mark.parametrize("header", OWN_HEADERS, ids=str)
def test_header_compiles_alone(header):
    folders = sorted(check_includes.PARTS[header.parts[0]])
    result = run("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wno-unused-function",
                 "-Werror", "-fsyntax-only", "-x", "c", *(f"-I{name}" for name in folders),
                 "-include", str(header), "/dev/null")
    assert result.returncode == 0, result.stderr


def test_header_has_a_guard():
    assert not [str(path) for path in OWN_HEADERS
                if not re.search(r"^#ifndef (GPUPROF_\w+_H)\n#define \1\n",
                                 (check_includes.ROOT / path).read_text(), re.MULTILINE)]


def test_format_is_clean():
    need("clang-format")
    result = run("clang-format", "--dry-run", "-Werror", *C_FILES)
    places = re.findall(r"^(\S+?:\d+):\d+: error", result.stderr, re.MULTILINE)
    assert result.returncode == 0, "clang-format would change " + " ".join(places[:20])


@pytest.mark.parametrize("script", SHELL_FILES)
def test_shell_script(script):
    text = (check_includes.ROOT / script).read_text()
    assert re.search(r"^set -eu", text, re.MULTILINE), "set -eu is missing"
    assert run("sh", "-n", script).returncode == 0
    need("shellcheck")
    result = run("shellcheck", "-x", script)
    assert result.returncode == 0, result.stdout


def test_lines_are_not_too_long():
    long_lines = [f"{path}:{number}" for path in FILES
                  if check_includes.is_source(path) and path.suffix not in (".def", ".map")
                  for number, line in enumerate(
                      (check_includes.ROOT / path).read_text().split("\n"), 1) if len(line) > 100]
    assert long_lines == []


def test_settings_are_documented(run_collector):
    """Each row of the settings table is in help and manual, with variable and option."""
    rows = re.findall(r'^SETTING\(\w+, "(\w+)", "([\w-]+)"',
                      (check_includes.ROOT / "formats/settings.def").read_text(), re.MULTILINE)
    assert len(rows) >= 10
    text = run_collector("help", "run").stdout
    manual = run_collector("manual").stdout.replace("\\-", "-")
    for variable, option in rows:
        assert variable in text and f"--{option}" in text
        assert variable in manual and f"--{option}" in manual
