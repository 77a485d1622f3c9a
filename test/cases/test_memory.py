# SPDX-License-Identifier: Apache-2.0
"""gpuprof memory: the ledger against books that the tests keep themselves."""

import csv
import io
import json
import os
import pickle
import random
import re
import struct
import subprocess

import conftest
import pytest
import toolchain
import truth

from test_tables import on_terminal

from made_memory import HOST, KINDS, NESTED, TYPES, Process, at_random, by_place


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


@pytest.mark.parametrize("seed", range(6))
def test_any_program(seed, memory):
    """Peaks, what was live then, ends, kinds and steps: as blocks begin and end."""
    processes = [at_random(100 * seed + rank, rank) for rank in range(1 + seed % 3)]
    found = memory(processes, "--by=function")
    truth = {(p.rank, place): books for p in processes for place, books in by_place(p).items()}
    rows = {(int(row["rank"]), place_of(row)): row for row in found["places"]}
    assert rows.keys() == truth.keys() and len(rows) >= 3
    origin = min(p.steps[0] for p in processes)
    owners = {}
    for key, books in truth.items():
        row = rows[key]
        assert (row["peak_bytes"], row["end_bytes"]) == (books.peak, books.end), key
        assert (row["blocks"], row["bytes"]) == \
            (len(books.blocks), sum(b.bytes for b in books.blocks))
        where = where_of(key[1])
        for owner, size in books.owners(books.peak_ns).items():
            owners[where, owner] = owners.get((where, owner), 0) + size
        check_kinds(found, processes[key[0]], row, books)
    assert owners_of(found) == owners and found["at"] == "peak"
    for process in processes:
        check_steps(found, process, origin)
    assert sum(r["wanted_bytes"] for r in found["out_of_memory"]) > 0


def check_kinds(found, process, place, books):
    rows = {row["name"]: row for row in found["kinds"]
            if f"rank {process.rank}:" in row["place"] and
            row["place"].startswith(title_of(place_of(place)))}
    for kind in (*KINDS, "tensor"):
        got = [b for b in books.blocks if b.kind == kind]
        peak = [b for b in books.at(books.peak_ns) if b.kind == kind]
        end = [b for b in got if b.until is None]
        assert (kind in rows) == bool(got)
        if got:
            row = rows[kind]
            assert (row["peak_bytes"], row["peak_blocks"], row["end_bytes"], row["got_blocks"]) == \
                (sum(b.bytes for b in peak), len(peak), sum(b.bytes for b in end), len(got))


def check_steps(found, process, origin):
    for place, books in by_place(process).items():
        rows = [row for row in found["steps"] if row["place"].startswith(title_of(place)) and
                f"rank {process.rank}:" in row["place"]]
        spans = list(zip(process.steps, process.steps[1:]))
        assert len(rows) == len(spans) == 10
        for number, (row, (begin, end)) in enumerate(zip(rows, spans)):
            before = process.steps[0] if number else 0
            peak, last = books.within(begin if before else 0, end)
            assert (row["step"], row["end_bytes"], row["peak_bytes"]) == (number, last, peak)


@pytest.mark.parametrize("at", ["end", "moment"])
def test_at_another_moment(at, memory):
    process = at_random(7)
    books = by_place(process)
    first = process.steps[0]
    moment = process.steps[5] + 1
    word = "end" if at == "end" else f"{(moment - first) / 1e9:.9f}"
    held = owners_of(memory([process], "--by=function", f"--at={word}"))
    truth = {}
    for place, own in books.items():
        for owner, size in own.owners(10**12 if at == "end" else moment).items():
            key = where_of(place), owner
            truth[key] = truth.get(key, 0) + size
    assert held == truth and truth


def test_physical_memory_counts_once(memory):
    """However often it is mapped; released only when it is unmapped as well."""
    process = Process()
    first = process.get("physical", 0x77, 1 << 21)
    second = process.get("physical", 0x78, 2 << 21)
    for number in range(4):
        process.map(first, (1 << 40) + (number << 21))
    process.map(second, (1 << 40) + (4 << 21))
    assert process.call("cuMemMap", [1 << 44, 1 << 21, 0x999, 0])  # imported: of others
    process.free(first)
    process.unmap([first, second], 1 << 40, 3 << 21)
    process.free(second)
    process.unmap([first, second], (1 << 40) + (3 << 21), 3 << 21)
    assert first.until == second.until is not None
    [row] = memory([process])["places"]
    assert (row["peak_bytes"], row["end_bytes"]) == (3 << 21, 0)


def test_what_is_not_its_own(memory):
    process = Process()
    process.call("cudaIpcOpenMemHandle", [0x1000, 0])
    process.call("cudaMallocAsync", [0x2000, 64, 0, 0], flags=1)  # captured
    process.get("linear", 0x3000, 640)
    process.call("cudaFree", [0x2000])
    process.call("cudaFree", [0])
    process.call("cudaIpcCloseMemHandle", [0x1000])
    found = memory([process])
    assert [row["peak_bytes"] for row in found["places"]] == [640]
    assert found["doubts"] == {"in_graphs": 1}


def test_a_release_that_nobody_saw(memory):
    process = Process()
    process.get("linear", 0x1000, 100)
    process.get("linear", 0x1000, 30)
    process.call("cudaFree", [0x5000])
    found = memory([process])
    [row] = found["places"]
    assert (row["peak_bytes"], row["end_bytes"]) == (100, 30)
    assert found["doubts"] == {"replaced": 1, "strays": 1}


def test_device_of_the_pool_and_of_cupti(memory):
    """A pool's memory is on the pool's device; what CUPTI says goes before all else."""
    process = Process()
    process.call("cudaMemPoolCreate", [1, 0xabc])
    process.call("cudaMallocFromPoolAsync", [0x1000, 10, 0, 0xabc, 0])
    process.call("cudaMalloc", [0x2000, 200, 2**64 - 1])
    process.call("cudaMalloc", [0x3000, 3000, 0])
    cupti = TYPES["memory"]
    process.raw(2, cupti, [1, 3, 0x2000, 200, 3, 1])
    process.raw(2, cupti, [1, 3, 0x3000, 3000, 2, 1])
    process.raw(2, cupti, [1, 6, 0x9000, 4096, 0, 1], b"table")
    found = memory([process])
    assert {row["device"]: row["end_bytes"] for row in found["places"]} == \
        {1: 10, None: 0, 3: 200, 0: 4096, 2: 3000}
    assert ("device", "variable table") in owners_of(found)
    assert sum(row["blocks"] for row in found["places"]) == 4


def test_resets_and_contexts(memory):
    """A context takes what the driver's functions got, a reset all but physical memory."""
    process = Process()
    process.get("linear", 0x1000, 1, 0)
    process.get("linear", 0x2000, 20, 1)
    process.get("pinned", 0x3000, 300, 0)
    process.get("physical", 0x4000, 4000, 0)
    process.call("cuMemAlloc_v2", [0x5000, 50000, 0])
    process.call("cuCtxDestroy_v2", [0, 0x77])
    process.call("cuMemAlloc_v2", [0x5000, 600000, 0])
    ends = [row["end_bytes"] for row in memory([process])["places"]]
    assert sorted(ends) == [20, 300, 604001]
    process.call("cudaDeviceReset", [0], result=1)
    process.call("cudaDeviceReset", [0])
    process.call("cudaFree", [0x2000])
    found = memory([process])
    assert sorted(row["end_bytes"] for row in found["places"]) == [0, 0, 4000]
    assert not found["doubts"]


def test_what_is_hidden(memory):
    """What the device has in use beyond the ledger, and the longest call before it grew."""
    process, mib, total = Process(), 1 << 20, 80 << 30
    process.call("cudaMemGetInfo", [total - 500 * mib, total, 0])
    process.get("linear", 0x1000, 100 * mib)
    process.get("managed", 0x2000, 100 * mib)
    process.call("cudaMemGetInfo", [total - 600 * mib, total, 0])
    process.call("cudaLaunchKernel", [0] * 8, ns=70)
    process.call("cudaStreamSynchronize", [0], ns=20)
    process.call("cudaMemGetInfo", [total - 664 * mib, total, 0])
    process.get("linear", 0x3000, total // 2)
    found = memory([process])
    assert [(row["hidden_bytes"] // mib, row["before_bytes"] // mib, row["longest_call"])
            for row in found["hidden"]] == \
        [(500, 0, None), (564, 500, "cudaLaunchKernel")]
    [place] = found["places"]
    assert place["device_bytes"] == total and place["largest_block_bytes"] == total // 2


def test_a_preallocation_is_named(memory, run_verb, tmp_path):
    process = Process()
    process.call("cudaMemGetInfo", [1 << 30, 1 << 30, 0])
    process.get("linear", 0x1000, 3 << 28)
    memory([process])
    assert "one block  of 768.0 MiB (75% of device 0): a preallocation by cudaMalloc" in \
        run_verb("memory", tmp_path / "data").stdout


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


def check_leaks(found, steps):
    wanted = {f"train (/home/me/train.py:{10 + leak})": 256 * (leak + 1) for leak in range(8)}
    rows = found["leaks"]
    assert {row["name"] for row in rows[:10]} == set(wanted) and len(rows) == 8
    for row in rows:
        assert row["growth_bytes"] == pytest.approx(wanted[row["name"]])
        assert row["grown_bytes"] == wanted[row["name"]] * (steps - 1)
        assert row["growth_error_bytes"] == pytest.approx(0, abs=1e-3)
    [place] = found["places"]
    assert place["growth_bytes"] == pytest.approx(sum(wanted.values()), rel=0.2)


def test_leaks_stand_before_what_is_balanced(memory):
    found = memory([leaking(60, 12_000)])
    assert found["by"] == "python-line" and found["steps_by"] == "range"
    check_leaks(found, 60)


@pytest.mark.long
def test_eight_leaks_among_a_million(memory):
    check_leaks(memory([leaking(500, 1_000_000)]), 500)


def test_out_of_memory(memory, run_verb, tmp_path):
    """As it stood: who wanted how much, who held what, how much there was."""
    process = Process(pythonic=True)
    process.get("linear", 0x1000, 3 << 30, line=5)
    process.get("linear", 0x2000, 2 << 30, line=6)
    process.free(process.get("linear", 0x3000, 1 << 30, line=6))
    process.get("linear", 0, 4 << 30, line=7, result=2)
    process.get("linear", 0, 4 << 30, line=7, result=2, flags=NESTED)
    [row] = memory([process])["out_of_memory"]
    assert (row["name"], row["wanted_bytes"], row["held_bytes"]) == \
        ("train (/home/me/train.py:7)", 4 << 30, 5 << 30)
    assert row["owners"] == [
        {"name": "train (/home/me/train.py:5)", "bytes": 3 << 30, "blocks": 1},
        {"name": "train (/home/me/train.py:6)", "bytes": 2 << 30, "blocks": 1}]
    text = run_verb("memory", tmp_path / "data").stdout
    assert text.index("there was not enough memory") < text.index("who held it")
    assert "3.0 GiB in 1: train (/home/me/train.py:5)" in text


def test_tensors_are_no_more_memory(memory, run_verb, tmp_path):
    """They lie in blocks of the device: beside these, with what their allocator has reserved."""
    process = Process(pythonic=True)
    process.get("linear", 1 << 40, 20 << 20, line=3)
    kept = process.tensor((1 << 40) + (4 << 20), 8 << 20, reserved=20 << 20, line=4)
    process.free(process.tensor(1 << 41, 4 << 20, reserved=20 << 20, line=5))
    process.raw(1, TYPES["tensor_oom"], [1 << 30, kept.bytes, 20 << 20, 0, 1],
                code=process.stack(6))
    found = memory([process])
    places = {row["where"]: row for row in found["places"]}
    assert (places["tensor"]["peak_bytes"], places["tensor"]["reserved_bytes"]) == \
        (12 << 20, 20 << 20)
    assert places["device"]["peak_bytes"] == 20 << 20 and len(places) == 2
    [row] = found["out_of_memory"]
    assert (row["name"], row["wanted_bytes"], row["held_bytes"], row["reserved_bytes"]) == \
        ("train (/home/me/train.py:6)", 1 << 30, 8 << 20, 20 << 20)
    assert (row["in_holes_bytes"], row["largest_hole_bytes"]) == (12 << 20, 8 << 20)
    assert [(o["name"], o["bytes"]) for o in row["owners"]] == \
        [("train (/home/me/train.py:4)", 8 << 20)]
    assert "reserved and free" not in run_verb("memory", tmp_path / "data").stdout
    process.raw(1, TYPES["tensor_oom"], [12 << 20, kept.bytes, 20 << 20, 0, 1])
    memory([process])
    assert "PyTorch had 12.0 MiB reserved and free, but in pieces, the largest\n" in \
        run_verb("memory", tmp_path / "data").stdout
    by_stack = run_verb("memory", tmp_path / "data", "--by=stack", "--symbols=none").stdout
    assert "tensor | forward (nn.py:7) | train (train.py:4)" in by_stack


def test_tries_of_the_allocator(memory, run_verb, tmp_path):
    """What CUDA refused to PyTorch's allocator is part of its own failure; others' refusals are
    not; and a hole may be large enough, but not for this one."""
    process = Process(pythonic=True)
    process.get("linear", 1 << 40, 20 << 20, line=3)
    process.tensor(1 << 40, 4 << 20, reserved=20 << 20, line=4)
    process.get("linear", 0, 5 << 20, line=9, result=2)
    process.tensor((1 << 40) + (4 << 20), 4 << 20, reserved=20 << 20, line=4)
    process.get("linear", 0, 6 << 20, line=9, result=2, device=1)
    process.get("linear", 0, 10 << 20, line=4, result=2)
    process.get("linear", 0, 10 << 20, line=4, result=2)
    process.raw(1, TYPES["tensor_oom"], [10 << 20, 8 << 20, 20 << 20, 0, 1])
    found = memory([process])["out_of_memory"]
    assert [(row["wanted_bytes"], row.get("largest_hole_bytes")) for row in found] == \
        [(5 << 20, None), (6 << 20, None), (10 << 20, 12 << 20)]
    assert "12.0 MiB in one piece, but kept for another stream, pool or size" in \
        " ".join(run_verb("memory", tmp_path / "data").stdout.split())


def test_owners_by_library(memory):
    """The innermost call of a library around it; what is got in none is its function's."""
    process = Process()

    def library(number, symbol, inside):
        for what in ("library_begin", "library_end"):
            process.raw(1, TYPES[what], [7], code=3500 + number)
            inside = inside() if what == "library_begin" else None

    for number, (symbol, domain) in enumerate((("cudnnCreate", "cudnn"),
                                               ("cublasCreate_v2", "cublas"))):
        process.raw(0, TYPES["api"], code=3500 + number, at=0,
                    text=f"{symbol}|{domain}|library|count:n".encode())
    process.get("linear", 0x1000, 1)
    library(0, "cudnnCreate", lambda: (
        process.get("linear", 0x2000, 20),
        library(1, "cublasCreate_v2", lambda: process.get("pooled", 0x3000, 300)),
        process.get("linear", 0x4000, 4000), process.get("linear", 0x5000, 50000, thread=3)))
    process.get("pooled", 0x6000, 600000)
    found = memory([process], "--by=library")
    assert found["by"] == "library"
    assert owners_of(found) == {("device", "cudnnCreate"): 4020,
                                ("device", "cublasCreate_v2"): 300,
                                ("device", "cudaMalloc"): 50001,
                                ("device", "cudaMallocAsync"): 600000}


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
    table = run_verb("memory", tmp_path / "data", "--format=csv").stdout
    assert "memory_range" in {row["kind"] for row in csv.DictReader(io.StringIO(table))}


def test_more_ranges_than_are_followed(memory):
    process = Process()
    process.get("linear", 0x1000, 100)
    for number in range(70):
        process.raw(1, TYPES["push"], [0] * 6, f"range {number}".encode())
    process.get("linear", 0x2000, 20)
    found = memory([process])
    assert found["doubts"] == {"ranges_beyond": 6} and len(found["ranges"]) == 64
    assert {(row["peak_bytes"], row["rise_bytes"]) for row in found["ranges"]} == {(120, 20)}


WORDS = ("cudaMalloc", "cudaFree", "cudaMallocAsync", "cuMemCreate", "cuMemRelease", "cuMemMap",
         "cuMemUnmap", "cuMemRetainAllocationHandle", "cuMemImportFromShareableHandle",
         "cudaHostRegister", "cudaFreeHost", "cudaDeviceReset", "cuCtxDestroy_v2",
         "cudaMemGetInfo", "cudaMemPoolCreate", "cudaMallocFromPoolAsync", "cudaIpcOpenMemHandle",
         "cudaIpcCloseMemHandle", "cudaMallocArray", "cudaFreeArray", "cuGraphAddMemAllocNode")


OTHERS = ("memory", "tensor", "tensor_oom", "resident", "pool", "push", "pop")


@pytest.mark.parametrize("seed", range(3))
def test_anything_is_read(seed, memory, run_verb, tmp_path):
    """Whatever numbers a file has: no sum is less than 0, what is held has owners, and a snapshot
    is one."""
    dice = random.Random(seed)
    few = (0, 1, 2, 3, 4096, 1 << 21, 1 << 40, 2**63, 2**64 - 1, 2**64 - 4096)
    process = Process(pythonic=bool(seed))

    def numbers(count):
        return [dice.choice(few) if dice.random() < 0.9 else dice.getrandbits(64)
                for _ in range(count)]

    for _ in range(6000):
        what = dice.choice((*WORDS, *(TYPES[name] for name in OTHERS)))
        if isinstance(what, int):
            args = [dice.choice((0, 1, 2, 3)), dice.choice((1, 2, 3, 6, 7, 1 << 21))]
            process.raw(dice.randrange(1, 5), what, [*args, *numbers(6)])
        else:
            process.raw(dice.randrange(1, 5), what, numbers(dice.randrange(6)),
                        flags=dice.choice([0] * 6 + [1, NESTED]),
                        ns=dice.choice((0, 50, 10**6, 2**62)),
                        result=dice.choice([0] * 6 + [1, 2, -5]))
    process.step(1)
    found = memory([process], "--at=end")
    for row in found["places"]:
        assert 0 <= row["end_bytes"] <= row["peak_bytes"] < 2**63
    for where in ("device", "host", "tensor"):
        assert sum(r["bytes"] for r in found["owners"] if r["where"] == where) == \
            sum(r["end_bytes"] for r in found["places"] if r["where"] == where)
    run_verb("merge", tmp_path / "data", "--memory-events", "-o", tmp_path / "x.json")
    json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    run_verb("memory", tmp_path / "data", "-o", tmp_path / "x.pickle")
    data = pickle.loads((tmp_path / "x.pickle").read_bytes())
    assert any(data["device_traces"]) and data["segments"]


BOUND_KIB = 40 << 10  # of addresses, code and libraries too


def streamed(path, events):
    """A program that gets and frees blocks, 300 at a time, of CUDA's and of PyTorch's allocator."""
    with subprocess.Popen([conftest.built(conftest.BUILD / "make_raw"), path], text=True,
                          stdin=subprocess.PIPE) as maker:
        tensor = TYPES["tensor"]
        for number in range(events // 4):
            at, address = 1000 + 400 * number, 4096 * (number % 301 + 1)
            if number >= 301:
                maker.stdin.write(f"1 cudaFree 0 0 {at} 9 0 0 {address} -\n"
                                  f"1 {tensor} 0 0 {at + 100} 0 0 0 2,{address},512 -\n")
            maker.stdin.write(f"1 cudaMalloc 0 0 {at + 200} 9 0 0 {address},4096,0 -\n"
                              f"1 {tensor} 0 0 {at + 300} 0 0 0 1,{address},512,0,0,0,1 -\n")
        maker.stdin.close()
        assert maker.wait(600) == 0


@pytest.mark.parametrize("events", [800_000, pytest.param(10**7, marks=pytest.mark.long)])
def test_memory_does_not_grow(events, collector, tmp_path):
    """All that the collector may have is the same for any number of blocks that come and go."""
    streamed(tmp_path / "0.gpuprof", events)
    done = subprocess.run(["sh", "-c", f"ulimit -v {BOUND_KIB}; exec \"$@\"", "sh", collector,
                           "memory", tmp_path / "0.gpuprof", "--format=json"],
                          capture_output=True, text=True, check=True, timeout=200)
    found = json.loads(done.stdout)
    assert {row["peak_bytes"] for row in found["places"]} == {301 * 4096, 301 * 512}
    assert {row["blocks"] for row in found["places"]} == {events // 4}
    subprocess.run(["sh", "-c", f"ulimit -v {BOUND_KIB}; exec \"$@\"", "sh", collector, "memory",
                    tmp_path / "0.gpuprof", "-o", tmp_path / "x.pickle"], check=True, timeout=200)
    assert (tmp_path / "x.pickle").stat().st_size < 100 * events


def with_everything(process):
    """Beside leaks: tensors, what is hidden, a preallocation, and PyTorch's failure with advice."""
    total, mib = 80 << 30, 1 << 20
    for device in range(4):
        process.get("linear", (1 << 41) + (device << 32), 20 * mib, device, line=3)
    kept = process.tensor((1 << 41) + 4 * mib, 8 * mib, reserved=20 * mib, line=4)
    for number in range(3):
        process.tensor((1 << 44) + (number << 20), 512, line=20 + number)
    process.get("pinned", 1 << 20, mib, line=3)
    process.call("cudaMemGetInfo", [total - 500 * mib, total, 0])
    process.get("linear", 1 << 42, total // 2, line=5)
    process.raw(1, TYPES["tensor_oom"], [1 << 50, kept.bytes, 20 * mib, 0, 1],
                code=process.stack(6))
    process.raw(1, TYPES["tensor_oom"], [11 * mib, kept.bytes, 20 * mib, 0, 1],
                code=process.stack(6))
    return process


@pytest.mark.parametrize("columns", [80, 60, 200])
def test_first_screen(columns, memory, collector, run_verb, tmp_path):
    """With all that there can be it is 24 lines at most, none wider than the terminal."""
    memory([with_everything(leaking(20, 2000))])
    text = on_terminal([collector, "memory", tmp_path / "data"], columns)
    lines = text.partition("\n\n")[0].splitlines()
    assert 20 <= len(lines) <= 24, text
    assert max(map(len, lines)) <= columns
    labels = [line[2:13].strip() for line in lines]
    assert [label for label in labels if label] == \
        ["memory", "not enough", "try", "peak", "held by", "grows", "hidden", "one block"]
    if columns >= 80:
        assert lines[1].split() == "not enough 11.0 MiB wanted by train " \
            "(/home/me/train.py:6)".split()
        assert "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" in "\n".join(lines)
        at = labels.index("grows")
        assert lines[at].split()[1:] == "38.0 KiB, 2.0 KiB a step: train " \
            "(/home/me/train.py:17)".split()
        assert lines[at + 3].split()[-1] == "--table=leaks"
        peaks = lines[labels.index("peak"):labels.index("held by")]
        assert [line.split(": ")[1].split(";")[0] for line in peaks[:4]] == \
            ["device 0", "device 1", "device 2", "device 3"]
        assert peaks[4].split() == "... and 2 more: --table=places".split()
    table = run_verb("memory", tmp_path / "data", "--format=csv").stdout
    kinds = {row["kind"] for row in csv.DictReader(io.StringIO(table))}
    assert kinds >= {"memory_peak", "memory_end", "memory_owner", "memory_leak", "memory_kind",
                     "memory_step", "memory_curve"}


def test_short_rows_in_a_pipe(memory, run_verb, tmp_path):
    """Which process it is needs no words if there is one; all eight leaks are on the page."""
    memory([leaking(60, 6000)])
    text = run_verb("memory", tmp_path / "data").stdout
    [places] = [table for table in text.split("\n\n") if table.startswith("memory of each device")]
    assert max(map(len, places.splitlines())) <= 80
    leaks = text.partition("what grows from step to step\n")[2].split("\n\n")[0].splitlines()
    assert [line.split(":")[1].rstrip(")") for line in leaks[1:]] == \
        [str(10 + leak) for leak in reversed(range(8))]
    text = run_verb("memory", tmp_path / "data", "--table=kinds").stdout
    assert text.splitlines()[-1].endswith("  linear, device 0")


def test_stacks_of_one_line(memory, run_verb, tmp_path):
    process = leaking(20, 0, leaks=2)
    assert memory([process])["leaks"] and "--by=stack" not in run_verb(
        "memory", tmp_path / "data").stdout
    process.raw(1, TYPES["stack"], [90, 0], struct.pack("<Q", 2 << 60 | 2))
    process.call("cudaMalloc", [1 << 45, 256, 0], code=90)
    memory([process])
    assert "several stacks lead to 1 of these: --by=stack tells them apart" in run_verb(
        "memory", tmp_path / "data").stdout
    assert "tells them apart" not in run_verb("memory", tmp_path / "data", "--by=stack").stdout


def test_a_moment_behind_the_end(memory, run_verb, run_collector, tmp_path):
    process = at_random(7)
    wall = memory([process])["wall_ns"]
    assert memory([process], f"--at={wall / 1e9:.9f}")["places"]
    done = run_collector("memory", tmp_path / "data", "--at=99.5")
    assert done.returncode == 2 and not done.stdout
    assert "--at: 99.500 s after the first event nothing was recorded; the last is at" in \
        done.stderr


def test_nothing_could_be_read(memory, run_verb, run_collector, tmp_path):
    """Of damaged files nobody knows what the program has done."""
    memory([Process()])
    text = run_verb("memory", tmp_path / "data").stdout
    assert "peak       no call that gets memory was recorded" in text
    process = Process()
    process.get("linear", 0x1000, 64)
    memory([process])
    path = tmp_path / "data/0.gpuprof"
    data = bytearray(path.read_bytes())
    for at in range(len(data) * 3 // 4, len(data) - 8):
        data[at] ^= 0x55
    path.write_bytes(data)
    done = run_collector("memory", tmp_path / "data")
    assert done.returncode == 3
    lines = done.stdout.splitlines()
    assert lines[1].startswith("  lost       blocks damaged: ")
    assert lines[2:] == ["  peak       no call that gets memory is in what could be read"]


def test_wrong_usage(run_collector):
    for words, says in ((["--table=peaks"], "there are out_of_memory, places, owners, leaks"),
                        (["--sort=colour"], "no table here has a column 'colour'"),
                        (["--at=noon"], "neither peak nor end nor a number of seconds"),
                        (["--by=name"], "python-line|stack|operator"),
                        (["-o", "x.svgz"], "not a kind that can be written")):
        done = run_collector("memory", *words, "x")
        assert done.returncode == 2 and says in done.stderr, words


GETS = {"cudaMalloc": 0, "cudaMallocAsync": 0, "cudaMallocManaged": 0, "cuMemAlloc_v2": 0,
        "cudaHostAlloc": 1}
FREES = ("cudaFree", "cudaFreeAsync", "cuMemFree_v2", "cudaFreeHost")


def books_of_log(log):
    """By device or host: what each change left there, as the simulated CUDA wrote it."""
    changes, held, sums = [], {}, {}
    for number, lines in enumerate(truth.read_log(log)):
        for line in lines:
            if line.depth or line.result:
                continue
            if line.symbol in GETS:
                changes.append((line.end, line, number))
            elif line.symbol in FREES:
                changes.append((line.begin, line, number))
            elif line.symbol == "cudaSetDevice":
                changes.append((line.end, line, number))
    devices, moments = {}, {}
    for _, line, number in sorted(changes, key=lambda change: change[0]):
        if line.symbol == "cudaSetDevice":
            devices[number] = line.args["device"]
            continue
        if line.symbol in GETS:
            place = HOST if GETS[line.symbol] else devices.get(number, 0)
            held[line.args["ptr"]] = place, line.args["bytes"]
            change = line.args["bytes"]
        else:
            place, size = held.pop(line.args["ptr"])
            change = -size
        sums[place] = sums.get(place, 0) + change
        moments.setdefault(place, []).append(sums[place])
    return moments


@pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUDA runs natively")
@pytest.mark.parametrize("threads, how", [(1, "end"), (4, "end"), (2, "kill")])
def test_the_simulated_cuda_agrees(threads, how, library, run_verb, tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    program = toolchain.build("ledger_work.c", *toolchain.runtime(13), *toolchain.DRIVER)
    env = toolchain.environment(tmp_path / "out", library, SIMCUDA_LOG=log)
    toolchain.run([program, str(threads), "300", how], env, status=-9 if how == "kill" else 0)
    [path] = log.iterdir()
    moments = books_of_log(path)
    found = json.loads(run_verb("memory", tmp_path / "out", "--format=json").stdout)
    rows = {place_of(row): row for row in found["places"]}
    assert rows.keys() == moments.keys()
    for place, own in moments.items():
        assert rows[place]["end_bytes"] == own[-1] > 0
        if threads == 1:  # others' order is known to a microsecond only
            assert rows[place]["peak_bytes"] == max(own)
    assert [row["wanted_bytes"] for row in found["out_of_memory"]] == [1 << 50] * threads


@pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUDA runs natively")
@pytest.mark.parametrize("settings", [{}, {"GPUPROF_MEMORY": "off"}])
def test_memory_of_the_host(settings, library, run_verb, tmp_path):
    """What the program itself reads of it at its end is what is known of it then."""
    program = toolchain.build("resident_work.c", *toolchain.runtime(13))
    env = toolchain.environment(tmp_path / "out", library, **settings)
    own, _ = map(int, toolchain.run([program, "200"], env).stdout.split())
    rows = json.loads(run_verb("memory", tmp_path / "out", "--format=json").stdout)["resident"]
    text = run_verb("memory", tmp_path / "out").stdout
    if settings:
        assert not rows and "on the host at most" not in text
        return
    [row] = rows
    assert row["samples"] >= 1 and row["peak_bytes"] >= row["end_bytes"] > 200 << 20
    assert abs(row["end_bytes"] - own) < 20 << 20
    assert re.search(r"^  memory .*; on the host at most 2[0-9]+\.[0-9] MiB$", text, re.MULTILINE)


@pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUDA runs natively")
def test_the_allocator_of_tensors_agrees(library, run_verb, tmp_path):
    """What it had allocated in all, as it said itself after each block."""
    program, path = toolchain.tensor_work()
    env = toolchain.environment(tmp_path / "out", library, LD_LIBRARY_PATH=path)
    lines = toolchain.run([program, "blocks", "4", "400"], env).stdout.splitlines()
    told = {}
    for words in ([int(word, 0) for word in line.split()] for line in lines if line[0].isdigit()):
        if words[0]:
            told.setdefault(("tensor", words[5]), []).append(words[3])
    found = json.loads(run_verb("memory", tmp_path / "out", "--format=json").stdout)
    rows = {place_of(row): row for row in found["places"] if row["where"] == "tensor"}
    assert {place: (row["peak_bytes"], row["end_bytes"]) for place, row in rows.items()} == \
        {place: (max(own), own[-1]) for place, own in told.items()}
    assert [row["wanted_bytes"] for row in found["out_of_memory"]] == [1 << 40]


SEEDS = range(400) if os.environ.get("GPUPROF_LONG") else range(3)


@pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUDA runs natively")
@pytest.mark.parametrize("seed", SEEDS)
def test_attack(seed, library, run_verb, tmp_path):
    """Memory of every kind, released by whatever function takes it, on any thread, among failures,
    forks and trims: peak and end are the device's own, and at each step nothing is hidden. (What is
    managed may lie on the host.)"""
    kind = "managed" if seed % 3 else "unmanaged"
    program = toolchain.build("ledger_attack.c", *toolchain.runtime(13), *toolchain.DRIVER)
    env = toolchain.environment(tmp_path / "out", library)
    done = toolchain.run([program, str(seed), "150", "kill" if seed % 2 else "end", kind], env,
                         status=-9 if seed % 2 else 0)
    found = json.loads(run_verb("memory", tmp_path / "out", "--format=json").stdout)
    rows = {row["device"]: row for row in found["places"] if row.get("device") is not None}
    for device, line in enumerate(done.stdout.splitlines()):
        peak, end = map(int, line.split())
        assert (rows[device]["peak_bytes"], rows[device]["end_bytes"]) == (peak, end) and peak > 0
    assert kind == "managed" or not any(row["hidden_bytes"] for row in found["hidden"])
