# SPDX-License-Identifier: Apache-2.0
"""PyTorch's profiler begins before CUDA is used; work goes on after it."""

import json
import os
import tempfile
import time

import torch
import torch.profiler

REST_SECONDS = 2.0  # time for gpuprof to take the records again
PRODUCTS = 20


def work(x):
    for _ in range(PRODUCTS):
        x = (x @ x).relu()
    torch.cuda.synchronize()


def main():
    kinds = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA]) as profiler:
        x = torch.ones(64, 64, device="cuda")
        work(x)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    print("profiled kernels:", sum(e.get("cat") == "kernel" for e in events))
    threads = {e["tid"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    print("profiled calls of this thread:", threads == {os.getpid()})
    time.sleep(REST_SECONDS)
    work(x)


if __name__ == "__main__":
    main()
