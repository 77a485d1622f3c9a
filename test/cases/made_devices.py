# SPDX-License-Identifier: Apache-2.0
"""Recordings of what NVML says of devices, whose power at each moment is known: what the counters
say, and what the truth is, in integers of this file alone."""

import bisect

import stream_reader

TYPES = stream_reader.TYPE_NUMBERS
MAIN, DEVICE = 1, 2
MS = 10**6
S = 10**9
RANK = 400
POWER_CAP, SW_THERMAL = 0x4, 0x20


def known(value):
    return 0 if value is None else int(value) + 1


class Board:
    """A device: its power (mW) from each of the times (ns) on, its counter's period and lag."""

    def __init__(self, profile, period=100 * MS, phase=0, start_mj=5 * 10**9):
        self.times = [at for at, _ in profile]
        self.powers = [mw for _, mw in profile]
        self.period, self.phase, self.start = period, phase, start_mj
        self.sums = [0]  # mJ until each of the times
        for i in range(1, len(self.times)):
            self.sums.append(self.sums[-1] + self.powers[i - 1] *
                             (self.times[i] - self.times[i - 1]) / S)
        self.jumps = []  # (at, the counter begins anew with)
        self.throttled = []  # (begin, end, reason), one after another

    def power(self, at):
        return self.powers[max(0, bisect.bisect_right(self.times, at) - 1)]

    def energy(self, at):
        """The truth, in mJ."""
        i = max(0, bisect.bisect_right(self.times, at) - 1)
        return self.sums[i] + self.powers[i] * (at - self.times[i]) / S

    def between(self, begin, end):
        return self.energy(end) - self.energy(begin)

    def counter(self, at):
        """What it reads: the truth as it was when the counter last moved on."""
        moved = at - (at - self.phase) % self.period
        base, zero = self.start, 0
        for jump, begins in self.jumps:
            if at >= jump:
                base, zero = begins, self.energy(jump)
                moved = max(moved, jump)
        return int(base + self.energy(moved) - zero)

    def throttled_ns(self, at, reason):
        return sum(min(at, end) - begin for begin, end, why in self.throttled
                   if why == reason and begin < at)

    def reasons(self, at):
        bits = {"power": POWER_CAP, "thermal": SW_THERMAL}
        return sum(bits[why] for begin, end, why in self.throttled if begin <= at < end)


class Job:
    """A process, whose devices are read every so often."""

    def __init__(self, rank=RANK):
        self.rank, self.records, self.names, self.sources = rank, [], {}, 0
        self.samples = dict.fromkeys(("device_use", "device_power", "device_clocks",
                                      "device_links", "device_gpm"), 0)

    def add(self, kind, thread, begin, ns=0, correlation=0, code=0, args=(), text=""):
        args = ",".join(map(str, args)) or "-"
        self.records.append((thread, begin, f"{TYPES[kind]} {thread} {begin} {ns} {correlation} 0 "
                             f"{code} 0 {args} {text}"))

    def source(self, device=0, uuid=None, mig=(0, 0), period=100 * MS, at=1000, title="Made GPU"):
        self.sources += 1
        uuid = (7, 1000 * self.rank + (device or 0)) if uuid is None else uuid
        self.add("device_source", DEVICE, at, args=(self.sources, known(device), *uuid, *mig,
                                                    period), text=title)
        return self.sources

    def sample(self, kind, source, at, *values, ns=40000):
        """Begun so that the middle of its reading is at that time."""
        self.samples[kind] += 1
        self.add(kind, DEVICE, at - ns // 2, ns, args=(source, *map(known, values)))

    def read(self, board, source, begin, end, every, dice=None, energy=True, throttle=True):
        at, times = begin, []
        while at < end:
            times.append(at)
            self.sample("device_power", source, at, board.counter(at) if energy else None,
                        board.power(at), None, None, 700000, 61, None)
            counters = [board.throttled_ns(at, "power"), board.throttled_ns(at, "thermal"), 0, 0,
                        0, 0] if throttle else [None] * 6
            self.sample("device_clocks", source, at + 60000, 1500, 2600, 1980, board.reasons(at),
                        *counters)
            at += every + (dice.randrange(-every // 5, every // 5) if dice else 0)
        return times

    def step(self, at, number):
        self.add("step", MAIN, at, args=(number,))

    def range(self, begin, end, text):
        self.add("push", MAIN, begin, args=(0, 0, 0, 0, 0, 0), text=text)
        self.add("pop", MAIN, end, args=(0,))

    def call(self, at):
        self.add("call", MAIN, at, 1000, len(self.records) + 1, "cudaDeviceSynchronize")

    def lines(self):
        return [f"process {self.rank}",
                *(line for _, _, line in sorted(self.records, key=lambda r: r[:2]))]


def random_profile(dice, until, lowest=60000, highest=700000):
    """Idle, full, and anything between, for 1 to 400 ms each."""
    profile, at = [], 0
    while at < until:
        profile.append((at, dice.choice((lowest, highest, dice.randrange(lowest, highest)))))
        at += dice.randrange(1, 400) * MS
    return profile
