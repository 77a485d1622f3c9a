# SPDX-License-Identifier: Apache-2.0
"""gpuprof memory: who holds memory by ranges, against books that the tests keep themselves."""

import random

import csv_tables
import pytest
from made_memory import TYPES, Process, by_place
from memory_verb import fixture_memory


def ranges_at_random(seed):
    """(the process, [(name, begin, end)]): ranges of two threads, labels of a third, around blocks
    that come and go."""
    dice, process, done = random.Random(seed), Process(), []
    opened = {1: [], 3: [], 4: []}
    names = {name: number for number, name in enumerate(("forward", "backward", "step"), 1)}
    for name, number in names.items():
        process.raw(4, TYPES["op_name"], [number], name.encode())

    def close(thread):
        name, begin, label = opened[thread].pop()
        process.raw(thread, TYPES["op_end" if label else "pop"], [label])
        done.append((name, begin, process.now))

    for device in range(2):
        process.tensor(1 << 50 | device << 20, 7, device, 1)
    for number in range(600):
        thread, what = dice.choice((1, 3, 4)), dice.random()
        if what < 0.2 and len(opened[thread]) < 5:
            name = dice.choice(list(names))
            if thread == 4:
                process.raw(4, TYPES["op_begin"], [0x1000 + number, names[name]], code=7)
            else:
                process.raw(thread, TYPES["push"], [0] * 6, name.encode())
            opened[thread].append((name, process.now, 0x1000 + number if thread == 4 else 0))
        elif what < 0.4 and opened[thread]:
            close(thread)
        elif what < 0.75:
            process.tensor(1 << 40 | number << 20, dice.randrange(1, 1000), dice.randrange(2), 1)
        else:
            held = [b for b in process.blocks if b.is_held]
            if held:
                process.free(dice.choice(held))
    for thread in opened:
        while opened[thread]:
            close(thread)
    return process, done


@pytest.mark.parametrize("seed", range(3))
def test_ranges(seed, memory, run_verb, tmp_path):
    """The peak in any range of a name, by how much it rose at most, and what they left."""
    process, ranges = ranges_at_random(seed)
    found = {(row["name"], int(row["place"].split("device ")[1][0])): row
             for row in memory([process])["ranges"]}
    assert len(found) == 6
    for (name, device), row in found.items():
        books = by_place(process)["tensor", device]
        there = [(books.within(0, begin)[1], *books.within(begin, end))
                 for its, begin, end in ranges if its == name]
        assert row["count"] == len(there)
        assert row["peak_bytes"] == max(peak for _, peak, _ in there)
        assert row["rise_bytes"] == max(peak - before for before, peak, _ in there)
        assert row["kept_bytes"] == sum(last - before for before, _, last in there)
    table = run_verb("memory", tmp_path / "data", "--format=csv", "--table=ranges").stdout
    assert {(row["name"], int(row["place"].split("device ")[1][0])): int(row["peak_bytes"])
            for row in csv_tables.table(table)} == \
        {key: row["peak_bytes"] for key, row in found.items()}


def test_more_ranges_than_are_followed(memory):
    process = Process()
    process.get("linear", 0x1000, 100)
    for number in range(70):
        process.raw(1, TYPES["push"], [0] * 6, f"range {number}".encode())
    process.get("linear", 0x2000, 20)
    found = memory([process])
    assert found["doubts"] == {"ranges_beyond": 6} and len(found["ranges"]) == 64
    assert {(row["peak_bytes"], row["rise_bytes"]) for row in found["ranges"]} == {(120, 20)}
