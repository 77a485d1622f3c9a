# SPDX-License-Identifier: Apache-2.0
"""Burns CPU time in two functions, before and after its first CUDA call, and says what each used,
by the thread's own clock: "NAME SECONDS"."""

import ctypes
import time


def tokenize(seconds):
    begin, n = time.thread_time(), 0
    while time.thread_time() < begin + seconds:
        for i in range(5000):
            n += i  # tokenize: hot
    print("tokenize", time.thread_time() - begin)


def parse(seconds):
    begin = time.thread_time()
    while time.thread_time() < begin + seconds:
        sorted(range(9000, 0, -1), key=str)  # parse: hot
    print("parse", time.thread_time() - begin)


def main():
    memory = ctypes.c_void_p()
    tokenize(.24)
    parse(.08)
    cuda = ctypes.CDLL("libcudart.so.12")
    cuda.cudaMalloc(ctypes.byref(memory), 64)
    tokenize(.24)
    parse(.08)


main()
