# SPDX-License-Identifier: Apache-2.0
"""A second reader of gpuprof's files, written from formats/event-stream.md and nothing else.

    for process in read_folder("gpuprof-out"):
        for record in process.records: ...

It decides nothing: whatever breaks a rule of the specification raises StreamError. A torn end of a
stream file and a live file of a killed process are part of the format and do not.
"""

import pathlib
import sys

# Callers have all from here. pylint: disable=wildcard-import,unused-wildcard-import
from stream_blocks import *
from stream_live import *
from stream_ops import *
from stream_records import *


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
    for block, payload in zip(blocks, decompress(data, blocks) if blocks else ()):
        records += decode_payload(payload, block)
    process = Process(path, header, blocks, records, torn)
    if live:
        afters = {}
        is_flight = any(block.flags & AFTER_GAP for block in blocks)
        for block in blocks:
            if not block.flags & OF_STATE:
                afters[block.thread] = max(block.after, afters.get(block.thread, 0))
        found, opened, process.live_counters = read_live(live, header, afters,
                                                          is_flight)
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
    for block, payload in zip(blocks, decompress(data, blocks)):
        if block.thread == 0:
            for record in decode_payload(payload, block):
                if record.type == API:
                    functions[record.code] = _function(record)
                elif record.type == COUNTER:
                    counters[record.text.decode()] = record.args[0]
            continue
        p = Payload(payload)
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
