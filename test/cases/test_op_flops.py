# SPDX-License-Identifier: Apache-2.0
"""FLOPs of PyTorch's operators, their backward ones, what is around them, and GPU time under none:
recordings written record by record, held against sums made here."""

import json
from math import prod

import conftest
import csv_tables
import pytest

from made_ops import (BACKWARD, BFLOAT16, CAPTURED, FLOAT, HALF, LABEL, OTHER, TRACED, TYPES,
                      Recording, T)

LISTS = ([1, 1], [0, 0], [1, 1])  # stride, padding, dilation


@pytest.fixture(name="report")
def fixture_report(tmp_path, run_verb):
    """report(recording, options): the JSON; its operators by name."""
    def report(recording, *options):
        folder = recording.write(conftest.built(conftest.BUILD / "make_raw"), tmp_path / "data")
        made = json.loads(run_verb("report", "--format=json", *options, folder).stdout)
        return made, {row["name"]: row for row in made["ops"]}
    return report


def points(size, kernel, stride, padding, dilation):
    """Where a filter can be laid."""
    return len(range(0, size + 2 * padding - dilation * (kernel - 1), stride))


def convolution(x, w, stride, padding, dilation, transposed=False):
    """Each place of the filter is multiplied with each weight of it, for each of the batch."""
    places = x[2:] if transposed else map(points, x[2:], w[2:], stride, padding, dilation)
    return 2 * x[0] * prod(places) * prod(w)


def conv2d(x, w, stride, padding, dilation, groups):
    places = map(points, x[2:], w[2:], stride, padding, dilation)
    return 2 * x[0] * prod(places) * w[0] * x[1] * prod(w[2:]) // groups


def bmm(b, m, k, n):
    return 2 * b * m * k * n


X, W = T((2, 4, 13, 9)), T((8, 2, 3, 2))
ARGUMENTS = (X, W, None, [2, 1], [1, 0], [1, 2], False, [0, 0], 2)
CONVOLVED = convolution(X, W, (2, 1), (1, 0), (1, 2))
X3, W3 = T((3, 4, 5, 6, 7)), T((4, 8, 2, 3, 1))
BACK3 = 2 * 3 * prod(X3[2:]) * prod(W3)
X1, W1, GRAD1 = T((2, 4, 17)), T((6, 4, 3)), T((2, 6, 8))
Q, K, V, G = T((2, 3, 10, 16)), T((2, 3, 12, 16)), T((2, 3, 12, 8)), T((2, 3, 10, 8))
ATTENTION = bmm(6, 10, 16, 12) + bmm(6, 10, 12, 8)
ATTENTION_BACK = 3 * bmm(6, 10, 16, 12) + 2 * bmm(6, 10, 12, 8)

# What ran, and how many FLOPs with_flops and flop_counter find: "no" none at all, None unknown.
KNOWN = [
    ("aten::mm", (T((4, 16)), T((16, 32))), 2 * 4 * 16 * 32, 2 * 4 * 16 * 32),
    ("aten::mm", (T((4, 0)), T((0, 32))), 0, 0),
    ("aten::addmm", (T((32,)), T((4, 16)), T((16, 32)), 1, 2), 4096, 4096),
    ("aten::bmm", (T((5, 4, 16)), T((5, 16, 32))), bmm(5, 4, 16, 32), bmm(5, 4, 16, 32)),
    ("aten::baddbmm", (T((1,)), T((5, 4, 16)), T((5, 16, 3)), 0.5), bmm(5, 4, 16, 3),
     bmm(5, 4, 16, 3)),
    ("aten::_scaled_mm", (T((4, 16)), T((16, 3)), T(()), T(())), "no", 2 * 4 * 16 * 3),
    ("aten::mul", (T((3, 1, 5)), T((4, 1))), 15, "no"),
    ("aten::add", (T(()), T((4,)), 1), 1, "no"),
    ("aten::mul_", (T((3, 5)), 2), "no", "no"),
    ("aten::conv2d", (X, W, None, [2, 1], [1, 0], [1, 2], 2),
     conv2d(X, W, (2, 1), (1, 0), (1, 2), 2), "no"),
    ("aten::conv2d", (X, W, None, [1, 1], "same", [1, 1], 2), None, "no"),
    ("aten::conv2d", (T((4, 13, 9)), W, None, *LISTS, 2), None, "no"),
    ("aten::convolution", ARGUMENTS, "no", CONVOLVED),
    ("aten::_convolution", (*ARGUMENTS, False, False, True, True), "no", CONVOLVED),
    ("aten::convolution", (X1, W1, T((6,)), [2], [0], [1], False, [0], 1), "no",
     convolution(X1, W1, (2,), (0,), (1,))),
    ("aten::convolution", (X3, W3, None, [2], [1], [1], True, [0], 1), "no",
     convolution(X3, W3, (), (), (), transposed=True)),
    ("aten::convolution_backward",
     (GRAD1, X1, W1, [6], [2], [0], [1], False, [0], 1, [True, True, True]), "no",
     2 * convolution(X1, W1, (2,), (0,), (1,))),
    ("aten::convolution_backward",
     (GRAD1, X1, W1, [6], [2], [0], [1], False, [0], 1, [False, True, True]), "no",
     convolution(X1, W1, (2,), (0,), (1,))),
    ("aten::convolution_backward",
     (GRAD1, X1, W1, None, [2], [0], [1], False, [0], 1, [False, False, True]), "no", 0),
    # As flop_counter has it: of groups the filter's gradient counts all of their products.
    ("aten::convolution_backward",
     (T((3, 16, 10, 12, 7)), X3, W3, None, [2, 2, 1], [0, 0, 0], [1, 1, 1], True, [0, 0, 0], 2,
      [True, True, False]), "no", BACK3 + 2 * BACK3),
    ("aten::_scaled_dot_product_flash_attention", (Q, K, V, 0.0, True, False), "no", ATTENTION),
    ("aten::_scaled_dot_product_efficient_attention", (Q, K, V, None, True), "no", ATTENTION),
    ("aten::_scaled_dot_product_flash_attention_for_cpu", (Q, K, V, 0.0, True), "no", ATTENTION),
    # Several heads of the query share one of keys and values.
    ("aten::_scaled_dot_product_flash_attention", (Q, T((2, 1, 12, 16)), T((2, 1, 12, 8))), "no",
     ATTENTION),
    ("aten::_scaled_dot_product_cudnn_attention", (Q, K, V, None, True), "no", ATTENTION),
    ("aten::_scaled_dot_product_flash_attention_backward", (G, Q, K, V, G), "no", ATTENTION_BACK),
    ("aten::_scaled_dot_product_efficient_attention_backward", (G, Q, K, V, None), "no",
     ATTENTION_BACK),
    ("aten::_scaled_dot_product_flash_attention_for_cpu_backward", (G, Q, K, V, G), "no",
     ATTENTION_BACK),
    ("aten::_scaled_dot_product_cudnn_attention_backward", (G, Q, K, V, G), "no", ATTENTION_BACK),
]
BIG = T((1 << 30, 1 << 30))
UNKNOWN = [
    ("aten::mm", ()), ("aten::mm", (T((4, 16)), ...)), ("aten::mm", (T((4, 16)), None)),
    ("aten::mm", (T((4, 16)), T((15, 3)))), ("aten::mm", (T((4, 16)), T((16,)))),
    ("aten::mm", (BIG, BIG)), ("aten::bmm", (T((4, 2, 3)), T((5, 3, 2)))),
    ("aten::add", (5, T((3,)))),
    ("aten::convolution", (X, W, None, [2, 1], ...)),
    ("aten::convolution", (X, W, None, ["number", 1], [1, 0], [1, 2], False, [0, 0], 2)),
    ("aten::convolution", (X, W, None, [0, 1], [1, 0], [1, 2], False, [0, 0], 2)),
    ("aten::convolution", (X, W, None, [-1, 1], [1, 0], [1, 2], False, [0, 0], 2)),
    ("aten::convolution", (X, T((8, 2, 30, 2)), None, [1, 1], [1, 0], [1, 2], False, [0, 0], 2)),
    ("aten::convolution", (X, W, None, [1, 1, 1], [1, 0], [1, 2], False, [0, 0], 2)),
    ("aten::convolution", (X, W, None, [1, 1], [1, 0], [1, 2], "number", [0, 0], 2)),
    ("aten::convolution_backward", (GRAD1, X1, W1, [6], [2], [0], [1], False, [0], 1)),
    ("aten::_scaled_dot_product_flash_attention", (Q, T((2, 1, 12, 16)), V)),
    ("aten::_scaled_dot_product_flash_attention", (Q, T((2, 2, 12, 16)), T((2, 2, 12, 8)))),
    ("aten::_scaled_dot_product_flash_attention_backward", (Q, Q, K, V, G)),
    ("aten::_flash_attention_forward", (Q, K, V, T((3,)), T((3,)), 5, 5)),
]


@pytest.mark.parametrize("name,inputs,profiler,counter", KNOWN)
def test_known(report, name, inputs, profiler, counter):
    recording = Recording()
    for _ in range(3):
        with recording.op(name, *inputs):
            pass
    _, rows = report(recording)
    for key, flops in (("flops", profiler), ("counter_flops", counter)):
        assert rows[name].get(key, "no") == (3 * flops if isinstance(flops, int) else flops)
        calls = 3 if isinstance(flops, int) else 0
        assert rows[name].get(f"{key}_calls", 0) == calls


def test_unknown(report):
    """Never wrong: what does not suffice for a formula, or more than fits, is null."""
    recording = Recording()
    for name, inputs in UNKNOWN:
        with recording.op(name, *inputs):
            pass
    made, _ = report(recording, "--by=shape")
    assert len(made["ops"]) > 12
    for row in made["ops"]:
        assert row.get("flops") is None and row.get("counter_flops") is None
        assert not row.get("flops_calls") and not row.get("counter_flops_calls")


def test_counted_once(report):
    """What is inside of a counted one is a part of it; an operator that only hands on to itself is
    one to key_averages()."""
    recording = Recording()
    with recording.op("aten::conv2d", X, W, None, *LISTS, 2):
        with recording.op("aten::convolution", *ARGUMENTS):
            with recording.op("aten::_convolution", *ARGUMENTS):
                with recording.op("aten::mm", T((4, 16)), T((16, 32))):
                    pass
    with recording.op("aten::mm", T((2, 3)), T((3, 5))):
        pass
    for inner in ((T((2, 3)), 2), (T((2, 3)), T(()))):
        with recording.op("aten::mul", T((2, 3)), 2):
            with recording.op("aten::mul", *inner):
                pass
    with recording.op("aten::add", T((7,)), 2):
        for _ in range(2):
            with recording.op("aten::add", T((7,)), 2):
                pass
    with recording.op("PythonDispatchMode", flags=TRACED):
        with recording.op("aten::mm", T((2, 3)), T((3, 5)), flags=TRACED):
            pass
    _, rows = report(recording)
    assert rows["aten::conv2d"]["flops"] == conv2d(X, W, *LISTS, 2)
    assert rows["aten::convolution"]["counter_flops"] == CONVOLVED
    assert "counter_flops" not in rows["aten::_convolution"]
    assert rows["aten::mm"]["counter_flops"] == 60 and rows["aten::mm"]["flops"] == 60 + 4096
    assert rows["aten::mul"]["flops"] == 2 * 6 and rows["aten::mul"]["calls"] == 4
    assert rows["aten::add"]["flops"] == 3 * 7


def test_done_by_python(report):
    """As PyTorch 2.11 records FlopCounterMode and a DTensor on two ranks: a mode runs the operator
    that it was asked for, a subclass others, with sizes of its own."""
    recording = Recording()
    whole, local = (T((8, 16)), T((16, 32))), (T((8, 16)), T((16, 16)))
    with recording.op("aten::matmul", *whole):
        with recording.op("aten::mm", *whole):
            with recording.op("PythonDispatchMode"):
                with recording.op("aten::mm", *whole):
                    with recording.op("PythonSubclass"):
                        with recording.op("aten::mm", *local):
                            recording.launch(500)
    with recording.op("aten::conv2d", X, W, None, *LISTS, 2):
        with recording.op("aten::convolution", *ARGUMENTS):
            with recording.op("PythonSubclass"):
                with recording.op("aten::mm", *local):
                    pass
    with recording.op("aten::mm", *whole):  # selective checkpointing keeps what it was
        with recording.op("PythonDispatchMode"):
            pass
    with recording.op("aten::mm", *whole):
        pass
    made, rows = report(recording)
    flops = 2 * 2 * 8 * 16 * 16 + 2 * 8 * 16 * 32
    assert rows["aten::mm"]["flops"] == rows["aten::mm"]["counter_flops"] == flops
    assert rows["aten::mm"]["calls"] == 6 and rows["aten::mm"]["gpu_ns"] == 3 * 500
    assert not rows["aten::conv2d"].get("flops") and \
        not rows["aten::convolution"].get("counter_flops")
    assert not made["losses"].get("traced_ops")


@pytest.mark.parametrize("device,kind,peak", [
    ("Tesla V100-SXM2-16GB", HALF, 125e12), ("Tesla V100-SXM2-16GB", FLOAT, 15.7e12),
    ("NVIDIA A100-SXM4-80GB", BFLOAT16, 312e12), ("NVIDIA A100-SXM4-80GB", FLOAT, None),
    ("NVIDIA A100-SXM4-81GB", BFLOAT16, None)])
def test_rate(report, device, kind, peak):
    recording = Recording()
    recording.device(device)
    for ns in (2000, 3000, 0):  # the last one without work: a call's FLOPs count all the same
        with recording.op("aten::matmul"):
            with recording.op("aten::mm", T((256, 512)).of(kind), T((512, 1024)).of(kind)):
                with recording.op("inner"):
                    if ns:
                        recording.launch(ns)
    with recording.op("aten::mul", T((1000,)), T((1000,))):
        recording.launch(500)
    with recording.op("aten::relu", T((1000,))):
        recording.launch(4500)
    made, rows = report(recording)
    flops = 3 * 2 * 256 * 512 * 1024
    assert rows["aten::mm"]["tflops"] == pytest.approx(flops / 5000e-9 / 1e12, abs=1e-6)
    assert rows["aten::mul"]["tflops"] == pytest.approx(1000 / 500e-9 / 1e12, abs=1e-6)
    assert "tflops" not in rows["aten::relu"] and "peak_share" not in rows["aten::mul"]
    share = rows["aten::mm"].get("peak_share")
    assert share == (pytest.approx(flops / 5000e-9 / peak, abs=1e-4) if peak else None)
    assert made["ops_flops_known_ns"] == 5500 and made["ops_flops_known_share"] == 0.55


def test_partly_known(report, tmp_path, run_verb):
    recording = Recording()
    with recording.op("aten::mm", T((256, 512)), T((512, 1024))):
        pass
    with recording.op("aten::mm"):
        pass
    _, rows = report(recording)
    assert (rows["aten::mm"]["flops"], rows["aten::mm"]["flops_calls"]) == (2 * 2 ** 27, 1)
    text = run_verb("report", "--table=ops", tmp_path / "data").stdout
    assert ">268.435 M" in text and "TFLOP/s" not in text and "backward" not in text


def test_backward(report):
    """The last forward operator with that number; recomputed, the one that was recomputed."""
    recording = Recording()
    for seq, names in ((5, ("aten::linear", "aten::t")), (6, ("aten::addmm",)), (5, ("aten::mm",))):
        with recording.op(names[0], seq=seq):
            if names[1:]:
                with recording.op(names[1], seq=seq):
                    pass
        engine = f"autograd::engine::evaluate_function: {seq}"
        with recording.op(engine, thread=OTHER, scope=BACKWARD, seq=seq, forward=1):
            with recording.op("Backward0", thread=OTHER, scope=BACKWARD, seq=seq, forward=1):
                with recording.op("aten::mul", thread=OTHER):
                    recording.launch(700, thread=OTHER)
                recording.launch(40 + seq, thread=OTHER)
    with recording.op("Backward0", thread=OTHER, scope=BACKWARD, seq=9, forward=1):
        recording.launch(11, thread=OTHER)
    _, rows = report(recording)
    found = {name: row["backward_gpu_ns"] for name, row in rows.items() if "backward_gpu_ns" in row}
    assert found == {"aten::t": 745, "aten::addmm": 746, "aten::mm": 745}
    times = {name: row["backward_cpu_ns"] for name, row in rows.items() if "backward_cpu_ns" in row}
    assert times.keys() == found.keys() and \
        sum(times.values()) < rows["Backward0"]["cpu_ns"]  # one of them has no forward operator


def test_range(report):
    """The innermost of labels and NVTX ranges, whichever began last."""
    recording = Recording()
    with recording.op("step 1", scope=LABEL), recording.op("aten::mm"):
        pass
    with recording.op("step 1", scope=LABEL), recording.range("inner"), recording.op("aten::mm"):
        pass
    with recording.range("outer"), recording.op("step 1", scope=LABEL), recording.op("aten::t"):
        with recording.op("aten::mm"):
            recording.launch(30)
    with recording.op("aten::mm"):
        pass
    made, _ = report(recording, "--by=range")
    rows = {(row["name"], row["range"]): (row["calls"], row["gpu_ns"]) for row in made["ops"]}
    assert rows == {("aten::mm", "step 1"): (2, 30), ("aten::mm", "inner"): (1, 0),
                    ("aten::t", "step 1"): (1, 30), ("aten::mm", None): (1, 0)}


def test_stack_text(report, tmp_path, run_verb):
    recording = Recording()
    with recording.op("forward", scope=LABEL), recording.op("aten::linear"):
        with recording.op("aten::mm", T((2, 3)), T((3, 5))):
            recording.launch(30)
    with recording.op("aten::mm", T((2, 3)), T((3, 5))):
        pass
    report(recording)
    text = run_verb("report", "--table=ops", "--by=stack", tmp_path / "data").stdout
    assert text.count("  aten::mm < aten::linear < forward\n") == 1 and "  aten::mm\n" in text
    rows = csv_tables.tables(
        run_verb("report", "--format=csv", "--by=stack", tmp_path / "data").stdout)["ops"]
    flops = {(row["name"], row["stack"]): row["flops"] for row in rows if row["flops"]}
    assert flops == {("aten::mm", '["aten::linear", "forward"]'): "60", ("aten::mm", "[]"): "60"}


def test_under_none(report):
    recording = Recording()
    for ns in (10, 20):
        recording.launch(ns, "triton_poi_fused_add_0")
    recording.launch(5, "triton_red_fused_sum_1", thread=OTHER)
    with recording.op("## Call CompiledFxGraph abc ##", scope=LABEL):
        recording.launch(300, "gemm")
        recording.launch(7, "triton_poi_fused_add_0")
    recording.launch(1000, "gemm", thread=OTHER)
    with recording.op("aten::mm"):
        recording.launch(50000, "triton_poi_fused_add_0")
    recording.launch(2000, "gemm")
    recording.kernel("gemm", 4000)
    recording.kernel("gemm", 8000, call=999)
    made, _ = report(recording)
    found = {(row["cause"], row["name"]): (row["count"], row["gpu_ns"])
             for row in made["ops_under_none"]}
    code = "compiled code: "
    assert found == {
        ("compiled", code + "triton_poi_fused_add_0"): (2, 30),
        ("compiled", code + "triton_red_fused_sum_1"): (1, 5),
        ("compiled", code + "## Call CompiledFxGraph abc ##"): (2, 307),
        ("thread", "calls of threads without operators"): (1, 1000),
        ("between", "calls between operators"): (1, 2000),
        ("call", "work whose call is not known"): (2, 12000)}
    assert made["ops_under_none_ns"] == 15342


# ---- replays of graphs -------------------------------------------------------------------------

STREAM, GRAPH, EXEC, KERNEL = 0x10, 0x20, 0x30, 0x40


def capture(recording, names=("gemm", "gemm", "relu")):
    """Two products and what comes behind them: (graph's operators' work)."""
    for i, name in enumerate(dict.fromkeys(names)):
        recording.add(1, TYPES["name"], [KERNEL + i, 1], name)
    handles = {name: KERNEL + i for i, name in enumerate(dict.fromkeys(names))}

    def launch(name):
        recording.call("cudaLaunchKernel", [handles[name]], flags=CAPTURED)
    recording.call("cudaStreamBeginCapture", [STREAM])
    with recording.op("aten::linear", seq=3), recording.op("aten::mm", T((2, 3)), T((3, 5))):
        launch(names[0])
        launch(names[1])
    with recording.op("aten::relu"):
        launch(names[2])
        recording.call("cudaMemsetAsync", [0, 64, STREAM], flags=CAPTURED)
    recording.call("cudaStreamEndCapture", [GRAPH, STREAM])
    recording.call("cudaGraphInstantiate", [EXEC, GRAPH, 0])


def replay(recording, number=7, names=("gemm", "gemm", "relu"), order=(0, 1, 2), more=0):
    call = recording.call("cudaGraphLaunch", [EXEC, STREAM])
    nodes = [(number << 32) + 1 + i for i in range(4 + more)]
    for i in order:
        recording.kernel(names[i], (100, 20, 3)[i], call, number, nodes[i])
    recording.set(5000, call, number, nodes[3])
    for i in range(more):
        recording.kernel("more", 1, call, number, nodes[4 + i])


def graph_rows(made):
    return {row["name"]: (row["self_gpu_ns"], row["gpu_ns"], row["graph_gpu_ns"])
            for row in made["ops"] if row.get("gpu_ns") and row["name"][0] != "("}


def test_graph(report):
    """Each replay's kernels are those of the operators that captured them, whatever the order."""
    recording = Recording()
    capture(recording)
    replay(recording)
    replay(recording, order=(2, 0, 1))
    with recording.op("## Call CompiledFxGraph abc ##", scope=LABEL):
        replay(recording)
    made, rows = report(recording)
    assert graph_rows(made) == {"aten::linear": (0, 360, 0), "aten::mm": (360, 360, 360),
                                "aten::relu": (15009, 15009, 15009)}
    assert made["ops_graph_ns"] == made["ops_gpu_ns"] == 15369 and not made["ops_under_none_ns"]
    assert rows["aten::mm"]["calls"] == 1 and made["labels"][0]["gpu_ns"] == 5123
    # FLOPs are those of calls; what a replay computes is in the rate.
    assert rows["aten::mm"]["counter_flops"] == 60
    assert rows["aten::mm"]["tflops"] == pytest.approx(3 * 60 / 360e-9 / 1e12, abs=1e-6)
    assert made["ops_flops_known_ns"] == 360


def test_graph_of_compiled_code(report):
    """Captured in no operator; the names of its kernels say what they are."""
    recording = Recording()
    with recording.op("aten::t"):
        pass
    recording.call("cudaStreamBeginCapture", [STREAM])
    for _ in range(2):
        recording.call("cudaLaunchKernel", [0], flags=CAPTURED)
    recording.call("cudaStreamEndCapture", [GRAPH, STREAM])
    recording.call("cudaGraphInstantiate", [EXEC, GRAPH, 0])
    call = recording.call("cudaGraphLaunch", [EXEC, STREAM])
    for node, name in enumerate(("triton_poi_fused_add_0", "gemm")):
        recording.kernel(name, 10 + node, call, 7, (7 << 32) + node)
    made, _ = report(recording)
    assert {row["name"]: row["gpu_ns"] for row in made["ops_under_none"]} == \
        {"compiled code: triton_poi_fused_add_0": 10,
         "replays of graphs captured in no operator": 11}


def test_graph_in_an_operator(report):
    """What an operator launches is its own."""
    recording = Recording()
    capture(recording)
    with recording.op("CompiledFunction"):
        replay(recording)
    made, _ = report(recording)
    assert made["ops_graph_ns"] == made["ops_under_none_ns"] == 0
    assert {row["name"]: row["self_gpu_ns"] for row in made["ops"] if row["gpu_ns"]} == \
        {"CompiledFunction": 5123}


@pytest.mark.parametrize("why", ("more", "name", "two captures", "unseen", "whole"))
def test_graph_not_known(report, why):
    recording = Recording()
    with recording.op("aten::t"):
        pass
    if why == "two captures":
        recording.call("cudaStreamBeginCapture", [STREAM + 1])
    if why != "unseen":
        capture(recording)
    if why == "whole":
        call = recording.call("cudaGraphLaunch", [EXEC, STREAM])
        recording.add(2, TYPES["graph"], [0, 1, 7, 7], ns=5123, call=call)
    else:
        replay(recording, names=("gemm", "other", "relu") if why == "name" else
               ("gemm", "gemm", "relu"), more=int(why == "more"))
    made, _ = report(recording)
    [row] = made["ops_under_none"]
    text = {"unseen": "replays of graphs whose capture was not recorded",
            "whole": "replays of graphs, recorded as a whole"}
    assert row["name"] == text.get(why, "replays of graphs with other nodes than were captured")
    assert row["gpu_ns"] == made["ops_gpu_ns"] == 5123 + (why == "more") and row["cause"] == "graph"


def test_graphs_of_one_handle(report):
    """Handles come back: each graph is the one that was captured last under it."""
    recording = Recording()
    capture(recording)
    replay(recording)
    recording.call("cudaGraphExecDestroy", [EXEC])
    recording.call("cudaStreamBeginCapture", [STREAM])
    with recording.op("aten::exp"):
        recording.call("cudaLaunchKernel", [KERNEL], flags=CAPTURED)
    recording.call("cudaStreamEndCapture", [GRAPH, STREAM])
    recording.call("cudaGraphInstantiate", [EXEC, GRAPH, 0])
    call = recording.call("cudaGraphLaunch", [EXEC, STREAM])
    recording.kernel("gemm", 9, call, 8, (8 << 32) + 1)
    made, _ = report(recording)
    assert graph_rows(made)["aten::exp"] == (9, 9, 9) and graph_rows(made)["aten::mm"][0] == 120


def test_graph_after_a_capture_that_failed(report):
    recording = Recording()
    recording.call("cudaStreamBeginCapture", [STREAM])
    with recording.op("aten::exp"):
        recording.call("cudaLaunchKernel", [KERNEL], flags=CAPTURED)
    recording.call("cudaStreamEndCapture", [0, STREAM], result=901)
    capture(recording)
    replay(recording)
    made, _ = report(recording)
    assert made["ops_graph_ns"] == 5123 and "aten::exp" not in graph_rows(made)


def crossing(recording, count):
    """As many operators, each of which ends when the next one has begun, but for the last."""
    number = recording.number(recording.names, "op_name", 1, "crossing")
    for _ in range(count):
        recording.objects += 1
        recording.add(1, TYPES["op_begin"], [recording.objects, number])
        recording.call("cudaLaunchKernel", [0])
        if recording.objects > 1:
            recording.add(1, TYPES["op_end"], [recording.objects - 1])


@pytest.mark.parametrize("count", (500, 3000))
def test_what_crosses_is_followed(report, count):
    """Work looks for what is around its call, past what has ended."""
    recording = Recording()
    with recording.op("outer"):
        recording.call("cudaLaunchKernel", [0])
        crossing(recording, count)
        recording.launch(700)
    made, ops = report(recording)
    assert ops["crossing"]["gpu_ns"] == made["ops_gpu_ns"] == 700
    assert ops["outer"]["gpu_ns"] == 700


def test_more_inputs_than_there_is_room_for(report):
    """The first ones stay as they are; FLOPs that found no room are not known."""
    count = 8000
    recording = Recording()
    for size in range(count):
        with recording.op("aten::mm", T((1, 1)), T((1, size + 1))):
            pass
    _, rows = report(recording)
    row = rows["aten::mm"]
    assert row["calls"] == count and 4096 < row["flops_calls"] < count
    assert row["flops"] == sum(2 * (size + 1) for size in range(row["flops_calls"]))


@pytest.mark.parametrize("by", ("stack", "range"))
def test_more_rows_than_there_is_room_for(report, by):
    recording = Recording()
    for outer in range(100):
        with recording.op(f"label {outer}", scope=LABEL):
            for inner in range(100):
                with recording.op(f"op {inner}"):
                    pass
    made, rows = report(recording, f"--by={by}")
    others = rows["(others)"]
    assert 4096 < len(made["ops"]) < 9000 and others.get("stack", []) == []
    assert others["calls"] + len(made["ops"]) - 1 == 10000
