# SPDX-License-Identifier: Apache-2.0
"""The steps that reports find in a real PyTorch's labels, held against what the program itself has
counted: `make check-torch`."""

import json
import random
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


def phases_of(folder, *options):
    report = json.loads(subprocess.run(
        [check_torch.GPUPROF, "report", "--format=json", "--table=phases,labels,ops,hooks",
         *options, folder], check=True, capture_output=True, text=True).stdout)
    return report, {row["name"]: row["host_mean_ns"] for row in report["phases"]}


def test_phases_of_a_gradient_scaler(tmp_path):
    """Held against the program's own labels around the parts of a step: of its GPU time each phase
    has what its labels have, but for the last step, which is partial. What the stand-ins compute
    lets the scaler pass most updates by."""
    env = check_torch.environment(LD_PRELOAD=check_torch.BUILD / "libgpuprof.so",
                                  GPUPROF_OUT=tmp_path / "out", GPUPROF_PYTORCH="shapes")
    check_torch.run([check_torch.PYTHON, WORK, "scaled"], env)
    report, host = phases_of(tmp_path / "out", "--step-by=dataloader")
    labels = {row["name"]: row["gpu_ns"] for row in report["labels"]}
    gpu = {row["name"]: row["gpu_ns"] for row in report["phases"]}
    # The scaler makes its scale at its first product, and that of "backward" a gradient of 1.
    assert gpu["forward"] == pytest.approx(labels["forward"] + labels["scale"], rel=0.1)
    assert gpu["optimizer"] + gpu["sync"] == pytest.approx(
        sum(labels[name] for name in ("unscale", "clip", "step", "update", "item")), rel=0.1)
    assert gpu["sync"] and host["sync"] and not gpu["other"]


def test_phases_and_hooks_of_lightning(tmp_path):
    """The training step, which runs in the optimizer's closure, is forward; hooks are as often as
    there are batches, but for the first, in which the first module is met."""
    if subprocess.run([check_torch.PYTHON, "-c", "import lightning"], check=False,
                      env=check_torch.environment(), capture_output=True).returncode:
        pytest.skip("lightning is not installed")
    check_torch.run([check_torch.GPUPROF, "run", "-o", tmp_path, "--pytorch=modules", "--",
                     check_torch.PYTHON, check_torch.HERE / "users_work.py", "lightning"],
                    check_torch.environment())
    report, host = phases_of(tmp_path)
    hooks = {row["name"]: row for row in report["hooks"]}
    training = hooks["[Strategy]SingleDeviceStrategy.training_step"]
    assert training["calls"] in (11, 12) and training["self_cpu_ns"] <= training["cpu_ns"]
    assert 0 < training["cpu_ns"] < hooks["[LightningModule]Model.optimizer_step"]["cpu_ns"]
    assert host["forward"] == pytest.approx(training["cpu_ns"] / training["calls"], rel=0.5)
    assert host["forward"] and host["backward"] and host["optimizer"] < host["forward"] * 5


CHOOSE = """
import json, sys, warnings
from torch.profiler import schedule
warnings.simplefilter("ignore")
for line in sys.stdin:
    f = schedule(**json.loads(line))
    print("".join("0122"[f(step).value] for step in range(200)))
"""


def test_a_schedule_is_torchs(tmp_path):
    """5000 of them, by its own function."""
    any_of = random.Random(7)
    schedules = [{"skip_first": any_of.choice([0, 0, 1, 5, any_of.randrange(60)]),
                  "wait": any_of.choice([0, 1, any_of.randrange(30)]),
                  "warmup": any_of.choice([0, 1, any_of.randrange(10)]),
                  "active": any_of.randrange(1, 20), "repeat": any_of.choice([0, 0, 1, 2, 5]),
                  "skip_first_wait": any_of.choice([0, 1])} for _ in range(5000)]
    script = tmp_path / "choose.py"
    script.write_text(CHOOSE, encoding="ascii")
    torchs = subprocess.run([check_torch.PYTHON, script], env=check_torch.environment(),
                            input="".join(f"{json.dumps(s)}\n" for s in schedules), text=True,
                            capture_output=True, check=True).stdout
    ours = subprocess.run([check_torch.BUILD / "make_schedules", "200"], text=True,
                          input="".join(",".join(f"{k}={v}" for k, v in s.items()) + "\n"
                                        for s in schedules), capture_output=True, check=True)
    assert ours.stdout == torchs and torchs.count("\n") == 5000


def test_turned_with_a_step(tmp_path):
    """gpuprof ctl, and an optimizer's steps: just those between are recorded."""
    env = check_torch.environment(LD_PRELOAD=check_torch.BUILD / "libgpuprof.so",
                                  GPUPROF_OUT=tmp_path / "out", GPUPROF_PYTORCH="names",
                                  GPUPROF_CONTROL="stopped")
    env["GPUPROF_GPU"], env["GPUPROF_CUPTI"] = "on", str(check_torch.BUILD / "sim/libcupti.so.13")
    script = tmp_path / "train.py"
    script.write_text(TRAIN, encoding="ascii")

    def ctl(*words):
        return subprocess.run([check_torch.GPUPROF, "ctl", tmp_path / "out", *words], check=False,
                              capture_output=True, text=True)
    with subprocess.Popen([check_torch.PYTHON, script], env=env, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout.readline() == "step 0\n"
        assert ctl("start", "--at-step=10").returncode == 0
        assert ctl("stop", "--at-step=14").returncode == 0
        job.communicate("go\n")
    assert job.returncode == 0
    report = json.loads(subprocess.run(
        [check_torch.GPUPROF, "report", "--format=json", "--table=steps", tmp_path / "out"],
        check=True, capture_output=True, text=True).stdout)
    assert report["steps_by"] == "optimizer" and len(report["steps"]) == 4


TRAIN = """
import torch, time
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=.1)
for step in range(20):
    optimizer.zero_grad()
    model(torch.randn(4, 8).cuda()).sum().backward()
    optimizer.step()
    if step == 0:
        print("step 0", flush=True)
        input()
    time.sleep(.02)
"""
