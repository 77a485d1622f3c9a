# SPDX-License-Identifier: Apache-2.0
"""Operators, once by themselves and then captured into a graph that is replayed: replay_work.py
REPLAYS."""

import sys
import threading

import torch


def work(a, b):
    c = torch.relu(a @ b).add(1)
    d = torch.zeros_like(c)
    return torch.softmax(c, -1), d.copy_(c)


def main():
    torch.zeros(1, device="cuda").cpu()
    torch.ones(2, 3).add_(1)  # gpuprof attaches a moment after the first call
    threading.Event().wait(1.5)
    a, b = (torch.empty(64, 64, device="cuda") for _ in range(2))
    for _ in range(3):
        work(a, b)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work(a, b)
    for _ in range(int(sys.argv[1])):
        graph.replay()
    torch.cuda.synchronize()
    print("done")


if __name__ == "__main__":
    main()
