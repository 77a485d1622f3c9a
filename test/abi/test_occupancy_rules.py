# SPDX-License-Identifier: Apache-2.0
"""The theoretical occupancy is what CUDA's own calculator says, of every kind of device."""

from cuda_toolkits import ROOT, require_any, run


def test_as_cuda_calculates_it(tmp_path):
    newest = require_any()[-1]
    program = tmp_path / "check_occupancy"
    run("gcc", "-O1", "-I", str(ROOT / "collector"), "-isystem", str(newest.include),
        str(ROOT / "test" / "abi" / "check_occupancy.c"),
        str(ROOT / "collector" / "resolve" / "occupancy.c"), "-o", str(program))
    lines = run(str(program)).splitlines()
    compared = {line.split()[1]: int(line.split()[2]) for line in lines
                if line.startswith("compared ")}
    differing = [line for line in lines if not line.startswith("compared ")]
    assert not differing, (len(differing), differing[:5])
    # A header of CUDA 12.4 ends with sm_90.
    assert all(compared[f"sm_{name}"] > 10000 for name in (70, 75, 80, 86, 89, 90)), compared
