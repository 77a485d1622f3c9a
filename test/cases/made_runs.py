# SPDX-License-Identifier: Apache-2.0
"""Runs of a program for the tests of `gpuprof diff`: as recordings, of which each number is known,
and as baseline files, of which thousands are made in a moment."""

import json

from stream_reader import CALL, STEP, TYPE_NUMBERS

MAIN, DEVICE = 1, 2
US = 1000
KERNELS = (("gemm", 5), ("relu", 1), ("adam", 2))  # and their share of busy time
TO_DEVICE = 1
FACTS = {"gpu": "1 x Made GPU", "cuda_driver": "12040", "gpu_rows": "from CUPTI", "gpuprof": "1",
         "processes": "1", "steps_by": "range", "host": "made"}


class Run:
    """What a run does; all times in ns. `slow` maps a step to how many times as long it takes."""

    def __init__(self, step_ns=1000 * US, busy=0.8, steps=12, launches=9, copies=2, copy_bytes=4096,
                 syncs=1, memory=1 << 20, slow=None, names=(), meta=(), gpu="Made GPU",
                 rank=400):
        self.step_ns, self.busy, self.steps, self.launches = step_ns, busy, steps, launches
        self.copies, self.copy_bytes, self.syncs, self.memory = copies, copy_bytes, syncs, memory
        self.slow, self.meta, self.gpu, self.rank = slow or {}, meta, gpu, rank
        self.names = names or [name for name, _ in KERNELS]
        self.times = []  # of the steps, as they were written

    def lines(self):
        """For make_records."""
        records, self.times = [], []

        def add(kind, thread, begin, ns=0, correlation=0, code=0, args=(), text=""):
            args = ",".join(map(str, args)) or "-"
            records.append((thread, begin, f"{kind} {thread} {begin} {ns} {correlation} 0 {code} 0 "
                            f"{args} {text}"))

        add(TYPE_NUMBERS["device"], DEVICE, 1, args=(0, 9, 0), text=self.gpu)
        for number, name in enumerate(self.names, 1):
            add(TYPE_NUMBERS["kernel_name"], DEVICE, 1 + number, args=(number,), text=name)
        now, correlation = 10 * US, 0
        add(CALL, MAIN, now, 100, 1, "cudaMalloc", (0x10000, self.memory))
        for step in range(self.steps):
            now = self.step(add, now, step, 2 + correlation)
            correlation += self.launches + self.copies + self.syncs
        add(STEP, MAIN, now, args=(self.steps,))
        lines = [line for _, _, line in sorted(records, key=lambda r: r[:2])]
        return [f"process {self.rank}", *(f"meta {text}" for text in self.meta), *lines]

    def step(self, add, now, number, correlation):
        ns = int(self.step_ns * self.slow.get(number, 1))
        add(STEP, MAIN, now, args=(number,))
        self.times.append(ns)
        at, gpu = now + US, now + 2 * US
        works = [KERNELS[i % len(KERNELS)] + (i % len(self.names) + 1,)
                 for i in range(self.launches)]
        total = sum(work[1] for work in works)
        for i, (_, share, name) in enumerate(works):
            add(CALL, MAIN, at + i, 1, correlation, "cudaLaunchKernel")
            length = int(ns * self.busy * share / total)
            add(TYPE_NUMBERS["kernel"], DEVICE, gpu, length, correlation, 0, (0, 1, 7, name, 1, 1))
            gpu += length
            correlation += 1
        for i in range(self.copies):
            add(CALL, MAIN, at + 100 + i, 1, correlation, "cudaMemcpyAsync",
                (0x10000, 0x20000, self.copy_bytes, TO_DEVICE))
            correlation += 1
        for i in range(self.syncs):
            add(CALL, MAIN, at + 200 + i, 1, correlation, "cudaDeviceSynchronize")
            correlation += 1
        return now + ns


def baseline(runs, kernels=(), version=1, **others):
    """The text of a baseline file: `runs` are dicts of metrics, with "facts" and "cost" if they
    are not as usual."""
    rows = [{"name": f"run {i}", "steps": 40, "warm_up": 2, "cost": run.pop("cost", 0.01),
             "facts": {**FACTS, **run.pop("facts", {})}, "metrics": run}
            for i, run in enumerate(dict(run) for run in runs)]
    return json.dumps({"gpuprof_baseline": version, "runs": rows, "kernel_steps": 40,
                       "kernels": list(kernels), **others})


def noisy(dice, noise, step=1e6, busy=0.8, launches=9, count=5):
    """Metrics of `count` runs whose times vary by that share."""
    runs = []
    for _ in range(count):
        step_ns = step * (1 + noise * dice.gauss(0, 1))
        busy_ns = busy * step * (1 + noise * dice.gauss(0, 1))
        runs.append({"step_ns": step_ns, "step_p95_ns": 1.1 * step_ns, "gpu_busy_ns": busy_ns,
                     "gpu_idle_ns": max(0, step_ns - busy_ns), "peak_memory_bytes": 1 << 20,
                     "launches": launches, "kernels": launches, "copies": 2, "copy_bytes": 8192,
                     "syncs": 1})
    return runs
