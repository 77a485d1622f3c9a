# SPDX-License-Identifier: Apache-2.0
"""A real PyTorch under gpuprof on the simulated CUDA: `make check-torch`. README.md says more.

What gpuprof recorded is held against the simulated CUDA's own log, call by call and record by
record, with the same means as in test/cases.
"""

import collections
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "test" / "cases")]

import gpu_truth  # pylint: disable=wrong-import-position
import stream_reader  # pylint: disable=wrong-import-position
import truth  # pylint: disable=wrong-import-position

BUILD = ROOT / os.environ.get("BUILD", "build")
TORCH = BUILD / "torch" / os.environ.get("TORCH", "2.11.0")
PYTHON = TORCH / "venv" / "bin" / "python"
GPUPROF = BUILD / "gpuprof-collector"
TRAIN = ROOT / "test" / "gpu" / "train.py"
WORK = HERE / "torch_work.py"
EARLY = HERE / "profiled_early.py"
SECONDS_MAX = 600
pytestmark = pytest.mark.timeout(0)  # each program has that bound
STEPS = 18
STATIC_KERNELS = "standin_cublas_"  # launched by the static runtime of the stand-in for cuBLAS

# Arguments that the log does not have.
UNLOGGED = {"cuMemCreate device", "cuMemCreate flags", "cuMemMap flags",
            "cuMemAddressReserve flags"}

# The second registration of a clock, PyTorch's, spoils the first records of its session; PyTorch
# says so with the kernel's name.
CLOCK_WARNING = re.compile(r"\[W.* collection\.cpp:\d+\] Warning: .* \(function .*\)\n")


def environment(**settings):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("GPUPROF_", "LD_", "SIMCUDA_", "SIMCUPTI_"))}
    env["LD_LIBRARY_PATH"] = str(TORCH / "driver")
    env["PYTHONWARNINGS"] = "ignore"  # NumPy is not there
    env.update({k: str(v) for k, v in settings.items()})
    return env


def run(command, env):
    done = subprocess.run([str(part) for part in command], env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def is_static(line):
    return line.layer == "R" and str(line.args.get("kernel", "")).startswith(STATIC_KERNELS)


def _relabel(line):
    """Calls of a static runtime beside a shared one: the driver's calls inside are the events."""
    if is_static(line):
        line.layer = "S"


class Recording:
    """A program under gpuprof: its output and its one recording, with the log of the same."""

    def __init__(self, done, folder, log):
        self.done, self.folder = done, folder
        processes = stream_reader.read_folder(folder)
        assert len(processes) == 1, "workers of the DataLoader leave files"
        [self.process] = processes
        logs = list(log.iterdir())
        assert len(logs) == 1, "workers of the DataLoader call CUDA"
        [self.log] = logs
        assert self.log.name.startswith(f"{self.process.header.pid}.")
        self.lines = gpu_truth.read_log(self.log)

    def check_calls(self):
        """Every call of the log that is to be recorded is an event once, with its arguments."""
        count, left = truth.compare(self.process, self.log, hidden="S", relabel=_relabel)
        assert count == len(self.process.calls()) and left <= UNLOGGED
        return count

    def check_work(self, sees_static=False):
        """Every record that CUPTI made is there once, tied to the call that made it."""
        assert self.process.meta["gpu_rows"].startswith("from CUPTI ")
        kinds = gpu_truth.compare_rows(self.process, self.lines)
        assert sum(kinds.values()) == len(gpu_truth.made(self.lines))
        assert not self.process.losses
        pairs = gpu_truth.pair(self.process, self.log,
                               lambda line: sees_static or not is_static(line))
        assert gpu_truth.compare_correlation(self.process, self.lines, pairs)
        return kinds

    def device_kernels(self):
        """The device's own log of its work: nothing of CUPTI is in it."""
        lines = (text.split("\t") for text in
                 self.log.read_bytes().translate(None, b"\0").decode().splitlines())
        return sum(line[2] == "G" and line[4] == "kernel" for line in lines)

    def records(self, name):
        number = stream_reader.TYPE_NUMBERS[name]
        return [r for r in self.process.records if r.type == number]

    def calls(self, pattern, captured=None):
        return [c for c in self.process.calls() if re.fullmatch(pattern, c.symbol) and
                captured in (None, bool(c.flags & stream_reader.CAPTURED))]


@pytest.fixture(name="record")
def fixture_record(tmp_path):
    """record(program, arguments): runs it bare and under gpuprof; its output must be the same."""
    if not PYTHON.exists():
        pytest.fail(f"{PYTHON} is not there: run `make check-torch`", pytrace=False)

    def record(program, *arguments, settings=(), options=()):
        command = [PYTHON, program, *arguments]
        bare = run(command, environment(**dict(settings)))
        log = tmp_path / "log"
        log.mkdir()
        done = run([GPUPROF, "run", "-o", tmp_path / "out", *options, *command],
                   environment(SIMCUDA_LOG=log, SIMCUDA_LOG_GPU=1, SIMCUPTI_LOG=1,
                               **dict(settings)))
        assert done.stdout == bare.stdout
        assert _own_words(done.stderr) == _own_words(bare.stderr)
        return Recording(done, tmp_path / "out", log)
    return record


def _own_words(stderr):
    """What the program said: without gpuprof's summary, and what is a time."""
    text = CLOCK_WARNING.sub("", stderr)
    return [line for line in text.splitlines()
            if not line.startswith(("gpuprof: ", "  ", "loop_ns "))]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_training(record, start):
    """Forward, backward, optimiser; workers that prepare the data and do no CUDA."""
    done = record(TRAIN, "plain", STEPS, settings={"TRAIN_WORKERS": start})
    assert done.check_calls() > 100 * STEPS
    kinds = done.check_work()
    assert kinds[gpu_truth.KERNEL] == done.device_kernels()
    assert kinds[gpu_truth.KERNEL] == len(done.calls(".*Launch.*"))
    assert len(done.records("step")) == STEPS
    domains = collections.Counter(c.domain for c in done.calls(".*Launch.*"))
    assert domains["driver"] > 20 * STEPS  # the math libraries' own
    assert {c.kernel for c in done.calls("cuLaunchKernel")} >= {
        "standin_cublas_sgemm_128x128_nn", "standin_cublaslt_matmul_128x128"}


@pytest.mark.parametrize("option", ["--front=cupti", "--gpu=off"])
def test_training_otherwise(record, option):
    done = record(TRAIN, "plain", STEPS, options=[option])
    if option == "--gpu=off":
        done.check_calls()
        assert not done.process.losses
    else:
        kinds = done.check_work(sees_static=True)
        assert kinds[gpu_truth.KERNEL] == done.device_kernels()


def test_profiler(record, tmp_path):
    """PyTorch's profiler in the middle third has its own kernels, all of them, and gpuprof the
    others; the calls are gpuprof's throughout."""
    count = tmp_path / "count"
    done = record(TRAIN, "profiler", STEPS, count)
    done.check_calls()
    theirs = int(count.read_text())  # of the run under gpuprof, which came second
    ours = done.records("kernel")
    assert theirs > 20 * STEPS and len(ours) > 20 * STEPS
    assert theirs + len(ours) == done.device_kernels()
    assert done.process.losses == {"gpu_yields": 1}
    notes = [r.text.decode() for r in sorted(done.records("note"), key=lambda r: r.begin)]
    assert [text.split()[0] for text in notes] == ["another", "the"]
    made = {c.correlation for c in done.calls(".*Launch.*")}
    assert all(r.correlation in made for r in ours)


def test_profiler_first(record):
    """It subscribes to CUPTI before gpuprof does: both have what they would have."""
    done = record(EARLY)
    done.check_calls()
    assert done.process.meta["gpu_rows"].startswith("from CUPTI ")
    theirs = int(re.search(r"^profiled kernels: ([0-9]+)$", done.done.stdout, re.MULTILINE)[1])
    ours = len(done.records("kernel"))
    assert theirs and ours and theirs + ours == done.device_kernels()


def test_nvtx(record):
    """torch.cuda.nvtx ranges, and those of emit_nvtx over a third of the steps."""
    done = record(TRAIN, "nvtx", STEPS)
    done.check_calls()
    done.check_work()
    texts = [r.text.decode() for r in done.records("push")]
    assert [t for t in texts if t.startswith("step ")] == [f"step {i}" for i in range(STEPS)]
    operators = collections.Counter(re.split(r"[,\[]", t)[0] for t in texts)
    assert operators["aten::addmm"] >= STEPS // 3 * 14 and operators["aten::mm"]
    assert any("Backward" in name for name in operators)
    assert len(done.records("pop")) == len(texts)


def test_graph(record):
    """Each step is the launch of a graph: what was captured is not work, its nodes are."""
    done = record(TRAIN, "graph", STEPS)
    done.check_calls()
    kinds = done.check_work()
    launches = {c.correlation for c in done.calls("cudaGraphLaunch.*")}
    captured = done.calls(".*Launch.*", captured=True)
    nodes = collections.Counter(r.correlation for r in done.records("kernel")
                                if r.correlation in launches)
    assert len(launches) == STEPS == len(nodes) and captured
    assert set(nodes.values()) == {len(captured)}
    assert kinds[gpu_truth.KERNEL] == done.device_kernels()


def test_merged(record, tmp_path):
    """One trace for each rank: what loads it finds every kernel with its flow."""
    done = record(TRAIN, "nvtx", STEPS)
    run([GPUPROF, "merge", done.folder, "--per-rank", "-o", tmp_path / "traces"], environment())
    [path] = (tmp_path / "traces").iterdir()
    assert path.name == "rank_0.pt.trace.json.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        trace = json.load(file)
    cats = collections.Counter(e.get("cat") for e in trace["traceEvents"])
    kernels = done.device_kernels()
    assert cats["kernel"] == kernels
    assert cats["cuda_runtime"] + cats["cuda_driver"] >= kernels
    assert cats["ac2g"] >= 2 * kernels and cats["gpu_user_annotation"]
    script = "import sys, torch; torch.autograd.profiler_util.EventList; print('ok')"
    assert run([PYTHON, "-c", script], environment()).stdout == "ok\n"


ALLOCATORS = {"native": "backend:native", "async": "backend:cudaMallocAsync",
              "segments": "expandable_segments:True"}


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_work(record, allocator):
    """Streams, events, two devices, copies of each kind, fills, batched products, allocators."""
    done = record(WORK, settings={"PYTORCH_CUDA_ALLOC_CONF": ALLOCATORS[allocator],
                                  "PYTORCH_ALLOC_CONF": ALLOCATORS[allocator]})
    done.check_calls()
    kinds = done.check_work()
    assert kinds[gpu_truth.KERNEL] == done.device_kernels()
    assert kinds[gpu_truth.SET] and kinds[gpu_truth.SYNC] and kinds[gpu_truth.COPY_KIND]
    wanted = {"native": "cudaMalloc", "async": "cudaMallocAsync", "segments": "cuMemCreate"}
    assert done.calls(wanted[allocator])
