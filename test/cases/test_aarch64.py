# SPDX-License-Identifier: Apache-2.0
"""The core of the suite on the other processor: `make check-aarch64`, under qemu-user. Not
optimised, which takes half the time of all; by hand, as it ships."""

import os
import re
import subprocess

import pytest
import toolchain

from conftest import ROOT, need


@pytest.mark.timeout(600)  # it builds all
@pytest.mark.skipif(bool(toolchain.CROSS), reason="not run: this is that run")
@pytest.mark.parametrize("opt", ["-O0", pytest.param("-O2", marks=pytest.mark.long)])
def test_aarch64(opt):
    for tool in ("aarch64-linux-gnu-gcc", "qemu-aarch64"):
        need(tool)
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("LD_", "PYTEST_", "MAKE")) and k != "BUILD"}
    done = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "check-aarch64",
                           f"AARCH64_OPT={opt}"], cwd=ROOT, env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          timeout=500)
    passed = re.search(r"^(\d+) passed", done.stdout, re.M)
    assert done.returncode == 0 and passed and int(passed.group(1)) >= 40, done.stdout[-8000:]
    print(passed.group(0))
