# SPDX-License-Identifier: Apache-2.0
"""Recordings of operators, written record by record: what happened, one thing after another."""

import contextlib
import struct
import subprocess

import stream_reader

TYPES = stream_reader.TYPE_NUMBERS
MAIN, DEVICE, OTHER = 1, 2, 3  # threads; the second stands for the device
LABEL, BACKWARD, FUNCTION = 7, 1, 0
FLOAT, HALF, BFLOAT16 = 6, 5, 15
TRACED, CAPTURED = stream_reader.TRACED, stream_reader.CAPTURED


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


class T(tuple):
    """A tensor of these sizes; `of` gives it another type than float."""
    kind = FLOAT

    def of(self, kind):
        made = T(self)
        made.kind = kind
        return made


def value_bytes(value):
    """As an op_inputs record has it: None, a tensor, True, 5, 0.5, [1, 2], ... is what is cut."""
    if value is None:
        return b"\0"
    if value is ...:
        return b"\x0a"
    if isinstance(value, T):
        return bytes([1, value.kind, len(value)]) + b"".join(map(varint, value))
    if isinstance(value, bool):
        return bytes([5, value])
    if isinstance(value, int):
        return b"\x03" + varint(value << 1 if value >= 0 else (-value << 1) - 1)
    if isinstance(value, float):
        return b"\x04" + struct.pack("<d", value)
    if isinstance(value, str):
        return b"\x09" if value == "number" else b"\x07"
    return b"\x06" + varint(len(value)) + b"".join(map(value_bytes, value))


class Recording:
    """Each thing takes a microsecond, but for work, which lasts as long as is said."""

    def __init__(self):
        self.lines = ["meta env.RANK=0", "meta gpu_rows=from CUPTI", "meta pytorch=shapes"]
        self.now = 1000
        self.objects = self.calls = 0
        self.names, self.inputs, self.kernels = {}, {}, {}
        for thread, name in ((MAIN, "python"), (DEVICE, "gpuprof-gpu"), (OTHER, "autograd")):
            self.add(thread, TYPES["thread"], [1000 + thread], name)
        for number, thread in enumerate((MAIN, OTHER), 1):
            self.add(thread, TYPES["op_thread"], [number])

    def add(self, thread, what, args=(), text=b"", flags=0, code=0, begin=None, ns=0, call=0,
            result=0):
        self.now += 1000
        data = text.encode() if isinstance(text, str) else text
        at = self.now if begin is None else begin
        self.lines.append(f"{thread} {what} {flags} {code} {at} {ns} {result} {call} "
                          f"{','.join(map(str, args)) or '-'} {data.hex() or '-'}")

    def number(self, table, kind, thread, text):
        if text not in table:
            table[text] = len(table) + 1
            self.add(thread, TYPES[kind], [table[text]], text)
        return table[text]

    @contextlib.contextmanager
    def op(self, name, *inputs, thread=MAIN, scope=FUNCTION, seq=None, forward=0, flags=0):
        number = self.number(self.names, "op_name", thread, name)
        its = self.number(self.inputs, "op_inputs", thread,
                          b"".join(map(value_bytes, inputs))) if inputs else 0
        self.objects += 1
        mine = 0x7f0000000000 + 16 * self.objects
        self.add(thread, TYPES["op_begin"],
                 [mine, number, its, 0 if seq is None else seq + 1, forward], flags=flags,
                 code=scope)
        yield
        self.add(thread, TYPES["op_end"], [mine])

    @contextlib.contextmanager
    def range(self, text, thread=MAIN):
        self.add(thread, TYPES["push"], [0] * 6, text)
        yield
        self.add(thread, TYPES["pop"], [0])

    def kernel(self, name, ns, call=0, graph=0, node=0, device=0):
        number = self.number(self.kernels, "kernel_name", DEVICE, name)
        args = [device, 1, 7, number, 1, 1, 0, 0, 0, 0, 0, 0, graph, node]
        self.add(DEVICE, TYPES["kernel"], args, begin=self.now + 5000, ns=ns, call=call)

    def set(self, ns, call=0, graph=0, node=0):
        self.add(DEVICE, TYPES["set"], [0, 1, 7, 0, 64, 3, 0, graph, node],
                 begin=self.now + 5000, ns=ns, call=call)

    def call(self, symbol, args=(), flags=0, thread=MAIN, result=0):
        self.calls += 1
        self.add(thread, symbol, args, flags=flags, ns=500, call=self.calls, result=result)
        return self.calls

    def launch(self, ns, name="kernel", thread=MAIN, device=0):
        self.kernel(name, ns, self.call("cudaLaunchKernel", [0], thread=thread), device=device)

    def device(self, name, number=0):
        self.add(DEVICE, TYPES["device"], [number, 9, 0], name)

    def write(self, maker, folder):
        folder.mkdir(exist_ok=True)
        subprocess.run([maker, folder / "0.gpuprof"], input="\n".join(self.lines) + "\n",
                       text=True, check=True, timeout=60)
        return folder


def labelled_product(kernel):
    """An operator in a label, a backward one that launches a kernel of that name, a failed call."""
    r = Recording()
    with r.op("labelled", scope=LABEL):
        with r.op("aten::mm", T((3, 4)), T((4, 5)), seq=7):
            r.launch(500, "_Z4gemmIfEvPT_")
    with r.op("MmBackward0", scope=BACKWARD):
        r.launch(300, kernel)
    r.call("cudaFree", [1], result=1)
    return r
