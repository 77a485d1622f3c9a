# SPDX-License-Identifier: Apache-2.0
"""What the simulated CUPTI made and delivered, and its comparison with the device's records."""

import collections
import dataclasses
import functools
import re
import struct

import stream_reader
import truth

# From the time that the log has to ours: CLOCK_MONOTONIC sampled now and then by both sides.
TOLERANCE_NS = 100_000

ASKED = {stream_reader.TYPE_NUMBERS[what] for what in ("device", "context")}  # not of CUPTI
TYPES = set(range(stream_reader.TYPE_NUMBERS["kernel"],
                  stream_reader.TYPE_NUMBERS["stream"] + 1)) - ASKED


@dataclasses.dataclass(slots=True)
class Line:
    """A line of the log's layers P, A or B."""
    tid: int
    seq: int
    layer: str
    what: str
    begin: int
    end: int
    result: int
    values: dict


@functools.lru_cache(1 << 16)  # most of them come again and again
def _value(text):
    return int(text) if re.fullmatch(r"-?[0-9]+", text) else text


def read_log(path):
    lines = []
    for text in truth.log_lines(path):
        if text.startswith("C\t"):  # only counted
            continue
        tid, seq, layer, _, what, begin, end, result, _, *args = text.split("\t")
        if layer in "PAB":
            pairs = (arg.partition("=")[::2] for arg in args)
            lines.append(Line(int(tid), int(seq), layer, what, int(begin), int(end),
                              None if result.startswith("-") else int(result),
                              {k: _value(v) for k, v in pairs}))
    return lines


def dim3(values, stem):
    x, y, z = (values.get(stem + axis, 0) for axis in "XYZ")
    return x, min(y, 65535), min(z, 65535)


def _before(values, member):
    at = values.get(member, 0)
    return values["start"] - at if 0 < at < values["start"] else 0


def _numbers(values, *members):
    return [values.get(member, 0) for member in members]


PLACE = ("deviceId", "contextId", "streamId")


def _kernel(v):
    return [*_numbers(v, *PLACE), v.get("name"), dim3(v, "grid"), dim3(v, "block"),
            *_numbers(v, "registersPerThread", "staticSharedMemory", "dynamicSharedMemory",
                      "localMemoryTotal"),
            _before(v, "queued"), _before(v, "submitted"),
            *_numbers(v, "graphId", "graphNodeId"), dim3(v, "cluster"),
            *_numbers(v, "channelID")]


COPY = (*PLACE, "copyKind", "srcKind", "dstKind", "bytes", "flags", "graphId", "graphNodeId",
        "channelID")


def _copy(v):
    return [*_numbers(v, *COPY), 0, 0, 0, 0]


def _peer(v):
    ends = _numbers(v, "srcDeviceId", "srcContextId", "dstDeviceId", "dstContextId")
    return [*_numbers(v, *COPY), *(end + 1 for end in ends)]


def _members(*members):
    return lambda v: _numbers(v, *members)


def _memory(v):
    local = v.get("memoryPoolConfig_memoryPoolType") == 1
    return [*_numbers(v, "memoryOperationType", "memoryKind", "address", "bytes", *PLACE, "PC",
                      "isAsync", "memoryPoolConfig_address"),
            v.get("memoryPoolConfig_pool_size", 0) + 1 if local else 0]


# Kind -> our type's name, its arguments.
KINDS = {
    10: ("kernel", _kernel), 1: ("copy", _copy), 22: ("copy", _peer),
    2: ("set", _members(*PLACE, "value", "bytes", "memoryKind", "flags", "graphId", "graphNodeId",
                        "channelID")),
    38: ("sync", _members("type", "contextId", "streamId", "cudaEventId")),
    51: ("graph", _members(*PLACE[:2], "streamId", "graphId")),
    17: ("overhead", _members("overheadKind", "objectKind", "objectId_pt_processId",
                              "objectId_pt_threadId")),
    49: ("memory", _memory),
    50: ("pool", _members("memoryPoolOperationType", "memoryPoolType", "address", "deviceId",
                          "minBytesToKeep", "size", "utilizedSize")),
    37: ("stream", _members("streamId", "contextId", "priority", "flag")),
}
KERNEL, COPY_KIND, SET, SYNC, GRAPH, OVERHEAD, MEMORY, POOL = 10, 1, 2, 38, 51, 17, 49, 50
DEVICE_WORK = {10, 1, 22, 2, 51}
INFO = {37}


def rows(process):
    """(type's name, correlation, arguments, begin, end) of each device record."""
    names = {r.args[0]: r.text.decode() for r in process.records
             if r.type == stream_reader.TYPE_NUMBERS["kernel_name"]}
    found = []
    for record in process.records:
        if record.type not in TYPES:
            continue
        args = list(record.args)
        what = stream_reader.TYPE_NAMES[record.type]
        if what == "kernel":
            args[3] = names.get(args[3])
            for i in (4, 5, 14):
                args[i] = struct.unpack("<IHH", struct.pack("<Q", args[i]))
        found.append((what, record.correlation, tuple(args), record.begin, record.end))
    return found


def _times(line):
    """What the client's buffer holds; None for a record without times."""
    if line.values["kind"] in INFO:
        return None
    if "timestamp" in line.values:
        return line.values["timestamp"], line.values["timestamp"]
    return line.values["start"], line.values["end"]


def _described(line):
    what, args_of = KINDS[line.values["kind"]]
    return what, line.values.get("correlationId", 0), tuple(args_of(line.values))


def delivered(lines):
    """B lines of the kinds that are recorded, without those that have no times."""
    return [b for b in lines if b.layer == "B" and b.values["kind"] in KINDS and
            (_times(b) is None or all(_times(b)))]


def made(lines):
    return {a.values["record"]: a for a in lines if a.layer == "A" and a.values["kind"] in KINDS}


def compare_rows(process, lines, clock=True, tolerance=TOLERANCE_NS):
    """Asserts that each record that was delivered is in the recording, once, as it was; how many of
    each kind. `clock`: the client's times are on our clock."""
    wanted, got = collections.defaultdict(list), collections.defaultdict(list)
    for line in delivered(lines):
        wanted[_described(line)].append(line)
    for what, correlation, args, begin, end in rows(process):
        got[what, correlation, args].append((begin, end))
    missing = {k: v for k, v in wanted.items() if len(v) > len(got[k])}
    assert not missing, \
        f"missing: {list(missing)[:3]} have {[k for k in got if k not in wanted][:3]}"
    surplus = [k for k, v in got.items() if len(v) > len(wanted.get(k, ()))]
    assert not surplus, f"too many: {surplus[:3]}"
    convert = process.monotonic()
    for key, same in wanted.items():
        for line, (begin, end) in zip(sorted(same, key=lambda b: (b.begin, b.end)),
                                      sorted(got[key])):
            if _times(line) is None:
                continue
            if clock:
                start, stop = _times(line)
                assert abs(begin - start) <= 1 and abs(end - stop) <= 2, (key, begin, line)
            assert abs(convert(begin) - line.begin) <= tolerance, (key, convert(begin), line)
            assert abs(convert(end) - line.end) <= tolerance, (key, convert(end), line)
    return collections.Counter(line.values["kind"] for line in delivered(lines))


def compare_correlation(process, lines, pairs, blind=()):
    """Asserts that each record's correlation id is that of the call which made it, and of no other;
    how many records were tied. `pairs`: ((tid, seq) of the log, our call). A record made by a call
    that is not recorded (a stream's creation, say) has an id that no call has. `blind`: (tid, seq)
    of calls that this CUPTI does not tell of."""
    links = collections.defaultdict(set)
    for record in process.records:
        if record.type == stream_reader.TYPE_NUMBERS["link"]:
            links[record.correlation].add(record.args[0])
    calls = collections.defaultdict(set)
    by_seq = {}
    for key, call in pairs:
        by_seq[key] = call
        for correlation in {call.correlation, *links[call.correlation]} - {0}:
            calls[correlation].add(key)
    doubled = [c for c, keys in calls.items() if len(keys) > 1]
    assert not doubled, f"calls share a correlation id: {doubled[:5]}"
    count = 0
    for a in made(lines).values():
        correlation = a.values.get("correlationId", 0)
        if not correlation:
            assert a.values["kind"] in INFO or "correlationId" not in a.values, a
            continue
        key = (a.tid, a.seq)
        if key in by_seq and key not in blind:
            assert calls[correlation] == {key}, (a, by_seq[key], calls[correlation])
            count += 1
        else:
            assert correlation not in calls, (a, calls[correlation])
    return count


def blind(log, names):
    """(tid, seq) of the program's calls of which no part is called by one of those names."""
    found, sees = {}, set()
    for lines in truth.read_log(log):
        for line in lines:
            if line.depth == 0:
                key = (line.tid, line.seq)
                found[key] = line
            if line.symbol in names:
                sees.add(key)
    return set(found) - sees


def pair(process, log, seen):
    """((tid, seq), call) of the calls that must be recorded: `seen(line)` says whether a line of
    the log is of a kind that gpuprof sees. The outermost such line is the call."""
    recorded, truth_of = collections.defaultdict(list), collections.defaultdict(list)
    for call in process.calls():
        recorded[call.tid].append(call)
    for lines in truth.read_log(log):
        stack, outermost = [], 0
        for line in lines:
            del stack[line.depth:]
            outermost = line.seq if line.depth == 0 else outermost
            sees = not truth.UNRECORDED.fullmatch(line.symbol) and seen(line)
            inside = any(stack)
            stack += [False] * (line.depth - len(stack)) + [sees]
            if sees and not inside:
                truth_of[line.tid].append(((line.tid, outermost), line))
    assert set(recorded) == set(truth_of), "other threads than the log's"
    pairs = []
    for tid, calls in recorded.items():
        calls = [c for c in calls if not c.flags & stream_reader.NESTED]
        symbols = [line.symbol for _, line in truth_of[tid]]
        differing = [i for i, (call, symbol) in enumerate(zip(calls, symbols))
                     if call.symbol not in (symbol, f"{symbol}_v2")]  # up to 12.x CUPTI's name
        assert not differing, (differing[0], symbols[differing[0]], calls[differing[0]].symbol)
        assert len(calls) == len(symbols)
        for (key, line), call in zip(truth_of[tid], calls):
            assert call.result == line.result, (line, call)
            assert bool(call.flags & stream_reader.CAPTURED) == line.captured, (line, call)
            pairs.append((key, call))
    return pairs
