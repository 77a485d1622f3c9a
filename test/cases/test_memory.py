# SPDX-License-Identifier: Apache-2.0
"""gpuprof memory: the ledger against books that the tests keep themselves."""

import json
import pickle
import random
import subprocess

import conftest
import pytest
from made_memory import KINDS, NESTED, TYPES, Process, at_random, by_place
from memory_verb import fixture_memory, leaking, owners_of, place_of, title_of, where_of


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


@pytest.mark.parametrize("first, last", [(None, None), (2, 6), (0, 3), (7, None), (None, 4)])
def test_a_piece_of_the_time(first, last, memory):
    """Its peaks, who held those, its end and its curves; what was got before is still held."""
    process = at_random(3)
    books, origin = by_place(process), process.steps[0]
    times = [line.split()[4:6] for line in process.lines if line[0].isdigit()]
    begin = origin if first is None else process.steps[first] + 50
    end = max(int(at) + int(ns) for at, ns in times) if last is None else process.steps[last] + 50
    found = memory([process], "--by=function", "--table=places,owners,curve",
                   *([] if first is None else [f"--from={begin - origin}ns"]),
                   *([] if last is None else [f"--to={end - origin}ns"]))
    held = {}
    for row in found["places"]:
        own, curve = books.pop(place_of(row)), found["curve"][:240]
        found["curve"] = found["curve"][240:]
        assert (row["peak_bytes"], row["end_bytes"]) == own.within(begin, end - 1)
        moments = [begin, *(at for at, _ in own.moments if begin < at < end)]
        peak = next(at for at in moments if sum(b.bytes for b in own.at(at)) == row["peak_bytes"])
        for owner, size in own.owners(peak).items():
            key = where_of(place_of(row)), owner
            held[key] = held.get(key, 0) + size
        assert max(piece["peak_bytes"] for piece in curve) == row["peak_bytes"]
        assert curve[-1]["end_bytes"] == row["end_bytes"]
        for number, piece in enumerate(curve):
            least, most = (own.within(begin + (number + slack) * (end - begin) / 240,
                                      begin + (number + 1 - slack) * (end - begin) / 240)[0]
                           for slack in (.02, -.02))
            assert least <= piece["peak_bytes"] <= most
    assert owners_of(found) == held and len(held) >= 4 and not found["curve"]
    assert not any(own.within(begin, end - 1)[0] for own in books.values())


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
    assert found["doubts"] == {"in_graphs": 1, "strays": 1}


def test_a_release_that_nobody_saw(memory):
    process = Process()
    process.get("linear", 0x1000, 100)
    process.get("linear", 0x1000, 30)
    process.call("cudaFree", [0x5000])
    found = memory([process])
    [row] = found["places"]
    assert (row["peak_bytes"], row["end_bytes"]) == (100, 30)
    assert found["doubts"] == {"replaced": 1, "strays": 1}


def test_device_of_cupti(memory):
    """What CUPTI says goes before all else."""
    process = Process()
    cupti = TYPES["memory"]
    process.call("cudaMalloc", [0x1000, 10, 1])
    process.call("cudaMalloc", [0x2000, 200, 2**64 - 1], ns=150)
    process.raw(2, cupti, [1, 3, 0x2000, 200, 3, 1])
    process.call("cudaMalloc", [0x3000, 3000, 0], ns=150)
    process.raw(2, cupti, [1, 3, 0x3000, 3000, 2, 1])
    process.raw(2, cupti, [1, 6, 0x9000, 4096, 0, 1], b"table")
    found = memory([process])
    assert {row["device"]: row["end_bytes"] for row in found["places"]} == \
        {1: 10, 3: 200, 0: 4096, 2: 3000}
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
    assert text.index("failed allocations") < text.index("owners of memory")
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
    assert "reserved but free" not in run_verb("memory", tmp_path / "data").stdout
    process.raw(1, TYPES["tensor_oom"], [12 << 20, kept.bytes, 20 << 20, 0, 1])
    memory([process])
    assert "PyTorch had 12.0 MiB reserved but free, in blocks of at most " in \
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
    assert "12.0 MiB of it in a block for another stream, pool or size" in \
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
