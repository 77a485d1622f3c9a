# SPDX-License-Identifier: Apache-2.0
"""
Python work of a known kind between CUDA calls: `gap_work.py KIND SECONDS`. Prints its own account:
for how many nanoseconds it did that work, how many page faults that took, and the kernel's numbers
of the thread that launches and of another one.
"""
import ctypes
import gc
import os
import resource
import signal
import sys
import threading
import time

KIND, SECONDS = sys.argv[1], float(sys.argv[2])
cuda = ctypes.CDLL("libcudart.so.12")
held = ctypes.PyDLL("libcudart.so.12")  # keeps the interpreter's lock in its calls
pointer = ctypes.c_void_p()
PAGES = bytes(100_000)
KEPT = [[i] for i in range(300_000 * (KIND == "stop"))]  # a collection looks at them all


def call():
    held.cudaMalloc(ctypes.byref(pointer), 65536)
    held.cudaFree(pointer)


def compute(until):
    total = 0
    while time.monotonic() < until:
        for i in range(5000):
            total += i
    return total


def launch_once(until):
    call()
    time.sleep(until - time.monotonic())


def sleep():
    time.sleep(0.1)


def read_pipe():
    near, far = os.pipe()
    threading.Timer(0.1, os.write, (far, b"x")).start()
    os.read(near, 1)
    os.close(near)
    os.close(far)


def alone():
    compute(time.monotonic() + 0.1)


def wait_for_lock():
    time.sleep(0.0001)  # gives the interpreter's lock to the other thread, and needs it again


def wait_for_device():
    cuda.cudaMalloc(ctypes.byref(pointer), len(PAGES))
    cuda.cudaMemcpyAsync(pointer, PAGES, ctypes.c_size_t(len(PAGES)), 1, None)
    cuda.cudaDeviceSynchronize()
    cuda.cudaFree(pointer)


def touch():
    until = time.monotonic() + 0.1
    while time.monotonic() < until:
        bytearray(16 << 20)


WORK = {"sleep": sleep, "pipe": read_pipe, "alone": alone, "gil": wait_for_lock, "touch": touch,
        "sync": wait_for_device, "fork": sleep, "kill": sleep, "exec": sleep, "stop": gc.collect}
BESIDE = {"gil": compute, "stop": compute, "sync": launch_once}


def work_on(seconds):
    end, spent = time.monotonic() + seconds, 0
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    other = threading.Thread(target=BESIDE.get(KIND, str), args=(end,))
    other.start()
    if KIND == "stop":
        WORK[KIND]()  # before the first call, in no account
    call()
    while time.monotonic() < end:
        begin = time.monotonic()
        WORK[KIND]()
        spent += time.monotonic() - begin
        call()
    other.join()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    said = KIND, int(spent * 1e9), faults, os.getpid(), getattr(other, "native_id", 0)
    os.write(1, (" ".join(map(str, said)) + "\n").encode())  # at once: its child writes, too


def main():
    sys.setswitchinterval(0.1)
    work_on(SECONDS)
    if KIND == "fork":
        child = os.fork()
        work_on(SECONDS)
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
    elif KIND == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif KIND == "exec":
        os.execv(sys.executable, [sys.executable, __file__, "sleep", str(SECONDS)])


main()
