# SPDX-License-Identifier: Apache-2.0
"""The blocks of a real PyTorch's allocator, held against what it has counted itself, at a hundred
moments: `make check-torch`."""

import check_torch
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
