# SPDX-License-Identifier: Apache-2.0
"""gpuprof memory -o x.pickle: a snapshot as torch.cuda.memory._snapshot() has it, read by Python's
own pickle, which may make plain objects only, and replayed."""

import io
import json
import pickle
import pickletools
import subprocess

import conftest
import pytest

from made_memory import TYPES, Books, Process, at_random

# What the reader in PyTorch's viewer (MemoryViz.js) knows, beside what is newer than protocol 2.
# No marks: it takes all that stands above one as arguments of a function.
OPCODES = {"PROTO", "STOP", "EMPTY_DICT", "SETITEM", "EMPTY_LIST", "APPEND", "BINUNICODE",
           "BININT", "BININT1", "BININT2", "LONG1", "NEWTRUE", "NEWFALSE", "TUPLE2", "BINPUT",
           "LONG_BINPUT", "BINGET", "LONG_BINGET"}
ADDRESSED = ("linear", "managed", "pooled")
MIB = 1 << 20


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}")


def load(path):
    data = path.read_bytes()
    return Plain(io.BytesIO(data)).load()


@pytest.fixture(name="snapshot")
def fixture_snapshot(run_verb, tmp_path):
    """snapshot(PROCESS, ...): what is in the files, by their names, and what the tables say."""
    maker = conftest.built(conftest.BUILD / "make_raw")

    def run(*processes):
        for process in processes:
            process.write(maker, tmp_path / "data")
        folder = tmp_path / "snapshots"
        folder.mkdir()
        run_verb("memory", tmp_path / "data", "-o", folder / "x.pickle", "--symbols=none")
        found = json.loads(run_verb("memory", tmp_path / "data", "--format=json").stdout)
        return {path.name: load(path) for path in folder.iterdir()}, found
    return run


class Replay:
    """A device's events one after another, as the viewer goes through them: each block lies in a
    segment, and what is there at the end is what the segments say."""

    def __init__(self, snapshot, device):
        self.segments, self.blocks, self.peak, self.held, self.last_us = {}, {}, 0, 0, 0
        self.oom, self.asked = [], set()
        *events, last = snapshot["device_traces"][device]
        for event in events:
            self.take(event)
        assert last == {"action": "snapshot", "addr": 0, "size": self.held, "stream": 0,
                        "frames": [], "time_us": last["time_us"]} and \
            last["time_us"] >= self.last_us
        there = [s for s in snapshot["segments"] if s["device"] == device]
        self.check_end(there)

    def take(self, event):
        what, size = event["action"], event["size"]
        assert event["time_us"] >= self.last_us and event["stream"] == 0
        assert all(set(f) == {"name", "filename", "line"} for f in event["frames"])
        self.last_us = event["time_us"]
        if what == "oom":
            self.oom.append((size, event["device_free"]))
            return
        address = event["addr"]
        if what in ("segment_alloc", "segment_map"):
            assert not any(a < address + size and address < a + s for a, s in
                           self.segments.items())
            self.segments[address] = size
        elif what in ("segment_free", "segment_unmap"):
            assert self.segments.pop(address) == size
        elif what == "alloc":
            assert address not in self.blocks and self.is_inside(address, size)
            self.blocks[address] = size, event["frames"]
            self.held += size
            self.peak = max(self.peak, self.held)
        elif what == "free_requested":
            assert self.blocks[address] == (size, event["frames"])
            self.asked.add(address)
        else:
            assert what == "free_completed"
            self.asked.remove(address)
            assert self.blocks.pop(address)[0] == size and self.is_inside(address, size)
            self.held -= size

    def is_inside(self, address, size):
        """Neighbours, where memory is mapped, are one."""
        at = address
        while at < address + size:
            ends = [a + s for a, s in self.segments.items() if a <= at < a + s]
            if not ends:
                return False
            at = ends[0]
        return True

    def check_end(self, segments):
        blocks = {}
        for s in segments:
            at = s["address"]
            for block in s["blocks"]:
                assert block["address"] == at
                at += block["size"]
                if block["state"] == "active_allocated":
                    assert block["requested_size"] == block["size"]
                    blocks[block["address"]] = block["size"], block["frames"]
                else:
                    assert block["state"] == "inactive"
            assert at == s["address"] + s["total_size"] and s["segment_pool_id"] == (0, 0)
            held = sum(b["size"] for b in s["blocks"] if b["state"] == "active_allocated")
            assert held == s["allocated_size"] == s["active_size"] == s["requested_size"]
            assert s["segment_type"] == ("small" if s["total_size"] <= 2 * MIB else "large")
        assert blocks == self.blocks and not self.asked
        pieces = {}
        for address, size in sorted(self.segments.items()):
            before = next((a for a, s in pieces.items() if a + s == address), None)
            mapped = any(s["is_expandable"] and s["address"] <= address <
                         s["address"] + s["total_size"] for s in segments)
            if mapped and before is not None:
                pieces[before] += size
            else:
                pieces[address] = size
        assert {s["address"]: s["total_size"] for s in segments} == pieces


def places_of(found, rank=0):
    return {(row["where"], row["device"]): row for row in found["places"]
            if int(row["rank"]) == rank}


def test_calls_of_cuda(snapshot):
    """Without PyTorch's blocks a segment is its own block, with who got it."""
    process = Process(pythonic=True)
    kept = process.get("linear", 1 << 40, 3 * MIB, line=3)
    process.free(process.get("managed", 1 << 41, 300, line=4))
    process.get("pooled", 1 << 42, 5000, device=2)
    process.get("pinned", 1 << 43, 7)
    process.get("linear", 0, 1 << 50, line=5, result=2)
    files, found = snapshot(process)
    assert list(files) == ["x.pickle"]
    found = places_of(found)
    traces = files["x.pickle"]["device_traces"]
    assert len(traces) == 3 and not traces[1]
    assert [e["action"] for e in traces[0]] == \
        ["segment_alloc", "alloc"] * 2 + ["free_requested", "free_completed", "segment_free",
                                          "oom", "snapshot"]
    first = Replay(files["x.pickle"], 0)
    assert first.peak == found["device", 0]["peak_bytes"] and first.oom == [(1 << 50, 0)]
    assert first.blocks == {kept.address: (3 * MIB, traces[0][0]["frames"])}
    assert [(f["name"], f["filename"], f["line"]) for f in traces[0][0]["frames"]] == \
        [("cudaMalloc", "", 0), ("forward", "/usr/lib/python3/site-packages/torch/nn.py", 7),
         ("train", "/home/me/train.py", 3)]
    second = Replay(files["x.pickle"], 2)
    assert second.peak == second.held == 5000 and traces[2][0]["frames"][0]["name"] == \
        "cudaMallocAsync"


def with_tensors():
    """Two segments, one without blocks; a block in none; one that is freed after its segment's
    neighbour; and mapped memory with a block across two pieces."""
    process = Process(pythonic=True)
    process.get("linear", 1 << 40, 20 * MIB, line=3)
    process.get("linear", 1 << 44, 2 * MIB, line=8)
    first = process.tensor(1 << 40, 8 * MIB, line=4)
    second = process.tensor((1 << 40) + 12 * MIB, MIB, line=5)
    process.tensor((1 << 40) + 14 * MIB, MIB, line=5)
    process.tensor(1 << 45, 512, line=6)
    process.free(process.tensor(1 << 46, 1024, line=6))
    process.free(first)
    process.free(second)
    pieces = [process.get("physical", 0x70 + n, 2 * MIB, line=9) for n in range(3)]
    for number, piece in enumerate(pieces):
        process.map(piece, (1 << 47) + number * 2 * MIB)
    process.tensor((1 << 47) + MIB, 2 * MIB, line=10)
    process.unmap(pieces, (1 << 47) + 4 * MIB, 2 * MIB)
    process.free(pieces[2])
    process.raw(1, TYPES["tensor_oom"], [1 << 50, 0, 0, 0, 1], code=process.stack(7))
    return process


def test_blocks_of_pytorch(snapshot):
    process = with_tensors()
    files, found = snapshot(process)
    found = places_of(found)
    [data] = files.values()
    replay = Replay(data, 0)
    assert (replay.peak - 2 * MIB, replay.held - 2 * MIB) == \
        (found["tensor", 0]["peak_bytes"], found["tensor", 0]["end_bytes"])
    held = {s["address"]: (s["total_size"], s["allocated_size"], s["is_expandable"])
            for s in data["segments"]}
    assert held == {1 << 40: (20 * MIB, MIB, False), 1 << 44: (2 * MIB, 2 * MIB, False),
                    1 << 45: (512, 512, False), 1 << 47: (4 * MIB, 2 * MIB, True)}
    assert sum(total for total, _, _ in held.values()) - 512 == found["device", 0]["end_bytes"]
    assert replay.oom == [(1 << 50, 0)]
    lines = {s["address"]: [b["frames"][-1]["line"] for b in s["blocks"] if "frames" in b]
             for s in data["segments"]}
    assert lines == {1 << 40: [5], 1 << 44: [8], 1 << 45: [6], 1 << 47: [10]}


@pytest.mark.parametrize("seed", range(4))
def test_any_program(seed, snapshot):
    """Peaks and what is left are the books' own, of each device of each process."""
    processes = [at_random(100 * seed + rank, rank) for rank in range(2)]
    files, _ = snapshot(*processes)
    assert files.keys() == {"x_rank0.pickle", "x_rank1.pickle"}
    for process in processes:
        data = files[f"x_rank{process.rank}.pickle"]
        shown = {b.address: b for b in process.blocks if b.kind in (*ADDRESSED, "tensor")}
        for device in range(2):
            own = [b for b in process.blocks if b.kind in (*ADDRESSED, "tensor") and
                   b.device == device]
            assert len({b.kind for b in own}) == 4
            replay = Replay(data, device)
            held = {a: size for a, (size, _) in replay.blocks.items() if a in shown}
            assert held == {b.address: b.bytes for b in own if b.until is None}
            mapped = [a for a in replay.segments if a not in shown]
            assert all(1 << 40 <= a < 1 << 41 for a in mapped)


def test_any_moment(run_verb, tmp_path):
    """What was there then, by the books, and all that happened until then, and nothing else."""
    process = at_random(5)
    process.write(conftest.built(conftest.BUILD / "make_raw"), tmp_path / "data")
    origin = process.steps[0]
    changes = sorted(b.since for b in process.blocks)
    for at in (changes[len(changes) // 3], changes[-1]):
        path = tmp_path / f"{at}.pickle"
        run_verb("memory", tmp_path / "data", f"--at={at - origin}ns", "-o", path, "--symbols=none")
        for device in range(2):
            own = [b for b in process.blocks if b.kind in (*ADDRESSED, "tensor") and
                   b.device == device]
            replay = Replay(load(path), device)
            shown = {b.address for b in own}
            assert {a: size for a, (size, _) in replay.blocks.items() if a in shown} == \
                {b.address: b.bytes for b in Books(own).at(at)} != {}
    said = run_verb("memory", tmp_path / "data", "--at=1h", "-o", path, status=2).stderr
    assert "nothing was recorded" in said


def test_peak_of_any_program(snapshot):
    process = at_random(77)
    process.blocks = [b for b in process.blocks if b.kind != "physical"]
    lines = [line for line in process.lines if " cuMem" not in line]
    process.lines = lines
    files, _ = snapshot(process)
    for device in range(2):
        own = [b for b in process.blocks if b.kind in (*ADDRESSED, "tensor") and b.device == device]
        assert Replay(files["x.pickle"], device).peak == Books(own).peak > 0


def test_opcodes(snapshot, tmp_path):
    """Only what the viewer's own reader knows; frames and their lists stand in it once."""
    process = with_tensors()
    for number in range(3000):
        process.tensor((1 << 50) + 512 * number, 512, line=11 + number % 2)
    snapshot(process)
    path = tmp_path / "snapshots" / "x.pickle"
    found = [(opcode.name, arg) for opcode, arg, _ in pickletools.genops(path.read_bytes())]
    assert {name for name, _ in found} <= OPCODES
    texts = [arg for name, arg in found if name == "BINUNICODE"]
    assert texts.count("/home/me/train.py") < 12 and texts.count("segment_alloc") == 1
    data = load(path)
    assert len(data["device_traces"][0]) > 6000
    assert data["device_traces"][0][-2]["frames"] is data["device_traces"][0][-6]["frames"]


def test_nothing_to_write(collector, tmp_path, run_verb):
    process = Process()
    process.call("cudaLaunchKernel", [0] * 8)
    process.write(conftest.built(conftest.BUILD / "make_raw"), tmp_path / "data")
    done = subprocess.run([collector, "memory", tmp_path / "data", "-o", tmp_path / "x.pickle"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "no allocation was recorded" in done.stderr
    assert not (tmp_path / "x.pickle").exists()
    done = subprocess.run([collector, "memory", tmp_path / "data", "-o", tmp_path / "x.pickle",
                           "--by=stack"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "leave" in done.stderr


def test_a_reader_of_json_beside_it(run_verb, tmp_path):
    """.pkl is as good, and what the pickle has is not what --format asks for."""
    process = Process()
    process.get("linear", 1 << 40, 100)
    process.write(conftest.built(conftest.BUILD / "make_raw"), tmp_path / "data")
    run_verb("memory", tmp_path / "data", "-o", tmp_path / "x.pkl")
    assert Replay(load(tmp_path / "x.pkl"), 0).held == 100
