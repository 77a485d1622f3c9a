# SPDX-License-Identifier: Apache-2.0
"""A part of `make torture`, and the table that it has left."""

import re
import subprocess
import sys

import conftest
import pytest
import torture

SEED = 20260101


@pytest.mark.timeout(600)  # hundreds of programs
@pytest.mark.skipif(bool(torture.toolchain.CROSS), reason="the simulated CUDA runs natively")
def test_short_form(tmp_path):
    done = subprocess.run([sys.executable, torture.HERE / "torture.py", "--factor", "0.25",
                           "--seed", str(SEED), "--output", tmp_path / "table.md"],
                          capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, f"seed {SEED}: {done.stdout}\n{done.stderr}"
    assert rows((tmp_path / "table.md").read_text())


def rows(text):
    """name -> numbers"""
    found = re.findall(r"^\| ([^|]+) \| ([0-9 |]+) \|$", text, re.MULTILINE)
    return {name: [int(n) for n in numbers.split("|")] for name, numbers in found}


def test_table():
    """The one in the repository is of these faults, and says that nothing was unexplained."""
    table = rows((conftest.ROOT / "test" / "RELIABILITY.md").read_text(encoding="ascii"))
    assert set(table) >= {name for name, *_ in torture.LIVES.values()}
    for name, (count, processes, made, recovered, lost, unexplained, failures, bare) in \
            table.items():
        assert count and made and recovered and (processes or "cut" in name), name
        assert unexplained == 0 and failures <= bare, name
        assert "cut" in name or recovered + lost >= made, name
