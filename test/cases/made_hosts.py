# SPDX-License-Identifier: Apache-2.0
"""Recordings of one job on several hosts, whose clocks are wrong by what is known here."""

import random

import stream_reader

TYPES = stream_reader.TYPE_NUMBERS
MAIN, DEVICE = 1, 2
US, MS, S = 1000, 10**6, 10**9
BEGIN = 1_750_000_000 * S  # of the job, on the true clock
STREAM = 0x77


class Host:
    """Its wall clock says `t + offset + drift * (t - BEGIN) + wander(t - BEGIN)` at the true time
    t; its monotonic clock is that less a number of its own."""

    def __init__(self, number, offset=0, drift=0.0, wander=lambda t: 0.0, name=None):
        self.number, self.offset, self.drift, self.wander = number, offset, drift, wander
        self.name = name or f"host{number}"
        self.monotonic = 10**12 * (number + 3)

    def shown(self, true_ns):
        """What its wall clock says."""
        since = true_ns - BEGIN
        return round(true_ns + self.offset + self.drift * since + self.wander(since))


class Rank:
    def __init__(self, number, host):
        self.number, self.host, self.lines, self.calls = number, host, [], 0
        self.zero = host.shown(BEGIN)
        self.handles = {}
        self.add(0, "kernel_name", DEVICE, 1, args=(1,), text="ncclDevKernel_AllReduce_Sum_f32")

    def at(self, true_ns):
        """The process's time."""
        return self.host.shown(true_ns) - self.zero

    def add(self, order, kind, thread, begin, ns=0, correlation=0, code=0, args=(), text=""):
        args = ",".join(map(str, args)) or "-"
        self.lines.append((thread, begin, order, f"{TYPES[kind]} {thread} {begin} {ns} "
                           f"{correlation} 0 {code} 0 {args} {text}"))

    def communicator(self, number, ranks):
        self.handles[number] = 0x1000 + number
        self.add(0, "communicator", MAIN, 2, args=(0x1000 + number, number, self.number, ranks, 0))

    def collective(self, communicator, sequence, call, begin, end, function="ncclAllReduce",
                   has_kernel=True):
        """Called, begun on the device and ended there at true times."""
        at = self.at(call)
        self.calls += 1
        given = (self.handles[communicator], sequence, 1024, 7, STREAM, 0)
        self.add(0, "library_begin", MAIN, at, code=function, args=given)
        self.add(1, "call", MAIN, at + 2 * US, 3 * US, self.calls, "cudaLaunchKernel",
                 (1, 1, 1, 1, 1, 0, STREAM))
        self.add(2, "library_end", MAIN, at + 8 * US, code=function, args=(0,) * 6)
        if has_kernel:
            self.kernel(self.calls, begin, end)

    def kernel(self, correlation, begin, end):
        self.add(0, "kernel", DEVICE, self.at(begin), self.at(end) - self.at(begin), correlation,
                 args=(0, 1, 7, 1, 1, 1))

    def mark(self, true_ns):
        """A call by which a test sees where that moment is shown."""
        self.add(0, "call", MAIN, self.at(true_ns), US, code="cudaFree", args=(0,))

    def text(self, seconds):
        monotonic = self.zero - BEGIN + self.host.monotonic
        for second in range(1, seconds + 1):
            true = BEGIN + second * S
            self.add(0, "anchor", 0, self.at(true), args=(monotonic + self.at(true),
                                                          self.host.shown(true)))
        yield (f"process {self.number} {self.host.name} {self.host.number + 1} "
               f"{monotonic} {self.zero}")
        # Where the thread changes a block ends: once a second, as the library does it.
        yield from (line for *_, line in sorted(
            self.lines, key=lambda line: (line[1] // S, *line[:3])))


class Job:
    """Ranks whose collectives end `jitter` apart; some end late, or are not recorded."""

    def __init__(self, rng, ranks, jitter=3 * US, late=0.05, lost=0.02):
        self.rng, self.ranks, self.jitter, self.late, self.lost = rng, ranks, jitter, late, lost
        self.sequence, self.last = {}, 0

    def communicator(self, number, members):
        self.sequence[number] = 0, members
        for rank in members:
            self.ranks[rank].communicator(number, len(members))

    def collective(self, communicator, at, straggler=None, **more):
        """The last to come begins a little later than the others, and all end together."""
        number, members = self.sequence[communicator]
        self.sequence[communicator] = number + 1, members
        begins = {rank: at + self.rng.uniform(0, 200) * US +
                  (5 * MS if rank == straggler else 0) for rank in members}
        end = max(begins.values()) + 100 * US
        for rank in members:
            own = end + abs(self.rng.gauss(0, self.jitter))
            if self.rng.random() < self.late:
                own += self.rng.uniform(20, 20000) * US
            self.ranks[rank].collective(communicator, number + 1, begins[rank] - 50 * US,
                                        begins[rank], own,
                                        has_kernel=self.rng.random() >= self.lost, **more)

    def mark(self, seconds):
        """Once a second; it ends then."""
        self.last = seconds * S
        for rank in self.ranks:
            for second in range(seconds + 1):
                rank.mark(BEGIN + second * S)

    def lines(self):
        for rank in self.ranks:
            yield from rank.text(self.last // S)


def random_hosts(rng, count):
    """The first one's clock is right."""
    return [Host(i, rng.randint(-3 * S, 3 * S) if i else 0, rng.uniform(-1e-4, 1e-4) if i else 0.0)
            for i in range(count)]
