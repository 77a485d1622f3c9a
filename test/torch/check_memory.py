# SPDX-License-Identifier: Apache-2.0
"""The blocks of a real PyTorch's allocator, held against what it has counted itself, at a hundred
moments; and the file for its own viewer: `make check-torch`."""

import json
import pickle

import check_torch
import pytest
import stream_reader

WORK = check_torch.HERE / "memory_work.py"
TENSOR, TENSOR_OOM = (stream_reader.TYPE_NUMBERS[name] for name in ("tensor", "tensor_oom"))


def test_blocks(tmp_path):
    env = check_torch.environment(LD_PRELOAD=check_torch.BUILD / "libgpuprof.so",
                                  GPUPROF_OUT=tmp_path / "out")
    done = check_torch.run([check_torch.PYTHON, WORK], env)
    *lines, last = done.stdout.splitlines()
    assert last == "out of memory"
    counted = [list(map(int, line.split())) for line in lines]
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert not process.losses
    live, now, peak, moments, failures = {}, [0, 0], [0, 0], [], []
    query = {code for code, f in process.functions.items() if f.symbol == "cudaStreamQuery"}
    for r in sorted(process.records, key=lambda r: r.begin):
        if r.type == TENSOR:
            operation, address, size, allocated, _, device, kind = r.args[:7]
            assert kind == 1
            if operation == 1:
                assert (device, address) not in live
                live[device, address] = size
                assert bool(r.stack) or size < 1 << 20
            else:
                assert live.pop((device, address)) == size and not r.stack
            now[device] += size if operation == 1 else -size
            peak[device] = max(peak[device], now[device])
            assert allocated == now[device]
        elif r.type == TENSOR_OOM:
            assert r.args[1] == now[r.args[3]] > 0
            failures.append((r.args[0], r.args[3]))
        elif r.type == stream_reader.CALL and r.code in query:
            moments.append(now + peak)
    assert len(moments) == 100 and moments == counted
    assert failures == [(1 << 50, 1)] and max(peak) > 100 << 20


VIEW = """
import pickle, sys
import torch.cuda._memory_viz as viz
data = pickle.load(open(sys.argv[1], "rb"))
print(viz.segsum(data))
print(len(viz.trace(data)), len(viz.memory(data, str)), len(viz.segments(data, str)))
print(len(viz.trace_plot(data)), len(viz.segment_plot(data)))
"""


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
def test_snapshot(settings, tmp_path):
    """The segments at the end are those that PyTorch's own snapshot has, block by block."""
    env = check_torch.environment(LD_PRELOAD=check_torch.BUILD / "libgpuprof.so",
                                  GPUPROF_OUT=tmp_path / "out", PYTORCH_CUDA_ALLOC_CONF=settings)
    check_torch.run([check_torch.PYTHON, WORK, tmp_path / "own.json"], env)
    path = tmp_path / "x.pickle"
    check_torch.run([check_torch.GPUPROF, "memory", tmp_path / "out", "-o", path], env)
    data = pickle.loads(path.read_bytes())
    own = json.loads((tmp_path / "own.json").read_text(encoding="utf-8"))
    found = [{(s["device"], s["address"]): (s["total_size"], s["allocated_size"],
                                            s["is_expandable"], blocks_of(s)) for s in segments}
             for segments in (data["segments"], own)]
    assert found[0] == found[1] and len(own) > 3
    assert any(s["is_expandable"] for s in own) == bool(settings)
    used = [e for trace in data["device_traces"] for e in trace if e["action"] == "alloc"]
    assert sum("memory_work.py" in f["filename"] for e in used for f in e["frames"]) > 100
    assert [e["size"] for trace in data["device_traces"] for e in trace
            if e["action"] == "oom"] == [1 << 50]
    done = check_torch.run([check_torch.PYTHON, "-c", VIEW, path], check_torch.environment())
    assert f"segments: {len(own)}" in done.stdout


def blocks_of(segment):
    """What is held; free neighbours are one."""
    return [(b["address"], b["size"]) for b in segment["blocks"] if b["state"] != "inactive"]
