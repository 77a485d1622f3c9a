# SPDX-License-Identifier: Apache-2.0
"""multiprocessing in its three ways, children that end, that are ended, and a bare fork."""

import concurrent.futures
import multiprocessing
import os
import sys
import threading
import time


def work(n):
    x = 0
    for i in range(100000):
        x = (x * 31 + i + n) & 0xffffff
    return x


def child(queue, event):
    queue.put(work(3))
    event.wait()
    sys.exit(5)


def main():
    for method in ("fork", "spawn", "forkserver"):
        way = multiprocessing.get_context(method)
        with way.Pool(2) as pool:
            print(method, sum(pool.map(work, range(8))))
        queue, event = way.Queue(), way.Event()
        process = way.Process(target=child, args=(queue, event))
        process.start()
        print(queue.get())
        event.set()
        process.join()
        sleeper = way.Process(target=time.sleep, args=(100,))
        sleeper.start()
        sleeper.terminate()
        sleeper.join()
        print(process.exitcode, sleeper.exitcode)
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        print(sum(pool.map(work, range(6))))
    thread = threading.Thread(target=work, args=(1,))
    thread.start()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        work(2)
        os._exit(7)
    print(os.waitpid(pid, 0)[1] >> 8)
    thread.join()
    sys.exit(2)


if __name__ == "__main__":
    main()
