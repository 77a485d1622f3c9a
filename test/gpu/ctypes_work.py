# SPDX-License-Identifier: Apache-2.0
"""A known number of calls of each kind, through libcuda alone: needs Python and a driver.

    ctypes_work.py LAUNCHES|for-ever [SYNC_EVERY [SECONDS [abort]]]

Prints a line "kind count" for each, and what the kernels left in memory; to stderr, how long the
last nine tenths of the launches took. LAUNCHES "for-ever" ends only by a signal; the first line is
then "running". SECONDS is how long the process lasts at least: what looks on needs some time.
With "abort" it calls abort() when it has launched and waited.
"""

import ctypes
import itertools
import os
import sys
import time

# sm_75 is the oldest that CUDA 13 knows; older devices have older drivers.
PTX = """
.version {version}
.target {target}
.address_size 64
.visible .entry gpuprof_add_one(.param .u64 data)
{{
    .reg .u64 %rd<2>;
    .reg .u32 %r<2>;
    ld.param.u64 %rd0, [data];
    cvta.to.global.u64 %rd0, %rd0;
    atom.global.add.u32 %r0, [%rd0], 1;
    ret;
}}
"""
BYTES = 65536
CAPTURED, GRAPH_LAUNCHES, COPIES, SETS = 10, 20, 16, 8
CAPTURE_THREAD_LOCAL = 1
NON_BLOCKING = 1
MAJOR, MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_...


class Driver:
    """cuda.MemAlloc_v2(...) calls cuMemAlloc_v2 and raises if it fails."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")

    def __getattr__(self, name):
        function = getattr(self.library, f"cu{name}")

        def call(*arguments):
            status = function(*arguments)
            if status:
                raise RuntimeError(f"cu{name}: error {status}")
        setattr(self, name, call)
        return call


def load_kernel(cuda, device, code=PTX, name=b"gpuprof_add_one"):
    major, minor = ctypes.c_int(), ctypes.c_int()
    cuda.DeviceGetAttribute(ctypes.byref(major), MAJOR, device)
    cuda.DeviceGetAttribute(ctypes.byref(minor), MINOR, device)
    is_new = (major.value, minor.value) >= (7, 5)
    text = code.format(version="6.3" if is_new else "6.0", target="sm_75" if is_new else "sm_50")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    cuda.ModuleLoadData(ctypes.byref(module), text.encode())
    cuda.ModuleGetFunction(ctypes.byref(function), module, name)
    return function


def open_context(cuda):
    """Makes the first device's primary context current; the device."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    cuda.Init(0)
    cuda.DeviceGet(ctypes.byref(device), 0)
    cuda.DevicePrimaryCtxRetain(ctypes.byref(context), device)
    cuda.CtxSetCurrent(context)
    return device


def run_loop(cuda, stream, launch, launches, sync_every):
    """For ever if `launches` is 0."""
    begin, end = ctypes.c_void_p(), ctypes.c_void_p()
    cuda.EventCreate(ctypes.byref(begin), 0)
    cuda.EventCreate(ctypes.byref(end), 0)
    cuda.EventRecord(begin, stream)
    start = time.monotonic_ns()
    for i in range(1, launches + 1) if launches else itertools.count(1):
        if i == launches // 10:
            start = time.monotonic_ns()
        launch()
        if i % sync_every == 0:
            cuda.StreamSynchronize(stream)
    cuda.EventRecord(end, stream)
    cuda.EventSynchronize(end)
    print(f"loop_ns {time.monotonic_ns() - start}", file=sys.stderr)


def run_graph(cuda, stream, launch, set_all, copy_inside):
    """Kernels, one memset and one copy between device memory, captured and launched."""
    graph, instance = ctypes.c_void_p(), ctypes.c_void_p()
    cuda.StreamBeginCapture_v2(stream, CAPTURE_THREAD_LOCAL)
    for _ in range(CAPTURED):
        launch()
    set_all()
    copy_inside()
    cuda.StreamEndCapture(stream, ctypes.byref(graph))
    cuda.GraphInstantiateWithFlags(ctypes.byref(instance), graph, ctypes.c_ulonglong(0))
    for _ in range(GRAPH_LAUNCHES):
        cuda.GraphLaunch(instance, stream)
    cuda.StreamSynchronize(stream)


def main():
    for_ever = sys.argv[1] == "for-ever"
    launches = 0 if for_ever else int(sys.argv[1])
    sync_every = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    end = time.monotonic() + (float(sys.argv[3]) if len(sys.argv) > 3 else 0)
    cuda = Driver()
    device = open_context(cuda)
    function = load_kernel(cuda, device)
    stream, data, spare = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64()
    host = ctypes.c_void_p()
    cuda.StreamCreate(ctypes.byref(stream), NON_BLOCKING)
    cuda.MemAlloc_v2(ctypes.byref(data), ctypes.c_size_t(BYTES))
    cuda.MemAlloc_v2(ctypes.byref(spare), ctypes.c_size_t(BYTES))
    cuda.MemHostAlloc(ctypes.byref(host), ctypes.c_size_t(BYTES), 0)
    size = ctypes.c_size_t(BYTES)
    params = (ctypes.c_void_p * 1)(ctypes.addressof(data))
    null = ctypes.c_void_p()

    def launch():
        cuda.LaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, params, null)

    def set_spare():
        cuda.MemsetD8Async(spare, ctypes.c_ubyte(7), size, stream)

    def copy_inside():
        cuda.MemcpyDtoDAsync_v2(spare, data, size, stream)

    ctypes.memset(host, 0, BYTES)
    cuda.MemcpyHtoDAsync_v2(data, host, size, stream)
    for _ in range(COPIES - 2):
        copy_inside()
    for _ in range(SETS):
        set_spare()
    if for_ever:
        print("running", flush=True)
    run_loop(cuda, stream, launch, launches, sync_every)
    if sys.argv[4:] == ["abort"]:
        os.abort()
    run_graph(cuda, stream, launch, set_spare, copy_inside)
    cuda.MemcpyDtoHAsync_v2(host, data, size, stream)
    cuda.StreamSynchronize(stream)
    print(f"launch {launches}\ncaptured {CAPTURED}\ngraph_launch {GRAPH_LAUNCHES}\n"
          f"graph_copy 1\ngraph_set 1\ncopy {COPIES}\nset {SETS}")
    print(f"result {ctypes.cast(host, ctypes.POINTER(ctypes.c_uint32))[0]}")
    time.sleep(max(0, end - time.monotonic()))


if __name__ == "__main__":
    main()
