# SPDX-License-Identifier: Apache-2.0
"""
Burns SECONDS of CPU time in each of some lines: `host_lines.py SECONDS`, beside the modules of
host_lines_outer.py and host_lines_inner.py. Prints for how many nanoseconds, as the kernel counts
them: a line's kind, and the number.
"""
import ctypes
import hashlib
import sys
import time

SECONDS = float(sys.argv[1])
cuda = ctypes.CDLL("libcudart.so.12")
pointer = ctypes.c_void_p()
BLOCK = bytes(1 << 18)
room = bytearray(1 << 22)


def spin():
    for i in range(2000): pass  # line of Python


def digest():
    hashlib.sha256(BLOCK).digest()  # line of native code


def read(zeros):
    zeros.readinto(room)  # line of the kernel


def burn(kind, work, *arguments):
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < SECONDS * 1e9:
        for _ in range(10):
            work(*arguments)
    print(kind, time.thread_time_ns() - begin)


begin = time.thread_time_ns()
import host_lines_outer
outer = time.thread_time_ns() - begin
print("outer", outer, "inner", host_lines_outer.INNER_NS, "slept", host_lines_outer.SLEPT_NS)
with open("/dev/zero", "rb", buffering=0) as zeros:
    burn("python", spin)
    burn("native", digest)
    burn("system", read, zeros)
cuda.cudaMalloc(ctypes.byref(pointer), 4096)
