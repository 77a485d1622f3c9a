# SPDX-License-Identifier: Apache-2.0
"""What programs do in each step and what gpuprof's threads must not mind, through libcuda alone:
small copies to the host, waiting frees, a host that computes or sleeps, setuid, and a pause in
which CUPTI's callbacks are turned off. Prints a line "word number" for each."""

import ctypes
import os
import signal
import statistics
import time

from ctypes_work import Driver, load_kernel, open_context

PTX = """
.version {version}
.target {target}
.address_size 64
.visible .entry gpuprof_spin(.param .u64 cycles)
{{
    .reg .u64 %rd<5>;
    .reg .pred %p;
    ld.param.u64 %rd0, [cycles];
    mov.u64 %rd1, %clock64;
again:
    mov.u64 %rd2, %clock64;
    sub.u64 %rd3, %rd2, %rd1;
    setp.lt.u64 %p, %rd3, %rd0;
    @%p bra again;
    ret;
}}
"""
SECONDS = 0.4  # of each habit
KERNELS, CYCLES = 4, 1000000  # of each step; some 0.6 ms
BYTES = 1 << 20
SILENCES, SILENT_SECONDS = 15, 0.01
LAUNCHES, REST_SECONDS, ANSWER_SECONDS = 100, 1.3, 20

cuda = Driver()
spin = load_kernel(cuda, open_context(cuda), PTX, b"gpuprof_spin")
stream, data = ctypes.c_void_p(), ctypes.c_uint64()
cuda.StreamCreate(ctypes.byref(stream), 1)
cuda.MemAlloc_v2(ctypes.byref(data), ctypes.c_size_t(BYTES))
loss = ctypes.c_float()


def launch(cycles):
    parameter = ctypes.c_uint64(cycles)
    cuda.LaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream,
                      (ctypes.c_void_p * 1)(ctypes.addressof(parameter)), None)


def work():
    for _ in range(KERNELS):
        launch(CYCLES)


def item():
    """As loss.item()."""
    work()
    begin = time.monotonic()
    cuda.MemcpyDtoHAsync_v2(ctypes.byref(loss), data, ctypes.c_size_t(4), stream)
    cuda.StreamSynchronize(stream)
    return time.monotonic() - begin


def free():
    buffer = ctypes.c_uint64()
    cuda.MemAlloc_v2(ctypes.byref(buffer), ctypes.c_size_t(BYTES))
    work()
    begin = time.monotonic()
    cuda.MemFree_v2(buffer)
    return time.monotonic() - begin


def repeat(step):
    """Without the wait the device would have work during what follows: it is shorter than that."""
    end, count = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        time.sleep(step() / 2)
        count += 1
    print(step.__name__, count, flush=True)


def compute():
    end = time.monotonic() + SILENT_SECONDS
    while time.monotonic() < end:
        pass


def sleep():
    time.sleep(SILENT_SECONDS)


def stay_silent(how):
    for _ in range(SILENCES):
        launch(0)
        how()
    print(how.__name__, SILENCES, flush=True)


def launch_ns():
    times = []
    for _ in range(LAUNCHES):
        begin = time.perf_counter_ns()
        launch(0)
        times.append(time.perf_counter_ns() - begin)
    cuda.StreamSynchronize(stream)
    return int(statistics.median(times))


repeat(item)
repeat(free)
stay_silent(compute)
stay_silent(sleep)
signal.alarm(ANSWER_SECONDS)  # glibc's waits for an answer of all threads
os.setgid(os.getgid())
os.setuid(os.getuid())
signal.alarm(0)
print("setuid 0", flush=True)
ours = ctypes.CDLL(None)
ours.gpuprof_stop()
print("stopped_ns", launch_ns())
time.sleep(REST_SECONDS)
print("rested_ns", launch_ns())
ours.gpuprof_start()
print("recorded_ns", launch_ns())
