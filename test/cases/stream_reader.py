# SPDX-License-Identifier: Apache-2.0
"""A second reader of gpuprof's files, written from formats/event-stream.md and nothing else.

    for process in read_folder("gpuprof-out"):
        for record in process.records: ...

It decides nothing: whatever breaks a rule of the specification raises StreamError. A torn end of a
stream file and a live file of a killed process are part of the format and do not.
"""

import array
import bisect
import dataclasses
import os
import pathlib
import struct
import subprocess
import sys

try:
    import zstandard
except ImportError:  # Debian's python3-zstandard is optional: the command does as well
    zstandard = None

HEADER_MAGIC, BLOCK_MAGIC = 0x184D2A5A, 0x184D2A5B
HEADER_BYTES_MAX, BLOCK_HEADER_BYTES_MAX = 2048, 512
HOST_BYTES_MAX, PATH_BYTES_MAX = 64, 1024
RECORDS_MAX, SHAPES_MAX, ARGS_MAX, TEXT_MAX = 8192, 256, 16, 8192
PAYLOAD_MAX, STORED_MAX = 4194304, 4198400
LIVE_MAGIC = 0x3145564950554700
AFTER_GAP, OF_STATE = 1, 2  # flags of blocks
FLIGHT_MAGIC, FLIGHT_AT = 0x3147494C46504700, 2088
LIVE_HEAD, CHUNK_HEAD, COUNTERS_AT, OPEN_MAX = 4096, 64, 2176, 4

CALL, NAME, THREAD, ANCHOR, COUNTER, META, API, NOTE, END = range(1, 10)
PUSH, POP, RANGE_START, RANGE_END, MARK, LABEL, STEP, PAUSE = range(23, 31)
MODULE, PYTHON, STACK, COST, COST_SUM, STEP_DOWN = range(31, 37)
OP_BEGIN, OP_END, OP_NAME, OP_INPUTS, OP_THREAD = range(37, 42)
LIBRARY_BEGIN, LIBRARY_END, LIBRARY_PLAN, COMMUNICATOR, RESIDENT, WINDOW, DUMP = range(46, 53)
(DEVICE_SOURCE, DEVICE_ABSENT, DEVICE_USE, DEVICE_POWER, DEVICE_CLOCKS, DEVICE_LINKS,
 DEVICE_GPM) = range(53, 60)
TYPE_NAMES = dict(enumerate((
    "call name thread anchor counter meta api note end "
    "kernel copy set sync graph overhead memory pool device context stream kernel_name link "
    "push pop range_start range_end mark label step pause module python stack "
    "cost cost_sum step_down op_begin op_end op_name op_inputs op_thread "
    "callback content tensor tensor_oom "
    "library_begin library_end library_plan communicator resident window dump "
    "device_source device_absent device_use device_power device_clocks device_links "
    "device_gpm").split(), 1))
TYPE_NUMBERS = {name: number for number, name in TYPE_NAMES.items()}
CAPTURED, NESTED, STALE, EXTENDED, BYTES, OPEN, TRACED = 1, 2, 4, 8, 16, 32, 64
COUNTERS = ("dropped", "unrecorded", "names_dropped", "names_truncated", "write_lost", "stale",
            "waits", "capture_overflow", "ended", "gpu_dropped", "gpu_timeless", "gpu_strange_time",
            "gpu_damaged", "gpu_yields", "gpu_unflushed", "texts_truncated", "ranges_dropped",
            "stacks_dropped", "stackless", "passed_by", "passed_failed", "overwritten",
            "graph_untied", "op_inputs_dropped", "tensors_dropped")
LOSSES = (*COUNTERS[:5], *COUNTERS[8:15], *COUNTERS[16:18], *COUNTERS[21:25])
U64 = (1 << 64) - 1


class StreamError(Exception):
    """The file is not what the specification says."""


def need(condition, what):
    if not condition:
        raise StreamError(what)


# ---- CRC-32C -----------------------------------------------------------------------------------

def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC = _crc_table()


def crc32c(data):
    crc, table = 0xFFFFFFFF, _CRC
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


# ---- What comes out ----------------------------------------------------------------------------

@dataclasses.dataclass(slots=True)
class Record:
    type: int
    flags: int
    code: int
    begin: int  # ns on the process's own scale
    duration: int
    result: int
    correlation: int
    stack: int
    weight: int
    args: tuple
    text: bytes
    thread: int
    live: bool = False  # it was only in the live file

    @property
    def end(self):
        return self.begin + self.duration


@dataclasses.dataclass(slots=True)
class Function:
    symbol: str
    domain: str
    cls: str
    args: list  # of (kind, label)


@dataclasses.dataclass(slots=True)
class Call:
    """A call record with everything that other records say about it."""
    symbol: str
    domain: str
    cls: str
    thread: int
    tid: int
    begin: int
    end: int
    result: int
    flags: int
    args: dict  # label -> value; dim3 as a tuple, a kernel as its handle
    kernel: str  # its name, None if no record names it
    live: bool
    correlation: int


@dataclasses.dataclass(slots=True)
class Header:
    version: int
    api_crc: int
    process_id: bytes
    boot_id: bytes
    pid_namespace: int
    start_time: int
    pid: int
    parent_pid: int
    clock_source: int
    ticks_zero: int
    mult: int
    monotonic_zero: int
    realtime_zero: int
    host: str
    live_path: str
    monotonic_shift: int
    counters: tuple  # of a recording that ended before its process
    bytes: int

    def ns(self, ticks):
        return (ticks - self.ticks_zero) * self.mult >> 32 if ticks > self.ticks_zero else 0


@dataclasses.dataclass(slots=True)
class Block:
    thread: int
    record_count: int
    sequence: int
    begin: int
    end: int
    before: int
    after: int
    payload_bytes: int
    stored_bytes: int
    stored_crc: int
    stored_at: int
    flags: int = 0
    types: int = 0  # bit n: there is a record of type n; 0: an older writer


@dataclasses.dataclass
class Process:
    path: pathlib.Path
    header: Header
    blocks: list
    records: list            # by thread, by begin
    torn_bytes: int = 0      # an unfinished block at the end
    live_path: pathlib.Path = None  # the live file that was read
    live_counters: dict = dataclasses.field(default_factory=dict)
    functions: dict = dataclasses.field(default_factory=dict)

    def of_type(self, wanted):
        return [r for r in self.records if r.type == wanted]

    @property
    def metas(self):
        return [tuple(r.text.decode("utf-8", "replace").partition("=")[::2])
                for r in sorted(self.of_type(META), key=lambda r: r.begin)]

    @property
    def meta(self):
        return dict(self.metas)

    @property
    def counters(self):
        values = dict.fromkeys(COUNTERS, 0)
        for record in sorted(self.of_type(COUNTER), key=lambda r: r.begin):
            values[record.text.decode()] = record.args[0]
        values.update(self.live_counters)  # these are the newest
        for name, value in zip(COUNTERS, self.header.counters):
            values[name] = max(values[name], value)
        return values

    @property
    def losses(self):
        return {name: value for name, value in self.counters.items() if name in LOSSES and value}

    @property
    def end_reason(self):
        ends = self.of_type(END)
        return ends[-1].args[0] if ends else None

    def monotonic(self):
        """A function from the process's own ns to CLOCK_MONOTONIC."""
        points = [(0, self.header.monotonic_zero)]
        for record in sorted(self.of_type(ANCHOR), key=lambda r: r.begin):
            if record.begin - points[-1][0] >= 1_000_000:
                points.append((record.begin, record.args[0]))
        if len(points) == 1:
            return lambda ns: ns + self.header.monotonic_zero
        ours = [p[0] for p in points]

        def convert(ns):
            i = min(max(bisect.bisect_right(ours, ns), 1), len(points) - 1)
            (x0, y0), (x1, y1) = points[i - 1], points[i]
            return y0 + (ns - x0) * (y1 - y0) // (x1 - x0)
        return convert

    def calls(self):
        """The call records in order of thread and begin."""
        names, tids = {}, {}
        for record in self.of_type(NAME):
            names.setdefault(record.args[0], []).append((record.begin, record.text.decode()))
        for definitions in names.values():
            definitions.sort()
        for record in self.of_type(THREAD):
            tids[record.thread] = record.args[0]
        calls = []
        for record in self.of_type(CALL):
            function = self.functions[record.code]
            args, kernel = {}, None
            for i, ((kind, label), value) in enumerate(zip(function.args, record.args)):
                if kind == "dim3":
                    value = (value & 0xFFFFFFFF, value >> 32 & 0xFFFF, value >> 48)
                elif kind == "dim3_xy":
                    value = (value & 0xFFFFFFFF, value >> 32, record.args[i + 1])
                elif kind == "dim3_z":
                    continue
                elif kind == "kernel":
                    known = [n for at, n in names.get(value, ()) if at <= record.begin]
                    kernel = known[-1] if known else None
                args[label] = value
            calls.append(Call(function.symbol, function.domain, function.cls, record.thread,
                              tids.get(record.thread), record.begin, record.end, record.result,
                              record.flags, args, kernel, record.live,
                              record.correlation))
        return calls


# ---- Operators ---------------------------------------------------------------------------------

@dataclasses.dataclass(slots=True)
class Op:
    """An operator of PyTorch's, or a label."""
    name: str  # None: no record says it
    scope: int
    traced: bool
    sequence: int  # None: it has none
    forward_thread: int
    inputs: list  # None: not known
    thread: int
    own_thread: int  # PyTorch's number of its thread; None: no record says it
    begin: int
    stack: int = 0  # number of its record; 0: none
    end: int = None  # None: it did not end
    end_thread: int = None


def _varint(data, at):
    value = shift = 0
    while True:
        need(at < len(data) and shift < 70, "inputs: varint cut off")
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def _value(data, at):
    """One value, as (kind, ...), and where it ends."""
    need(at < len(data), "inputs: cut off")
    kind, at = data[at], at + 1
    if kind == 1:
        need(at + 2 <= len(data), "inputs: tensor cut off")
        dtype, count, sizes = data[at], data[at + 1], []
        for _ in range(count):
            size, at = _varint(data, at + 2 if not sizes else at)
            sizes.append(size)
        return ("tensor", dtype, sizes), at if sizes else at + 2
    if kind == 3:
        value, at = _varint(data, at)
        return ("int", value >> 1 ^ -(value & 1)), at
    if kind == 4:
        need(at + 8 <= len(data), "inputs: number cut off")
        return ("double", struct.unpack_from("<d", data, at)[0]), at + 8
    if kind == 5:
        need(at < len(data), "inputs: bool cut off")
        return ("bool", bool(data[at])), at + 1
    if kind == 6:
        count, at = _varint(data, at)
        values = []
        while len(values) < count and (not values or values[-1] != ("cut",)):
            value, at = _value(data, at)
            values.append(value)
        return ("list", values), at
    plain = {0: "none", 2: "undefined", 7: "other", 8: "unread", 9: "scalar", 10: "cut"}
    need(kind in plain, f"inputs: kind {kind}")
    return (plain[kind],), at


def read_inputs(data):
    """What an operator was called with, from the bytes of an op_inputs record."""
    values, at = [], 0
    while at < len(data):
        value, at = _value(data, at)
        values.append(value)
    return values


def read_ops(process):
    """The operators of a process by thread and begin, each with its end."""
    names = {r.args[0]: r.text.decode("utf-8", "replace") for r in process.of_type(OP_NAME)}
    inputs = {r.args[0]: read_inputs(r.text) for r in process.of_type(OP_INPUTS)}
    threads = {r.thread: r.args[0] for r in process.of_type(OP_THREAD)}
    ops, open_ops = [], {}
    # Of one thread's records with one time the first was made first.
    for record in sorted((r for r in process.records if r.type in (OP_BEGIN, OP_END)),
                         key=lambda r: r.begin):
        if record.type == OP_END:
            op = open_ops.pop(record.args[0], None)
            if op:
                op.end, op.end_thread = record.begin, record.thread
            continue
        address, name, its, sequence, forward = (*record.args, 0, 0, 0)[:5]
        text = names.get(name) if name else record.text.decode("utf-8", "replace")
        op = Op(text, record.code, bool(record.flags & TRACED), sequence - 1 if sequence else None,
                forward, inputs.get(its), record.thread, threads.get(record.thread), record.begin,
                record.stack)
        ops.append(op)
        open_ops[address] = op
    return sorted(ops, key=lambda op: (op.thread, op.begin))


# ---- The stream header -------------------------------------------------------------------------

def _skippable(data, at, magic, most, what):
    """The frame at `at`: (its bytes without the CRC, its end), or None if it is cut off."""
    if len(data) - at < 8:
        return None
    found, length = struct.unpack_from("<II", data, at)
    need(found == magic, f"{what}: frame magic {found:#x}")
    need(12 <= 8 + length <= most, f"{what}: {length} bytes")
    end = at + 8 + length
    if end > len(data):
        return None
    need(crc32c(data[at:end - 4]) == struct.unpack_from("<I", data, end - 4)[0], f"{what}: CRC")
    return data[at:end - 4], end


def read_header(data):
    frame = _skippable(data, 0, HEADER_MAGIC, HEADER_BYTES_MAX, "stream header")
    need(frame, "stream header: cut off")
    body, end = frame
    need(len(body) >= 120, "stream header: too short")
    need(body[8:16] == b"GPUPROF\0", "stream header: not ours")
    version, zero, api_crc = struct.unpack_from("<HHI", body, 16)
    need(version == 1, f"stream header: version {version}")
    need(zero == 0, "stream header: bytes 18 and 19")
    namespace, start, pid, parent, source, ticks, mult, monotonic, realtime = struct.unpack_from(
        "<QQIIIQQQQ", body, 56)
    need(mult != 0 and source <= 2, "stream header: clock")
    at, texts = 116, []
    for most in (HOST_BYTES_MAX, PATH_BYTES_MAX):
        need(at + 2 <= len(body), "stream header: text cut off")
        length = struct.unpack_from("<H", body, at)[0]
        need(length <= most and at + 2 + length <= len(body), "stream header: text length")
        texts.append(os.fsdecode(body[at + 2:at + 2 + length]))
        at += 2 + length
    shift, counters = 0, ()
    if at < len(body):  # the first writers did not say these
        need(at + 10 <= len(body), "stream header: shift cut off")
        shift, count = struct.unpack_from("<qH", body, at)
        need(at + 10 + 8 * count <= len(body), "stream header: counters cut off")
        counters = struct.unpack_from(f"<{count}Q", body, at + 10)
    return Header(version, api_crc, body[24:40], body[40:56], namespace, start, pid, parent, source,
                  ticks, mult, monotonic, realtime, *texts, shift, counters, end)


# ---- Blocks ------------------------------------------------------------------------------------

def _read_block(data, at):
    """The block at `at`, or None if it was not written to its end."""
    frame = _skippable(data, at, BLOCK_MAGIC, BLOCK_HEADER_BYTES_MAX, f"block at {at}")
    if not frame:
        return None
    body, end = frame
    need(len(body) >= 84 and body[8:12] == b"GPB1", f"block at {at}: magic")
    thread, count, sequence, begin, last, before, after, payload, stored, crc, types, flags = \
        struct.unpack_from("<IIQQQQQIIIQI", body, 12)
    need(1 <= count <= RECORDS_MAX, f"block at {at}: {count} records")
    need(payload <= PAYLOAD_MAX and stored <= STORED_MAX, f"block at {at}: lengths")
    need(begin <= last and (before < after or flags & OF_STATE), f"block at {at}: order")
    need(flags <= 3, f"block at {at}: reserved")
    if end + stored > len(data):
        return None
    return Block(thread, count, sequence, begin, last, before, after, payload, stored, crc, end,
                 flags, types)


def read_blocks(data, at, check=True):
    """(blocks, bytes of an unfinished one at the end)."""
    blocks, afters = [], {}
    while at < len(data):
        block = _read_block(data, at)
        if not block:
            return blocks, len(data) - at
        expected = afters.get(block.thread, 0)
        if not block.flags & AFTER_GAP:
            need(block.sequence == len(blocks), f"block at {at}: sequence number {block.sequence}")
            need(block.before == expected, f"block at {at}: thread {block.thread} at "
                                           f"{block.before}, not {expected}: one is lost")
        if not block.flags & OF_STATE:
            need(block.before >= expected, f"block at {at}: records again")
            afters[block.thread] = block.after
        at = block.stored_at + block.stored_bytes
        if check:
            need(crc32c(data[block.stored_at:at]) == block.stored_crc, "block: CRC of its frame")
        blocks.append(block)
    return blocks, 0


def _decompress(data, blocks):
    frames = [data[b.stored_at:b.stored_at + b.stored_bytes] for b in blocks]
    if zstandard:
        tool = zstandard.ZstdDecompressor()
        payloads = [tool.decompress(f, max_output_size=PAYLOAD_MAX) for f in frames]
    else:
        whole = subprocess.run(["zstd", "-dcq"], input=b"".join(frames), check=False,
                               capture_output=True)
        need(whole.returncode == 0, f"zstd: {whole.stderr.decode()}")
        payloads, at = [], 0
        for block in blocks:
            payloads.append(whole.stdout[at:at + block.payload_bytes])
            at += block.payload_bytes
        need(at == len(whole.stdout), "payload lengths and frames differ")
    for block, payload in zip(blocks, payloads):
        need(len(payload) == block.payload_bytes, "payload length")
    return payloads


class _Payload:
    def __init__(self, data):
        self.data, self.at = data, 0
        self.plane = None  # of the last column, if it has just one

    def take(self, count):
        need(self.at + count <= len(self.data), "payload: cut off")
        self.at += count
        return self.data[self.at - count:self.at]

    def u8(self):
        return self.take(1)[0]

    def u64(self):
        return struct.unpack("<Q", self.take(8))[0]

    def varint(self):
        value = 0
        for shift in range(0, 70, 7):
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                need(value <= U64, "varint: too large")
                return value
        raise StreamError("varint: longer than 10 bytes")

    def planes(self, count, width):
        need(1 <= width <= 8, f"column: width {width}")
        wide = bytearray(8 * count)
        for plane in range(width):
            wide[plane::8] = self.take(count)
        values = array.array("Q", bytes(wide))
        if sys.byteorder == "big":
            values.byteswap()
        return values.tolist()

    def column(self, count, shape=()):
        """Its values. `shape`: the one planes of the shape's columns before it, None for others."""
        encoding = self.u8()
        self.plane = None
        if encoding == 0:
            need(self.u8() == 8, "CONST: width")
            return [self.u64()] * count
        if encoding == 1:
            width = self.u8()
            values = self.planes(count, width)
            self.plane = values if width == 1 else None
            return values
        if encoding == 2:
            values, value = self.planes(count, self.u8()), 0
            for i, step in enumerate(values):
                value = value + (step >> 1 ^ -(step & 1)) & U64
                values[i] = value
            return values
        if encoding == 3:
            value = self.u64()
            values = self.planes(count, self.u8())
            for i, step in enumerate(values):
                value = value + step & U64
                values[i] = value
            return values
        if encoding == 5:
            value = self.u64()
            values = self.planes(count, self.u8())
            for i, step in enumerate(values):
                value = value + (step >> 1 ^ -(step & 1)) & U64
                values[i] = value
            return values
        need(encoding in (4, 7), f"column: encoding {encoding}")
        number = self.u8()
        entries = self.u8()
        need(entries >= 1, "DICT, MAP: no entries")
        table = [self.u64() for _ in range(entries)]
        if encoding == 4:
            need(number == 1, "DICT: width")
            plane = self.plane = self.take(count)
        else:
            need(number < len(shape) and shape[number] is not None, "MAP: from no such column")
            plane = shape[number]
        need(max(plane) < entries, "DICT, MAP: index")
        return [table[i] for i in plane]

    def begins_and_durations(self, count):
        if self.data[self.at:self.at + 1] != b"\6":
            return self.column(count), self.column(count)
        self.u8()
        begin = self.u64()
        steps = self.planes(count, self.u8())
        durations = self.column(count)
        begins = []
        for step, duration in zip(steps, durations):
            begin = begin + (step >> 1 ^ -(step & 1)) & U64
            begins.append(begin)
            begin += duration
        return begins, durations

    def arguments(self, count, members):
        """A tuple for each record of a shape."""
        columns, planes = [], []
        for _ in range(count):
            columns.append(self.column(members, planes))
            planes.append(self.plane)
        return list(zip(*columns)) if columns else [()] * members


def decode_payload(data, block):
    """The records of a block."""
    p = _Payload(data)
    need(p.u8() == 1, "payload: version")
    count = p.varint()
    need(count == block.record_count, "payload: record count")
    shape_count = p.varint()
    need(1 <= shape_count <= SHAPES_MAX, "payload: shape count")
    shapes = []
    for _ in range(shape_count):
        kind, code, arg_count = p.u8(), p.varint(), p.u8()
        shapes.append((kind, code, arg_count, p.varint()))
        need(arg_count <= ARGS_MAX, "payload: argument count")
    need(sum(s[3] for s in shapes) == count, "payload: shapes do not add up")
    types = sum({1 << min(kind, 63) for kind, _, _, _ in shapes})
    need(block.types in (0, types), "block header: types")
    which, flags = p.column(count), p.column(count)
    begins, durations = p.begins_and_durations(count)
    results, correlations, stacks, weights, lengths = (p.column(count) for _ in range(5))
    args = [iter(p.arguments(arg_count, members)) for _, _, arg_count, members in shapes]
    records = []
    for i in range(count):
        need(which[i] < shape_count, "payload: shape")
        kind, code, _, _ = shapes[which[i]]
        need(lengths[i] <= TEXT_MAX, "payload: text length")
        text = p.take(lengths[i]) if lengths[i] else b""
        values = next(args[which[i]], None)
        need(values is not None, "payload: a shape has more records than it says")
        result = results[i] >> 1 ^ -(results[i] & 1)
        records.append(Record(kind, flags[i], code, begins[i], durations[i], result,
                              correlations[i], stacks[i], weights[i], values, text, block.thread))
    need(p.at == len(data), "payload: bytes are left over")
    need(begins == sorted(begins), "block: records are not sorted by begin")
    need(begins[0] == block.begin, "block header: begin")
    need(max(r.end for r in records) == block.end, "block header: largest end")
    return records


# ---- The live file -----------------------------------------------------------------------------

def parse_raw(words, thread, header):
    """The record of these 64-bit words; its times become ns."""
    kind, flags = words[0] & 0xFF, words[0] >> 8 & 0xFF
    code, arg_count = words[0] >> 32 & 0xFFFF, words[0] >> 48 & 0xFF
    result = words[3] & 0xFFFFFFFF
    result -= result >> 31 << 32
    at, stack, weight, text = 4, 0, 0, b""
    if flags & EXTENDED:
        stack, weight = words[4] & 0xFFFFFFFF, words[4] >> 32
        at = 5
    need(arg_count <= ARGS_MAX and at + arg_count <= len(words), "raw record: arguments")
    args = tuple(words[at:at + arg_count])
    at += arg_count
    if flags & BYTES:
        need(at < len(words), "raw record: text")
        length, at = words[at], at + 1
        need(length <= TEXT_MAX and at + (length + 7) // 8 <= len(words), "raw record: text length")
        text = struct.pack(f"<{len(words) - at}Q", *words[at:])[:length]
    begin = header.ns(words[1])
    duration = header.ns(words[1] + words[2]) - begin
    return Record(kind, flags & ~(EXTENDED | BYTES), code, begin, duration, result, words[3] >> 32,
                  stack, weight, args, text, thread, live=True)


def _open_calls(chunk, at, count, thread, header):
    """The records of the calls that were open, the outermost first."""
    need(count <= OPEN_MAX, "open calls")
    stack, low_begin = struct.unpack_from("<II", chunk, 56)
    for _ in range(count):
        word0, begin = struct.unpack_from("<QQ", chunk, at)
        words = word0 >> 16 & 0xFFFF
        need(word0 & 0xFF == CALL and words >= 4, "open call")
        call = parse_raw(struct.unpack_from(f"<{words}Q", chunk, at), thread, header)
        yield dataclasses.replace(call, flags=call.flags | OPEN, duration=0, result=0,
                                  correlation=0,
                                  stack=stack if begin & 0xFFFFFFFF == low_begin else 0)
        at += 8 * words


def read_live(path, header, afters):
    """(records that are only in the live file, open calls, counters); `afters`: thread -> position
    after its last block."""
    with open(path, "rb", buffering=0) as file:  # most of it is a hole
        return _read_live(lambda at, size: os.pread(file.fileno(), size, at), header, afters)


def _read_live(read, header, afters):
    data = read(0, LIVE_HEAD)
    need(len(data) >= LIVE_HEAD, "live file: too short")
    if struct.unpack_from("<Q", data, 2048)[0] != LIVE_MAGIC:
        return [], [], {}  # it was not ready yet
    need(read_header(data[:2048]).process_id == header.process_id, "live file: another process's")
    version, chunk_bytes, chunk_count, first = struct.unpack_from("<4I", data, 2056)
    need(version == 1 and 16384 <= chunk_bytes <= 16777216 and chunk_count <= 65536 and
         first >= LIVE_HEAD, "live file: layout")
    counters = dict(zip(COUNTERS, struct.unpack_from(f"<{len(COUNTERS)}Q", data, COUNTERS_AT)))
    records, seen, opened = [], {}, []
    for index in range(chunk_count):
        chunk = read(first + index * chunk_bytes, CHUNK_HEAD)
        if len(chunk) < CHUNK_HEAD:
            break
        state, thread, position, committed = struct.unpack_from("<IIQQ", chunk)
        open_count, committed = committed & 7, committed & ~7
        passed, counted = struct.unpack_from("<QQ", chunk, 40)
        need(state <= 3, f"chunk {index}: state {state}")
        if state not in (1, 2):
            continue
        counters["passed_by"] += passed - counted
        chunk = read(first + index * chunk_bytes, chunk_bytes)
        need(committed <= chunk_bytes - CHUNK_HEAD, f"chunk {index}: size")
        at = max(0, afters.get(thread, 0) - position)
        if at < committed:
            seen.setdefault(thread, []).append((position + at, position + committed))
        while at < committed:
            word0 = struct.unpack_from("<Q", chunk, CHUNK_HEAD + at)[0]
            words = word0 >> 16 & 0xFFFF
            need(words >= 4 and at + 8 * words <= committed, f"chunk {index}: record at {at}")
            records.append(parse_raw(struct.unpack_from(f"<{words}Q", chunk, CHUNK_HEAD + at),
                                     thread, header))
            at += 8 * words
        if state == 1:
            opened += [(position + committed, call) for call in
                       _open_calls(chunk, CHUNK_HEAD + committed, open_count, thread, header)]
    for thread, spans in seen.items():
        at = afters.get(thread, 0)
        for low, high in sorted(spans):
            need(low == at, f"live file: thread {thread} continues at {low}, not at {at}")
            at = afters[thread] = high
    # A thread that was changing chunks may have left them in two, and finished them in the second.
    unique = {(call.thread, call.begin): call for position, call in opened
              if position >= afters.get(call.thread, 0)}
    return records, list(unique.values()), counters


def read_flight(path, data):
    """The stream `data` with what the flight recorder in the live file at `path` holds besides."""
    with open(path, "rb", buffering=0) as file:
        base = struct.unpack("<Q", os.pread(file.fileno(), 8, FLIGHT_AT))[0]
        page = os.pread(file.fileno(), 4096, base) if base else b""
        if len(page) < 4096 or struct.unpack_from("<Q", page)[0] != FLIGHT_MAGIC:
            return data
        room, written = struct.unpack_from("<QQ", page, 8)
        stream_bytes, dumps, following = struct.unpack_from("<QQQ", page, 512 + 64 * written)
        segments = []
        for index in range(4):
            number, count, state, _begin, first = struct.unpack_from("<5Q", page, 64 + 40 * index)
            if number:
                need(count <= room and state <= count, f"segment {index}: size")
                segments.append((number, first, state,
                                 os.pread(file.fileno(), count, base + 4096 + index * room)))
    data = data[:stream_bytes]
    segments.sort()
    has_all = segments[0][1] <= following and (dumps or segments[0][0] == 1)
    for place, (_number, _first, state, held) in enumerate(segments):
        at = state if place or has_all else 0
        while at < len(held):
            block = _read_block(held, at)
            end = block.stored_at + block.stored_bytes
            if block.flags & OF_STATE or block.sequence >= following:
                data += held[at:end]
            at = end
    return data


# ---- Whole processes ---------------------------------------------------------------------------

def find_live(path, header):
    candidates = [path.with_name(path.name.removesuffix(".gpuprof") + ".live")]
    if header.live_path:
        recorded = pathlib.Path(header.live_path)
        candidates += [path.with_name(recorded.name), recorded]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    return None


def _function(record):
    symbol, domain, cls, args = record.text.decode().split("|")
    return Function(symbol, domain, cls, [tuple(a.split(":")) for a in args.split(",") if a])


def read_stream(path):
    path = pathlib.Path(path)
    data = path.read_bytes()
    header = read_header(data)
    live = find_live(path, header)
    if live:
        data = read_flight(live, data)
    blocks, torn = read_blocks(data, header.bytes)
    records = []
    for block, payload in zip(blocks, _decompress(data, blocks) if blocks else ()):
        records += decode_payload(payload, block)
    process = Process(path, header, blocks, records, torn)
    if live:
        afters = {}
        for block in blocks:
            if not block.flags & OF_STATE:
                afters[block.thread] = max(block.after, afters.get(block.thread, 0))
        found, opened, process.live_counters = read_live(live, header, afters)
        process.live_path = live
        records += found
        records += opened
    records.sort(key=lambda r: (r.thread, r.begin))
    for record in records:
        if record.type == API:
            process.functions[record.code] = _function(record)
    return process


TABLES = {}  # of functions, by their CRC: from any file read before; see "Functions"


def read_folder(folder):
    """Every process that recorded into `folder`, by pid and start time."""
    processes = [read_stream(p) for p in sorted(pathlib.Path(folder).glob("*.gpuprof"))]
    TABLES.update({p.header.api_crc: p.functions for p in processes if p.functions})
    for process in processes:
        process.functions = process.functions or TABLES.get(process.header.api_crc, {})
    return sorted(processes, key=lambda p: (p.header.start_time, p.header.pid))


def count_calls(path):
    """((thread, code) -> call records, functions, counters, THREAD records) of a stream file,
    without making an object of each call: for very large files."""
    data = pathlib.Path(path).read_bytes()
    header = read_header(data)
    blocks, torn = read_blocks(data, header.bytes, check=False)
    need(torn == 0, "torn")
    counts, functions, counters, named = {}, {}, {}, 0
    for block, payload in zip(blocks, _decompress(data, blocks)):
        if block.thread == 0:
            for record in decode_payload(payload, block):
                if record.type == API:
                    functions[record.code] = _function(record)
                elif record.type == COUNTER:
                    counters[record.text.decode()] = record.args[0]
            continue
        p = _Payload(payload)
        need(p.u8() == 1 and p.varint() == block.record_count, "payload")
        for _ in range(p.varint()):
            kind, code, _, members = p.u8(), p.varint(), p.u8(), p.varint()
            if kind == CALL:
                key = (block.thread, code)
                counts[key] = counts.get(key, 0) + members
            named += members if kind == THREAD else 0
    return counts, functions, counters, named


def main():
    for process in read_folder(sys.argv[1]):
        print(process.path.name, process.header.pid, "losses", process.losses)
        for call in process.calls():
            print(f"  {call.thread} {call.begin} +{call.end - call.begin} {call.symbol} "
                  f"= {call.result} flags {call.flags} {call.kernel or ''} {call.args}")


if __name__ == "__main__":
    main()
