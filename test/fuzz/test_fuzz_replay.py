# SPDX-License-Identifier: Apache-2.0
"""The fuzzer's seeds, and inputs that once failed, run once through its function."""

import pathlib
import subprocess

from conftest import BUILD, built

SEEDS = sorted((pathlib.Path(__file__).resolve().parent / "seeds").iterdir())


def test_seeds():
    result = subprocess.run([built(BUILD / "fuzz_replay"), *SEEDS], check=False, text=True,
                            capture_output=True, timeout=300)
    assert result.returncode == 0, result.stderr[-5000:]
    assert result.stdout.count("\n") == len(SEEDS)
