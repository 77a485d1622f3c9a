# SPDX-License-Identifier: Apache-2.0
"""Stacks on every call: by threads that stay, come and go, and raise, while code comes and goes."""

import gc
import random
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


def linger(depth, seconds):
    return linger(depth - 1, seconds) if depth else stress.linger(seconds)


def outlast():
    """Calls that are open for the second after which their stack is taken from outside, and end
    just then or later."""
    while time.monotonic() < END:
        late = random.choice([0.002, 0.3])
        seen.append(linger(random.randrange(30), 1 + random.uniform(0, late)))


def look():
    while not done.wait(0.0005):
        stress.look()


seen = []
done = threading.Event()
looking = threading.Thread(target=look)
looking.start()
threads = [threading.Thread(target=target) for target in
           [stay] * 4 + [come_and_go] * 2 + [change] * 2 + [outlast] * 8]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
while not any(seen):  # a busy machine may want more
    seen.append(linger(3, 1.3))
    assert time.monotonic() < END + 30, "no stack of an open call was taken"
done.set()
looking.join()
