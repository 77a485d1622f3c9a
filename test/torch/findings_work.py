# SPDX-License-Identifier: Apache-2.0
"""Training and inference with one fault each, and the same work done right: findings_work.py SCENE
[healthy]. Prints as JSON when the process began and the lines of the fault (those that end with
"# fault SCENE"). The simulated CUDA gives a kernel a microsecond for each block: BLOCK numbers of
an element-wise one, TILE x TILE of a product of matrices. A sleep stands for work of the CPU's: on
a busy machine it is less late than work would be."""

import itertools
import json
import os
import signal
import sys
import tempfile
import threading
import time

SCENE, HEALTHY = sys.argv[1], sys.argv[2:] == ["healthy"]
if SCENE == "start-up" and not HEALTHY:
    time.sleep(4)  # as a program that imports much, or reads its data set first

import torch  # pylint: disable=wrong-import-position
from torch.utils.data import DataLoader, Dataset  # pylint: disable=wrong-import-position

STEPS, BLOCK, TILE, HANGS_SECONDS = 150, 512, 128, 3
BATCH = (256, 1024)  # 1 MB


def matrix(milliseconds, **kind):
    """Times itself it takes as long on the device."""
    tiles = max(1, round((milliseconds * 1000) ** 0.5))
    return torch.zeros(tiles * TILE, tiles * TILE, device="cuda",
                       **{"dtype": torch.bfloat16, **kind})


def warm(*operations):
    """The first call of each loads its kernels and takes memory, which is not the fault."""
    for operation in operations:
        operation()
    torch.cuda.synchronize()


def keep_busy(seconds):
    """The device, so that the host may do something else."""
    a, out = matrix(16), matrix(16)
    for _ in range(round(seconds / 0.016)):
        torch.mm(a, a, out=out)


def launch_bound():
    a, out = matrix(0.02), matrix(0.02)
    warm(lambda: torch.mm(a, a, out=out))

    def steps(count):
        for _ in range(count):
            torch.mm(a, a, out=out)  # fault launch-bound
    if HEALTHY:
        keep_busy(0.5)  # while it is captured
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            steps(500)
        for _ in range(STEPS):
            graph.replay()
    else:
        steps(200 * STEPS)


def sync_in_loop():
    a, out = matrix(16), matrix(16)
    loss, total = torch.zeros((), device="cuda"), 0.0
    warm(lambda: torch.mm(a, a, out=out), loss.item)
    for _ in range(STEPS):
        torch.mm(a, a, out=out)
        if not HEALTHY:
            total += loss.item()  # fault sync-in-loop
        time.sleep(0.008)


def pageable_copies():
    if HEALTHY:
        overlapped()
        return
    a, out, batch = matrix(4), matrix(4), torch.zeros(BATCH)
    warm(lambda: torch.mm(a, a, out=out), batch.cuda)
    for step in range(STEPS):
        batch.fill_(step)
        there = batch.to("cuda")  # fault pageable-copies
        torch.mm(a, a, out=out)
        del there


def repeated_upload():
    if HEALTHY:
        overlapped()
        return
    a, out, batch = matrix(4), matrix(4), torch.ones(BATCH).pin_memory()
    warm(lambda: torch.mm(a, a, out=out), lambda: batch.to("cuda", non_blocking=True))
    for _ in range(STEPS):
        there = batch.to("cuda", non_blocking=True)  # fault repeated-upload
        torch.mm(a, a, out=out)
        del there


def overlapped():
    """Pinned batches, each on its way in a stream of its own while the one before is used."""
    a, out, copies = matrix(8), matrix(8), torch.cuda.Stream()
    batches = [torch.zeros(BATCH).pin_memory() for _ in range(4)]
    warm(lambda: torch.mm(a, a, out=out), lambda: batches[0].to("cuda", non_blocking=True))
    used = [torch.cuda.Event() for _ in range(4)]
    for step in range(STEPS):
        batch, event = batches[step % 4], used[step % 4]
        batch.fill_(step)
        with torch.cuda.stream(copies):
            there = batch.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(copies)
        there.record_stream(torch.cuda.current_stream())
        torch.mm(a, a, out=out)
        event.record()


def one_stream():
    if HEALTHY:
        overlapped()
        return
    a, out = matrix(4), matrix(4)
    batches = [torch.zeros(BATCH).pin_memory() for _ in range(4)]
    warm(lambda: torch.mm(a, a, out=out), lambda: batches[0].to("cuda", non_blocking=True))
    for step in range(STEPS):
        batch = batches[step % 4]
        batch.fill_(step)
        there = batch.to("cuda", non_blocking=True)  # fault one-stream
        torch.mm(a, a, out=out)
        del there


class Samples(Dataset):
    def __len__(self):
        return 4 * STEPS

    def __getitem__(self, index):
        if not HEALTHY:
            time.sleep(0.003)  # as a picture is read and decoded
        return torch.full((32,), float(index))


def warm_for_batches():
    """The matrices of a small step, and labels are recorded."""
    a, out = matrix(4), matrix(4)
    warm(lambda: torch.mm(a, a, out=out), torch.zeros(4, 32).cuda)
    keep_busy(3)
    time.sleep(2.5)
    return a, out


def slow_loader():
    a, out = warm_for_batches()
    for batch in DataLoader(Samples(), batch_size=4, num_workers=0):
        batch.to("cuda")
        torch.mm(a, a, out=out)


class Pictures(Samples):
    """Each is read from a file that takes 3 ms, whatever else the machine does: a pipe."""

    def __init__(self):
        self.file = None

    def __getitem__(self, index):
        if self.file is None:  # its own in each worker
            path = f"{tempfile.mkdtemp()}/picture"
            os.mkfifo(path)
            self.file = os.open(path, os.O_RDWR)
            os.unlink(path)
            os.rmdir(os.path.dirname(path))
        threading.Timer(0.003, os.write, (self.file, b"x")).start()
        os.read(self.file, 1)
        return torch.full((32,), float(index))


def few_loader_workers():
    """Four pictures a step, which takes the device 4 ms."""
    a, out = warm_for_batches()
    loader = iter(DataLoader(Pictures(), batch_size=4, num_workers=8 if HEALTHY else 1,
                             multiprocessing_context="fork"))
    batches = [next(loader) for _ in range(1 if HEALTHY else 0)]  # the workers have begun
    keep_busy(0.5)
    for batch in itertools.chain(batches, loader):
        batch.to("cuda")
        torch.mm(a, a, out=out)


def allocation_churn():
    a = matrix(4)
    warm(lambda: torch.mm(a, a))
    for _ in range(STEPS):
        product = torch.mm(a, a)  # fault allocation-churn
        del product
        if not HEALTHY:
            torch.cuda.empty_cache()  # fault allocation-churn


def tiny_kernels():
    a = matrix(0.08 if HEALTHY else 0.004)
    out = torch.empty_like(a)
    warm(lambda: torch.mm(a, a, out=out))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(20 if HEALTHY else 400):
            torch.mm(a, a, out=out)
    if not HEALTHY:
        time.sleep(0.05)  # one that is busy for 97 % of the time has no such finding
    keep_busy(0.1)  # so that the host, which simulates them, is ahead
    for _ in range(STEPS):
        graph.replay()  # fault tiny-kernels


def host_bound():
    a, out, lost = matrix(4), matrix(4), 0
    warm(lambda: torch.mm(a, a, out=out))
    for _ in range(STEPS):
        lost += sum(i * i for i in range(100 if HEALTHY else 200_000))
        torch.mm(a, a, out=out)  # fault host-bound


def hang():
    """SIMCUDA_ENDLESS makes the last kernel one that never ends, until somebody ends the job, which
    a signal of its own stands for."""
    a, out = matrix(16), matrix(16)
    for _ in range(STEPS):
        torch.mm(a, a, out=out)
    torch.cuda.synchronize()
    if not HEALTHY:
        signal.setitimer(signal.ITIMER_REAL, HANGS_SECONDS)
    out.cos_()
    torch.cuda.synchronize()  # fault hang


def fp32_gemm():
    if HEALTHY:
        torch.set_float32_matmul_precision("high")
    a, out = (matrix(8, dtype=torch.float32) for _ in range(2))
    warm(lambda: torch.mm(a, a, out=out))
    for _ in range(STEPS):
        torch.mm(a, a, out=out)  # fault fp32-gemm


def unfused_elementwise():
    a, out, x = matrix(3), matrix(3), torch.zeros(2000 * BLOCK, device="cuda")
    warm(lambda: torch.mm(a, a, out=out), lambda: torch.relu(x * 2 + 1))
    for _ in range(STEPS):
        torch.mm(a, a, out=out)
        if HEALTHY:
            torch.addcmul(x, x, x)  # one kernel for the chain
            continue
        y = x * 2  # fault unfused-elementwise
        y = y + 1  # fault unfused-elementwise
        torch.relu(y)  # fault unfused-elementwise


def launch_blocking():
    """The check sets CUDA_LAUNCH_BLOCKING=1 for the faulty one."""
    a, out = matrix(6), matrix(6)
    warm(lambda: torch.mm(a, a, out=out))
    for _ in range(STEPS):
        torch.mm(a, a, out=out)  # fault launch-blocking
        time.sleep(0.004)


def start_up():
    """The faulty one has slept, above; the other goes on until its start is a sixth of all."""
    a, out = matrix(50), matrix(50)
    took = (time.monotonic_ns() - began_ns()) / 1e9
    for _ in range(10 if not HEALTHY else round(took * 5 / 0.05)):
        torch.mm(a, a, out=out)


def began_ns():
    """CLOCK_MONOTONIC at the process's begin, which Linux tells in clock ticks since the boot."""
    with open("/proc/self/stat", encoding="ascii") as stat:
        ticks = int(stat.read().rpartition(")")[2].split()[19])
    since_boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return time.monotonic_ns() - since_boot + ticks * 10**9 // os.sysconf("SC_CLK_TCK")


with open(__file__, encoding="utf-8") as text:
    LINES = [i for i, line in enumerate(text, 1) if line.endswith(f"# fault {SCENE}\n")]
print(json.dumps({"pid": os.getpid(), "began_ns": began_ns(), "lines": LINES}), flush=True)
torch.set_num_threads(1)  # with more a small fill waits for threads that have no core
globals()[SCENE.replace("-", "_")]()
torch.cuda.synchronize()
