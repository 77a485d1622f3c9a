# SPDX-License-Identifier: Apache-2.0
"""Programs that get and release memory at random, and the books that they keep of it themselves."""

import collections
import random
import struct
import subprocess

import stream_reader

TYPES = stream_reader.TYPE_NUMBERS
NESTED = stream_reader.NESTED
HOST = "host"
KINDS = {"linear": ("cudaMalloc", "ptr bytes device", "cudaFree", "ptr"),
         "managed": ("cudaMallocManaged", "ptr bytes device flags", "cudaFree", "ptr"),
         "pooled": ("cudaMallocAsync", "ptr bytes device stream", "cudaFreeAsync", "ptr stream"),
         "array": ("cudaMallocArray", "ptr bytes device flags", "cudaFreeArray", "ptr"),
         "physical": ("cuMemCreate", "bytes device ptr flags", "cuMemRelease", "ptr"),
         "pinned": ("cudaHostAlloc", "ptr bytes device flags", "cudaFreeHost", "ptr"),
         "registered": ("cudaHostRegister", "ptr bytes device flags", "cudaHostUnregister", "ptr")}


class Block:
    def __init__(self, kind, address, size, device, owner):
        self.kind, self.address, self.bytes = kind, address, size
        self.device, self.owner = device, owner
        self.since = self.until = None
        self.is_held, self.mapped = True, {}

    @property
    def place(self):
        return (HOST if self.kind in ("pinned", "registered") else
                ("tensor", self.device) if self.kind == "tensor" else self.device)


class Process:
    """Its records, which begin one after another, and its blocks: since when, and until when."""

    def __init__(self, rank=0, pythonic=False):
        self.rank, self.now, self.lines, self.blocks, self.texts = rank, 1_000_000, [], [], {}
        self.lines += [f"meta env.RANK={rank}", "meta cmdline=python train.py"]
        if pythonic:
            self.lines += ["meta stacks=python", "meta python=3.12"]
        self.stacks = {}
        for thread in range(1, 5):
            self.raw(thread, TYPES["thread"], [1000 * rank + thread], b"thread")
        self.steps = []

    def raw(self, thread, what, args=(), text=b"", flags=0, code=0, at=None, ns=0, result=0):
        self.now += 100
        self.lines.append(f"{thread} {what} {flags} {code} {self.now if at is None else at} {ns} "
                          f"{result} 0 {','.join(str(a % 2**64) for a in args) or '-'} "
                          f"{text.hex() or '-'}")

    def stack(self, line):
        """The number of the stack of train.py at that line, which a library called."""
        if line not in self.stacks:
            number = len(self.stacks) + 1
            where = number + 1
            if number == 1:
                self.raw(1, TYPES["python"], [1, 7],
                         b"/usr/lib/python3/site-packages/torch/nn.py\0forward")
            self.raw(1, TYPES["python"], [where, line], b"/home/me/train.py\0train")
            frames = struct.pack("<QQ", 2 << 60 | 1, 2 << 60 | where)
            self.raw(1, TYPES["stack"], [number, 0], frames)
            self.stacks[line] = number
        return self.stacks[line]

    def step(self, number):
        self.raw(1, TYPES["step"], [number])
        self.steps.append(self.now)

    def call(self, symbol, args, thread=1, ns=50, **more):
        """Its begin and its end."""
        self.raw(thread, symbol, args, ns=ns, **more)
        return self.now, self.now + ns

    def get(self, kind, address, size, device=0, thread=1, ns=50, line=None, **more):
        symbol, words = KINDS[kind][:2]
        values = {"ptr": address, "bytes": size, "device": device, "flags": 0, "stream": 0}
        stack = self.stack(line) if line else 0
        _, end = self.call(symbol, [values[word] for word in words.split()], thread, ns,
                           code=stack, **more)
        if more.get("result") or more.get("flags"):
            return None
        block = Block(kind, address, size, device,
                      f"train (/home/me/train.py:{line})" if line else symbol)
        block.since = end
        self.blocks.append(block)
        return block

    def free(self, block, thread=1, ns=50, **more):
        if block.kind == "tensor":
            self.raw(thread, TYPES["tensor"],
                     [2, block.address, block.bytes, 0, 0, block.device, 1])
            block.is_held, block.until = False, self.now
            return
        symbol, words = KINDS[block.kind][2:]
        begin, _ = self.call(symbol, [block.address if word == "ptr" else 0
                                      for word in words.split()], thread, ns, **more)
        if not more.get("result") and not more.get("flags"):
            block.is_held = False
            if not block.mapped:
                block.until = begin

    def tensor(self, address, size, device=0, thread=1, reserved=0, line=None):
        self.raw(thread, TYPES["tensor"], [1, address, size, 0, reserved, device, 1, 0],
                 code=self.stack(line) if line else 0)
        owner = f"train (/home/me/train.py:{line})" if line else "tensor"
        block = Block("tensor", address, size, device, owner)
        block.since = self.now
        self.blocks.append(block)
        return block

    def map(self, block, address):
        _, end = self.call("cuMemMap", [address, block.bytes, block.address, 0])
        block.mapped[address] = end

    def unmap(self, blocks, address, size):
        """All of the blocks that are mapped there."""
        begin, _ = self.call("cuMemUnmap", [address, size])
        for block in blocks:
            for there in [a for a in block.mapped if address <= a < address + size]:
                del block.mapped[there]
            if not block.mapped and not block.is_held and block.until is None:
                block.until = begin

    def write(self, maker, folder):
        folder.mkdir(exist_ok=True)
        subprocess.run([maker, folder / f"{self.rank}.gpuprof", str(self.rank)], text=True,
                       input="\n".join(self.lines) + "\n", check=True, timeout=120)


class Books:
    """Of a place of a process, from its blocks alone: what there was at each moment."""

    def __init__(self, blocks):
        self.blocks = blocks
        changes = [(block.since, 1, block) for block in blocks]
        changes += [(block.until, -1, block) for block in blocks if block.until is not None]
        changes.sort(key=lambda change: change[0])
        self.moments, live = [], 0
        for at, sign, block in changes:
            live += sign * block.bytes
            self.moments.append((at, live))
        self.peak = max((live for _, live in self.moments), default=0)
        self.peak_ns = next((at for at, live in self.moments if live == self.peak), None)
        self.end = live

    def at(self, ns):
        """Blocks that are live then."""
        return [b for b in self.blocks if b.since <= ns and (b.until is None or b.until > ns)]

    def owners(self, ns):
        held = collections.Counter()
        for block in self.at(ns):
            held[block.owner] += block.bytes
        return held

    def within(self, begin, end):
        """The most between two moments, and what there is at the second."""
        before = [live for at, live in self.moments if at <= begin][-1:] or [0]
        inside = [live for at, live in self.moments if begin < at <= end]
        return max(before + inside), (before + inside)[-1]


def at_random(seed, rank=0, calls=400):
    """A process with four threads, whose calls overlap, fail, are nested, or captured."""
    dice = random.Random(seed)
    process = Process(rank)
    thread_free = {thread: 0 for thread in (1, 3, 4)}
    maps = {}
    ends = set()
    for number in range(calls):
        if number % 40 == 0:
            process.step(number // 40)
        process.now += dice.randrange(5) * 100
        threads = [t for t, until in thread_free.items() if until < process.now]
        if not threads:
            process.now = min(thread_free.values()) + 1
            process.now += -process.now % 100
            continue
        thread, ns = dice.choice(threads), dice.randrange(900)
        while process.now + 100 + ns in ends or (process.now + 100 + ns) % 100 == 0:
            ns += 1
        ends.add(process.now + 100 + ns)
        thread_free[thread] = process.now + 100 + ns
        begin = process.now + 100
        held = [b for b in process.blocks if b.is_held and b.since < begin]
        what = dice.random()
        if what < 0.5 or not held:
            kind = dice.choice(list(KINDS))
            used = {b.address for b in process.blocks
                    if (b.is_held or b.mapped) and (b.kind == kind or b.kind != "physical")}
            base = (0x20 + list(KINDS).index(kind)) << 36
            address = next(a for a in range(base, base + (1 << 31), 1 << 20) if a not in used)
            more = dice.choice([{}] * 6 + [{"result": 2}, {"result": 1}, {"flags": NESTED}])
            device = dice.randrange(2)
            process.get(kind, address, dice.randrange(1, 1 << 20), device, thread, ns, **more)
        elif what < 0.62:
            physical = [b for b in held if b.kind == "physical"]
            if physical:
                block = dice.choice(physical)
                address = (1 << 40) + (len(maps) << 21)
                maps[address] = block
                process.map(block, address)
        elif what < 0.7 and maps:
            address = dice.choice(list(maps))
            size = dice.choice([1, 2, 3]) << 21
            process.unmap(set(maps.values()), address, size)
        elif what < 0.76:
            process.tensor(1 << 44 | number << 20, dice.randrange(1, 1 << 20), dice.randrange(2),
                           thread)
        else:
            more = dice.choice([{}] * 8 + [{"result": 1}, {"flags": NESTED}])
            process.free(dice.choice(held), thread, ns, **more)
    process.step(calls)
    return process


def by_place(process):
    found = collections.defaultdict(list)
    for block in process.blocks:
        found[block.place].append(block)
    return {place: Books(blocks) for place, blocks in found.items()}
