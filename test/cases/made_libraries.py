# SPDX-License-Identifier: Apache-2.0
"""Recordings of libraries' calls, record by record: functions are described as the stream does it,
so that nothing here depends on the order of arguments in formats/api."""

import contextlib

from made_ops import DEVICE, MAIN, TYPES, Recording

# cudaDataType, cublasComputeType_t and ncclDataType_t, as the vendor's headers have them.
F32, F64, F16, I8, C32, C64, BF16, E4M3, E5M2 = 0, 1, 2, 3, 4, 5, 14, 28, 29
COMPUTE_F16, COMPUTE_F32, COMPUTE_TF32 = 64, 68, 77
NCCL_F16, NCCL_F32, NCCL_BF16 = 6, 7, 9
BITS = {F32: 32, F64: 64, F16: 16, I8: 8, C32: 64, C64: 128, BF16: 16, E4M3: 8, E5M2: 8}
FIRST_CODE = 3500  # beyond any function's of the library's own table
GEMM = ("m", "n", "k", "batch", "a_type", "b_type", "c_type", "compute", "trans_a", "trans_b")
MESSAGE = ("count", "type", "comm", "sequence")


class Libraries(Recording):
    def __init__(self):
        super().__init__()
        self.codes, self.plans = {}, 0

    def describe(self, symbol, domain, labels):
        if symbol not in self.codes:
            self.codes[symbol] = FIRST_CODE + len(self.codes), labels
            text = f"{symbol}|{domain}|library|" + ",".join(f"count:{label}" for label in labels)
            self.add(0, TYPES["api"], (), text, code=self.codes[symbol][0], begin=0)
        return self.codes[symbol]

    def begin(self, symbol, domain="cublas", thread=MAIN, **args):
        code, labels = self.describe(symbol, domain, tuple(args))
        self.add(thread, TYPES["library_begin"], [args[label] for label in labels], code=code)
        return code

    def end(self, symbol, thread=MAIN, result=0):
        code, labels = self.codes[symbol]
        self.add(thread, TYPES["library_end"], [0] * len(labels), code=code, result=result)

    @contextlib.contextmanager
    def library(self, symbol, domain="cublas", thread=MAIN, result=0, **args):
        self.begin(symbol, domain, thread, **args)
        yield
        self.end(symbol, thread, result)

    def gemm(self, m, n, k, kind=BF16, batch=1, ns=1000, kernel="gemm", symbol="cublasGemmEx",
             compute=COMPUTE_F32, trans=(0, 0), out=None, other=None, **more):
        """One that launches one kernel; `ns` of None: none."""
        with self.library(symbol, m=m, n=n, k=k, batch=batch, a_type=kind,
                          b_type=kind if other is None else other,
                          c_type=kind if out is None else out, compute=compute,
                          trans_a=trans[0], trans_b=trans[1], **more):
            if ns is not None:
                self.launch(ns, kernel)

    def plan(self, text):
        self.plans += 1
        self.add(MAIN, TYPES["library_plan"], [self.plans], text)
        return self.plans

    def communicator(self, handle, number, rank, ranks):
        self.add(MAIN, TYPES["communicator"], [handle, number, rank, ranks, 0])

    def kernel_named(self, number, name):
        self.add(DEVICE, TYPES["kernel_name"], [number], name)
