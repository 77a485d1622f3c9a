# SPDX-License-Identifier: Apache-2.0
"""`make check-gpu` is for machines with a GPU; on the simulated CUDA it runs so as not to rot."""

import os
import re
import sys

import pytest
import toolchain

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUPTI runs natively")


@pytest.fixture(name="check_gpu")
def fixture_check_gpu(root, library, collector, tmp_path):
    """Runs it: (status, name -> (result, detail), the table)."""
    assert library.exists() and collector.exists()
    table = tmp_path / "table.md"

    def run(*arguments, status=0, **settings):
        # Kernels so long that the one killed after some seconds has not made millions of calls.
        values = {"GPUPROF_CUPTI": toolchain.SIM / "libcupti.so.13", "SIMCUDA_KERNEL_NS": 100000,
                  **settings}
        done = toolchain.run([sys.executable, root / "test" / "gpu" / "check_gpu.py",
                              "--table", table, *arguments],
                             toolchain.environment(None, **values), timeout=300, status=None)
        assert done.returncode == status, f"{done.stdout}\n{done.stderr}"
        lines = table.read_text(encoding="utf-8").splitlines()
        cells = [line.strip("| ").split(" | ", 2) for line in lines[2:]]
        rows = {name: (result, detail) for name, result, detail in cells}
        assert all(f"{name}: {detail}" in done.stdout for name, (_, detail) in rows.items())
        return rows
    return run


def test_rows_are_ok(check_gpu):
    """All that needs no PyTorch and no nvcc."""
    rows = check_gpu("--launches", 3000, "identity", "ctypes", "memory", "device", "habits",
                     "consumers")
    wrong = {name: row for name, row in rows.items()
             if row[0] != "ok" and "is not installed" not in row[1]}
    assert not wrong
    assert rows["ctypes: GPU rows"][1].startswith("from CUPTI 130001, ")
    assert "'launch': 3000" in rows["ctypes: calls, with CUPTI"][1]
    assert "'kernel': 3000, 'copy': 16, 'set': 8" in rows["ctypes: device records"][1]
    assert rows["ctypes: times"][1].startswith("3000 kernels, tolerance 32 ns: 0 times")
    assert " functions" in rows["ctypes: calls that wait"][1]
    assert rows["memory: device of each allocation"][1] == "6 blocks on 2 devices"
    assert rows["device: readings"][1].endswith("nothing is missing")
    assert sum(name.startswith("habits: ") for name in rows) == 7
    assert rows["device: which one"][1] == "1 of 2"
    assert rows["memory: cuMemGetInfo's answers"][1] == "2 of 2" and len(rows) >= 16


def test_faults_are_found(check_gpu):
    """Records that CUPTI drops are missing from the rows that count them, and no row hides it."""
    rows = check_gpu("--launches", 1000, "ctypes", status=1, SIMCUPTI_DROP=100)
    assert rows["ctypes: calls, without CUPTI"][0] == "ok"
    assert rows["ctypes: device records"][0] == "FAILED"
    assert "gpu_dropped" in rows["ctypes: device records"][1]


def test_held_cupti_fails(check_gpu):
    rows = check_gpu("--launches", 1000, "ctypes", status=1, SIMCUPTI_HOLDER="somebody")
    assert rows["ctypes: calls, without CUPTI"][0] == "ok"
    assert rows["ctypes: GPU rows"][0] == "FAILED"
    assert "somebody already uses CUPTI" in rows["ctypes: GPU rows"][1]
    assert rows["ctypes: device records, correlation, times, graphs"] == ("not run", "no GPU rows")


def test_without_nvml(check_gpu):
    rows = check_gpu("--launches", 300, "device", SIMNVML_FAIL="nvmlInit=9")
    assert rows["device"][0] == "not run" and "the driver is not loaded" in rows["device"][1]
    assert len(rows) == 2


def test_overhead_is_measured(check_gpu):
    """With a target that no machine misses: what is measured here means nothing."""
    rows = check_gpu("--launches", 300, "--pairs", 1, "--target", "1000", "overhead")
    told = {name.partition(": ")[2]: row for name, row in rows.items() if "overhead" in name}
    floor, target = (float(re.search(pattern, told[name][1])[1]) for name, pattern in (
        ("CUPTI alone", r"(\S+) of the bare run \("), ("GPU rows, front=auto", r"target (\S+)")))
    assert told["GPU rows, front=auto"][0] == "ok" and target == pytest.approx(1000 * floor, 1e-3)
    assert sum("of the bare run (" in detail for _, detail in told.values()) >= 7


PYTHON = """#!/bin/sh
case "$2" in
*torch.__version__*) echo "2.0 13.0 True" ;;
"import "*) exit 1 ;;
*) echo "the training loop is not there" >&2; exit 7 ;;
esac
"""
NSYS = """#!/bin/sh
echo "no report can be made" >&2
exit 1
"""


def test_one_failure_leaves_the_rest(check_gpu, tmp_path):
    """A PyTorch that cannot train and an nsys that cannot profile; the other rows are there."""
    for path, text in ((tmp_path / "venv" / "bin" / "python", PYTHON),
                       (tmp_path / "bin" / "nsys", NSYS)):
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o755)
    rows = check_gpu("--launches", 300, "--pairs", 1, "--target", "1000", "ctypes", "overhead",
                     "training", "consumers", status=1, VIRTUAL_ENV=tmp_path / "venv",
                     PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert rows["training, plain: recording"] == ("FAILED", "the bare run is not usable")
    assert rows["ctypes: device records"][0] == rows["merge of the program"][0] == "ok"
    measured = {name.partition(": ")[2]: row for name, row in rows.items() if "overhead" in name}
    assert measured["nsys (its own, -t cuda)"] == \
        ("not run", "status 1: no report can be made")
    assert measured["GPU rows, front=auto"][0] == "ok"


def test_time_is_bounded(check_gpu):
    """What does not fit is not run; the table has what there was."""
    rows = check_gpu("--launches", 2000000, "--seconds", 4, "identity", "ctypes", "overhead")
    assert rows["machine"][0] == "ok"
    assert rows["the rest of ctypes"] == ("not run", "the 4 seconds are over")
    assert rows["the rest of overhead"][0] == "not run"


def test_without_a_device(check_gpu, root, tmp_path):
    del check_gpu  # it has seen to it that everything is built
    table = tmp_path / "none.md"
    done = toolchain.run([sys.executable, root / "test" / "gpu" / "check_gpu.py", "--table", table],
                         toolchain.environment(None, SIMCUDA_DEVICES=0), status=1)
    assert "no usable GPU" in done.stderr and not table.exists()
