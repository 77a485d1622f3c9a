# SPDX-License-Identifier: Apache-2.0
"""What operators of a real PyTorch take, on CPU tensors: torch_cost.py bare|emit_nvtx[.shapes]|
profiler[.shapes|.stacks], anything else is bare. Prints rounds: microseconds of this thread for a
view, a linear layer, and a training step of 12 layers."""

import contextlib
import sys
import time

import torch

ROUNDS = 15


def watched(by):
    name, _, detail = by.partition(".")
    if name == "emit_nvtx":
        return torch.autograd.profiler.emit_nvtx(record_shapes=detail == "shapes")
    if name == "profiler":
        return torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=detail == "shapes",
            with_stack=detail == "stacks")
    return contextlib.nullcontext()


def measured(function, count):
    begin = time.thread_time_ns()
    for _ in range(count):
        function()
    return (time.thread_time_ns() - begin) / count / 1000


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.empty(1, device="cuda")  # the recording begins ...
    torch.cuda.synchronize()
    time.sleep(1.5)  # ... and with it the callbacks
    net = torch.nn.Sequential(*(
        torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.LayerNorm(16), torch.nn.ReLU())
        for _ in range(12)))
    optimizer = torch.optim.AdamW(net.parameters(), foreach=True)
    data = torch.randn(4, 16)

    def step():
        loss = net(data).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    layer = net[0][0]
    for _ in range(20):
        step()
    for _ in range(ROUNDS):
        with watched(sys.argv[1]):
            step()
            print("round", measured(lambda: data.view(-1), 500), measured(lambda: layer(data), 200),
                  measured(step, 5))


main()
