# SPDX-License-Identifier: Apache-2.0
"""On which device memory is, as the program knows it, the calls say it, and CUPTI's records."""

import sys
import tempfile

from gpu_dump import FIELD
from gpu_table import ROOT, collect, recording_environment, row, run, tail

WORK = ROOT / "test" / "gpu" / "placement_work.py"


def check_memory():
    with tempfile.TemporaryDirectory() as folder:
        done = run([sys.executable, WORK], recording_environment(folder))
        if done.status:
            row("memory: program", False, f"status {done.status}: {tail(done.stderr)}")
            return
        dumped = collect("dump", folder).stdout.splitlines()
    lines = [line.split() for line in done.stdout.splitlines()]
    blocks = {words[0]: words[1] for words in lines if words[0] != "info"}
    infos = [words[1:] for words in lines if words[0] == "info"]
    of = {"cuMemAlloc_v2": [], "cuMemGetInfo_v2": [], "memory": []}
    for line in dumped:
        kind, _, rest = line.partition(" ")
        name = rest.partition(" ")[0] if kind == "call" else kind
        if name in of:
            of[name].append(dict(FIELD.findall(line)))
    calls = {f["ptr"]: f["device"] for f in of["cuMemAlloc_v2"]}
    row("memory: device of each allocation", bool(blocks) and calls == blocks,
        f"{len(blocks)} blocks on {len(set(blocks.values()))} devices")
    records = {f["address"]: f["device"] for f in of["memory"]
               if f["operation"] == "allocate" and f["address"] in blocks}
    row("memory: CUPTI has it on the same", records == blocks, f"{len(records)} records")
    told = [[f["free"], f["total"]] for f in of["cuMemGetInfo_v2"]]
    row("memory: cuMemGetInfo's answers", told == infos, f"{len(told)} of {len(infos)}")
