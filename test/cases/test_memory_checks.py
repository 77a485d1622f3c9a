# SPDX-License-Identifier: Apache-2.0
"""The collector and formats/ under AddressSanitizer, UBSan and valgrind: no finding, no leak."""

import os
import subprocess

import pytest
import sanitized

from conftest import BUILD, ROOT, need

pytestmark = pytest.mark.timeout(600)  # it builds, or waits for another test that does

UNIT_TESTS = sorted(path.stem for path in (ROOT / "test" / "unit").glob("test_*.c"))
SANITIZER_ENV = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99",
                 "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:exitcode=99"}


@pytest.fixture(name="folder", scope="module")
def fixture_folder():
    """With the collector and the unit tests, built with both sanitizers."""
    return sanitized.make(sanitized.ADDRESS, "gpuprof-collector",
                          *(f"unit/{name}" for name in UNIT_TESTS))


@pytest.fixture(scope="module")
def recording(library, program, tmp_path_factory):
    """What the demo's one process records, and the live file of a killed one."""
    folder = tmp_path_factory.mktemp("recording")
    env = {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "sim"), "LD_PRELOAD": str(library),
           "GPUPROF_OUT": str(folder), "GPUPROF_BACKTRACE_THRESHOLD": "0"}
    subprocess.run([program("demo")], env=env, check=True, capture_output=True, timeout=120)
    assert list(folder.glob("*.gpuprof"))
    return folder


def verbs(recording, tmp_path):
    return (["merge", "-o", tmp_path / "trace.json", recording],
            ["merge", "-o", tmp_path / "trace.json.gz", recording],
            ["report", recording], ["flame", "-o", tmp_path / "x.svg", recording],
            ["report", "--by=python-line", recording], ["dump", recording],
            ["dump", "--blocks", recording])


@pytest.mark.parametrize("name", UNIT_TESTS)
def test_sanitizers_find_nothing_in_unit_tests(folder, tmp_path, name):
    done = subprocess.run([folder / "unit" / name], cwd=tmp_path, check=False, text=True,
                          env={**os.environ, **SANITIZER_ENV}, capture_output=True, timeout=300)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "runtime error" not in done.stderr and "ERROR: " not in done.stderr, done.stderr


def test_sanitizers_find_nothing_in_verbs(folder, recording, tmp_path):
    for verb in verbs(recording, tmp_path):
        done = subprocess.run([folder / "gpuprof-collector", *verb], check=False, text=True,
                              env={**os.environ, **SANITIZER_ENV}, capture_output=True, timeout=300)
        assert done.returncode == 0, f"{verb}\n{done.stderr}"


@pytest.mark.parametrize("verb", range(4))
def test_valgrind_finds_nothing(verb, collector, recording, tmp_path):
    need("valgrind")
    done = subprocess.run(["valgrind", "-q", "--error-exitcode=98", "--leak-check=full",
                           "--errors-for-leak-kinds=definite,possible", collector,
                           *verbs(recording, tmp_path)[verb]], check=False, text=True,
                          capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "ERROR SUMMARY" not in done.stderr or "0 errors" in done.stderr, done.stderr
