# SPDX-License-Identifier: Apache-2.0
"""NCCL: its calls as they are recorded, against the simulated NCCL's own log, and what reports say
of collectives that not all ranks have come to."""

import collections
import re

import pytest
import toolchain

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="many processes: run natively")


def nccl_work(*flags):
    nccl = str(toolchain.SIM / "libnccl.so.2")
    return toolchain.build("nccl_work.c", *toolchain.runtime(12), nccl, *flags)


def settings_of(tmp_path, world, **more):
    log = tmp_path / "log"
    log.mkdir(exist_ok=True)
    return {"WORLD_SIZE": world, "MEET": tmp_path, "SIMNCCL_FOLDER": tmp_path, "SIMNCCL_LOG": log,
            "SIMCUDA_DEVICES": 8, **more}


class Call:
    """A call as the simulated NCCL has logged it."""

    def __init__(self, pid, words):
        self.pid, self.begin_ns, self.tid = pid, int(words[0]), int(words[1])
        self.name, self.result = words[3], None
        self.says = dict(word.split("=") for word in words[4].split() if "=" in word)

    def __getattr__(self, name):
        return self.says[name]


def logged(tmp_path):
    """All calls, by process in their order; each end belongs to its thread's newest open begin."""
    calls = []
    for path in sorted((tmp_path / "log").glob("nccl-*.log")):
        pid, opened = int(path.stem[5:]), collections.defaultdict(list)
        for line in path.read_text(encoding="ascii").splitlines():
            words = line.split("\t")
            if words[2] == "begin":
                calls.append(Call(pid, words))
                opened[words[1]].append(calls[-1])
            else:
                call = opened[words[1]].pop()
                assert call.name == words[3]
                call.result = int(re.match(r"result=(\d+)", words[4])[1])
    return calls


def test_the_simulated_nccl(tmp_path):
    """Without gpuprof: ranks in processes, splits, groups, communicators that do not block."""
    toolchain.run([nccl_work(), "all"],
                  toolchain.environment(None, **settings_of(tmp_path, 4)))
    calls = logged(tmp_path)
    ranks = {call.pid for call in calls}
    assert len(ranks) == 4 and not list(tmp_path.glob("simnccl-*"))
    by_comm = collections.defaultdict(lambda: collections.defaultdict(list))
    for call in calls:
        assert call.result is not None
        if "number" in call.says and call.name not in ("ncclSend", "ncclRecv"):
            by_comm[call.comm][call.rank].append((call.name, call.count, call.number))
    sizes = sorted(len(ranks) for ranks in by_comm.values())
    assert sizes == [2, 2, 3, 3, 4, 4, 4]
    for ranks in by_comm.values():  # as a real one demands: the same on all ranks
        assert len({tuple(each) for each in ranks.values()}) == 1


def test_the_simulated_nccl_in_one_process(tmp_path):
    toolchain.run([nccl_work(), "clique"],
                  toolchain.environment(None, **settings_of(tmp_path, 8)))
    calls = [call for call in logged(tmp_path) if "number" in call.says]
    assert len(calls) == 8 * 4 and len({call.comm for call in calls}) == 1
    for rank in range(8):
        assert [int(call.number) for call in calls if call.rank == str(rank)] == [0, 1, 2, 3]
