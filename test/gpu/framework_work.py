# SPDX-License-Identifier: Apache-2.0
"""Small programs of real frameworks: what check_framework_work.py records.

    framework_work.py NAME FOLDER

Each prints the same lines each time: numbers rounded to what is the same on each run, and

    known TEXT COUNT      so many kernels with TEXT in their name
    recordings COUNT      so many processes use the GPU; 1 if it says nothing

FOLDER is for what it writes.
"""

# pylint: disable=import-error,import-outside-toplevel

import functools
import multiprocessing
import os
import sys
import threading

STEPS = 20
ADDED = "CUDAFunctorOnSelf_add"  # in the name of the kernel of PyTorch's x.add_(number)


def told(*values):
    print(*(round(float(value), 3) for value in values), flush=True)


def known(text, count):
    print("known", text, count, flush=True)


def cupy_work(_):
    import cupy
    count, captured, graph_launches = 117, 5, 4
    source = 'extern "C" __global__ void gpuprof_known(int *x) { atomicAdd(x, 1); }'
    kernel = cupy.RawKernel(source, "gpuprof_known")
    a = cupy.arange(1 << 16, dtype=cupy.float32).reshape(256, 256) / (1 << 16)
    told((a * 2 + 1).sum(), cupy.sqrt(a).max())
    told((a @ a.T).trace())
    told(cupy.abs(cupy.fft.fft(a, axis=1)).max())
    counter = cupy.zeros(1, dtype=cupy.int32)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    cupy.cuda.Device().synchronize()
    for number in range(count):
        with streams[number % 2] as stream:
            kernel((4,), (32,), (counter,))
            event = stream.record()
        streams[1 - number % 2].wait_event(event)
    cupy.cuda.Device().synchronize()
    stream = streams[0]
    with stream:
        stream.begin_capture()
        for _ in range(captured):
            kernel((4,), (32,), (counter,))
        graph = stream.end_capture()
        for _ in range(graph_launches):
            graph.launch(stream)
        stream.synchronize()
    told(counter[0])
    pinned = cupy.cuda.alloc_pinned_memory(a.nbytes)
    with stream:
        for _ in range(8):
            a.data.copy_to_host_async(pinned.ptr, a.nbytes, stream)
            a.data.copy_from_host_async(pinned.ptr, a.nbytes, stream)
        stream.synchronize()
    told(a.sum())
    pool = cupy.get_default_memory_pool()
    for size in range(1, 40):
        cupy.empty(size << 16, dtype=cupy.uint8).fill(size)
    print(pool.used_bytes() > 0)
    pool.free_all_blocks()
    known("gpuprof_known", count + captured * graph_launches)


def triton_work(folder):
    os.environ.setdefault("TRITON_CACHE_DIR", os.path.join(folder, "triton"))
    import torch
    from framework_kernel import gpuprof_triton_known
    count, size = 91, 1 << 16
    x, y = torch.zeros(size, device="cuda"), torch.arange(size, device="cuda").float()
    for _ in range(count):
        gpuprof_triton_known[(size // 1024,)](x, y, size, BLOCK=1024)
    print(torch.equal(x, y * count))
    known("gpuprof_triton_known", count)


def train(model, inputs, target, around=None):
    """STEPS steps; their losses."""
    import torch
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        with around() if around else torch.enable_grad():
            loss = torch.nn.functional.cross_entropy(model(inputs).float(), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().clone())
    told(*losses)


def compile_work(folder):
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        os.environ.setdefault(name, os.path.join(folder, name))
    import torch
    nn = torch.nn
    for mode in ("default", "reduce-overhead"):
        torch.manual_seed(0)
        torch.compiler.reset()
        model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 10))
        x, y = torch.randn(128, 64), torch.arange(128) % 10
        train(torch.compile(model.cuda(), mode=mode), x.cuda(), y.cuda())


def nccl_work(folder):
    import torch
    import torch.distributed as dist
    store = os.path.join(folder, "nccl-store")
    if os.path.exists(store):
        os.unlink(store)
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", init_method=f"file://{store}", rank=0, world_size=1)
    x = torch.ones(1 << 20, device="cuda")
    parts = [torch.zeros_like(x)]
    for number in range(40):
        dist.all_reduce(x)
        dist.all_gather(parts, x)
        dist.broadcast(x, 0)
        x.add_(number)
    torch.cuda.synchronize()
    told(x.sum(), parts[0].sum())
    dist.destroy_process_group()
    known(ADDED, 40)


def jax_work(_):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.setdefault("XLA_FLAGS", "--xla_gpu_autotune_level=0")
    import jax
    jnp = jax.numpy
    jax.config.update("jax_default_matmul_precision", "highest")
    if jax.default_backend() != "gpu":
        sys.exit(f"JAX has only {jax.default_backend()}")
    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    sizes = ((64, 256), (256, 10))
    weights = [jax.random.normal(key, size) / 16 for key, size in zip(keys, sizes)]
    x, y = jax.random.normal(keys[2], (128, 64)), jnp.arange(128) % 10

    def loss_of(weights):
        logits = jnp.tanh(x @ weights[0]) @ weights[1]
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(128), y])

    @jax.jit
    def step(weights):
        loss, gradients = jax.value_and_grad(loss_of)(weights)
        return loss, [w - 0.1 * g for w, g in zip(weights, gradients)]

    losses = []
    for _ in range(STEPS):
        loss, weights = step(weights)
        losses.append(loss)
    told(*losses)


def cudnn_work(_):
    import torch
    nn = torch.nn
    torch.manual_seed(0)
    torch.backends.cudnn.deterministic = True
    model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(),
                          nn.Conv2d(32, 64, 3, stride=2), nn.BatchNorm2d(64), nn.ReLU(),
                          nn.Flatten(), nn.Linear(64 * 14 * 14, 10))
    layout = torch.channels_last
    x, y = torch.randn(32, 3, 32, 32), torch.arange(32) % 10
    train(model.cuda().to(memory_format=layout), x.cuda().to(memory_format=layout), y.cuda(),
          functools.partial(torch.autocast, "cuda", dtype=torch.bfloat16))


def attention_work(_):
    import torch
    torch.manual_seed(0)
    q = torch.randn(3, 8, 256, 64).cuda().half()
    for _ in range(10):
        out = torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    print(round(float(out.float().mean()), 2))
    import transformers
    config = transformers.GPT2Config(n_layer=2, n_head=4, n_embd=64, vocab_size=512,
                                     bos_token_id=0, eos_token_id=511, pad_token_id=511)
    model = transformers.GPT2LMHeadModel(config).cuda().eval()
    prompt = torch.arange(8).reshape(1, 8).cuda()
    told(*model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=16,
                         do_sample=False)[0])


def numba_work(_):
    from numba import cuda
    count = 73

    @cuda.jit
    def gpuprof_numba_known(x):
        at = cuda.grid(1)
        if at < x.size:
            x[at] += 1

    import numpy
    x = cuda.to_device(numpy.zeros(4096, dtype=numpy.int32))
    for _ in range(count):
        gpuprof_numba_known[32, 128](x)
    cuda.synchronize()
    told(x.copy_to_host().sum())
    known("gpuprof_numba_known", count)


def add(count, device="cuda"):
    """A tensor to which `count` kernels have added."""
    import torch
    x = torch.zeros(1 << 12, device=device)
    for _ in range(count):
        x.add_(1)
    return x


def allocator_work(setting):
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = setting
    import torch
    kept = []
    for size in range(1, 120):
        kept.append(torch.full((size << 18,), 1, dtype=torch.uint8, device="cuda"))
        if size % 3 == 0:
            kept.pop(0)
    told(sum(int(x.sum()) for x in kept))
    kept.clear()
    torch.cuda.empty_cache()
    told(add(50).sum())
    known(ADDED, 50)


def threads_work(_):
    import torch
    count, thread_count = 500, 4
    sums = [0] * thread_count
    torch.zeros(1, device="cuda")

    def body(number):
        with torch.cuda.stream(torch.cuda.Stream()):
            x = add(count)
            sums[number] = float(x.sum())

    threads = [threading.Thread(target=body, args=(number,)) for number in range(thread_count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told(*sums)
    known(ADDED, count * thread_count)


def child(_, results):
    results.put(float(add(100).sum()))


class Numbers:
    """A data set of 64 numbers."""

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return index


def processes_work(_):
    import torch
    import torch.utils.data
    results = multiprocessing.get_context("spawn").SimpleQueue()
    own = add(100).sum()
    torch.multiprocessing.spawn(child, (results,), nprocs=2)
    told(own, *(results.get() for _ in range(2)))
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=8, num_workers=2, pin_memory=True,
                                         multiprocessing_context="fork")
    told(sum(int(batch.cuda(non_blocking=True).sum()) for batch in loader))
    known(ADDED, 300)
    print("recordings 3")


def exit_work(_):
    import torch
    add(1)
    torch.cuda.synchronize()
    known(ADDED, 301)
    add(300)
    os._exit(3)


def raise_work(_):
    told(add(300).sum())
    known(ADDED, 300)
    raise RuntimeError("as it should")


WORK = {
    "cupy": cupy_work,
    "triton": triton_work,
    "compile": compile_work,
    "nccl": nccl_work,
    "jax": jax_work,
    "cudnn": cudnn_work,
    "exit": exit_work,
    "raise": raise_work,
    "threads": threads_work,
    "processes": processes_work,
    "attention": attention_work,
    "expandable": lambda _: allocator_work("expandable_segments:True"),
    "async": lambda _: allocator_work("backend:cudaMallocAsync"),
    "numba": numba_work,
}

if __name__ == "__main__":
    WORK[sys.argv[1]](sys.argv[2])
