# SPDX-License-Identifier: Apache-2.0
"""Operators of many kinds: ops_work.py [TRACE [KEYS]]. With a TRACE, all of it inside
torch.profiler, whose trace that becomes; without, nothing is profiled. What runs between the begin
and the end of the label "window" is compared; inside of "eager" are no plain threads and nothing is
traced. With KEYS, which gets torch.profiler's key_averages(), there is nothing else, and gpuprof
records nothing outside of torch.profiler's time."""

import contextlib
import ctypes
import json
import sys
import threading

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

STEPS = 3
THREADS = 3


class Net(nn.Module):
    """Convolutions of each kind, an embedding, attention, lists of tensors."""
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=(2, 1), padding=1)
        self.groups = nn.Conv2d(8, 8, 3, dilation=2, groups=4, bias=False)
        self.back = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.words = nn.Embedding(50, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.end = nn.Linear(16, 4)

    def forward(self, image, words):
        image = self.back(self.groups(torch.relu(self.conv(image)))).mean(dim=(2, 3))
        words = self.end(self.layer(self.words(words)))[:, 0]
        return torch.cat([image, words], dim=1).square().mean()


def train(net, optimizer, scaled):
    for step in range(STEPS):
        with record_function(f"step {step}"):
            image, words = torch.randn(2, 3, 12, 12), torch.randint(0, 50, (2, 5))
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=scaled):
                loss = net(image, words)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def others():
    x = torch.arange(24.0).reshape(1, 2, 3, 1, 2, 2)
    x.permute(5, 4, 3, 2, 1, 0).contiguous().sum(dim=(0, 2), keepdim=True)
    y = torch.randn(6, 6, dtype=torch.float64, requires_grad=True)
    (torch.logsumexp(y @ y.t(), 1).sum() * 2.5).backward()
    mask = torch.tensor([True, False, True, True, False, True])
    y.detach()[mask], y.detach()[[0, 2], 1:3], torch.empty(0, 3), torch.tensor(7).item()
    torch.einsum("ij,jk->ik", y.detach(), y.detach())
    torch.complex(torch.ones(2), torch.ones(2)) * 2
    torch.nn.functional.pad(torch.ones(2, 2), (1, 1), value=0.5)
    sparse = torch.eye(3).to_sparse()
    torch.sparse.mm(sparse, torch.ones(3, 2))


def on_device():
    """Backward on the device's own thread of autograd."""
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).to("cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(STEPS):
        net(torch.ones(4, 8, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()


def in_threads():
    """The profiler does not see these; nothing of them may be among what it does."""
    def work():
        for size in range(20):
            torch.ones(size + 1).mul_(2)
    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def compiled():
    function = torch.compile(lambda x: (x * 2).relu().sum(), backend="eager", dynamic=True)
    for size in (3, 5, 8):
        function(torch.ones(size, size))


def key_averages(profiler, by_shape):
    """name, shapes, calls, self and total CPU time in us, of each row."""
    return [[row.key, row.input_shapes, row.count, row.self_cpu_time_total, row.cpu_time_total]
            for row in profiler.key_averages(group_by_input_shape=by_shape)]


def tell_gpuprof(what):
    """gpuprof_start() or gpuprof_stop(), if it is there."""
    function = getattr(ctypes.CDLL(None), f"gpuprof_{what}", None)
    if function:
        function()


def main():
    trace, keys = (sys.argv[1:] + ["", ""])[:2]
    if keys:
        tell_gpuprof("stop")
    torch.manual_seed(0)
    torch.cuda.init()
    torch.zeros(1, device="cuda").cpu()
    torch.ones(2, 3).add_(1)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), foreach=True)
    if keys:
        tell_gpuprof("start")
    torch.cuda.synchronize()
    threading.Event().wait(1.5)  # gpuprof attaches a moment after the first call
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) \
            if trace else contextlib.nullcontext() as profiler:
        with record_function("window"):
            with record_function("eager"):
                train(net, optimizer, False)
                train(net, optimizer, True)
                others()
                on_device()
            if not keys:
                in_threads()
                compiled()
    if keys:
        tell_gpuprof("stop")
        with open(keys, "w", encoding="utf-8") as file:
            json.dump([key_averages(profiler, by_shape) for by_shape in (False, True)], file)
    if trace:
        profiler.export_chrome_trace(trace)
    print("done")


if __name__ == "__main__":
    main()
