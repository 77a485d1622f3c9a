# SPDX-License-Identifier: Apache-2.0
"""Stacks on every call: by threads that stay, come and go, and raise, while code comes and goes."""

import gc
import threading
import time

import stress

END = time.monotonic() + seconds  # noqa: F821 (stress_python.c sets it)


def leaf(depth):
    if depth:
        leaf(depth - 1)
    else:
        stress.launch()


def generated(depth):
    for value in (stress.launch() for _ in range(2)):
        yield value
    if depth:
        yield from generated(depth - 1)


class Guard:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        leaf(2)


def raising(depth):
    with Guard():
        if depth:
            raising(depth - 1)
        raise ValueError("failed")


def work(count):
    for i in range(count):
        leaf(i % 30)
        list(generated(i % 5))
        list(map(lambda depth: leaf(depth % 7), [i, i + 1]))
        try:
            raising(i % 6)
        except ValueError:
            stress.launch()


def stay():
    while time.monotonic() < END:
        work(20)
        time.sleep(0.001)


def come_and_go():
    while time.monotonic() < END:
        threads = [threading.Thread(target=work, args=(3,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def change():
    """Functions compiled anew, where others were; of so many names that their places are known."""
    number = 0
    while time.monotonic() < END:
        number = (number + 1) % 50
        scope = {"stress": stress}
        lines = "\n" * (number % 7) + "    stress.launch()\n" * (number % 5 + 1)
        exec(compile(f"def made_{number}():\n{lines}", f"made_{number}.py", "exec"), scope)
        scope[f"made_{number}"]()
        if number == 0:
            gc.collect()


threads = [threading.Thread(target=target) for target in
           [stay] * 4 + [come_and_go] * 2 + [change] * 2]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
