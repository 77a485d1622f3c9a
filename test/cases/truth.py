# SPDX-License-Identifier: Apache-2.0
"""The simulated CUDA's own log, and its comparison with what gpuprof recorded: call by call."""

import dataclasses
import functools
import pathlib
import re

import stream_reader

TOLERANCE_NS = 50_000  # of two clocks that are tied together at the begin and the end of a run

# What gpuprof does not record, by design: look-ups, contexts, modules, attributes, handles that
# are only made or destroyed. Everything else that a program calls must be in the recording.
UNRECORDED = re.compile(r"""
    cuInit | cuDriverGetVersion | cuGetProcAddress(_v2)? | cuGetExportTable | cuGetError.* |
    cuDevice(?!Get(Default)?MemPool|GraphMemTrim|PrimaryCtxReset).* | cuModule.* |
    cuLi(brary|nk).* | cuKernel.* | cuFunc.* | cuPointer.* |
    cuOccupancy.* | cuCtx(?!Synchronize|RecordEvent|WaitEvent|Destroy).* | cuIpcGet.* |
    cuMem(ExportTo.* | Get(Address|Access|Allocation).*|HostGet.*|Advise.*|RangeGet.*|SetAccess) |
    cu(da)?MemPool(Get|Set).* |
    cu(da)?Stream(Create|Get|IsCapturing|CopyAttributes|SetAttribute).* |
    cu(da)?Event(Create|Destroy|ElapsedTime).* |
    cu(da)?Graph(Create|Destroy|Clone|Add(?!Mem(Alloc|Free))|Get|Node|Kernel
      |Exec(Get|Update|Kernel)|Debug).* |
    cu(da)?ThreadExchangeStreamCaptureMode | cu(da)?Profiler.* |
    cuda(Get|Set|Peek|Runtime|Driver|Choose|Init).* |
    cudaDevice(?!Synchronize|Get(Default)?MemPool|GraphMemTrim|Reset).* |
    cudaFunc.* |
    cudaLibrary.* | cudaPointer.* | cudaOccupancy.* |
    cudaMem(Advise.*|RangeGet.*) | cudaHostGet.* | cudaIpcGet.* |
    __cuda(Register|Unregister|Push|Pop|Init|GetKernel).*
    """, re.VERBOSE)

BY_POINTER = re.compile("Batch|3D|KernelEx|Alloc|Array|Instantiate|EndCapture|Ipc")

# What a driver copy's name says of its direction (cudaMemcpyKind).
KINDS = {"cuMemcpyHtoD": 1, "cuMemcpyDtoH": 2, "cuMemcpyDtoD": 3, "cuMemcpy": 4}
SUFFIX = re.compile("(Async)?(_v[0-9])?(_pt[ds][sz])?$")

# Arguments that the log does not have. What the programs pass is constant: see test_arguments.
UNCOMPARED = re.compile(r"""
    cu(da)?StreamWaitEvent(_ptsz)?\ flags | cu(da)?MemPrefetchAsync(_v2)?(_ptsz)?\ (device|flags) |
    cuMemcpy2D.*\ (dst|src|kind)
    """, re.VERBOSE)


@dataclasses.dataclass(slots=True)
class Line:
    tid: int
    seq: int
    layer: str
    depth: int
    symbol: str
    begin: int
    end: int      # None: had not returned
    result: int
    captured: bool
    args: dict
    nested: bool = False


@functools.lru_cache(1 << 16)  # most of them come again and again
def _value(text):
    if re.fullmatch(r"0x[0-9a-f]+", text):
        return int(text, 16)
    if re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    if re.fullmatch(r"[0-9]+,[0-9]+,[0-9]+", text):
        return tuple(int(part) for part in text.split(","))
    return text


def log_lines(path):
    """Of one log; what was set aside for its threads and not used is zeros."""
    return pathlib.Path(path).read_bytes().translate(None, b"\0").decode().splitlines()


def read_log(path):
    """Lists of Lines, one per thread, in the order of their first lines."""
    threads, newest = [], {}
    for text in log_lines(path):
        tid, seq, layer, depth, symbol, begin, end, result, captured, *args = text.split("\t")
        if layer not in "RD":  # of the device and of CUPTI
            continue
        line = Line(int(tid), int(seq), layer, int(depth), symbol, int(begin), int(end) or None,
                    None if result.startswith("-") else int(result), captured == "1",
                    {k: _value(v) for k, _, v in (a.partition("=") for a in args)})
        if line.seq == 0 or line.tid not in newest:
            newest[line.tid] = []
            threads.append(newest[line.tid])
        newest[line.tid].append(line)
    for lines in threads:
        assert [line.seq for line in lines] == list(range(len(lines))), "the log has lost a line"
    return threads


def expected(lines, hidden="", nested=False):
    """The lines of a thread that must be events. `hidden`: layers that gpuprof cannot see."""
    result, stack = [], []
    for line in lines:
        del stack[line.depth:]
        seen = line.layer not in hidden and not UNRECORDED.fullmatch(line.symbol)
        inside = any(stack)
        stack += [False] * (line.depth - len(stack)) + [seen]
        if seen and (nested or not inside):
            line.nested = inside
            result.append(line)
    return result


def _compare_args(line, call):
    """Labels compared, labels that could not be."""
    compared, left = set(), set()
    for label, value in call.args.items():
        key = "dst" if label == "ptr" and "Memset" in call.symbol else label
        if key in line.args:
            wanted = line.args[key]
        elif label == "kind" and call.domain == "driver" and SUFFIX.sub("", call.symbol) in KINDS:
            wanted = KINDS[SUFFIX.sub("", call.symbol)]
        else:
            left.add(f"{call.symbol} {label}")
            continue
        if isinstance(wanted, str):
            value = call.kernel or "" if label == "kernel" else value
        elif label in ("grid", "block"):
            wanted = (wanted[0], min(wanted[1], 65535), min(wanted[2], 65535))
        elif isinstance(wanted, int):
            wanted &= stream_reader.U64
            if wanted >> 31 == (1 << 33) - 1:  # a negative int
                value = value if value >> 32 else value | 0xFFFFFFFF << 32
        # What a failed call would have written or read through a pointer is not looked at.
        if line.result != 0 and value in (0, (0, 0, 0)) and BY_POINTER.search(call.symbol):
            continue
        assert value == wanted, f"{call.symbol} {label}: {value!r}, the log says {wanted!r}: {line}"
        compared.add(label)
    return compared, left


def compare(process, log, hidden="", nested=False, times=True, relabel=None):
    """Asserts that the process's calls are the log's; (calls compared, labels not comparable).
    `relabel(line)` may put some lines into a layer of its own, for `hidden`."""
    convert = process.monotonic()
    recorded = {}
    for call in process.calls():
        recorded.setdefault((call.tid, call.thread), []).append(call)
    truth = {}
    for lines in read_log(log):
        for line in lines if relabel else ():
            relabel(line)
        wanted = expected(lines, hidden, nested)
        if wanted:
            truth.setdefault(wanted[0].tid, []).append(wanted)
    found = {}
    for (tid, _), calls in sorted(recorded.items()):
        found.setdefault(tid, []).append(calls)
    assert set(found) == set(truth), "other threads than the log's"
    count, left_over = 0, set()
    for tid, lists in truth.items():
        assert len(lists) == len(found[tid]), f"thread {tid}"
        for lines, calls in zip(lists, found[tid]):
            assert [c.symbol for c in calls] == [line.symbol for line in lines]
            for line, call in zip(lines, calls):
                count += 1
                left_over |= _compare_one(line, call, convert if times else None)
    return count, left_over


def _compare_one(line, call, convert):
    compared, left = _compare_args(line, call)
    readable = line.result == 0 or not BY_POINTER.search(call.symbol)
    if call.cls == "launch" and "kernel" in call.args and readable:
        assert compared >= {"kernel", "grid", "block", "shared", "stream"}, (call, line)
    assert call.result == line.result, (call, line)
    assert bool(call.flags & stream_reader.CAPTURED) == line.captured, (call, line)
    assert bool(call.flags & stream_reader.NESTED) == line.nested, (call, line)
    assert not call.flags & (stream_reader.STALE | stream_reader.OPEN), call
    if convert:
        assert convert(call.begin) <= line.begin + TOLERANCE_NS, (call, line, convert(call.begin))
        assert convert(call.end) >= line.end - TOLERANCE_NS, (call, line, convert(call.end))
    return {label for label in left if not UNCOMPARED.fullmatch(label)}
