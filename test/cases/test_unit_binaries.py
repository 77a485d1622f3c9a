# SPDX-License-Identifier: Apache-2.0
"""Runs the unit tests (C, cmocka): one case here for each program of test/unit/."""

import os
import subprocess

import pytest

from conftest import BUILD, ROOT

PROGRAMS = sorted(path.stem for path in (ROOT / "test" / "unit").glob("test_*.c"))


def test_folder_to_make_recordings_in(tmp_path):
    result = subprocess.run([BUILD / "make_gpu", "missing", "train", "1"], cwd=tmp_path, text=True,
                            check=False, capture_output=True, timeout=60)
    assert (result.returncode, result.stderr) == (
        1, "missing/rank0.gpuprof: No such file or directory; name a folder that there is\n")


@pytest.mark.parametrize("name", PROGRAMS)
def test_unit(name, tmp_path):
    program = BUILD / "unit" / name
    assert program.exists(), f"{program} is not there; run make unit"
    result = subprocess.run([program], cwd=tmp_path, check=False, timeout=300, text=True,
                            env={**os.environ, "CMOCKA_MESSAGE_OUTPUT": "TAP"},
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    failed = [line for line in result.stdout.splitlines() if line.startswith("not ok")]
    assert result.returncode == 0 and not failed, result.stdout[-20000:]
    assert "\nok 1 " in "\n" + result.stdout, f"no test was run:\n{result.stdout}"
