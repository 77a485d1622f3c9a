# SPDX-License-Identifier: Apache-2.0
"""Tensors of many sizes on two devices, got and freed by two threads, and one that there is no room
for. A hundred times it prints what PyTorch itself has counted, and queries a stream, which is
recorded. With an argument its allocator's segments go there, as JSON."""

import json
import os
import pathlib
import random
import sys
import threading

import torch

MOMENTS = 100
numbers = random.Random(1)


def some(kept, seed):
    own = random.Random(seed)
    for _ in range(own.randrange(20)):
        if kept and own.random() < 0.45:
            kept.pop(own.randrange(len(kept)))
        else:
            kept.append(torch.empty(own.choice((1, 700, 5000, 3 << 20, 17 << 20)),
                                    dtype=torch.uint8, device=f"cuda:{own.randrange(2)}"))


kept = [[], []]
for moment in range(MOMENTS):
    threads = [threading.Thread(target=some, args=(kept[i], 2 * moment + i)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if numbers.random() < 0.05:
        torch.cuda.empty_cache()
    if numbers.random() < 0.1:
        kept[numbers.randrange(2)].clear()
    counted = [f(i) for f in (torch.cuda.memory_allocated, torch.cuda.max_memory_allocated)
               for i in range(2)]
    torch.cuda.current_stream(0).query()
    print(*counted)
try:
    torch.empty(1 << 50, dtype=torch.uint8, device="cuda:1")
except torch.cuda.OutOfMemoryError:
    print("out of memory")
if len(sys.argv) > 1:
    pathlib.Path(sys.argv[1]).write_text(json.dumps(torch.cuda.memory_snapshot()), encoding="utf-8")
    os._exit(0)  # before anything is freed
