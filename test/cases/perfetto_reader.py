# SPDX-License-Identifier: Apache-2.0
"""A second reader of Perfetto's track events, from the numbers of fields that its .proto files
publish: what a trace has of slices, instants, counters and arrows, as the JSON trace has them."""

import struct
import zlib

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
FLOW_IN, FLOW_OUT = 1, 2
REALTIME, BOOTTIME, STEPS = 1, 6, 64  # clocks; the last is the sequence's own


def fields(data):
    """(number, value) of a message: an integer, 8 bytes, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        elif tag & 7 == 1:
            yield tag >> 3, data[at:at + 8]
            at += 8
        else:
            assert tag & 7 == 2, "a wire type that Perfetto does not use"
            length = varint()
            assert at + length <= len(data)
            yield tag >> 3, data[at:at + length]
            at += length


def one(data):
    """The last value of each field."""
    return dict(fields(data))


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def packets(data):
    for number, packet in fields(data):
        assert number == 1 and len(packet) < 512 << 10
        packed = [value for field, value in fields(packet) if field == 50]
        if packed:
            yield from packets(zlib.decompress(packed[0]))
        else:
            yield packet


class Trace:
    """Rows are (pid, tid), (pid, None) of a process, None of all; times in ns."""

    def __init__(self, data):
        self.names = {table: {} for table in (1, 2, 3, 5, 17, 29)}
        self.frames, self.mappings, self.stacks = {}, {}, {}  # of samples, by number
        self.samples = []  # ((pid, tid), ns, (frame, its module) from the outermost in, mode)
        self.tracks = {0: None}
        self.processes, self.threads, self.labels = {}, {}, {}
        self.slices, self.instants, self.counters, self.arrows = [], [], [], []
        self.sources, self.flows = {}, []  # of arrows that slices say: by number; (source, target)
        self.clocks, steps_ns = {}, 0
        self.shown = {}  # what viewers show first, ns: its begin (2) and its end (5)
        opened, self.sequences, states, events = {}, set(), [], []
        for packet in packets(data):
            p = one(packet)
            self.sequences.add(p[10])
            states.append(p.get(13, 0))
            if 6 in p:
                self.clocks.update((one(c)[1], one(c)[2]) for n, c in fields(p[6]) if n == 1)
                assert one(p[59]) == {58: STEPS} and self.clocks.pop(STEPS) == 0
            if 12 in p:
                for table, entry in fields(p[12]):
                    self.intern(table, entry)
            if 60 in p:
                self.describe(p[60])
            if 69 in p:
                assert p[58] == BOOTTIME
                self.shown.update((what, p[8]) for what in one(p[69]))
            if 11 in p:
                assert p.get(58, BOOTTIME) == BOOTTIME
                steps_ns += 0 if 58 in p else p[8]
                events.append((p[8] if 58 in p else steps_ns, p[11]))
            if 66 in p:
                steps_ns += 0 if 58 in p else p[8]
                sample = one(p[66])
                self.samples.append(((sample[2], sample[3]), p[8] if 58 in p else steps_ns,
                                     self.stacks[sample[4]], sample[5]))
        assert states[0] & 1 and not any(state & 1 for state in states[1:])
        for ns, event in sorted(events, key=lambda event: event[0]):
            self.take(ns, event, opened)
        assert not any(opened.values()), "each slice has an end"
        self.flows = [(self.sources[number], target) for number, target in self.flows]

    def intern(self, table, data):
        entry = one(data)
        if table == 19:
            self.mappings[entry[1]] = self.names[17][entry[7]]
        elif table == 6:
            self.frames[entry[1]] = self.names[5][entry[2]], self.mappings[entry[3]]
        elif table == 7:
            self.stacks[entry[1]] = tuple(self.frames[v] for n, v in fields(data) if n == 2)
        else:
            text = entry[2].decode()
            assert self.names[table].setdefault(entry[1], text) == text

    def describe(self, data):
        track = one(data)
        if 3 in track:
            process = one(track[3])
            self.tracks[track[1]] = (process[1], None)
            if 6 in process:
                self.processes[process[1]] = process[6].decode()
            if 8 in process:
                self.labels[process[1]] = process[8].decode()
        elif 4 in track:
            thread = one(track[4])
            self.tracks[track[1]] = (thread[1], thread[2])
            if 5 in thread:
                self.threads[thread[1], thread[2]] = thread[5].decode()
        else:
            assert 8 in track
            self.tracks[track[1]] = (self.tracks[track[5]][0], track[2].decode())

    def value(self, data):
        items = [self.value(v) for n, v in fields(data) if n == 12]
        entries = {self.key(v): self.value(v) for n, v in fields(data) if n == 11}
        v = one(data)
        for number, read in ((2, bool), (4, signed), (5, lambda b: struct.unpack("<d", b)[0]),
                             (6, bytes.decode)):
            if number in v:
                return read(v[number])
        if 17 in v:
            return self.names[29][v[17]]
        return items or entries

    def key(self, data):
        v = one(data)
        return self.names[3][v[1]] if 1 in v else v[10].decode()

    def take(self, ns, data, opened):
        e = one(data)
        row = self.tracks[e[11]]
        args = {self.key(v): self.value(v) for n, v in fields(data) if n == 4}
        name = self.names[2][e[10]] if 10 in e else e[23].decode() if 23 in e else None
        category = self.names[1].get(e.get(3))
        legacy = one(e[6]) if 6 in e else {}
        if legacy.get(13) == FLOW_OUT:
            assert self.sources.setdefault(legacy[8], (row, ns)) == (row, ns)
        elif legacy.get(13) == FLOW_IN:
            self.flows.append((legacy[8], (row, ns)))
        if 2 in legacy:
            self.arrows.append((chr(legacy[2]), row, ns, category, legacy[6], legacy.get(12, 0)))
        elif e[9] == BEGIN:
            opened.setdefault(row, []).append((category, name, row, ns, args))
        elif e[9] == END:
            category, name, row, begin, args = opened[row].pop()
            self.slices.append((category, name, row, begin, ns - begin, args))
        elif e[9] == INSTANT:
            self.instants.append((category, name, row, ns, args))
        else:
            assert e[9] == COUNTER
            value = signed(e[30]) if 30 in e else struct.unpack("<d", e[44])[0]
            self.counters.append((row, ns, value))
