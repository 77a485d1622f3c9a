# SPDX-License-Identifier: Apache-2.0
"""Recordings of what hosts did (samples, calls of the system, the GIL, garbage collections), at
random, with the sums of what was put in; as scripts for test/unit/make_stacks.c."""

import collections
import random

CPU, GAP = 0, 1
IN_KERNEL, IN_GPUPROF, TORN = 1, 2, 4
FILE, SOCKET, POLL, SLEEP, PROCESS, LOCK, CONDITION, SEMAPHORE, BARRIER, THREAD, MEMORY, LOAD, \
    DEVICE, FUTEX = range(1, 15)
PERIOD = 10_000_000
MODULES = ("/usr/bin/python3.11", "/usr/lib/libc.so.6", "/usr/lib/libtorch_cpu.so",
           "/home/me/libmine.so")
SITE = "/usr/lib/python3.11/site-packages/"
FROZEN = "<frozen importlib._bootstrap>"
PYTHON, LIBC, TORCH, MINE = (f"{i}+100" for i in range(1, 5))


class Host:
    """One process. Its main thread is 1, the device's 2."""

    def __init__(self, rank=0):
        self.rank, self.pid = rank, 1000 + rank
        self.head = [f"process {rank}", "meta stacks=made up", "meta python=3.11.7"]
        self.head += [f"module {i} - {path}" for i, path in enumerate(MODULES, 1)]
        self.records = []  # (thread, begin, line)
        self.places, self.stacks, self.functions = {}, {}, {}

    def thread(self, number, tid, name):
        self.head.append(f"thread {number} {tid} {name}")

    def line(self, function, file, line):
        """A frame of Python."""
        key = (function, file, line)
        if key not in self.places:
            self.places[key] = len(self.places) + 1
            self.head.append(f"python {self.places[key]} {line} {file}\t{function}")
        return f"p{self.places[key]:x}"

    def stack(self, *frames):
        """Innermost first."""
        if frames not in self.stacks:
            self.stacks[frames] = len(self.stacks) + 1
            self.head.append(f"stack {self.stacks[frames]} 0 " + " ".join(frames))
        return self.stacks[frames]

    def record(self, name, begin, args, *, thread=1, code=0, duration=0, weight=0, stack=0,
               text=""):
        words = ",".join(map(str, args)) or "-"
        self.records.append((thread, begin, f"host {name} {code} {begin} {duration} 0 {weight} "
                                            f"{stack} {words} {text}"))

    def sample(self, begin, stack=0, *, period=PERIOD, weight=1, flags=0, tid=0, source=CPU,
               thread=1, holder=0):
        self.record("sample", begin, (period, tid, flags, 0, 0, holder, 0), thread=thread,
                    code=source, weight=weight, stack=stack)

    def os_call(self, begin, duration, function, peer="", *, kind=FILE, moved=0, error=0, stack=0,
                thread=1):
        """A function without a name is one that no record names."""
        if isinstance(function, str) and function not in self.functions:
            self.functions[function] = len(self.functions) + 7
            self.record("os_function", begin, (kind,), thread=thread,
                        code=self.functions[function], text=function)
        self.record("os_call", begin, (0, 0, moved, error), thread=thread, duration=duration,
                    code=self.functions.get(function, function), stack=stack, text=peer)

    def gil(self, begin, duration, other=0, *, held=False, switches=0, thread=1):
        self.record("gil", begin, (other, switches), thread=thread, code=int(held),
                    duration=duration)

    def gil_rest(self, begin, waits, wait_ns, holds, hold_ns, thread=1, tid=0):
        self.record("gil_rest", begin, (waits, wait_ns, holds, hold_ns, tid), thread=thread)

    def gc(self, begin, duration, generation, collected=0, uncollectable=0, thread=1):
        self.record("gc", begin, (collected, uncollectable, 0), thread=thread, code=generation,
                    duration=duration)

    def call(self, begin, duration, stack=0, function="cudaMalloc", moved=4096):
        self.records.append((1, begin, f"call {function} {begin} {duration} 0 {stack} {moved}"))

    def script(self):
        lines = list(self.head)
        for thread, _, line in sorted(self.records, key=lambda record: record[:2]):
            lines += [f"on {thread}", line]
        return lines


def add_samples(host, dice, count):
    """(function, file, line) -> what the table should say, and module -> the same of imports."""
    tokenize = host.line("tokenize", "/home/me/data.py", 81)
    main = host.line("<module>", "/home/me/train.py", 40)
    decode = host.line("decode", "/usr/lib/python3.11/json/decoder.py", 355)
    frozen = host.line("_call_with_frames_removed", FROZEN, 241)
    torch = host.line("<module>", SITE + "torch/__init__.py", 10)
    nn = host.line("<module>", SITE + "torch/nn/__init__.py", 3)
    at_tokenize = ("tokenize", "/home/me/data.py", 81)
    at_main = ("<module>", "/home/me/train.py", 40)
    library = ("decode", "/usr/lib/python3.11/json/decoder.py", 0)  # of others lines do not count
    kinds = (  # frames, whose line it is, whose time, what is imported: the innermost first
        ((PYTHON, tokenize, main, PYTHON), at_tokenize, "python_ns", ()),
        ((LIBC, PYTHON, tokenize, main), at_tokenize, "python_ns", ()),
        ((TORCH, PYTHON, decode, tokenize, main), at_tokenize, "native_ns", ()),
        ((decode, main), at_main, "python_ns", ()),
        ((decode,), library, "python_ns", ()),
        ((TORCH, LIBC), ("[libtorch_cpu.so]", None, 0), "native_ns", ()),
        ((MINE, TORCH), ("[libmine.so]", None, 0), "native_ns", ()),
        ((LIBC, PYTHON), ("[libc.so.6]", None, 0), "python_ns", ()),
        ((nn, frozen, torch, frozen, main), at_main, "python_ns", ("torch/nn", "torch")),
        ((PYTHON, torch, frozen, main), at_main, "python_ns", ("torch",)),
        ((TORCH, torch, frozen, nn, frozen, torch, frozen), ("[libtorch_cpu.so]", None, 0),
         "native_ns", ("torch", "torch/nn")),
    )
    lines = collections.defaultdict(collections.Counter)
    modules = collections.defaultdict(collections.Counter)
    for i in range(count):
        frames, line, kind, imported = dice.choice(kinds)
        weight, flags = dice.choice((1, 1, 2, 7)), dice.choice((0, 0, IN_KERNEL))
        period = dice.choice((PERIOD, 4_000_000))
        is_cpu = dice.random() < 0.8
        if dice.random() < 0.1:
            flags, line = dice.choice((
                (IN_GPUPROF, ("(gpuprof itself)", None, 0)),
                (TORN, ("(the stack could not be read whole)", None, 0)),
                (0, ("(no stack)", None, 0))))
            frames = imported = ()
        begin = 1000 + 5000 * i
        stack = host.stack(*frames) if frames else 0
        if is_cpu:
            host.sample(begin, stack, period=period, weight=weight, flags=flags,
                        thread=dice.choice((1, 3)))
        else:
            host.sample(begin, stack, period=period, weight=weight, flags=flags, source=GAP,
                        tid=host.pid, thread=4)
        row, ns = lines[line], period * weight
        row["gap_ns" if not is_cpu else "cpu_ns"] += ns
        for k, module in enumerate(imported):
            of = modules[SITE + module + "/__init__.py"]
            of["cpu_ns_all" if is_cpu else "gap_ns_all"] += ns
            of["cpu_ns" if is_cpu else "gap_ns"] += ns if k == 0 else 0
        if not is_cpu:
            continue
        row["samples"] += weight
        if frames or flags & IN_KERNEL:
            row["system_ns" if flags & IN_KERNEL else kind] += ns
    return lines, modules


def add_os_calls(host, dice, count):
    rows = collections.defaultdict(collections.Counter)
    for i in range(count):
        name, peer, kind = dice.choice((("read", "/data/a b.bin", FILE), ("read", "/x", FILE),
                                        ("recv", "10.0.0.1:80", SOCKET), ("nanosleep", "", SLEEP),
                                        ("pthread_mutex_lock", "", LOCK), (200, "", None)))
        ns, moved = dice.randrange(10**5, 10**8), dice.randrange(4096)
        error = dice.choice((0, 0, 4))
        host.os_call(10_000 + 7000 * i, ns, name, peer, kind=kind, moved=moved, error=error,
                     thread=dice.choice((1, 3)))
        row = rows[name if kind else f"os_function_{name}", peer or None]
        row["calls"] += 1
        row["total_ns"] += ns
        row["bytes"] += moved
        row["failed"] += bool(error)
        row["max_ns"] = max(ns, row["max_ns"])
    return rows


def add_gil(host, dice, count):
    """(tid, holder) -> ..."""
    rows = collections.defaultdict(collections.Counter)
    for i in range(count):
        thread, tid, other = dice.choice(((1, host.pid, 4711), (3, 4711, host.pid), (3, 4711, 99)))
        begin, ns, held = 3000 + 9000 * i, dice.randrange(10**5, 10**7), dice.random() < 0.5
        if dice.random() < 0.2:
            is_told = dice.random() < 0.5  # by gpuprof's own thread
            host.gil_rest(begin, 5, 5000, 6, 60_000, thread=4 if is_told else thread,
                          tid=tid if is_told else 0)
            rows[tid, 0] += collections.Counter(waits=5, wait_ns=5000, holds=6, hold_ns=60_000)
            continue
        switches = dice.randrange(3)
        host.gil(begin, ns, other, held=held, switches=switches, thread=thread)
        row = rows[tid, 0 if held else other]
        row["holds" if held else "waits"] += 1
        row["hold_ns" if held else "wait_ns"] += ns
        row["switches"] += switches
        if not held:
            row["max_ns"] = max(ns, row["max_ns"])
    return rows


def add_collections(host, dice, count):
    rows = collections.defaultdict(collections.Counter)
    for i in range(count):
        generation, ns, freed = dice.randrange(3), dice.randrange(10**7), dice.randrange(1000)
        host.gc(5000 + 11_000 * i, ns, generation, freed, 1)
        rows[generation] += collections.Counter(collections=1, total_ns=ns, collected=freed,
                                                uncollectable=1)
        rows[generation]["max_ns"] = max(ns, rows[generation]["max_ns"])
    return rows


class Made:
    """Processes whose sums are known together."""

    def __init__(self, seed, ranks=1, count=300):
        dice = random.Random(seed)
        self.lines, self.modules, self.calls, self.gil, self.gc = {}, {}, {}, {}, {}
        self.script = []
        for rank in range(ranks):
            host = Host(rank)
            host.thread(3, 4711, "loader")
            host.thread(4, 4712, "gpuprof-host")
            host.call(500, 100)
            lines, modules = add_samples(host, dice, count)
            for to, rows in ((self.lines, lines), (self.modules, modules),
                             (self.calls, add_os_calls(host, dice, count)),
                             (self.gil, {(host.pid, *key): row
                                         for key, row in add_gil(host, dice, count).items()}),
                             (self.gc, {(host.pid, key): row for key, row in
                                        add_collections(host, dice, count // 10).items()})):
                for key, row in rows.items():
                    most = max(row["max_ns"], to.get(key, row)["max_ns"])
                    to[key] = to.get(key, collections.Counter()) + row
                    if most:
                        to[key]["max_ns"] = most
            self.script += host.script()
