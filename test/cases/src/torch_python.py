# SPDX-License-Identifier: Apache-2.0
"""Operators of the simulated PyTorch, called from Python: torch_python.py SCENE FILE. Writes as
JSON to FILE.PID of each its name, and the frames of Python that it is called from, or null: it is
in another one, or has none."""

import ctypes
import json
import os
import sys
import threading
import time

torch = ctypes.CDLL("libtorch_cpu.so")
torch.sim_op_begin.restype = ctypes.c_void_p
torch.sim_op_begin.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_long, ctypes.c_ulong,
                               ctypes.c_char_p)
torch.sim_op_end.argtypes = (ctypes.c_void_p,)
LABEL = 7
told = []


def frames_of(frame):
    found = []
    while frame:
        found.append([frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname])
        frame = frame.f_back
    return found


class Op:
    def __init__(self, name, scope=0, is_outermost=True):
        what = name.encode(), scope, -1, 0, b"T6[2]"
        self.op, frames = torch.sim_op_begin(*what), frames_of(sys._getframe())
        told.append([name, frames if is_outermost else None])

    def end(self):
        torch.sim_op_end(self.op)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def nested(depth):
    if depth:
        nested(depth - 1)
    with Op(f"aten::linear{depth}"):
        with Op("aten::t", is_outermost=False):
            pass
        with Op("aten::addmm", is_outermost=False):
            pass


def kinds():
    for i in range(3):  # known, from the second on
        nested(i)
    with Op("a label ()", LABEL, is_outermost=False):
        with Op("aten::in_a_label"):
            pass
    with Op("compile (dynamo_timed)", LABEL, is_outermost=False), \
            Op("aten::traced", is_outermost=False):
        pass
    with Op("aten::after"):
        pass


def moved():
    for _ in range(3):
        op = Op("aten::moved")
        with Op("aten::inside", is_outermost=False):
            pass
        other = threading.Thread(target=op.end)
        other.start()
        other.join()
        with Op("aten::behind"):
            pass


def native():
    torch.sim_op_native(b"aten::native", 3)
    told.extend([["aten::native", None]] * 3)


AUTOGRAD = """
def _engine_run_backward():
    op_native(b"Backward", 3)
"""


def borrowed():
    names = {"op_native": torch.sim_op_native}
    exec(compile(AUTOGRAD, "/opt/torch/autograd/graph.py", "exec"), names)
    names["_engine_run_backward"](); frames = frames_of(sys._getframe())
    told.extend([["Backward", [["/opt/torch/autograd/graph.py", 3, "_engine_run_backward"],
                               *frames]]] * 3)


def threads():
    def work(number):
        for _ in range(30):
            nested(number % 3)
            with Op(f"aten::of{number}"):
                pass
    all_of_them = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for one in all_of_them:
        one.start()
    for one in all_of_them:
        one.join()


def fork():
    with Op("aten::around"):
        child = os.fork()
        if child == 0:
            told.clear()
            cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(64))
            with Op("aten::in_it", is_outermost=False):
                pass
    nested(1)
    if child:
        assert os.waitpid(child, 0)[1] == 0


def governed():
    """Until there is a third callback, besides that of labels and the one with stacks; and on."""
    end = time.monotonic() + 100
    while torch.sim_registered() != 3:
        assert time.monotonic() < end
        nested(1)
    for _ in range(100):
        nested(1)


cuda = ctypes.CDLL("libcudart.so.12")
cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(64))
while torch.sim_callbacks() != 2:
    time.sleep(0.001)
for _ in range(20):  # looked at before they are believed
    Op("aten::first").end()
{f.__name__: f for f in (kinds, moved, native, borrowed, threads, fork,
                         governed)}[sys.argv[1]]()
with open(f"{sys.argv[2]}.{os.getpid()}", "w", encoding="utf-8") as file:
    json.dump(told, file)
