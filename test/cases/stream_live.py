# SPDX-License-Identifier: Apache-2.0
"""The live file of a process that was killed, and a flight file (stream_reader.py)."""

import dataclasses
import os
import pathlib
import struct

from stream_blocks import read_block, read_header
from stream_records import (ARGS_MAX, BYTES, CALL, CHUNK_HEAD, COUNTERS, COUNTERS_AT, EXTENDED,
                            FLIGHT_AT, FLIGHT_MAGIC, LIVE_HEAD, LIVE_MAGIC, OF_STATE, OPEN,
                            OPEN_MAX, TEXT_MAX, Record, need)


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


def read_live(path, header, afters, is_flight):
    """(records that are only in the live file, open calls, counters); `afters`: thread -> position
    after its last block. Of a flight recorder's, what was stored may have been let go."""
    with open(path, "rb", buffering=0) as file:  # most of it is a hole
        return _read_live(lambda at, size: os.pread(file.fileno(), size, at), header, afters,
                          is_flight)


def _read_live(read, header, afters, is_flight):
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
        state, thread, position, committed, stored = struct.unpack_from("<IIQQQ", chunk)
        open_count, committed = committed & 7, committed & ~7
        passed, counted = struct.unpack_from("<QQ", chunk, 40)
        need(state <= 3, f"chunk {index}: state {state}")
        if state not in (1, 2):
            continue
        counters["passed_by"] += passed - counted
        chunk = read(first + index * chunk_bytes, chunk_bytes)
        need(committed <= chunk_bytes - CHUNK_HEAD, f"chunk {index}: size")
        at = max(0, afters.get(thread, 0) - position, stored if is_flight else 0)
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
            need(low == at or is_flight and low > at,
                 f"live file: thread {thread} continues at {low}, not at {at}")
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
            block = read_block(held, at)
            end = block.stored_at + block.stored_bytes
            if block.flags & OF_STATE or block.sequence >= following:
                data += held[at:end]
            at = end
    return data


def find_live(path, header):
    candidates = [path.with_name(path.name.removesuffix(".gpuprof") + ".live")]
    if header.live_path:
        recorded = pathlib.Path(header.live_path)
        candidates += [path.with_name(recorded.name), recorded]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    return None
