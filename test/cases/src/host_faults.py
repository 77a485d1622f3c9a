# SPDX-License-Identifier: Apache-2.0
"""
One known fault of the host between works of the GPU: `host_faults.py FAULT TIMES`. Prints for how
many nanoseconds it was in it, the line that it was in, and what else is to be named there.
"""
import ctypes
import gc
import importlib
import mmap
import multiprocessing.connection
import os
import subprocess
import sys
import threading
import time

FAULT, TIMES = sys.argv[1], int(sys.argv[2])
cuda = ctypes.CDLL("libcudart.so.12")
pointer = ctypes.c_void_p()
SECONDS = 0.05
lock = threading.Lock()
rings = []


def work():
    cuda.cudaMemsetAsync(pointer, 0, ctypes.c_size_t(1 << 16), None)


def loop():
    end, total = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        total += sum([1, 2, 3])  # loop


def gil():
    for _ in range(8):
        time.sleep(0)  # gil


def spin(stop):
    total = 0
    while not stop.is_set():
        for i in range(1000):
            total += i


def collect():
    gc.collect()  # gc


def hold():
    with lock:
        time.sleep(SECONDS)


def wait_for_lock():
    holder = threading.Thread(target=hold)
    holder.start()
    time.sleep(0.001)
    lock.acquire()  # lock
    lock.release()
    holder.join()


def read():
    path = f"{os.environ['HOST_FAULTS']}/fifo"
    writer = subprocess.Popen(["sh", "-c", f"sleep {SECONDS}; echo x > {path}"])
    with open(path, "rb", buffering=0) as fifo:  # file
        fifo.read(1)
    writer.wait()


def sleep():
    time.sleep(SECONDS)  # sleep


def child():
    subprocess.run(["sleep", str(SECONDS)], check=True)  # child


def load():
    load.count += 1
    importlib.import_module(f"slow{load.count}")  # import


def make_samples(asked, made):
    """A loader's worker: its file or, if the fault is elsewhere, what is no work of its own takes
    its time."""
    fifo = os.open(f"{os.environ['HOST_FAULTS']}/fifo", os.O_RDWR)
    while asked.recv_bytes() == b"next":
        if FAULT == "workers":
            threading.Timer(SECONDS, os.write, (fifo, b"x")).start()
            os.read(fifo, 1)
        elif FAULT == "remote":
            time.sleep(SECONDS)
        made.send_bytes(b"sample")


def load_sample():
    if not load_sample.made:
        asked, load_sample.asked = multiprocessing.Pipe(duplex=False)
        load_sample.made, made = multiprocessing.Pipe(duplex=False)
        multiprocessing.get_context("fork").Process(target=make_samples, args=(asked, made),
                                                    daemon=True).start()
    profiler.gpuprof_range_push(b"load_data")
    load_sample.asked.send_bytes(b"next")
    load_sample.made.recv_bytes()  # workers # remote
    profiler.gpuprof_range_pop()


def touch():
    """Each page of new memory once, which the thread gives back."""
    memory = mmap.mmap(-1, 32 << 20)
    first = ctypes.c_char.from_buffer(memory)
    ctypes.memset(ctypes.addressof(first), 1, len(memory))  # touch
    del first
    memory.close()


def nothing():
    pass


profiler = ctypes.CDLL(None)  # preloaded
load_sample.made = None
load.count = 0
FAULTS = {"loop": loop, "gil": gil, "gc": collect, "lock": wait_for_lock, "file": read,
          "sleep": sleep, "child": child, "import": load, "workers": load_sample,
          "remote": load_sample, "quick": load_sample, "touch": touch, "modules": nothing,
          "module": nothing, "nothing": nothing}


def main():
    stop = threading.Event()
    spinner = threading.Thread(target=spin, args=(stop,))
    if FAULT == "gil":
        spinner.start()
    if FAULT == "gc":
        rings.extend([[]] for _ in range(150_000))
    spent = -time.monotonic_ns()
    for name in {"modules": ("burner", "sleeper"), "module": ("slow1",)}.get(FAULT, ()):
        importlib.import_module(name)
    spent += time.monotonic_ns()
    cuda.cudaMalloc(ctypes.byref(pointer), 1 << 16)
    work()
    for _ in range(TIMES):
        begin = time.monotonic_ns()
        FAULTS[FAULT]()
        spent += time.monotonic_ns() - begin
        work()
    stop.set()
    print(spent)


main()
