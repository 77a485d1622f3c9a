# SPDX-License-Identifier: Apache-2.0
"""Records, and forks four children: one that works, one that becomes another program, one that
does what only a process of one thread may, one that ends at once. None makes a CUDA call."""

import ctypes
import os
import time


def work(seconds):
    begin = time.thread_time()
    while time.thread_time() < begin + seconds:
        sum(range(9000))


def fork(what):
    child = os.fork()
    if child == 0:
        what()
        os._exit(3)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def alone():
    if ctypes.CDLL(None).unshare(0x10000) != 0 or len(os.listdir("/proc/self/task")) != 1:
        os._exit(4)


ctypes.CDLL("libcudart.so.12").cudaMalloc(ctypes.byref(ctypes.c_void_p()), 64)
fork(lambda: (time.sleep(.12), work(.2)))
fork(lambda: os.execv("/bin/true", ["true"]))
fork(alone)
fork(lambda: None)
