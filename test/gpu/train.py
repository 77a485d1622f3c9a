# SPDX-License-Identifier: Apache-2.0
"""A small training loop in PyTorch, the same numbers each time: what check_training.py records.

    train.py VARIANT STEPS [PROFILE]

VARIANT  plain      forward, backward, optimiser; data from two DataLoader workers
         profiler   torch.profiler is active for the middle third of the steps
         profiled   torch.profiler is active for all of them
         nvtx       torch.cuda.nvtx ranges, and emit_nvtx over the middle third
         operators  as plain: gpuprof records PyTorch's operators
         graph      each step is a replay of a CUDA graph
PROFILE  where `profiler` and `profiled` put how many kernels torch.profiler saw

TRAIN_WORKERS in the environment: how the workers start (fork, spawn; standard: PyTorch's).

Prints a line for each step with its loss in full; to stderr, how long the last nine tenths of the
steps took.
"""

import contextlib
import ctypes
import json
import os
import sys
import tempfile
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else cuBLAS is not deterministic

import torch  # pylint: disable=wrong-import-position
import torch.profiler  # pylint: disable=wrong-import-position
import torch.utils.data  # pylint: disable=wrong-import-position

# Large enough for the device to be what takes the time, small enough for two workers to keep up.
BATCH, INPUTS, WIDTH, CLASSES, WORKERS = 256, 64, 2048, 10, 2
WARM_UP = 3
REST_SECONDS = 2.0  # after the profiler's session: time for gpuprof to take the records again


class Numbers(torch.utils.data.Dataset):
    """Made from the index alone."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(INPUTS, generator=generator), index % CLASSES


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.wide = torch.nn.Linear(WIDTH, 2 * WIDTH)
        self.back = torch.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.back(torch.nn.functional.gelu(self.wide(self.norm(x))))


def tell_step():
    """gpuprof.h's gpuprof_step, under gpuprof; else nothing."""
    try:
        step = ctypes.CDLL(None).gpuprof_step
    except AttributeError:
        return lambda number: None
    step.argtypes, step.restype = [ctypes.c_uint64], None
    return step


def steps_of(model, optimizer):
    """A function that does one step and returns its loss."""
    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return step


def graphed(model, optimizer):
    """The same step as a graph; its inputs are copied to where the graph expects them."""
    x = torch.zeros(BATCH, INPUTS, device="cuda")
    y = torch.zeros(BATCH, dtype=torch.long, device="cuda")
    step = steps_of(model, optimizer)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            step(x, y)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(x, y)

    def replay(new_x, new_y):
        x.copy_(new_x)
        y.copy_(new_y)
        graph.replay()
        return loss
    return replay


def new_profiler():
    kinds = torch.profiler.ProfilerActivity
    return torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA])


def count_kernels(profiler, path):
    """What torch.profiler itself has, by its own export."""
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(trace)
        with open(trace, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    kernels = sum(e.get("cat", "").lower() == "kernel" for e in events)
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{kernels}\n")


class Session:
    """What a variant has active in some of the steps; begun and ended between steps."""

    def __init__(self, variant, steps, path):
        self.first, self.last = steps // 3, 2 * steps // 3
        if variant == "profiled":
            self.first, self.last = 0, steps
        self.variant, self.path = variant, path
        self.context = {"profiler": new_profiler, "profiled": new_profiler,
                        "nvtx": torch.autograd.profiler.emit_nvtx}.get(variant)
        self.active = None

    def before(self, number):
        if self.context and number == self.first:
            torch.cuda.synchronize()
            self.active = self.context()
            self.active.__enter__()

    def after(self, number):
        if self.active and number == self.last - 1:
            torch.cuda.synchronize()
            self.active.__exit__(None, None, None)
            if self.path and self.variant != "nvtx":
                count_kernels(self.active, self.path)
            if self.variant == "profiler":
                time.sleep(REST_SECONDS)
            self.active = None


def batches(steps):
    loader = torch.utils.data.DataLoader(Numbers(BATCH * steps), batch_size=BATCH,
                                         num_workers=WORKERS, pin_memory=True,
                                         multiprocessing_context=os.environ.get("TRAIN_WORKERS"))
    return ((x.cuda(non_blocking=True), y.cuda(non_blocking=True)) for x, y in loader)


@contextlib.contextmanager
def named(variant, text):
    if variant == "nvtx":
        torch.cuda.nvtx.range_push(text)
    yield
    if variant == "nvtx":
        torch.cuda.nvtx.range_pop()


def main():
    variant, steps = sys.argv[1], int(sys.argv[2])
    session = Session(variant, steps, sys.argv[3] if len(sys.argv) > 3 else None)
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    model = torch.nn.Sequential(torch.nn.Linear(INPUTS, WIDTH), *(Block() for _ in range(6)),
                                torch.nn.Linear(WIDTH, CLASSES)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    step = (graphed if variant == "graph" else steps_of)(model, optimizer)
    tell = tell_step()
    losses = []
    start = time.monotonic_ns()
    for number, (x, y) in enumerate(batches(steps)):
        if number == steps // 10:
            torch.cuda.synchronize()
            start = time.monotonic_ns()
        session.before(number)
        tell(number)
        with named(variant, f"step {number}"):
            losses.append(step(x, y).detach().clone())
        print(f"step {number}", flush=True)
        if number == steps - 1:  # before a profiler makes its tables
            torch.cuda.synchronize()
            print(f"loop_ns {time.monotonic_ns() - start}", file=sys.stderr)
        session.after(number)
    for number, loss in enumerate(losses):
        print(f"loss {number} {loss.item().hex()}")


if __name__ == "__main__":
    main()
