# SPDX-License-Identifier: Apache-2.0
"""Recordings for the tests of findings, in which it is known what each would cost, and what a
finding costs by the book (`gpuprof help FINDING`), computed piece by piece."""

import stream_reader

TYPES = stream_reader.TYPE_NUMBERS
MAIN, DEVICE = 1, 2
# A process of this number was started when its clock began (test/unit/stream_builder.c).
RANK = 400
MS, US = 1000000, 1000
PAGEABLE, PINNED, ON_DEVICE = 1, 2, 3
TO_DEVICE, TO_HOST = 1, 2
GEMM, ADD, RELU, NCCL, PLAIN = ("ampere_sgemm_128x64_nn", "vectorized_elementwise_kernel<4, add>",
                                "elementwise_kernel<relu>", "ncclDevKernel_AllReduce_Sum_f32",
                                "sm90_xmma_gemm_bf16bf16")
TINY_NS, START_NS, CHAIN_GAP_NS = 5 * US, 2 * US, MS
UPLOADS = 10**6  # their correlation ids begin there: they need no call


class Work:
    def __init__(self, begin, ns, stream, name=None, copy=None):
        self.begin, self.end, self.stream, self.name, self.copy = begin, begin + ns, stream, name, \
            copy


class Job:
    """One process with one device, whose first event is at 1 us."""

    def __init__(self, rank=RANK, major=9):
        self.rank, self.major, self.now, self.calls, self.uploads = rank, major, US, 0, 0
        self.records, self.names, self.works, self.begins = [], {}, [], set()
        self.meta, self.frames = [], []
        self.names_behind = 0  # the library writes a name with the begin of its first kernel

    def add(self, kind, thread, begin, ns=0, correlation=0, code=0, args=(), text="", flags=0):
        args = ",".join(map(str, args)) or "-"
        self.records.append((thread, begin, f"{kind} {thread} {begin} {ns} {correlation} {flags} "
                             f"{code} 0 {args} {text}"))

    def begin(self, at):
        """Of two that begin at once nobody says which was first: none do."""
        at = self.now if at is None else at
        while at in self.begins:
            at += 1
        self.begins.add(at)
        return at

    def call(self, function="cudaLaunchKernel", at=None, ns=500, flags=0):
        self.calls += 1
        self.add(TYPES["call"], MAIN, self.now if at is None else at, ns, self.calls, function,
                 flags=flags)
        return self.calls

    def kernel(self, name, ns, stream=7, at=None, call=0):
        """Right behind what was there, unless it is said when."""
        begin = self.begin(at)
        if name and name not in self.names:
            self.names[name] = len(self.names) + 1
            self.add(TYPES["kernel_name"], DEVICE, begin + self.names_behind,
                     args=(self.names[name],), text=name)
        number = self.names[name] if name else 0
        self.add(TYPES["kernel"], DEVICE, begin, ns, call, 0,
                 (0, 1, stream, number, 1, 1))
        self.works.append(Work(begin, ns, stream, name))
        self.now = max(self.now, begin + ns)

    def copy(self, ns, memory=PAGEABLE, kind=TO_DEVICE, is_async=True, stream=7, at=None,
             content=0, call=0):
        begin = self.begin(at)
        if content:
            self.uploads += 1
            call = call or UPLOADS + self.uploads
            self.add(TYPES["content"], MAIN, begin - 1, correlation=call, args=(content, 4096))
        memories = {TO_DEVICE: (memory, ON_DEVICE), TO_HOST: (ON_DEVICE, memory)}[kind]
        self.add(TYPES["copy"], DEVICE, begin, ns, call, 0, (0, 1, stream, kind, *memories, 4096,
                                                         int(is_async)))
        self.works.append(Work(begin, ns, stream, copy=(memory, is_async, content)))
        self.now = max(self.now, begin + ns)

    def fill(self, until, ns=20 * MS):
        """Healthy work up to then."""
        while self.now < until:
            self.kernel(PLAIN, min(ns, until - self.now))

    def lines(self):
        self.add(TYPES["device"], DEVICE, 1, args=(0, self.major, 0), text="Made GPU")
        lines = [line for _, _, line in sorted(self.records, key=lambda r: r[:2])]
        return [f"process {self.rank}", *(f"meta {text}" for text in self.meta), *self.frames,
                *(one for line in lines for one in line.split("\n"))]


def in_time(work):
    return work.begin, -work.end


def pieces(works):
    """(ns, works that run, those that began first in front) of all times in which any does."""
    points = sorted({w.begin for w in works} | {w.end for w in works})
    order = sorted(works, key=in_time)
    running, at = [], 0
    for begin, end in zip(points, points[1:]):
        while at < len(order) and order[at].begin <= begin:
            running.append(order[at])
            at += 1
        running = [w for w in running if w.end > begin]
        if running:
            yield end - begin, running


def costs(job):
    """What each finding of work of the device costs."""
    own, compute = {}, 0
    cost = dict.fromkeys(("fp32-gemm", "unfused-elementwise", "tiny-kernels", "pageable-copies",
                          "one-stream", "repeated-upload"), 0)
    first, again = {}, set()
    for w in sorted((w for w in job.works if w.copy and w.copy[2]), key=in_time):
        if first.setdefault(w.copy[2], w) is not w:
            again.add(w)
    kernel_streams = {w.stream for w in job.works if w.name}
    elsewhere = False
    for ns, running in pieces(job.works):
        computing = [w for w in running if w.name and w.name != NCCL]
        if computing:
            own[computing[0]] = own.get(computing[0], 0) + ns
            compute += ns
        elif not any(w.name for w in running):
            memory, is_async, _ = running[0].copy
            if running[0] in again:
                cost["repeated-upload"] += ns
            elif memory == PAGEABLE:
                cost["pageable-copies"] += ns
            elif is_async:
                cost["one-stream"] += ns
                elsewhere |= running[0].stream not in kernel_streams
    cost["one-stream"] = 0 if elsewhere else min(cost["one-stream"], compute)
    rest = {w for w in own if w.name not in (GEMM, ADD, RELU)}
    cost["fp32-gemm"] = sum(ns for w, ns in own.items() if w.name == GEMM)
    for stream in kernel_streams:
        chain = []
        end = 0
        for w in [*sorted((w for w in job.works if w.stream == stream), key=in_time),
                  None]:
            if chain and (w is None or w.name not in (ADD, RELU) or
                          w.begin - end > CHAIN_GAP_NS):
                times = [own.get(k, 0) for k in chain]
                if len(chain) >= 3:
                    cost["unfused-elementwise"] += sum(times) - max(times)
                    rest.add(chain[times.index(max(times))])
                else:
                    rest.update(chain)
                chain, end = [], 0
            if w and w.name in (ADD, RELU):
                chain.append(w)
                end = max(end, w.end)
    cost["tiny-kernels"] = sum(min(own.get(w, 0), START_NS) for w in rest
                               if w.end - w.begin < TINY_NS)
    return cost
