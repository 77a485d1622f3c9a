# SPDX-License-Identifier: Apache-2.0
"""Calls of libraries in the collector: what they compute, whose the GPU's time was, which kernels
they launched, in the report and in the trace. Recordings written record by record, held against
numbers that are computed here."""

import json
import os
import random
import subprocess
from math import prod

import conftest
import pytest
import toolchain

import made_libraries as made
from made_libraries import (BF16, BITS, C32, C64, COMPUTE_F16, COMPUTE_F32, COMPUTE_TF32, E4M3,
                            E5M2, F16, F32, F64, I8, Libraries)
from made_ops import CAPTURED, MAIN, OTHER, TYPES

A100, H100 = "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"
PEAKS = {(A100, BF16): 312e12, (A100, F64): 19.5e12, (H100, BF16): 989.4e12}
TYPE_TEXTS = {F32: "f32", F64: "f64", F16: "f16", I8: "i8", C32: "cf32", C64: "cf64", BF16: "bf16",
              E4M3: "e4m3", E5M2: "e5m2"}


@pytest.fixture(name="report")
def fixture_report(tmp_path, run_verb):
    """report(recording, options): the JSON; its calls of libraries by name."""
    def report(recording, *options):
        folder = recording.write(conftest.built(conftest.BUILD / "make_raw"), tmp_path / "data")
        found = json.loads(run_verb("report", "--format=json", *options, folder).stdout)
        return found, {row["name"]: row for row in found.get("library", [])}
    return report


@pytest.fixture(name="text")
def fixture_text(tmp_path, run_verb):
    def text(recording, *options):
        folder = recording.write(conftest.built(conftest.BUILD / "make_raw"), tmp_path / "data")
        return run_verb("report", *options, folder).stdout
    return text


# ---- what calls compute --------------------------------------------------------------------------

def product_of(m, n, k, batch, kind, out):
    """(flops, bytes): each of m*n results is k multiplications and as many additions."""
    real = 4 if kind in (C32, C64) else 1
    read = batch * (m * k + k * n) * BITS[kind] // 8
    return 2 * real * m * n * k * batch, read + batch * m * n * BITS[out] // 8


def random_products(count):
    random.seed(16)
    seen = {}
    while len(seen) < count:
        kind = random.choice(list(BITS))
        out = random.choice((kind, F32)) if kind not in (C32, C64) else kind
        sizes = tuple(random.choice((1, random.randrange(1, 65), 8 * random.randrange(1, 2048)))
                      for _ in range(3))
        batch = random.choice((1, 1, random.randrange(2, 500)))
        seen[sizes, batch, kind, out] = product_of(*sizes, batch, kind, out)
    return seen


def test_products(report):
    """200 shapes, types and batches: floating point operations and bytes are those of the book."""
    recording = Libraries()
    products = random_products(200)
    for (sizes, batch, kind, out) in products:
        recording.gemm(*sizes, kind=kind, batch=batch, out=out, ns=None)
    _, rows = report(recording)
    assert len(rows) == 200
    for (sizes, batch, kind, out), (flops, size) in products.items():
        name = "cublasGemmEx " + "x".join(map(str, sizes)) + (f" batch {batch}" if batch > 1
                                                             else "")
        name += f" {TYPE_TEXTS[kind]}" + (f"->{TYPE_TEXTS[out]}" if out != kind else "") + " nn"
        row = rows[name]
        assert (row["flops"], row["bytes"]) == (flops, size), name
        assert row["flops_per_byte"] == pytest.approx(flops / size, abs=1e-6)
        assert row["type"] == TYPE_TEXTS[kind]


def test_vectors(report):
    """A vector is a matrix of one column: tensor cores are of no use to it."""
    recording = Libraries()
    recording.gemm(512, 1, 256, kind=F16, kernel="gemvNSP_kernel<__half>")
    recording.gemm(1, 1, 999, kind=F16, kernel="dot_kernel<__half>", symbol="cublasDotEx")
    _, rows = report(recording)
    found = {name: (row["flops"], row["bytes"], row["tensor_cores"]) for name, row in rows.items()}
    assert found == {"cublasGemmEx 512x1x256 f16 nn": (2 * 512 * 256, 2 * (512 * 256 + 256 + 512),
                                                       "no"),
                     "cublasDotEx 1x1x999 f16 nn": (2 * 999, 2 * (2 * 999 + 1), "no")}


@pytest.mark.parametrize("kind", [F32, F64, C32])
def test_triangles(report, kind):
    """A triangle of the side that it is on, n (n + 1) / 2 numbers, with m x n numbers that are read
    and written: each of these is half as many multiplications and additions as the side is long."""
    recording = Libraries()
    for side in (0, 1):
        with recording.library("cublasStrsm_v2", side=side, trans_a=0, m=30, n=7, batch=3,
                               a_type=kind):
            pass
    found, _ = report(recording)
    real, size = (4 if kind == C32 else 1), BITS[kind] // 8
    assert sorted((row["flops"], row["bytes"]) for row in found["library"]) == sorted(
        (3 * real * 30 * 7 * side, 3 * size * (2 * 30 * 7 + side * (side + 1) // 2))
        for side in (30, 7))


def test_groups_of_products(report):
    recording = Libraries()
    for sizes, mnk in (((8, 8, 8), 5 * 8**3), ((0, 0, 0), 8**3 + 2 * 16**3), ((0, 0, 0), 0)):
        with recording.library("cublasSgemmGroupedBatched", groups=2, batch=5, m=sizes[0],
                               n=sizes[1], k=sizes[2], mnk=mnk, a_type=F32, b_type=F32, c_type=F32):
            pass
    found, _ = report(recording)
    assert sorted((row.get("flops", 0), row.get("bytes")) for row in found["library"]) == sorted(
        [(2 * 5 * 8**3, 5 * 3 * 8 * 8 * 4), (2 * (8**3 + 2 * 16**3), None), (0, None)],
        key=lambda pair: pair[0])


U64 = 2**64


@pytest.mark.parametrize("sizes", [(2**31, 2**31, 2), (U64 - 1, 5, 5), (5, U64 - 2**31, 5),
                                   (2**47, 2**47, 2**47), (U64 - 1, U64 - 1, U64 - 1)])
def test_products_that_cannot_be(report, sizes):
    """More than fits, or sizes that were negative: not known, never wrong."""
    recording = Libraries()
    recording.gemm(*sizes, batch=3)
    _, rows = report(recording)
    row, = rows.values()
    flops = 2 * prod(sizes) * 3
    assert row.get("flops") == (flops if flops < U64 and max(sizes) <= 2**48 else None)
    assert row["calls"] == 1 and row["gpu_ns"] == 1000


# ---- whose time it was ---------------------------------------------------------------------------

def test_time_and_rate(report, text):
    recording = Libraries()
    recording.device(A100)
    for _ in range(3):
        recording.gemm(4096, 4096, 4096, ns=600000, trans=(1, 0),
                       kernel="ampere_bf16_s16816gemm_bf16_128x128_tn")
    recording.gemm(64, 64, 64, kind=F64, ns=4000, kernel="ampere_dgemm_64x64_nn")
    recording.gemm(64, 64, 64, kind=F64, ns=None, result=14)
    recording.launch(190000, "relu")
    found, rows = report(recording)
    assert [row["name"] for row in found["library"]] == [
        "cublasGemmEx 4096x4096x4096 bf16 tn", "cublasGemmEx 64x64x64 f64 nn"]
    large, small = found["library"]
    assert (large["calls"], large["errors"], large["gpu_ns"], large["works"]) == (3, 0, 1800000, 3)
    assert large["tflops"] == pytest.approx(3 * 2 * 4096**3 / 1800e-6 / 1e12, rel=1e-5)
    assert large["peak_share"] == pytest.approx(3 * 2 * 4096**3 / 1800e-6 / PEAKS[A100, BF16],
                                                abs=1e-4)
    assert large["tensor_cores"] == "used" and large["tensor_share"] == 1
    assert large["gb_s"] == pytest.approx(3 * 3 * 4096**2 * 2 / 1800e-6 / 1e9, rel=1e-5)
    # The one that failed did no work: it makes the others no faster.
    assert (small["calls"], small["errors"], small["gpu_ns"]) == (2, 1, 4000)
    assert small["tflops"] == pytest.approx(2 * 64**3 / 4e-6 / 1e12, abs=1e-6)
    assert small["tensor_cores"] == "unused" # an A100 has such for doubles
    assert found["library_gpu_ns"] == 1804000 and found["library_flops_known_ns"] == 1804000
    assert found["library_flops_known_share"] == pytest.approx(1804 / 1994, abs=1e-4)
    shown = text(recording, "--table=library")
    assert "GPU time in library calls: 90.5%; FLOPs are known for 90.5% of the GPU time" in shown
    assert len(rows) == 2


@pytest.mark.parametrize("device,kind,compute,kernel,tensor,peak", [
    (A100, F32, COMPUTE_F32, "ampere_sgemm_128x64_nn", "no", 19.5e12),
    (A100, F32, COMPUTE_TF32, "ampere_s1688gemm_128x64", "used", 156e12),
    # The handle's mode allows TF32, which no argument says: the kernel's name does.
    (A100, F32, COMPUTE_F32, "cutlass_80_tensorop_s1688gemm_256x128", "used", 156e12),
    (A100, F32, COMPUTE_F32, "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64_ffma", "no",
     19.5e12),
    (A100, F32, COMPUTE_F32, "nobody_knows", "no", None),
    (A100, F16, COMPUTE_F32, "ampere_h16816gemm_128x64", "used", 312e12),
    (A100, F16, COMPUTE_F16, "gemv2T_kernel_val<half>", "unused", 312e12),
    (A100, I8, 72, "ampere_i16832gemm_int8_128x128", "used", 624e12),
    (A100, F16, COMPUTE_F32, "nobody_knows", None, 312e12),
    (H100, E4M3, COMPUTE_F32, "nvjet_qqtst_128x256_64x4_2x1_v_bz_coopA_TNT", "used", 1978.9e12),
    ("Tesla V100-SXM2-16GB", F32, COMPUTE_F32, "nobody_knows", "no", 15.7e12),
    ("NVIDIA A1000000", F16, COMPUTE_F32, "turing_s1688gemm_fp16", "used", None),
    (None, F16, COMPUTE_F32, "volta_fp16_s884gemm", "used", None),
])
def test_peak_and_tensor_cores(report, device, kind, compute, kernel, tensor, peak):
    recording = Libraries()
    if device:
        recording.device(device)
    recording.gemm(512, 512, 512, kind=kind, compute=compute, ns=10000, kernel=kernel)
    _, rows = report(recording)
    row, = rows.values()
    assert row.get("tensor_cores") == tensor
    share = 2 * 512**3 / 10e-6 / peak if peak else None
    assert row.get("peak_share") == (pytest.approx(share, abs=1e-4) if peak else None)


def test_nesting(report):
    """A solver calls cuBLAS: its time is both's, the kernel is of the inner one."""
    recording = Libraries()
    with recording.library("cusolverDnSgetrf", "cusolver", n=100):
        recording.gemm(100, 100, 8, kind=F32, ns=7000, kernel="inner")
        recording.launch(3000, "pivot")
    found, rows = report(recording)
    assert rows["cusolverDnSgetrf 100"]["gpu_ns"] == 10000
    assert rows["cublasGemmEx 100x100x8 f32 nn"]["gpu_ns"] == 7000
    assert found["library_gpu_ns"] == 10000
    kernels = {row["name"]: row.get("launched_by") for row in found["cuda_gpu_kern_sum"]}
    assert kernels == {"inner": "cublasGemmEx 100x100x8 f32 nn", "pivot": "cusolverDnSgetrf 100"}


def test_a_piece_has_what_is_in_it(report, text):
    """No row of a call that is not; but one whose work alone is."""
    recording = Libraries()
    recording.gemm(5, 6, 7)
    recording.now += 1_000_000
    recording.gemm(8, 9, 10)
    middle = "--from=500us"
    assert len(report(recording)[1]) == 2
    found, rows = report(recording, middle)
    assert list(rows) == ["cublasGemmEx 8x9x10 bf16 nn"] and found["library"][0]["calls"] == 1
    assert "5x6x7" not in text(recording, middle, "--table=library")


def test_launched_by(report, text):
    """A kernel that calls of one kind make is theirs; of several shapes the function's."""
    recording = Libraries()
    for kernel, sizes in (("one", (5, 6, 7)), ("one", (5, 6, 7)), ("two", (5, 6, 7)),
                          ("two", (8, 6, 7)), ("mixed", (5, 6, 7)), ("both", (5, 6, 7))):
        recording.gemm(*sizes, kernel=kernel)
    recording.gemm(5, 6, 7, symbol="cublasLtMatmul", kernel="both")
    recording.launch(500, "mixed")
    recording.launch(500, "own")
    found, _ = report(recording)
    kernels = {row["name"]: row.get("launched_by") for row in found["cuda_gpu_kern_sum"]}
    one = "cublasGemmEx 5x6x7 bf16 nn"
    assert kernels == {"one": one, "two": "cublasGemmEx", "mixed": None, "both": None, "own": None}
    lines = text(recording, "--table=cuda_gpu_kern_sum").splitlines()
    assert [line.split("  ")[-1] for line in lines if "one" in line] == [f"one (by {one})"]


def test_left_and_open(report, run_verb, tmp_path):
    """A call that was left by longjmp ends with its last CUDA call, one at a kill with all."""
    recording = Libraries()
    args = {"m": 2, "n": 3, "k": 4, "batch": 1, "a_type": F32, "b_type": F32, "c_type": F32,
            "compute": COMPUTE_F32, "trans_a": 0, "trans_b": 0}
    recording.begin("cublasGemmEx", **args)
    recording.launch(1000, "left")
    left_at = recording.now
    recording.begin("cublasGemmEx", **args)
    recording.end("cublasGemmEx")
    recording.end("cublasGemmEx") # of nothing
    recording.begin("cublasGemmEx", **args)
    recording.begin("cublasGemmEx", **args)
    found, rows = report(recording)
    row, = rows.values()
    assert row["calls"] == 4 and row["gpu_ns"] == 1000
    kernels = {row["name"]: row.get("launched_by") for row in found["cuda_gpu_kern_sum"]}
    assert kernels["left"].startswith("cublasGemmEx")
    trace = tmp_path / "t.json"
    run_verb("merge", tmp_path / "data", "-o", trace)
    calls = [e for e in json.loads(trace.read_text())["traceEvents"]
             if e.get("name") == "cublasGemmEx"]
    assert [(e["args"].get("stale"), e["args"].get("open")) for e in calls] == [
        (True, None), (None, None), (True, None), (None, True)]
    assert calls[0]["ts"] + calls[0]["dur"] <= left_at / 1000


def test_trace(run_verb, tmp_path):
    """Calls of libraries stand between operators and CUDA's calls, with their arguments."""
    recording = Libraries()
    kinds = {"a_type": "cudaDataType", "compute": "cublasComputeType_t",
             "trans_a": "cublasOperation_t", "stream": "stream", "key": "signed"}
    labels = ("m", "n", "k", "a_type", "b_type", "compute", "trans_a", "stream", "key")
    recording.codes["cublasGemmEx"] = made.FIRST_CODE, labels
    text = ",".join(f"{kinds.get(label, 'count')}:{label}" for label in labels)
    recording.add(0, TYPES["api"], (), f"cublasGemmEx|cublas|library|{text}", begin=0,
                  code=made.FIRST_CODE)
    with recording.op("aten::mm"):
        with recording.library("cublasGemmEx", m=5, n=6, k=7, a_type=BF16, b_type=BF16,
                               compute=COMPUTE_F32, trans_a=1, stream=0x700, key=2**64 - 3):
            recording.launch(2000, "gemm")
        recording.launch(3000, "relu")
    with recording.library("ncclAllReduce", "nccl", result=2, count=3, type=made.NCCL_F16):
        pass
    folder = recording.write(conftest.built(conftest.BUILD / "make_raw"), tmp_path / "data")
    run_verb("merge", folder, "-o", tmp_path / "t.json")
    events = {(e["cat"], e["name"]): e for e in json.loads((tmp_path / "t.json").read_text())
              ["traceEvents"] if e["ph"] == "X"}
    op, call = events["cpu_op", "aten::mm"], events["library", "cublasGemmEx"]
    launch = events["cuda_runtime", "cudaLaunchKernel"] # the last, which is in no call
    assert op["tid"] == call["tid"] == launch["tid"]
    assert op["ts"] < call["ts"] and call["ts"] + call["dur"] < launch["ts"]
    assert call["args"] == {
        "call": "cublasGemmEx 5x6x7 bf16 t", "m": 5, "n": 6, "k": 7, "a_type": "bf16",
        "b_type": BF16, "compute": "f32", "trans_a": "t", "cuda_stream": "0x700",
        "key": -3}
    gemm, relu = events["kernel", "gemm"]["args"], events["kernel", "relu"]["args"]
    assert gemm["launched by"] == "cublasGemmEx 5x6x7 bf16 t" and "launched by" not in relu
    failed = events["library", "ncclAllReduce"]["args"]
    assert (failed["result"], failed["error"]) == (2, "ncclSystemError")


def test_graph(report):
    """Replays of a graph belong to the calls that were captured."""
    recording = Libraries()
    kernel, stream, graph, executable = 0x40, 0x10, 0x20, 0x30
    recording.add(MAIN, TYPES["name"], [kernel, 1], "gemm")
    recording.call("cudaStreamBeginCapture", [stream])
    for m in (5, 8):
        with recording.library("cublasGemmEx", m=m, n=6, k=7, a_type=F32, b_type=F32, c_type=F32):
            recording.call("cudaLaunchKernel", [kernel], flags=CAPTURED)
    recording.call("cudaStreamEndCapture", [graph, stream])
    recording.call("cudaGraphInstantiate", [executable, graph, 0])
    for _ in range(4):
        call = recording.call("cudaGraphLaunch", [executable, stream])
        for node, ns in ((1, 2000), (2, 3000)):
            recording.kernel("gemm", ns, call, 7, (7 << 32) + node)
    found, rows = report(recording)
    first, second = rows["cublasGemmEx 5x6x7 f32"], rows["cublasGemmEx 8x6x7 f32"]
    assert (first["gpu_ns"], second["gpu_ns"]) == (8000, 12000)
    assert first["tflops"] == pytest.approx(4 * 2 * 5 * 6 * 7 / 8e-6 / 1e12, abs=1e-6)
    assert found["cuda_gpu_kern_sum"][0]["launched_by"] == "cublasGemmEx"


def test_names_only(report):
    """--libraries=names: no arguments, and so no shape and no floating point operations."""
    recording = Libraries()
    recording.gemm(5, 6, 7, ns=None)
    code, _ = recording.codes["cublasGemmEx"]
    recording.add(MAIN, TYPES["library_begin"], [], code=code)
    recording.launch(1000, "gemm")
    recording.add(MAIN, TYPES["library_end"], [], code=code)
    found, rows = report(recording)
    assert rows["cublasGemmEx"]["gpu_ns"] == 1000 and "flops" not in rows["cublasGemmEx"]
    assert found["library_flops_known_ns"] == 0


# ---- plans ---------------------------------------------------------------------------------------

def places(size, kernel, stride, pad, dilation):
    return len(range(0, size + 2 * pad - dilation * (kernel - 1), stride))


def convolution_plan(operation, n, c, sizes, k, filters, groups, stride=1, pad=0, dilation=1):
    """The plan's text, and its floating point operations: each point of the output is, for each
    channel of its group and place of the filter, a multiplication and an addition."""
    out = [places(size, f, stride, pad, dilation) for size, f in zip(sizes, filters)]
    x, w, y = (n, c, *sizes), (k, c // groups, *filters), (n, k, *out)
    names = {"convolution_forward": "xwy", "convolution_backward_data": ("dx", "w", "dy"),
             "convolution_backward_filter": ("x", "dw", "dy")}[operation]
    tensors = " ".join(f"{name}={','.join(map(str, sizes))}:f16"
                       for name, sizes in zip(names, (x, w, y)))
    lists = " ".join(f"{name}={','.join([str(value)] * len(sizes))}" for name, value in
                     (("stride", stride), ("pad", pad), ("dilation", dilation)))
    text = f"{operation} {tensors} {lists} groups={groups} compute=f32"
    flops = sum(2 for _ in range(n * k * prod(out) * (c // groups) * prod(filters)))
    return text, flops, 2 * (prod(x) + prod(w) + prod(y))


PLANS = [
    convolution_plan("convolution_forward", 2, 4, (7, 9), 6, (3, 3), 1, 1, 1),
    convolution_plan("convolution_forward", 2, 4, (17, 9), 6, (3, 2), 2, 2, 1, 2),
    convolution_plan("convolution_backward_data", 2, 4, (7, 9), 6, (3, 3), 1, 2, 1),
    convolution_plan("convolution_backward_filter", 2, 4, (5, 6, 7), 6, (1, 2, 3), 2),
    ("matmul a=4,32,16:bf16 b=4,16,8:bf16 c=4,32,8:bf16 compute=f32", 2 * 4 * 32 * 16 * 8,
     2 * 4 * (32 * 16 + 16 * 8 + 32 * 8)),
    # What is virtual is never in memory; of a single one it comes out of what follows.
    ("matmul a=2,8,16:f16 b=2,16,8:f16 c=2,8,8:f16:virtual; pointwise x=2,8,8:f16:virtual "
     "y=2,8,8:f16:virtual mode=exp; matmul a=2,8,8:f16:virtual b=2,8,16:f16 "
     "c=2,8,16:f16:channels_last", 2 * 2 * 2 * 8 * 16 * 8, 2 * 4 * 2 * 16 * 8),
    ("matmul a=8,16:f16 b=16,8:f16 c=8,8:f16:channels_last:virtual; pointwise x=8,8:f16:virtual "
     "y=8,8:f16 mode=relu", 2 * 8 * 16 * 8, 2 * (2 * 16 * 8 + 64)),
    ("sdpa_fwd q=2,3,10,16:f16 k=2,3,12,16:f16 v=2,3,12,8:f16 o=2,3,10,8:f16",
     2 * 6 * 10 * 12 * (16 + 8), 2 * 6 * (10 * 16 + 12 * 16 + 12 * 8 + 10 * 8)),
    ("sdpa_bwd q=2,3,10,16:f16 k=2,3,12,16:f16 v=2,3,12,8:f16 o=2,3,10,8:f16 do=2,3,10,8:f16",
     2 * 6 * 10 * 12 * (3 * 16 + 2 * 8), 2 * 6 * (10 * 16 + 12 * 16 + 12 * 8 + 10 * 8)),
    ("matmul a=8,16:f16 b=16,8:? c=8,8:f16", 2 * 8 * 16 * 8, None),
    ("matmul a=8,16:f16 b=16,8:f16 c=8,8:f16; ...", None, None),
    ("pointwise relu x=2,8,8:f16 y=2,8,8:f16", None, None),
    ("convolution_forward x=2,4,7:f16 w=6,4,3,3:f16 y=2,6,5,5:f16", None, None),
    ("convolution_forward x=2,4,7,7:f16 w=6,4,3,3:f16", None, None),
    ("matmul a=9999999999999999999999,5:f16 b=5,5:f16 c=5,5:f16", None, None),
    ("matmul a=281474976710656,281474976710656:f16 b=5,5:f16 c=281474976710656,281474976710656:f16",
     None, None),
    ("matmul a=-5,5:f16 b=5,5:f16 c=5,5:f16", None, None),
    (";;; ;= == =:: matmul matmul =,:f16 a= :", None, None),
]


@pytest.mark.parametrize("text,flops,size", PLANS)
def test_plans(report, text, flops, size):
    recording = Libraries()
    recording.plan("another")
    plan = recording.plan(text)
    for _ in range(2):
        with recording.library("cudnnBackendExecute", "cudnn", plan=plan):
            recording.launch(1000, "sm90_xmma_fprop_implicit_gemm_f16")
    _, rows = report(recording)
    row, = rows.values()
    assert row["name"].startswith(f"cudnnBackendExecute {text[:200]}")
    assert (row["calls"], row.get("flops"), row.get("bytes")) == (2, flops, size)
    if flops:
        assert row["tflops"] == pytest.approx(2 * flops / 2e-6 / 1e12, abs=1e-6)


# ---- ranks ---------------------------------------------------------------------------------------

COMM, COUNT = 0xabc0, 1 << 20
FACTORS = {"ncclAllReduce": lambda n: 2 * (n - 1) / n, "ncclAllGather": lambda n: n - 1,
           "ncclReduceScatter": lambda n: n - 1, "ncclBroadcast": lambda n: 1}


def collective(recording, function, sequence, ns, group=False, comm=COMM, count=COUNT):
    """As the recording's rank makes it; in a group its end launches the kernel."""
    args = {"count": count, "type": made.NCCL_BF16, "comm": comm, "sequence": sequence}
    if group:
        with recording.library("ncclGroupStart", "nccl"):
            pass
    with recording.library(function, "nccl", **args):
        if not group:
            recording.launch(ns, f"ncclDevKernel_{function}")
    if group:
        with recording.library("ncclGroupEnd", "nccl"):
            recording.launch(ns, f"ncclDevKernel_{function}")


def rank_report(tmp_path, run_verb, recordings):
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank, recording in enumerate(recordings):
        subprocess.run([conftest.built(conftest.BUILD / "make_raw"), folder / f"{rank}.gpuprof",
                        str(rank)], input="\n".join(recording.lines) + "\n", text=True, check=True,
                       timeout=60)
    return json.loads(run_verb("report", "--format=json", folder).stdout)


@pytest.mark.parametrize("function", FACTORS)
@pytest.mark.parametrize("group", [False, True])
def test_bus_bandwidth(tmp_path, run_verb, function, group):
    """By the shortest kernel among the ranks, of those collectives that all of them made."""
    random.seed(function)
    times = [[random.randrange(1000, 90000) for _ in range(4)] for _ in range(5)]
    recordings = []
    for rank in range(4):
        recording = Libraries()
        recording.communicator(COMM + rank, 0x1d, rank, 4)
        for sequence, of_ranks in enumerate(times, 1):
            if rank < 3 or sequence < 5: # rank 3 did not come to the last
                collective(recording, function, sequence, of_ranks[rank], group, COMM + rank)
        recordings.append(recording)
    found = rank_report(tmp_path, run_verb, recordings)
    row = next(row for row in found["library"] if row["function"] == function)
    assert row["name"] == f"{function} {COUNT} bf16 over 4 ranks"
    assert row["calls"] == 19 and row["bytes"] == 2 * COUNT and row["bus_calls"] == 4
    assert row["gpu_ns"] == sum(map(sum, times)) - times[4][3]
    shortest = sum(min(of_ranks) for of_ranks in times[:4])
    assert row["bus_gb_s"] == pytest.approx(4 * 2 * COUNT * FACTORS[function](4) / shortest,
                                            rel=1e-5)
    if group: # which launches, but is no row's GPU time
        end = next(row for row in found["library"] if row["function"] == "ncclGroupEnd")
        assert end["gpu_ns"] == 0 and end["calls"] == 19
    kernel, = found["cuda_gpu_kern_sum"]
    assert kernel["launched_by"] == row["name"]


def test_one_rank_has_no_bandwidth(report):
    recording = Libraries()
    recording.communicator(COMM, 0x1d, 0, 2)
    for sequence in (1, 2):
        collective(recording, "ncclAllReduce", sequence, 5000)
    collective(recording, "ncclAllReduce", 3, 5000, comm=0x999)
    _, rows = report(recording)
    assert {name: row.get("bus_gb_s") for name, row in rows.items()} == {
        f"ncclAllReduce {COUNT} bf16 over 2 ranks": None, f"ncclAllReduce {COUNT} bf16": None}


def test_group_of_several(report):
    """One kernel does what several calls said: it is the group's, with all of their bytes."""
    recording = Libraries()
    recording.communicator(COMM, 0x1d, 0, 2)
    with recording.library("ncclGroupStart", "nccl"):
        pass
    for function in ("ncclSend", "ncclRecv"):
        with recording.library(function, "nccl", count=500, type=made.NCCL_F32, peer=1, comm=COMM):
            pass
    with recording.library("ncclGroupEnd", "nccl"):
        recording.launch(7000, "ncclDevKernel_SendRecv")
    with recording.library("ncclGroupEnd", "nccl"): # of nothing
        recording.launch(100, "other")
    _, rows = report(recording)
    together = rows["ncclGroupEnd of 2 calls, 4000 bytes"]
    assert (together["calls"], together["gpu_ns"], together["bytes"]) == (0, 7000, 4000)
    assert rows["ncclGroupEnd"]["calls"] == 2 and rows["ncclGroupEnd"]["gpu_ns"] == 100
    assert rows["ncclSend 500 f32 over 2 ranks"]["gpu_ns"] == 0


# ---- what anybody may have written into a file ---------------------------------------------------

def peak_mib(*command):
    return toolchain.peak_kib(*command) / 1024


def many(kind, count):
    """A recording with so many of something that a program has few of."""
    recording = Libraries()
    for i in range(count):
        if kind == "shapes":
            recording.gemm(i, 1, 1, ns=None)
        elif kind == "open":
            recording.begin("cublasGemmEx" if i % 2 else "cublasSgemm_v2", m=i)
        elif kind == "ends":
            recording.begin("cublasGemmEx", m=1) if i == 0 else recording.end("cublasGemmEx")
        elif kind == "plans":
            plan = recording.plan(f"matmul a={i},2:f16 b=2,3:f16 c={i},3:f16")
            with recording.library("cudnnBackendExecute", "cudnn", plan=plan):
                pass
        else:
            recording.communicator(i, i, 0, 2)
            collective(recording, "ncclAllReduce", i + 1, 1000, comm=i, count=i)
    return recording


@pytest.mark.parametrize("kind", ["shapes", "open", "ends", "plans", "communicators"])
def test_memory_of_a_hostile_file(collector, tmp_path, kind):
    maker = conftest.built(conftest.BUILD / "make_raw")
    folder = many(kind, 20_000).write(maker, tmp_path / "data")
    assert peak_mib(collector, "report", folder) < 60
    assert peak_mib(collector, "merge", "-o", os.devnull, folder) < 60


@pytest.mark.long
def test_memory_of_many_calls(collector, tmp_path):
    """Ten million events of a program's usual calls take no more memory than a few."""
    sizes = {}
    for count in (25_000, 2_500_000):
        recording = Libraries()
        recording.gemm(64, 64, 64)
        code, _ = recording.codes["cublasGemmEx"]
        lines = list(recording.lines)
        for i in range(count):
            at, call = recording.now + 4000 * (i + 1), i + 100
            lines.append(
                f"1 {TYPES['library_begin']} 0 {code} {at} 0 0 0 {i % 50},6,7,1,14,14,14,68,0,0 -\n"
                f"1 cudaLaunchKernel 0 0 {at + 100} 500 0 {call} 0 -\n"
                f"1 {TYPES['library_end']} 0 {code} {at + 1000} 0 0 0 - -\n"
                f"2 {TYPES['kernel']} 0 0 {at + 900} 1000 0 {call} 0,1,7,1,1,1 -")
        folder = tmp_path / str(count)
        folder.mkdir()
        subprocess.run([conftest.built(conftest.BUILD / "make_raw"), folder / "0.gpuprof"],
                       input="\n".join(lines), text=True, check=True, timeout=600)
        sizes[count] = peak_mib(collector, "report", folder)
    assert sizes[2_500_000] < sizes[25_000] + 20


def test_what_computes_nothing(report, run_verb, tmp_path):
    """A size below 0, a batch of nothing, a call that failed: no FLOPs, and numbers as they are."""
    made = Libraries()
    made.gemm(2**64 - 1, 8, 8, ns=None, result=7)
    made.gemm(16, 8, 8, batch=0, ns=None)
    made.gemm(32, 8, 8, ns=None, result=13)
    made.gemm(64, 8, 8, ns=1000)
    rows = report(made)[0]["library"]
    assert {row.get("m"): row.get("flops") for row in rows} == \
        {-1: None, 16: None, 32: None, 64: 2 * 64 * 8 * 8}
    assert any(" -1x8x8 " in row["name"] for row in rows)
    run_verb("merge", tmp_path / "data", "-o", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    assert [event["args"]["m"] for event in events if "m" in event.get("args", {})] == \
        [-1, 16, 32, 64]
    assert " m=-1 " in run_verb("dump", tmp_path / "data").stdout
