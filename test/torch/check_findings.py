# SPDX-License-Identifier: Apache-2.0
"""What the report finds first in real PyTorch programs with one fault each (findings_work.py), held
against the simulated CUDA's own log, and that it finds none in the same work done right: `make
check-torch`. ../cases/test_findings_programs.py is the same with programs that call CUDA alone."""

import bisect
import json
import re
import signal
import subprocess

import check_torch
import pytest

import fault_truth as fault  # pylint: disable=wrong-import-order

WORK = check_torch.HERE / "findings_work.py"
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
SETTINGS = {"SIMCUDA_KERNEL_NS": 0, "SIMCUDA_BLOCK_NS": 1000, "SIMCUDA_COPY_BYTES_PER_US": 500,
            "SIMCUDA_LOG_GPU": 1}
SCENE_SETTINGS = {"launch-bound": {"SIMCUDA_LAUNCH_NS": 40_000},
                  "allocation-churn": {"SIMCUDA_ALLOC_NS": 1_500_000}}
FAULTY_SETTINGS = {"launch-blocking": {"CUDA_LAUNCH_BLOCKING": 1},
                   "hang": {"SIMCUDA_ENDLESS": "cos_kernel"}}
OPTIONS = {"slow-loader": ["--pytorch=names"],
           "few-loader-workers": ["--pytorch=names", "--sample", "--os"],
           "one-stream": ["--backtrace=launch,copy"],
           "pageable-copies": ["--backtrace=launch,copy"],
           "repeated-upload": ["--backtrace=launch,copy"], "hang": []}
TOLERANCE = 0.05
TINY_NS = 5000
START_NS = 2000  # as long as an empty kernel takes
STILL_NS = 40_000_000  # less idle time than any finding needs
HANGS_NS = 3 * 10**9  # that the program gives itself
ATTEMPTS = 3


class Process(fault.Process):
    """With the calls that gpuprof records: no questions, and of the static runtime the driver's."""

    def __init__(self, path):
        super().__init__(path)
        hidden = sorted((call.begin, call.end) for call in self.calls if
                        call.values.get("kernel", "").startswith(check_torch.STATIC_KERNELS))
        unseen = set(hidden)
        self.calls = [call for call in self.calls if (call.begin, call.end) not in unseen]
        for text in fault.truth.log_lines(path):
            _, _, layer, depth, what, begin, end, *_ = text.split("\t")
            place = bisect.bisect(hidden, (int(begin), float("inf"))) - 1
            if layer == "D" and depth == "1" and place >= 0 and int(end) <= hidden[place][1]:
                self.calls.append(fault.Span(what, int(begin), int(end), {}))
        self.calls = sorted((call for call in self.calls if "Get" not in call.what),
                            key=lambda call: call.begin)  # of all its threads


class Run:
    """One scene under `gpuprof run`, its log, and its report."""

    def __init__(self, folder, scene, *words):
        folder.mkdir(exist_ok=True)
        log, data = folder / "log", folder / "data"
        log.mkdir()
        env = check_torch.environment(
            SIMCUDA_LOG=log, **SETTINGS, **SCENE_SETTINGS.get(scene, {}),
            **({} if words else FAULTY_SETTINGS.get(scene, {})))
        options = OPTIONS.get(scene, ["--backtrace=launch"])
        done = subprocess.run(
            [str(check_torch.ROOT / "scripts" / "gpuprof"), "run", "--quiet", "-o", str(data),
             *options, "--", str(check_torch.PYTHON), str(WORK), scene, *words], env=env,
            capture_output=True, text=True, check=False, timeout=check_torch.SECONDS_MAX)
        dies = scene == "hang" and not words
        wanted = (-signal.SIGALRM, 128 + signal.SIGALRM) if dies else (0,)
        assert done.returncode in wanted, done.stdout + done.stderr
        self.said = json.loads(done.stdout)
        self.lines = [f"findings_work.py:{line}" for line in self.said["lines"]]
        [path] = log.iterdir()
        self.process = Process(path)
        told = subprocess.run([str(check_torch.GPUPROF), "report", "--format=json", str(data)],
                              capture_output=True, text=True, check=True)
        self.told = json.loads(told.stdout)
        self.findings = [row for row in self.told["findings"]
                         if row["id"] not in ("start-up", "slow-import") or scene == "start-up"]

    def start_up(self):
        return self.process.work[0].begin - self.said["began_ns"]


def within(*words):
    return lambda process: fault.within(process, *words)


def kernels_of(word):
    return lambda process: sum(kernel.ns for kernel in process.kernels(word))


def pageable(process):
    return fault.copies_alone(process) + fault.within(process, "Memcpy")


def allocation(process):
    """With the program's own code, which the GPU waits for since each free empties it."""
    return fault.within(process, "Malloc", "Free", "Synchronize") + fault.own_code(process)


def tiny(process):
    return sum(min(kernel.ns, START_NS) for kernel in process.kernels() if kernel.ns < TINY_NS)


# What each costs by the log.
FAULTS = {
    "launch-bound": fault.launches,
    "host-bound": fault.own_code,
    "sync-in-loop": lambda process: fault.waited(process, "Synchronize"),
    "slow-loader": fault.own_code,
    "allocation-churn": allocation,
    "pageable-copies": pageable,
    "one-stream": fault.copies_alone,
    "repeated-upload": lambda process: fault.alone(process.copies()[1:], process.kernels()),
    "tiny-kernels": tiny,
    "fp32-gemm": kernels_of("sgemm"),
    "unfused-elementwise": fault.chains,
    "launch-blocking": lambda process: fault.total(fault.gaps(process.work)),
    "start-up": None,
}


def check_time(told):
    row, = told["gpu_time"]
    causes = {key: ns for key, ns in row.items()
              if key.startswith("idle_") and key not in ("idle_ns", "idle_share")}
    assert sum(causes.values()) == row["idle_ns"]
    assert causes["idle_unknown_ns"] <= row["idle_ns"] / 10, causes


@pytest.mark.parametrize("scene", FAULTS)
def test_fault_is_the_first_finding(tmp_path, scene):
    run = Run(tmp_path, scene)
    check_time(run.told)
    first = run.findings[0]
    assert first["id"] == scene
    cost = run.start_up() if scene == "start-up" else FAULTS[scene](run.process)
    assert first["ns"] == pytest.approx(cost, rel=TOLERANCE)
    if scene == "slow-loader":
        assert first["where"] == LOADER
    elif scene != "start-up":
        assert re.fullmatch(r".* \((findings_work.py:\d+)\)", first["where"])[1] in run.lines


def test_workers_that_are_too_few(tmp_path):
    """One that is busy all the time; the rest of the GPU's wait is the loader's."""
    first = Run(tmp_path, "few-loader-workers").findings[0]
    assert first["id"] == "few-loader-workers" and first["ns"] > 150 * 0.75 * 8_000_000
    assert re.match(r"busy workers: 1 worker, busy for \d\d+% of their time in .*findings_work.py",
                    first["evidence"][0]["name"]), first


@pytest.mark.parametrize("scene", [*FAULTS, "hang", "few-loader-workers"])
def test_what_is_done_right_has_no_finding(tmp_path, scene):
    for attempt in range(ATTEMPTS):  # until the machine has let it be
        run = Run(tmp_path / str(attempt), scene, "healthy")
        if fault.total(fault.gaps(run.process.work)) < STILL_NS:
            break
    check_time(run.told)
    assert run.findings == run.told["open_calls"] == []


def test_hang_is_explained(tmp_path):
    """By itself: nothing asked for stacks before the program began to wait."""
    run = Run(tmp_path, "hang")
    first, call = run.findings[0], run.told["open_calls"][0]
    assert first["id"] == "hang" and first["ns"] == pytest.approx(HANGS_NS, rel=TOLERANCE)
    assert call["line"].endswith(f"({run.lines[0]})")
    assert "cos_kernel" in run.told["unfinished"][0]["kernel"]
