# SPDX-License-Identifier: Apache-2.0
"""Products of matrices that Python has a hand in: a mode, a DTensor, fake tensors, torch.compile.
Prints the FLOPs of the mode's."""

import os
import threading

import torch
from torch import distributed
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.profiler import record_function
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.flop_counter import FlopCounterMode


def tensors():
    return torch.ones(8, 16), torch.ones(16, 32)


def main():
    torch.zeros(1, device="cuda")
    threading.Event().wait(1.5)  # gpuprof attaches a moment after the first call
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="0")
    distributed.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    mesh = init_device_mesh("cpu", (2,))
    a, b = tensors()
    parts = (DTensor.from_local(a, mesh, [Replicate()], run_check=False),
             DTensor.from_local(b[:, :16].contiguous(), mesh, [Shard(1)], run_check=False))
    torch.mm(*parts)  # it looks at how to do that with fake tensors, once
    for _ in range(20):
        torch.add(a, a)  # looked at before they are believed
    with record_function("mode"), FlopCounterMode(display=False) as mode:
        torch.mm(a, b)
    with record_function("dtensor"):
        torch.mm(*parts)
    with record_function("fake"), FakeTensorMode() as fakes:
        torch.mm(fakes.from_tensor(a), fakes.from_tensor(b))
    product = torch.compile(torch.mm, backend="aot_eager")
    with record_function("compile"):
        product(a, b)
    with record_function("compiled"):
        product(a, b)
    print(mode.get_total_flops())


main()
