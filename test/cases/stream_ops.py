# SPDX-License-Identifier: Apache-2.0
"""Operators and their inputs, of a process that was read (stream_reader.py)."""

import dataclasses
import struct

from stream_records import OP_BEGIN, OP_END, OP_INPUTS, OP_NAME, OP_THREAD, TRACED, need


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
