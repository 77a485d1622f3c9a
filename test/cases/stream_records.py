# SPDX-License-Identifier: Apache-2.0
"""What is in gpuprof's files: numbers, limits, and the records of a process (stream_reader.py)."""

import bisect
import dataclasses
import pathlib

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
    "device_gpm silence sample os_function os_call gil gil_rest gc host_counters").split(), 1))
TYPE_NUMBERS = {name: number for number, name in TYPE_NAMES.items()}
CAPTURED, NESTED, STALE, EXTENDED, BYTES, OPEN, TRACED = 1, 2, 4, 8, 16, 32, 64
COUNTERS = ("dropped", "unrecorded", "names_dropped", "names_truncated", "write_lost", "stale",
            "waits", "capture_overflow", "ended", "gpu_dropped", "gpu_timeless", "gpu_strange_time",
            "gpu_damaged", "gpu_yields", "gpu_unflushed", "texts_truncated", "ranges_dropped",
            "stacks_dropped", "stackless", "passed_by", "passed_failed", "overwritten",
            "graph_untied", "op_inputs_dropped", "tensors_dropped", "samples_dropped",
            "samples_torn", "samples_silent", "os_dropped")
LOSSES = (*COUNTERS[:5], *COUNTERS[8:15], *COUNTERS[16:18], *COUNTERS[21:26], *COUNTERS[27:29])
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
    def said(self):
        """What the library has to say of the recording."""
        return [value for key, value in self.metas if key == "said"]

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
