# SPDX-License-Identifier: Apache-2.0
"""What a training loop does not do: everything else of PyTorch's that reaches CUDA by a way of its
own. Prints what does not depend on what kernels compute."""

import threading

import torch

COUNT = 1 << 16
LARGE = 1 << 22
THREADS = 4


def streams(device):
    """Work on several streams that wait for each other, timed by events."""
    first, second = torch.cuda.Stream(device), torch.cuda.Stream(device, priority=-1)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(first):
        begin.record()
        a = torch.zeros(COUNT, device=device)
        a.add_(1)
    second.wait_stream(first)
    with torch.cuda.stream(second):
        b = torch.empty_like(a).copy_(a)
        end.record()
    end.synchronize()
    second.synchronize()
    a.record_stream(second)
    return begin.elapsed_time(end) >= 0 and second.query(), b.shape


def copies(device, other):
    pinned = torch.arange(COUNT, dtype=torch.float32).pin_memory()
    there = pinned.to(device, non_blocking=True)
    peer = there.to(other, non_blocking=True)
    back = torch.empty(COUNT, pin_memory=True)
    back.copy_(peer, non_blocking=True)
    torch.cuda.synchronize(other)
    torch.cuda.synchronize(device)
    whole = torch.equal(back, pinned)
    strided = torch.empty(64, 64, device=device)
    strided[:, ::2].copy_(torch.ones(64, 32))
    return whole, float(there[7]), peer.device.index


def fills(device):
    """A kernel, and a sum so large that its blocks share counters, which are set before."""
    large = torch.ones(LARGE, device=device)
    return large.sum().shape, large.to(torch.uint8).fill_(3).shape


def products(device):
    """Each way into cuBLAS and cuBLASLt."""
    a = torch.randn(8, 64, 32).to(device)
    half = a.to(torch.bfloat16)
    shapes = [torch.bmm(a, a.transpose(1, 2)).shape, (a[0] @ a[0].t()).shape,
              (half[0] @ half[0].t()).shape, torch.bmm(half, half.transpose(1, 2)).shape,
              torch.mv(a[0], a[0, 0]).shape, torch.dot(a[0, 0], a[0, 1]).shape,
              torch.addmm(a[0, 0, :1], a[0], a[0].t()).shape]
    query = a.unsqueeze(0)
    shapes.append(torch.nn.functional.scaled_dot_product_attention(query, query, query).shape)
    return [tuple(shape) for shape in shapes]


def threads(device):
    """Each thread with a stream of its own."""
    def work():
        with torch.cuda.stream(torch.cuda.Stream(device)):
            for _ in range(10):
                torch.ones(256, device=device).mul_(2)
            torch.cuda.current_stream(device).synchronize()
    started = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def refused(device):
    """A failed call is the program's to handle."""
    try:
        torch.empty(1 << 44, dtype=torch.uint8, device=device)
    except torch.OutOfMemoryError as error:
        return type(error).__name__
    return None


def main():
    device, other = torch.device("cuda", 0), torch.device("cuda", 1)
    torch.manual_seed(0)
    print(torch.cuda.get_device_name(device), torch.cuda.device_count())
    print("streams", *streams(device))
    print("copies", *copies(device, other))
    print("fills", *fills(device))
    print("products", *products(device))
    threads(device)
    print("refused", refused(device))
    torch.cuda.empty_cache()
    print("free", torch.cuda.mem_get_info(device)[1])
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
