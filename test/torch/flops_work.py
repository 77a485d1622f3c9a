# SPDX-License-Identifier: Apache-2.0
"""Operators that have floating point operations, and what PyTorch's own two counters say of them:
flops_work.py profiler|counter OUT. The work is the same each time."""

import collections
import json
import sys
import threading

import torch
from torch import nn
from torch.nn import functional


def convolutions():
    """Of each dimension, with what a convolution can have, and their backward ones."""
    for classes, size in (((nn.Conv1d, nn.ConvTranspose1d), (17,)),
                          ((nn.Conv2d, nn.ConvTranspose2d), (13, 9)),
                          ((nn.Conv3d, nn.ConvTranspose3d), (7, 6, 5))):
        for kind in classes:
            for options in ({}, {"stride": 2, "padding": 1}, {"dilation": 2, "bias": False},
                            {"groups": 2, "padding": 2}, {"groups": 4, "stride": 3}):
                net = kind(4, 8, 3, **options)
                x = torch.randn(2, 4, *size, requires_grad=True)
                net(x).square().sum().backward()
                net(x.detach()).sum().backward()  # no gradient of the input is wanted
    functional.conv2d(torch.randn(1, 3, 8, 8), torch.randn(2, 3, 3, 3), padding="same")
    functional.conv2d(torch.randn(3, 8, 8), torch.randn(2, 3, 3, 3))  # without a batch
    functional.conv2d(torch.randn(1, 2, 9, 8, dtype=torch.float64),
                      torch.randn(6, 1, 3, 2, dtype=torch.float64), stride=(2, 1), groups=2)


def products():
    for kind in (torch.float32, torch.float64, torch.bfloat16):
        a = torch.randn(5, 7, dtype=kind, requires_grad=True)
        b = torch.randn(7, 3, dtype=kind)
        (a @ b).sum().backward()
        torch.addmm(torch.ones(3, dtype=kind), a, b, alpha=2)
        torch.bmm(torch.randn(4, 5, 6, dtype=kind), torch.randn(4, 6, 2, dtype=kind))
        torch.baddbmm(torch.randn(4, 5, 2, dtype=kind), torch.randn(4, 5, 6, dtype=kind),
                      torch.randn(4, 6, 2, dtype=kind))
        torch.mm(a.detach(), b, out=torch.empty(5, 3, dtype=kind))
    torch.mm(torch.randn(4, 0), torch.randn(0, 3))
    torch.einsum("bij,bjk->bik", torch.randn(2, 3, 4), torch.randn(2, 4, 5))
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    layer(torch.randn(3, 5, 16)).square().mean().backward()
    x = torch.randn(3, 1, 5)
    x * 2 + 1 + x.expand(3, 4, 5) * torch.randn(4, 5)
    x.mul_(2).add_(1)  # not counted
    torch.tensor(2.0) * torch.tensor(3.0)


def attention():
    """On the device, whose results are nothing; backward on its own thread."""
    for name, more in (("flash", ()), ("efficient", (None, True))):
        made = [torch.zeros(2, 4, length, 32, device="cuda", dtype=torch.float16)
                for length in (64, 48, 48)]
        tensors = [t.requires_grad_() for t in made]
        call = getattr(torch.ops.aten, f"_scaled_dot_product_{name}_attention")
        call(*tensors, *more)[0].sum().backward()
    torch.cuda.synchronize()


def work():
    convolutions()
    products()
    attention()


def main():
    torch.manual_seed(0)
    torch.zeros(1, device="cuda").cpu()
    torch.ones(2, 3).mul_(1)  # gpuprof attaches a moment after the first call
    threading.Event().wait(1.5)
    if sys.argv[1] == "profiler":
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                    record_shapes=True, with_flops=True) as profiler:
            work()
        found = collections.Counter()  # a name may have several rows
        for row in profiler.key_averages():
            found[row.key] += row.flops
    else:
        from torch.utils.flop_counter import FlopCounterMode
        with FlopCounterMode(display=False) as counter:
            work()
        found = {str(name).replace("aten.", "aten::"): flops
                 for name, flops in counter.get_flop_counts()["Global"].items()}
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump({name: flops for name, flops in found.items() if flops}, file)
    print("done")


if __name__ == "__main__":
    main()
