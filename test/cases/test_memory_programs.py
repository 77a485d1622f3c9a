# SPDX-License-Identifier: Apache-2.0
"""gpuprof memory: the ledger of recorded programs against the simulated CUDA's own log."""

import json
import os
import re

import pytest
import toolchain
import truth
from made_memory import HOST
from memory_verb import place_of

GETS = {"cudaMalloc": 0, "cudaMallocAsync": 0, "cudaMallocManaged": 0, "cuMemAlloc_v2": 0,
        "cudaHostAlloc": 1}
FREES = ("cudaFree", "cudaFreeAsync", "cuMemFree_v2", "cudaFreeHost")


def books_of_log(log):
    """By device or host: what each change left there, as the simulated CUDA wrote it."""
    changes, held, sums = [], {}, {}
    for number, lines in enumerate(truth.read_log(log)):
        for line in lines:
            if line.depth or line.result:
                continue
            if line.symbol in GETS:
                changes.append((line.end, line, number))
            elif line.symbol in FREES:
                changes.append((line.begin, line, number))
            elif line.symbol == "cudaSetDevice":
                changes.append((line.end, line, number))
    devices, moments = {}, {}
    for _, line, number in sorted(changes, key=lambda change: change[0]):
        if line.symbol == "cudaSetDevice":
            devices[number] = line.args["device"]
            continue
        if line.symbol in GETS:
            place = HOST if GETS[line.symbol] else devices.get(number, 0)
            held[line.args["ptr"]] = place, line.args["bytes"]
            change = line.args["bytes"]
        else:
            place, size = held.pop(line.args["ptr"])
            change = -size
        sums[place] = sums.get(place, 0) + change
        moments.setdefault(place, []).append(sums[place])
    return moments


@pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUDA runs natively")
def test_a_preload_that_maps_memory(library, run_verb, tmp_path):
    """What it does inside the program's cudaMalloc is not counted beside what it does later at
    that address. The truth is what the device says is in use after each step."""
    saver = toolchain.build("saver.c", "-shared", "-fPIC", *toolchain.DRIVER)
    program = toolchain.build("saver.c", "-DPROGRAM", *toolchain.runtime(13), *toolchain.DRIVER)
    env = toolchain.environment(tmp_path / "out", library)
    env["LD_PRELOAD"] += f":{saver}"
    used = [int(word) for word in toolchain.run([program], env, status=3).stdout.split()]
    assert used == [40, 60, 0, 60, 0, 50, 10]
    found = json.loads(run_verb("memory", tmp_path / "out", "--format=json").stdout)
    [row] = [row for row in found["places"] if place_of(row) != HOST]
    assert (row["peak_bytes"], row["end_bytes"]) == (max(used) << 20, used[-1] << 20)


@pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUDA runs natively")
@pytest.mark.parametrize("threads, how", [(1, "end"), (4, "end"), (2, "kill")])
def test_the_simulated_cuda_agrees(threads, how, library, run_verb, tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    program = toolchain.build("ledger_work.c", *toolchain.runtime(13), *toolchain.DRIVER)
    env = toolchain.environment(tmp_path / "out", library, SIMCUDA_LOG=log)
    toolchain.run([program, str(threads), "300", how], env, status=-9 if how == "kill" else 0)
    [path] = log.iterdir()
    moments = books_of_log(path)
    found = json.loads(run_verb("memory", tmp_path / "out", "--format=json").stdout)
    rows = {place_of(row): row for row in found["places"]}
    assert rows.keys() == moments.keys()
    for place, own in moments.items():
        assert rows[place]["end_bytes"] == own[-1] > 0
        if threads == 1:  # others' order is known to a microsecond only
            assert rows[place]["peak_bytes"] == max(own)
    assert [row["wanted_bytes"] for row in found["out_of_memory"]] == [1 << 50] * threads


@pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUDA runs natively")
@pytest.mark.parametrize("settings", [{}, {"GPUPROF_MEMORY": "off"}])
def test_memory_of_the_host(settings, library, run_verb, tmp_path):
    """What the program itself reads of it at its end is what is known of it then."""
    program = toolchain.build("resident_work.c", *toolchain.runtime(13))
    env = toolchain.environment(tmp_path / "out", library, **settings)
    own, _ = map(int, toolchain.run([program, "200"], env).stdout.split())
    rows = json.loads(run_verb("memory", tmp_path / "out", "--format=json").stdout)["resident"]
    text = run_verb("memory", tmp_path / "out").stdout
    if settings:
        assert not rows and "resident (RSS)" not in text
        return
    [row] = rows
    assert row["samples"] >= 1 and row["peak_bytes"] >= row["end_bytes"] > 200 << 20
    assert abs(row["end_bytes"] - own) < 20 << 20
    assert re.search(r"^  memory .*; resident \(RSS\) at most 2[0-9]+\.[0-9] MiB$", text,
                     re.MULTILINE)


@pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUDA runs natively")
def test_the_allocator_of_tensors_agrees(library, run_verb, tmp_path):
    """What it had allocated in all, as it said itself after each block."""
    program, path = toolchain.tensor_work()
    env = toolchain.environment(tmp_path / "out", library, LD_LIBRARY_PATH=path)
    lines = toolchain.run([program, "blocks", "4", "400"], env).stdout.splitlines()
    told = {}
    for words in ([int(word, 0) for word in line.split()] for line in lines if line[0].isdigit()):
        if words[0]:
            told.setdefault(("tensor", words[5]), []).append(words[3])
    found = json.loads(run_verb("memory", tmp_path / "out", "--format=json").stdout)
    rows = {place_of(row): row for row in found["places"] if row["where"] == "tensor"}
    assert {place: (row["peak_bytes"], row["end_bytes"]) for place, row in rows.items()} == \
        {place: (max(own), own[-1]) for place, own in told.items()}
    assert [row["wanted_bytes"] for row in found["out_of_memory"]] == [1 << 40]


SEEDS = range(400) if os.environ.get("GPUPROF_LONG") else range(3)


@pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUDA runs natively")
@pytest.mark.parametrize("seed", SEEDS)
def test_attack(seed, library, run_verb, tmp_path):
    """Memory of every kind, released by whatever function takes it, on any thread, among failures,
    forks and trims: peak and end are the device's own, and at each step nothing is hidden. (What is
    managed may lie on the host.)"""
    kind = "managed" if seed % 3 else "unmanaged"
    program = toolchain.build("ledger_attack.c", *toolchain.runtime(13), *toolchain.DRIVER)
    env = toolchain.environment(tmp_path / "out", library)
    done = toolchain.run([program, str(seed), "150", "kill" if seed % 2 else "end", kind], env,
                         status=-9 if seed % 2 else 0)
    found = json.loads(run_verb("memory", tmp_path / "out", "--format=json").stdout)
    rows = {row["device"]: row for row in found["places"] if row.get("device") is not None}
    for device, line in enumerate(done.stdout.splitlines()):
        peak, end = map(int, line.split())
        assert (rows[device]["peak_bytes"], rows[device]["end_bytes"]) == (peak, end) and peak > 0
    assert kind == "managed" or not any(row["hidden_bytes"] for row in found["hidden"])
