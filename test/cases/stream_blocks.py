# SPDX-License-Identifier: Apache-2.0
"""The header and the blocks of a stream file (stream_reader.py)."""

import array
import os
import struct
import subprocess
import sys

try:
    import zstandard
except ImportError:  # Debian's python3-zstandard is optional: the command does as well
    zstandard = None

from stream_records import (AFTER_GAP, ARGS_MAX, BLOCK_HEADER_BYTES_MAX, BLOCK_MAGIC,
                            HEADER_BYTES_MAX, HEADER_MAGIC, HOST_BYTES_MAX, OF_STATE,
                            PATH_BYTES_MAX, PAYLOAD_MAX, RECORDS_MAX, SHAPES_MAX, STORED_MAX,
                            TEXT_MAX, U64, Block, Header, Record, StreamError, crc32c, need)


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

def read_block(data, at):
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
    need(flags <= 7, f"block at {at}: reserved")
    if end + stored > len(data):
        return None
    return Block(thread, count, sequence, begin, last, before, after, payload, stored, crc, end,
                 flags, types)


def read_blocks(data, at, check=True):
    """(blocks, bytes of an unfinished one at the end)."""
    blocks, afters = [], {}
    while at < len(data):
        block = read_block(data, at)
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


def decompress(data, blocks):
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


class Payload:
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
    p = Payload(data)
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
