# SPDX-License-Identifier: Apache-2.0
"""
Python work between CUDA calls, of a known kind: `gap_work.py KIND SECONDS LIBRARY`. LIBRARY is the
simulated CUDA's runtime. Prints its own account: what it did, how long that took in all, and the
thread ids of who launched and of who computed.
"""
import ctypes
import os
import sys
import threading
import time

KIND, SECONDS = sys.argv[1], float(sys.argv[2])
cuda = ctypes.CDLL(sys.argv[3])
pointer = ctypes.c_void_p()


def call():
    cuda.cudaMalloc(ctypes.byref(pointer), 64)
    cuda.cudaFree(pointer)


def compute(until):
    total = 0
    while time.monotonic() < until:
        for i in range(2000):
            total += i
    return total


def sleep():
    time.sleep(0.05)


def read_pipe():
    near, far = os.pipe()
    threading.Timer(0.05, os.write, (far, b"x")).start()
    os.read(near, 1)
    os.close(near)
    os.close(far)


def alone():
    compute(time.monotonic() + 0.05)


def wait_for_lock():
    time.sleep(0.0001)  # gives the interpreter's lock to the other thread, and needs it again


def main():
    end = time.monotonic() + SECONDS
    others = []
    if KIND in ("gil", "held_short"):
        sys.setswitchinterval(0.05 if KIND == "gil" else 0.0001)
        others.append(threading.Thread(target=compute, args=(end,)))
        others[0].start()
    work = {"sleep": sleep, "pipe": read_pipe, "alone": alone, "gil": wait_for_lock}[KIND]
    spent = 0
    call()
    while time.monotonic() < end:
        begin = time.monotonic()
        work()
        spent += time.monotonic() - begin
        call()
    for other in others:
        other.join()
    tids = [getattr(t, "native_id", 0) for t in [threading.main_thread(), *others]]
    print(KIND, spent, *tids)


main()
