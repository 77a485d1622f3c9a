# SPDX-License-Identifier: Apache-2.0
"""The devices' counters (--device): whether they come, of which device, what a reading takes."""

import os
import statistics
import sys
import tempfile

from gpu_dump import FIELD
from gpu_table import HERE, collect, not_run, recording_environment, row, run, tail

GROUPS = ("device_use", "device_power", "device_clocks", "device_links", "device_gpm")
SYNC_EVERY = 1000
SECONDS = 1  # for some readings


def check_device(launches):
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(HERE / "ctypes_work.py"), str(launches), str(SYNC_EVERY),
                   str(SECONDS)]
        done = run(command, recording_environment(folder, GPUPROF_DEVICE="1"))
        if done.status:
            row("device: program", False, f"status {done.status}: {tail(done.stderr)}")
            return
        lines = collect("dump", folder).stdout.splitlines()
    found = {}
    for line in lines:
        kind = line.partition(" ")[0]
        if kind.startswith("device"):
            found.setdefault(kind, []).append(dict(FIELD.findall(line)))
    absent = found.get("device_absent", [])
    whys = "; ".join(f"{f.get('group')}: {f.get('text')}" for f in absent) or "nothing is missing"
    if any(f.get("source") == "0" for f in absent):  # of no device
        not_run("device", whys)
        return
    counts = {group: len(found.get(group, [])) for group in GROUPS}
    row("device: readings", counts["device_power"] > 1, f"{counts}; {whys}")
    of = [{(f["uuid_high"], f["uuid_low"]) for f in found.get(kind, [])}
          for kind in ("device", "device_source")]
    row("device: which one", bool(of[1]) and of[1] <= of[0], f"{len(of[1])} of {len(of[0])}")
    energy = [int(f["energy"]) for f in found.get("device_power", []) if f["energy"] != "-"]
    if energy:
        row("device: energy", energy == sorted(energy) and energy[-1] > energy[0],
            f"{energy[-1] - energy[0]} mJ in {len(energy)} readings, "
            f"{len(set(energy))} of them different")
    else:
        not_run("device: energy", "the device has no such counter")
    took = [int(f["dur"]) / 1000 for f in found.get("device_power", [])]
    if took:
        row("device: a reading", True, f"{statistics.median(took):.0f} us, {max(took):.0f} at most")
    name = f"device: GPM for user {os.getuid()}"
    if counts["device_gpm"]:
        row(name, True, f"{counts['device_gpm']} records")
    else:
        not_run(name, whys)
