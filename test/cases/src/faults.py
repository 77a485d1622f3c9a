# SPDX-License-Identifier: Apache-2.0
"""Programs with one fault each, and the same work done right: faults.py SCENE [healthy]. Prints as
JSON when the process began. The lines at which the fault is end with "# fault SCENE".
The simulated CUDA gives a kernel a microsecond for each block. A sleep stands for work of the
CPU's: on a busy machine it is less late than work would be."""

import ctypes
import functools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from queue import SimpleQueue

STEPS = 40
MS = 1000  # blocks
FOREVER = 2**31 - 1
HANGS_SECONDS = 3
COPY_BYTES = 1 << 20
LABEL = 7  # the scope of torch.profiler.record_function
RANKS = {"straggler": 4, "exposed-communication": 2}

GEMM = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_64x3_tn"
SGEMM = "ampere_sgemm_128x64_tn"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ELEMENTWISE = ("void at::native::vectorized_elementwise_kernel<4, at::native::{0}, "
               "std::array<char*, 2ul> >(int, at::native::{0}, std::array<char*, 2ul>)")
FUSED = "triton_poi_fused_add_mul_relu_0"

cuda = ctypes.CDLL("libcuda.so.1")
begin_step = getattr(ctypes.PyDLL(None), "gpuprof_step", lambda _: None)


def declare():
    def good(result, function, _):
        assert result == 0, f"{function.__name__}: {result}"
        return result
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint
    for name, types in {
            "cuInit": [number], "cuLaunchKernel": [pointer, *[number] * 7, *[pointer] * 3],
            "cuMemcpyHtoDAsync_v2": [ctypes.c_uint64, pointer, size, pointer],
            "cuMemcpyDtoHAsync_v2": [pointer, ctypes.c_uint64, size, pointer],
            "cuMemAlloc_v2": [pointer, size], "cuMemFree_v2": [ctypes.c_uint64],
            "cuMemAllocAsync": [pointer, size, pointer],
            "cuMemFreeAsync": [ctypes.c_uint64, pointer],
            "cuMemAllocHost_v2": [pointer, size], "cuMemFreeHost": [pointer],
            "cuDeviceGet": [pointer, ctypes.c_int],
            "cuDevicePrimaryCtxRetain": [pointer, ctypes.c_int], "cuCtxSetCurrent": [pointer],
            "cuModuleLoadData": [pointer, ctypes.c_char_p], "cuStreamCreate": [pointer, number],
            "cuModuleGetFunction": [pointer, pointer, ctypes.c_char_p],
            "cuEventCreate": [pointer, number], "cuEventRecord": [pointer, pointer],
            "cuStreamWaitEvent": [pointer, pointer, number], "cuStreamSynchronize": [pointer],
            "cuStreamBeginCapture_v2": [pointer, ctypes.c_int], "cuGraphLaunch": [pointer] * 2,
            "cuStreamEndCapture": [pointer, pointer],
            "cuGraphInstantiateWithFlags": [pointer, pointer, ctypes.c_uint64]}.items():
        function = getattr(cuda, name)
        function.argtypes, function.errcheck = types, good


def made(create, kind, *arguments):
    """What a function of CUDA gives by its first argument, as a number."""
    value = kind()
    create(ctypes.byref(value), *arguments)
    return value.value


def stream():
    non_blocking = 1
    return made(cuda.cuStreamCreate, ctypes.c_void_p, non_blocking)


def kernel(name):
    """Called with a number of blocks and `on(STREAM)`: cuLaunchKernel, and no Python before it."""
    return functools.partial(cuda.cuLaunchKernel,
                             made(cuda.cuModuleGetFunction, ctypes.c_void_p, module, name.encode()))


def on(queue):
    return 1, 1, 128, 1, 1, 0, queue, None, None


def event():
    no_timing = 2
    return made(cuda.cuEventCreate, ctypes.c_void_p, no_timing)


def memory():
    return made(cuda.cuMemAlloc_v2, ctypes.c_uint64, COPY_BYTES)


def pinned():
    return made(cuda.cuMemAllocHost_v2, ctypes.c_void_p, COPY_BYTES)


def graph(launches):
    """A function that launches what `launches` does, as a CUDA graph."""
    cuda.cuStreamBeginCapture_v2(main, 0)
    launches()
    captured = made(functools.partial(cuda.cuStreamEndCapture, main), ctypes.c_void_p)
    return functools.partial(cuda.cuGraphLaunch, made(cuda.cuGraphInstantiateWithFlags,
                                                      ctypes.c_void_p, captured, 0), main)


def wait():
    cuda.cuStreamSynchronize(main)


def launch_bound(healthy):
    gemm, here = kernel(GEMM), on(main)

    def steps(count):
        for _ in range(count):
            gemm(20, *here)  # fault launch-bound
    if healthy:
        replay = graph(functools.partial(steps, 500))
        for _ in range(STEPS // 2):
            replay()
    else:
        steps(100 * STEPS)
    wait()


def sync_in_loop(healthy):
    gemm, here = kernel(GEMM), on(main)
    for _ in range(STEPS // 2):
        gemm(16 * MS, *here)
        if not healthy:
            cuda.cuStreamSynchronize(main)  # fault sync-in-loop
        time.sleep(0.008)
    wait()


class Scalar:
    """A tensor of one number, whose item() is PyTorch's: a small copy, for which the host waits."""

    def __init__(self):
        self.there, self.here = memory(), ctypes.c_float()

    def item(self):
        cuda.cuMemcpyDtoHAsync_v2(ctypes.byref(self.here), self.there, 4, main)  # fault loss-item
        cuda.cuStreamSynchronize(main)
        return self.here.value


def loss_item(healthy):
    """The healthy one copies each loss, too, but waits only for every hundredth."""
    gemm, here, loss, kept = kernel(GEMM), on(main), Scalar(), pinned()
    for step in range(STEPS // 2):
        gemm(16 * MS, *here)
        if healthy:
            cuda.cuMemcpyDtoHAsync_v2(kept, loss.there, 4, main)
        if step % 100 == 99 or not healthy:
            loss.item()
        time.sleep(0.008)
    wait()


def converges(healthy):
    """A flag says whether to go on: its copy is all there is of a wait."""
    gemm, here, flag = kernel(GEMM), on(main), Scalar()
    for step in range(STEPS // 2):
        gemm(16 * MS, *here)
        if step % 100 == 99 or not healthy:
            into = ctypes.byref(flag.here)
            cuda.cuMemcpyDtoHAsync_v2(into, flag.there, 4, main)  # fault converges
        time.sleep(0.008)
    wait()


def pageable_copies(healthy):
    if healthy:
        return overlapped()
    gemm, here, target = kernel(GEMM), on(main), memory()
    source = ctypes.create_string_buffer(COPY_BYTES)
    for step in range(STEPS):
        fill(source, step)
        cuda.cuMemcpyHtoDAsync_v2(target, source, COPY_BYTES, main)  # fault pageable-copies
        gemm(4 * MS, *here)
    wait()


def overlapped():
    """Copies from pinned memory in a stream of their own, into two buffers by turns."""
    gemm, here, copies = kernel(GEMM), on(main), stream()
    buffers = [(pinned(), memory(), event(), event()) for _ in range(2)]
    for step in range(STEPS):
        source, target, copied, used = buffers[step % 2]
        if step > 1:
            cuda.cuStreamWaitEvent(copies, used, 0)
        fill(source, step)
        cuda.cuMemcpyHtoDAsync_v2(target, source, COPY_BYTES, copies)
        cuda.cuEventRecord(copied, copies)
        cuda.cuStreamWaitEvent(main, copied, 0)
        gemm(4 * MS, *here)
        cuda.cuEventRecord(used, main)
    wait()


def fill(address, step):
    """Other bytes in each step. The simulated copy has been made when its call returns."""
    ctypes.memset(address, step, COPY_BYTES)


def one_stream(healthy):
    if healthy:
        return overlapped()
    gemm, here, source, target = kernel(GEMM), on(main), pinned(), memory()
    for step in range(STEPS):
        fill(source, step)
        cuda.cuMemcpyHtoDAsync_v2(target, source, COPY_BYTES, main)  # fault one-stream
        gemm(4 * MS, *here)
    wait()


def slow_loader(healthy):
    torch, gemm, here = ctypes.CDLL("libtorch_cpu.so"), kernel(GEMM), on(main)
    torch.sim_op_begin.restype, torch.sim_op_end.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    label = b"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    memory()  # begins the recording, which then asks PyTorch to be told of operators and labels
    end = time.monotonic() + 20
    while "GPUPROF_PYTORCH" in os.environ and torch.sim_callbacks() < 2:
        assert time.monotonic() < end
        time.sleep(0.001)
    for _ in range(STEPS):
        loading = torch.sim_op_begin(label, LABEL, ctypes.c_long(-1), ctypes.c_ulong(0), b"")
        time.sleep(0.0002 if healthy else 0.008)
        torch.sim_op_end(loading)
        gemm(4 * MS, *here)
    wait()


def allocation_churn(healthy):
    gemm, here, buffer = kernel(GEMM), on(main), ctypes.c_uint64()
    for step in range(STEPS):
        if step == 0 or not healthy:
            cuda.cuMemAlloc_v2(ctypes.byref(buffer), COPY_BYTES)  # fault allocation-churn
        gemm(4 * MS, *here)
        if not healthy:
            cuda.cuMemFree_v2(buffer)  # fault allocation-churn
    wait()


def waiting_free(healthy):
    """Memory for each step's results: the calls themselves take no time, but wait for the kernel.
    """
    gemm, here = kernel(GEMM), on(main)
    for step in range(STEPS // 2):
        if healthy:
            buffer = made(cuda.cuMemAllocAsync, ctypes.c_uint64, COPY_BYTES, main)
        elif step % 2:
            buffer = pinned()
        else:
            buffer = memory()
        gemm(16 * MS, *here)
        if healthy:
            cuda.cuMemFreeAsync(buffer, main)
        elif step % 2:
            cuda.cuMemFreeHost(buffer)  # fault waiting-free
        else:
            cuda.cuMemFree_v2(buffer)  # fault waiting-free
        time.sleep(0.008)
    wait()


def straggler(healthy):
    is_late = os.environ["RANK"] == "2" and not healthy
    gemm, all_reduce, here = kernel(GEMM), kernel(ALL_REDUCE), on(main)
    for _ in range(STEPS):
        gemm((9 if is_late else 4) * MS, *here)
        all_reduce(MS // 5, *here)
    wait()


def tiny_kernels(healthy):
    add, here = kernel(GEMM), on(main)

    def step():
        for _ in range(20 if healthy else 800):
            add(80 if healthy else 4, *here)
    replay = graph(step)

    def steps():
        for _ in range(60):
            replay()
    # One launch: the kernels follow one another, however long the host takes to simulate them.
    replay_all = graph(steps)
    add(200 * MS, *here)
    wait()
    time.sleep(0.04)  # a GPU that is always busy has no such finding
    add(200 * MS, *here)
    replay_all()  # fault tiny-kernels
    wait()


def host_bound(healthy):
    gemm, here, lost = kernel(GEMM), on(main), 0
    for _ in range(STEPS):
        lost += sum(i * i for i in range(100 if healthy else 200_000))
        gemm(4 * MS, *here)  # fault host-bound
    wait()


def crowded(_):
    """As host_bound, on a processor that another process wants all of."""
    processor = {min(os.sched_getaffinity(0))}
    os.sched_setaffinity(0, processor)
    with subprocess.Popen([sys.executable, "-SE", "-c", "while True: pass"]) as other:
        try:
            host_bound(False)
        finally:
            other.kill()


def server(healthy):
    """It is sent what to do: slowly, or all at once."""
    gemm, here, count = kernel(GEMM), on(main), STEPS
    code = (f"import os, time\nos.write(1, b'!')\nfor _ in range({count}):\n"
            f"    time.sleep({0 if healthy else 0.008})\n    os.write(1, b'.')")
    with subprocess.Popen([sys.executable, "-SE", "-c", code], stdout=subprocess.PIPE) as client:
        requests = client.stdout.fileno()
        os.read(requests, 1)
        for _ in range(count):
            assert os.read(requests, 1) == b"."
            gemm(2 * MS, *here)  # fault server
    wait()


def loader_workers(healthy):
    """Two processes load batches, slower than they are used, or faster."""
    gemm, here, fork = kernel(GEMM), on(main), multiprocessing.get_context("fork")
    batches = fork.SimpleQueue()

    def load():
        for _ in range(STEPS // 2):
            time.sleep(0 if healthy else 0.016)
            batches.put(b"batch")
    workers = [fork.Process(target=load) for _ in range(2)]
    for worker in workers:
        worker.start()
    if healthy:
        time.sleep(0.05)  # until they have begun
    for _ in range(STEPS):
        batches.get()
        gemm(2 * MS, *here)  # fault loader-workers
    for worker in workers:
        worker.join()
    wait()


def gil(healthy):
    """Another thread computes in Python, beside that which launches."""
    gemm, here, done = kernel(GEMM), on(main), threading.Event()

    def compute():
        while not done.is_set():
            sum(range(1000))
    other = threading.Thread(target=compute)
    if not healthy:
        other.start()
    for _ in range(STEPS):
        time.sleep(0.0002)  # gives the lock away
        gemm(2 * MS, *here)  # fault gil
    done.set()
    if not healthy:
        other.join()
    wait()


def exposed_communication(healthy):
    gemm, all_reduce, here = kernel(GEMM), kernel(ALL_REDUCE), on(main)
    beside = on(stream())
    for _ in range(STEPS):
        gemm(6 * MS, *here)
        all_reduce(4 * MS, *beside if healthy else here)  # fault exposed-communication
    wait()


def hang(healthy):
    """Until somebody ends the job, which a signal of its own stands for."""
    gemm, here = kernel(GEMM), on(main)
    for _ in range(STEPS):
        gemm(16 * MS, *here)
        wait()
    if not healthy:
        signal.setitimer(signal.ITIMER_REAL, HANGS_SECONDS)
    gemm(16 * MS if healthy else FOREVER, *here)
    cuda.cuStreamSynchronize(main)  # fault hang


def fp32_gemm(healthy):
    gemm, here = kernel(GEMM if healthy else SGEMM), on(main)
    for _ in range(STEPS):
        gemm(8 * MS, *here)  # fault fp32-gemm
    wait()


def unfused_elementwise(healthy):
    gemm, fused, here = kernel(GEMM), kernel(FUSED), on(main)
    add, mul, relu = (kernel(ELEMENTWISE.format(name)) for name in (
        "CUDAFunctor_add<float>", "BinaryFunctor<float, float, float, MulFunctor<float> >",
        "AUnaryFunctor<float, float, float, ReluFunctor<float> >"))
    for _ in range(STEPS):
        gemm(3 * MS, *here)
        if healthy:
            fused(2 * MS, *here)
            continue
        add(2 * MS, *here)  # fault unfused-elementwise
        mul(3 * MS, *here)  # fault unfused-elementwise
        relu(2 * MS, *here)  # fault unfused-elementwise
    wait()


def repeated_upload(healthy):
    if healthy:
        return overlapped()
    gemm, here, source, target = kernel(GEMM), on(main), pinned(), memory()
    fill(source, 1)
    for _ in range(STEPS):
        cuda.cuMemcpyHtoDAsync_v2(target, source, COPY_BYTES, main)  # fault repeated-upload
        gemm(4 * MS, *here)
    wait()


def rotated_uploads(healthy):
    """A data set that would fit the device, uploaded batch by batch in each epoch."""
    if healthy:
        return overlapped()
    gemm, here, target = kernel(GEMM), on(main), memory()
    sources = [pinned() for _ in range(4)]
    for number, source in enumerate(sources):
        fill(source, number)
    for step in range(STEPS):
        source = sources[step % len(sources)]
        cuda.cuMemcpyHtoDAsync_v2(target, source, COPY_BYTES, main)  # fault rotated-uploads
        gemm(4 * MS, *here)
    wait()


def graph_upload(_):
    """The same bytes in each replay, of which nobody is told."""
    gemm, here, source, target = kernel(GEMM), on(main), pinned(), memory()
    fill(source, 1)

    def step():
        cuda.cuMemcpyHtoDAsync_v2(target, source, COPY_BYTES, main)
        gemm(4 * MS, *here)
    replay = graph(step)
    for _ in range(STEPS):
        replay()
    wait()


def two_faults(_):
    """A wait in the loop, and a copy of pageable memory: both leave the device idle."""
    gemm, here, target = kernel(GEMM), on(main), memory()
    source = ctypes.create_string_buffer(COPY_BYTES)
    for step in range(STEPS // 2):
        for number in range(4):
            fill(source, 4 * step + number)
            cuda.cuMemcpyHtoDAsync_v2(target, source, COPY_BYTES, main)  # fault two-faults
        gemm(16 * MS, *here)
        cuda.cuStreamSynchronize(main)  # fault two-faults
        time.sleep(0.008)
    wait()


def loading_thread(_):
    """A training as it should be: batches are loaded by a thread, copied beside the kernels, and
    the loss is looked at now and then."""
    gemm, here, copies = kernel(GEMM), on(main), stream()
    free, loaded = SimpleQueue(), SimpleQueue()
    for _ in range(4):
        free.put((pinned(), memory(), event(), event()))

    def load():
        for step in range(STEPS):
            batch = free.get()
            fill(batch[0], step)
            time.sleep(0.001)
            loaded.put(batch)
    loader = threading.Thread(target=load)
    loader.start()
    for step in range(STEPS):
        batch = source, target, copied, used = loaded.get()
        if step > 3:
            cuda.cuStreamWaitEvent(copies, used, 0)
        cuda.cuMemcpyHtoDAsync_v2(target, source, COPY_BYTES, copies)
        cuda.cuEventRecord(copied, copies)
        cuda.cuStreamWaitEvent(main, copied, 0)
        gemm(6 * MS, *here)
        cuda.cuEventRecord(used, main)
        free.put(batch)
        if step % 16 == 15:
            wait()
    loader.join()
    wait()


def launch_blocking(_):
    """The test sets CUDA_LAUNCH_BLOCKING=1 for the faulty one."""
    gemm, here = kernel(GEMM), on(main)
    for _ in range(STEPS):
        gemm(6 * MS, *here)  # fault launch-blocking
        time.sleep(0.004)
    wait()


def start_up(_):
    """The faulty one has slept, below: what it imports takes that long."""
    gemm, here = kernel(GEMM), on(main)
    for _ in range(STEPS):
        gemm(8 * MS, *here)
    wait()


def compile_in_step(healthy):
    """The first step of the faulty one compiles, behind its first kernel; both are quick then.
    What is imported and loaded behind the first work of a device is start-up, too."""
    gemm, here = kernel(GEMM), on(main)
    gemm(MS, *here)  # as .cuda() of a model
    wait()
    time.sleep(0.002 if healthy else 0.3)
    for step in range(STEPS):
        begin_step(step)
        gemm(8 * MS, *here)
        if step == 0 and not healthy:
            wait()
            time.sleep(0.8)
            gemm(8 * MS, *here)  # fault compile-in-step
    wait()
    begin_step(STEPS)


def compile_once(healthy):
    """No steps: behind its first kernel the faulty one compiles, and is quick then."""
    gemm, here = kernel(GEMM), on(main)
    gemm(MS, *here)
    wait()
    end = time.monotonic() + (0.002 if healthy else 1.1)
    while time.monotonic() < end:
        sum(range(1000))
    for _ in range(STEPS):
        gemm(8 * MS, *here)  # fault compile-once
    wait()


def checkpoints(healthy):
    """Each eighth step writes the model's weights to a file, which the faulty one waits for."""
    gemm, here, weights, kept = kernel(GEMM), on(main), memory(), pinned()
    writers = []
    for step in range(STEPS):
        begin_step(step)
        gemm(8 * MS, *here)
        if step % 8 == 0:
            cuda.cuMemcpyDtoHAsync_v2(kept, weights, COPY_BYTES, main)
            cuda.cuStreamSynchronize(main)  # fault checkpoints
            writers.append(threading.Thread(target=time.sleep, args=(0.04,)))
            writers[-1].start()
            if not healthy:
                writers[-1].join()
            gemm(8 * MS, *here)
    for writer in writers:
        writer.join()
    wait()


def began_ns():
    """CLOCK_MONOTONIC at the process's begin, which Linux tells in clock ticks since the boot."""
    with open("/proc/self/stat", encoding="ascii") as stat:
        ticks = int(stat.read().rpartition(")")[2].split()[19])
    since_boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return time.monotonic_ns() - since_boot + ticks * 10**9 // os.sysconf("SC_CLK_TCK")


def meet(folder, rank, world):
    """As init_process_group: no rank goes on before all are here."""
    open(f"{folder}/{rank}", "w", encoding="ascii").close()
    while len(os.listdir(folder)) < world:
        time.sleep(0.001)


def start_ranks(scene, world):
    ranks = [subprocess.Popen([sys.executable, *sys.orig_argv[1:]], env={
        **os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)})
        for rank in range(world)]
    sys.exit(max(process.wait() for process in ranks))


scene, healthy = sys.argv[1], sys.argv[2:] == ["healthy"]
if scene in RANKS and "RANK" not in os.environ:
    start_ranks(scene, RANKS[scene])
if scene == "start-up" and not healthy:
    time.sleep(2)
declare()
cuda.cuInit(0)
device = made(cuda.cuDeviceGet, ctypes.c_int, int(os.environ.get("LOCAL_RANK", "0")))
cuda.cuCtxSetCurrent(made(cuda.cuDevicePrimaryCtxRetain, ctypes.c_void_p, device))
module = made(cuda.cuModuleLoadData, ctypes.c_void_p, b"simulated code")
main = stream()
said = json.dumps({"rank": int(os.environ.get("RANK", "0")), "pid": os.getpid(),
                   "began_ns": began_ns()}) + "\n"
os.write(1, said.encode())  # at once: ranks share the pipe
if "RANK" in os.environ:
    meet(os.environ["MEET"], os.environ["RANK"], int(os.environ["WORLD_SIZE"]))
globals()[scene.replace("-", "_")](healthy)
