# SPDX-License-Identifier: Apache-2.0
"""The simulated CUDA keeps what it promises, whatever gpuprof does: its own self-tests."""

import os
import subprocess

from conftest import ROOT


def test_sim_selftest():
    """Against both shared runtimes and the static one."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SIMCUDA_", "LD_"))}
    done = subprocess.run(["make", "-s", "sim-selftest"], cwd=ROOT, env=env, check=False,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
