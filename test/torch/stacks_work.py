# SPDX-License-Identifier: Apache-2.0
"""Training steps inside torch.profiler with Python's frames: stacks_work.py TRACE."""

import sys
import time

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return [part for part in (x.square().mean(), x.sum())][0]


def train(net, optimizer, data):
    loss = net(data)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main():
    torch.set_num_threads(1)
    torch.empty(1, device="cuda")
    time.sleep(1.5)  # operators are recorded from here on
    net, data = Net(), torch.randn(4, 16)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    train(net, optimizer, data)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                with_stack=True) as profile:
        with torch.profiler.record_function("window"):
            for _ in range(3):
                train(net, optimizer, data)
    profile.export_chrome_trace(sys.argv[1])


main()
