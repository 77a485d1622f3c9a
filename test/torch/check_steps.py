# SPDX-License-Identifier: Apache-2.0
"""The steps that reports find in a real PyTorch's labels, held against what the program itself has
counted: `make check-torch`."""

import json
import subprocess

import check_torch
import pytest

WORK = check_torch.HERE / "steps_work.py"
PARTS = ("kernels", "copies", "communication", "runtime", "dataloader", "operators", "other")


@pytest.mark.parametrize("kind,by,name", (
    ("plain", "optimizer", "Optimizer.step#SGD.step"),
    ("accumulated", "optimizer", "Optimizer.step#SGD.step"),
    ("closure", "optimizer", "Optimizer.step#LBFGS.step"),
    ("fused", "dataloader", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
    ("profiler", "profiler", None)))
def test_steps(tmp_path, kind, by, name):
    env = check_torch.environment(LD_PRELOAD=check_torch.BUILD / "libgpuprof.so",
                                  GPUPROF_OUT=tmp_path / "out", GPUPROF_PYTORCH="shapes")
    done = check_torch.run([check_torch.PYTHON, WORK, kind], env)
    updates, fetches = map(int, done.stdout.split())
    report = json.loads(subprocess.run(
        [check_torch.GPUPROF, "report", "--format=json", "--table=steps,phases", tmp_path / "out"],
        check=True, capture_output=True, text=True).stdout)
    steps = report["steps"]
    assert report["steps_by"] == by and name in (None, *{row["made_of"] for row in steps})
    if by == "profiler":  # the last one begins behind the last batch
        assert [row["step"] for row in steps] == list(range(updates + 1))
    else:
        assert len(steps) == (updates if by == "optimizer" else fetches)
        assert sum(row["partial"] for row in steps) == 1
    if kind == "accumulated":
        assert updates and sum(row["batches"] for row in steps) >= 4 * updates
    for row in steps:
        assert sum(row[f"{part}_ns"] for part in PARTS) == row["duration_ns"]
    phases = {row["name"]: row["host_ns"] for row in report["phases"]}
    assert phases["forward"] and phases["backward"] and phases["data"]
