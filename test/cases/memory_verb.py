# SPDX-License-Identifier: Apache-2.0
"""What `gpuprof memory` says of made-up processes, for the tests of it."""

import json
import random

import conftest
import pytest
from made_memory import HOST, Process


@pytest.fixture(name="memory")
def fixture_memory(run_verb, tmp_path):
    """memory(PROCESSES, OPTIONS): what the verb says of them, as JSON."""
    maker = conftest.built(conftest.BUILD / "make_raw")

    def run(processes, *options):
        for process in processes:
            process.write(maker, tmp_path / "data")
        return json.loads(run_verb("memory", tmp_path / "data", "--format=json", *options).stdout)
    return run


def place_of(row):
    return (HOST if row["where"] == "host" else
            ("tensor", row["device"]) if row["where"] == "tensor" else row["device"])


def where_of(place):
    return place if place == HOST else "tensor" if isinstance(place, tuple) else "device"


def title_of(place):
    return ("host memory, " if place == HOST else
            f"tensors on device {place[1]}, " if isinstance(place, tuple) else f"device {place}, ")


def owners_of(found):
    return {(row["where"], row["name"]): row["bytes"] for row in found["owners"] if row["bytes"]}


def leaking(steps, balanced, leaks=8):
    """Blocks that are kept for as long as a step, at random, and of eight lines one a step."""
    process, dice = Process(pythonic=True), random.Random(1)
    held, number = [], 0
    for step in range(steps):
        process.step(step)
        for _ in range(balanced // steps):
            number += 1
            held.append(process.get("linear", 512 * (number % 5000 + 1), 1000 + number % 97,
                                    line=1000 + number % 211))
            while len(held) > 400 + dice.randrange(100):
                process.free(held.pop(dice.randrange(len(held))))
        for leak in range(leaks):
            process.get("linear", (1 << 40) + 512 * (8 * step + leak), 256 * (leak + 1),
                        line=10 + leak)
    process.step(steps)
    return process
