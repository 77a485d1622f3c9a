# SPDX-License-Identifier: Apache-2.0
"""What a report finds worth fixing, held against recordings of which that is known."""

import json
import random
import re
import shlex
import shutil

import csv_tables
import fault_truth
import made_findings
import pytest
import toolchain
from conftest import ROOT
from made_findings import (ADD, DEVICE, GEMM, MAIN, MS, NCCL, PINNED, PLAIN, RANK, RELU, TO_HOST,
                           TYPES, US, Job)
from test_partial import check_equal, make_parts

# Of the window, in percent, and in milliseconds.
THRESHOLDS = {
    "hang": (0, 1000), "straggler": (5, 50), "launch-blocking": (5, 50), "slow-loader": (10, 50),
    "few-loader-workers": (10, 50), "sync-in-loop": (10, 50), "repeated-upload": (5, 50),
    "pageable-copies": (5, 50), "allocation-churn": (5, 50), "launch-bound": (10, 50),
    "host-bound": (10, 50), "gil-contention": (5, 50), "gc-pauses": (5, 50), "lock-wait": (5, 50),
    "blocking-io": (5, 50), "cpu-quota": (5, 50), "exposed-communication": (10, 50),
    "fp32-gemm": (10, 50), "one-stream": (10, 50), "unfused-elementwise": (10, 50),
    "tiny-kernels": (10, 50), "throttled": (5, 50), "start-up": (30, 1000),
    "slow-import": (10, 1000),
}


@pytest.fixture(name="checked")
def fixture_checked(run_verb):
    """checked(FOLDER): the findings of a report on it."""
    def run(folder):
        rows = json.loads(run_verb("report", "--format=json", "--table=findings",
                                   folder).stdout)["findings"]
        for row in rows:  # what is shown for it is part of it
            told = [evidence["ns"] for evidence in row["evidence"]]
            if row["id"] == "straggler":  # which costs the mean of what each of them waited
                ranks = [re.match(r"(\d+) GPUs? wait", one["where"]) for one in row["evidence"]]
                told = [sum(told) // sum(int(match[1]) for match in ranks)]
            assert sum(told) <= row["ns"], row
            if len(told) < 3 and row["id"] != "hang":  # and all of it, but for what was rounded
                assert sum(told) > row["ns"] - 8, row
            assert all(one["longest_ns"] <= one["ns"] for one in row["evidence"])
        return rows
    return run


@pytest.fixture(name="found")
def fixture_found(checked, make_records):
    """found(JOB, ...): the findings of a report on these processes."""
    return lambda *jobs, name="data": checked(
        make_records((line for job in jobs for line in job.lines()), name=name))


# ---- each at its threshold ---------------------------------------------------------------------

def gemms(job, ns):
    for _ in range(4):
        job.kernel(GEMM, ns // 4)


def chains(job, ns):
    for _ in range(3):
        job.kernel(ADD, ns // 2)


def tiny(job, ns):
    """Of each what it takes to begin. What is between them is too little to be a finding."""
    for _ in range(ns // 2000):
        job.kernel("small", 4000)
        job.now += 750


def pageable(job, ns):
    for _ in range(5):
        job.copy(ns // 5)
        job.kernel(PLAIN, MS)


def pinned(job, ns):
    for kind in (made_findings.TO_DEVICE, TO_HOST):
        job.copy(ns // 2, PINNED, kind)


def uploads(job, ns):
    """The first one must be."""
    for _ in range(6):
        job.copy(ns // 5, PINNED, is_async=False, content=0x5eed)
        job.kernel(PLAIN, MS)


def launches(job, ns, count=10, name="cudaLaunchKernel"):
    """The GPU idles while the calls go on; each kernel is there when its launch returns."""
    job.kernel(PLAIN, MS, call=job.call())
    for _ in range(count):
        call = job.call(name, ns=ns // count)
        job.now += ns // count
        job.kernel(PLAIN, 2 * MS, call=call)


def own_code(job, ns):
    job.kernel(PLAIN, MS, call=job.call(ns=MS // 2))
    for _ in range(10):
        job.now += ns // 10 - US
        call = job.call(ns=US)
        job.now += US
        job.kernel(PLAIN, 2 * MS, call=call)


def blocking(job, ns):
    job.meta.append("env.CUDA_LAUNCH_BLOCKING=1")
    own_code(job, ns)


def synchronised(job, ns, times=10):
    """The thread waits for each kernel, then takes as long as is said to launch the next one."""
    for i in range(times + 1):
        call = job.call(ns=US)
        job.now += US
        begin = job.now
        job.kernel(PLAIN, MS + ns // times, call=call)
        if i < times:
            job.call("cudaStreamSynchronize", at=begin + US, ns=job.now - begin + US)
            job.now += ns // times - US


def allocated(job, ns, times=10):
    job.kernel(PLAIN, MS, call=job.call(ns=US))
    for _ in range(times):
        job.call("cudaMalloc", ns=ns // times - US)
        job.now += ns // times - US
        call = job.call(ns=US)
        job.now += US
        job.kernel(PLAIN, 2 * MS, call=call)


def communicates(job, ns):
    for _ in range(10):
        job.kernel(NCCL, ns // 10)
        job.kernel(PLAIN, 2 * MS)


def loads(job, ns, times=10, text="next_batch"):
    job.kernel(PLAIN, MS, call=job.call())
    for _ in range(times):
        job.add(TYPES["push"], MAIN, job.now + 1, args=[0] * 6, text=text)
        job.now += ns // times
        job.add(TYPES["pop"], MAIN, job.now - 2 * US, args=[0])
        job.kernel(PLAIN, 2 * MS, call=job.call(at=job.now - US))


def starts(job, ns):
    job.now += ns


def in_gaps(add, *meta):
    """As own_code, and of all of it a record says what the thread did."""
    def fault(job, ns):
        job.meta += meta
        job.kernel(PLAIN, MS, call=job.call(ns=MS // 2))
        for _ in range(10):
            begin, gap = job.now, ns // 10 - US
            job.now += gap
            add(job, begin, gap)
            call = job.call(ns=US)
            job.now += US
            job.kernel(PLAIN, 2 * MS, call=call)
    return fault


def os_calls(kind):
    def add(job, begin, ns):
        if not any(record[2].startswith(f"{TYPES['os_function']} ") for record in job.records):
            job.add(TYPES["os_function"], MAIN, 1, code=7, args=(kind,), text="waits")
        job.add(TYPES["os_call"], MAIN, begin, ns, code=7, args=(0, 0, 0, 0))
    return in_gaps(add)


def stopped(job, begin, ns):
    """By the quota; a sample says that what the host did was recorded."""
    job.add(TYPES["silence"], MAIN, begin + ns, args=(ns, ns, 0, ns + 1))
    job.add(TYPES["host_counters"], DEVICE, begin, ns, args=(0, 500, 1, ns))
    job.add(TYPES["gil_rest"], MAIN, begin + ns, args=(0, 0, 0, 0))
    job.add(TYPES["sample"], MAIN, begin + ns, args=(1, 0, 0, 0, 0, 0, 0))


def imports(job, ns):
    """Until the first call; then one of a thread that was not there before."""
    job.frames.append("frames 1|1:/lib/torch/__init__.py:<module>|9:<frozen importlib._bootstrap>:"
                      "_load|3:/home/me/train.py:<module>")
    job.add(TYPES["os_function"], MAIN, 1, code=7, args=(1,), text="read")
    job.add(TYPES["os_call"], MAIN, 2, ns, code=7, args=(0, 0, 0, 0))
    thread, begin, line = job.records.pop()
    job.records.append((thread, begin, f"stack 1\n{line}"))
    job.now += ns
    call = job.call(ns=US)
    job.now += US
    job.kernel(PLAIN, MS, call=call)


FAULTS = {"fp32-gemm": gemms, "unfused-elementwise": chains, "tiny-kernels": tiny,
          "pageable-copies": pageable, "one-stream": pinned, "launch-bound": launches,
          "repeated-upload": uploads,
          "host-bound": own_code, "launch-blocking": blocking, "sync-in-loop": synchronised,
          "allocation-churn": allocated, "exposed-communication": communicates,
          "slow-loader": loads, "start-up": starts,
          "gil-contention": in_gaps(lambda job, begin, ns: job.add(TYPES["gil"], MAIN, begin, ns,
                                                                   args=(0, 0))),
          "gc-pauses": in_gaps(lambda job, begin, ns: job.add(TYPES["gc"], MAIN, begin, ns, code=2,
                                                              args=(9, 0, 0))),
          "lock-wait": os_calls(6), "blocking-io": os_calls(1), "slow-import": imports,
          "cpu-quota": in_gaps(stopped, "cpu_throttled=90 100 500")}


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("of", (0.5, 1.5))
def test_threshold(found, kind, of):
    """Where the minimum counts, and where the share does."""
    share, floor = THRESHOLDS[kind]
    window = int(100 / share * floor * MS * of)
    limit = max(share * window // 100, floor * MS)
    for factor in (9, 11):
        job = Job()
        FAULTS[kind](job, limit * factor // 10)
        job.fill(window)
        rows = found(job, name=str(factor))
        assert [row["id"] for row in rows] == [kind] * (factor == 11)
    assert abs(rows[0]["ns"] / (limit * 1.1) - 1) < 0.03
    assert abs(rows[0]["window_ns"] / window - 1) < 0.001
    assert abs(rows[0]["share"] - rows[0]["ns"] / window) < 0.001


@pytest.mark.parametrize("gap, ids", ((100, []), (150, ["tiny-kernels"])))
def test_a_busy_gpu_has_kernels_enough(found, gap, ids):
    """However short they are: 97 % of its time is what counts."""
    job = Job()
    for _ in range(60000):
        job.kernel("small", 4000)
        job.now += gap
    assert [row["id"] for row in found(job)] == ids


def test_seconds_between_calls_are_the_programs(found):
    """However long it makes none: only behind the last work nobody waits for it."""
    job = Job()
    own_code(job, 60_000 * MS)
    job.fill(200_000 * MS)
    row, = found(job)
    assert row["id"] == "host-bound" and abs(row["ns"] / (60_000 * MS) - 1) < 0.01


def test_start_up_does_not_hide_a_finding(found):
    """Some steps behind a long import: 99 % of the process's time."""
    job = Job()
    starts(job, 100_000 * MS)
    synchronised(job, 200 * MS)
    job.fill(101_000 * MS)
    assert [row["id"] for row in found(job)] == ["start-up", "sync-in-loop"]


@pytest.mark.skipif(bool(toolchain.CROSS), reason="Python runs natively")
def test_hang(run_collector, tmp_path):
    """The wait that never ends is no synchronisation too many."""
    run = fault_truth.Run(tmp_path, "hang", options=["--backtrace=launch"])
    done = run_collector("report", "--format=json", "--table=findings", run.data)
    first, *others = json.loads(done.stdout)["findings"]
    assert first["id"] == "hang" and "device" not in first
    assert first["ns"] > 1500 * MS and first["ns"] < first["window_ns"]
    row, = first["evidence"]
    assert "cuStreamSynchronize" in row["name"] or run.lines[0] in row["name"]
    assert row["tid"] == run.processes[0].pid
    assert sum(other["ns"] for other in others) + first["ns"] <= first["window_ns"]


def test_evidence_is_no_more_than_the_cost(found, checked, make_gpu):
    """More copies than would fit beside kernels; three ranks that wait for a fourth, which are one
    row with what all of them waited."""
    job = Job()
    for memory in (made_findings.TO_DEVICE, TO_HOST):
        job.copy(700 * MS, PINNED, memory)
        job.fill(job.now + 100 * MS)
    row, = (row for row in found(job) if row["id"] == "one-stream")
    assert row["ns"] == 200 * MS and [one["ns"] for one in row["evidence"]] == [100 * MS] * 2
    row, = (row for row in checked(make_gpu("late", 4, name="late")) if row["id"] == "straggler")
    assert (row["rank"], row["ns"]) == ("1", 80 * MS)
    evidence, = row["evidence"]
    assert evidence["where"] == ("3 GPUs wait; AllReduce of 4, last 4 times, "
                                 "20.000 ms behind, at evaluate")
    assert (evidence["name"], evidence["ns"], evidence["count"]) == ("rank 1", 3 * 80 * MS, 12)
    assert evidence["longest_ns"] == 20 * MS


@pytest.mark.parametrize("share, count", ((45, 0), (55, 2)))
def test_straggler(found, share, count):
    """Of 10 s the other rank waits so many thousandths; who is late does not wait."""
    jobs = [Job(0), Job(1)]
    for step in range(10):
        begin = max(job.now for job in jobs) + step
        for late, job in enumerate(jobs):
            job.now = begin
            job.kernel(PLAIN, 800 * MS + late * share * MS)
            job.kernel(NCCL, 150 * MS + (1 - late) * share * MS)
    rows = found(*jobs)
    found_here = [row for row in rows if row["id"] == "straggler"]
    assert len(found_here) == (count > 0)
    for row in found_here:
        assert row["rank"] == "1" and abs(row["ns"] / (10 * share * MS) - 1) < 0.01
        evidence, = row["evidence"]
        assert evidence["name"] == "rank 1"
        assert evidence["where"] == (
            f"1 GPU waits; AllReduce of 2, last 10 times, {share:.3f} ms behind")
    exposed, = (row for row in rows if row["id"] == "exposed-communication")
    evidence, = exposed["evidence"]  # without the wait for the other rank
    assert evidence["name"] == NCCL and evidence["count"] == 10
    assert evidence["ns"] == exposed["ns"] < 1501 * MS


def test_a_straggler_from_the_start(found):
    """Rank 1 does nothing for 5 s and then two quick steps: its own time, behind that, is shorter
    than what the others wait."""
    jobs = [Job(number) for number in range(3)]
    for number, job in enumerate(jobs):
        job.now = 5000 * MS if number == 1 else 10 * MS + number
        job.kernel(PLAIN, 10 * MS)
        job.kernel(NCCL, 5100 * MS - job.now + number)
        job.now = 5100 * MS
        for _ in range(2):
            job.kernel(PLAIN, 500 * MS)
            job.kernel(NCCL, 10 * MS)
    row, = (row for row in found(*jobs) if row["id"] == "straggler")
    assert row["rank"] == "1" and row["ns"] == pytest.approx(4990 * MS, rel=1e-3)
    assert row["of_ns"] == pytest.approx(6110 * MS, rel=1e-3) and row["share"] < 1
    assert row["share"] == pytest.approx(row["ns"] / row["of_ns"], abs=1e-3)


def test_who_waits_how_long(found):
    """Rank 2 comes late to all, and rank 0 sooner than rank 1 to each."""
    jobs = [Job(number) for number in range(3)]
    for step in range(10):
        begin = max(job.now for job in jobs) + step
        for number, job in enumerate(jobs):
            job.now = begin
            job.kernel(PLAIN, (100 + 40 * number) * MS)
            job.kernel(NCCL, begin + 190 * MS - job.now)
    row, = (row for row in found(*jobs) if row["id"] == "straggler")
    evidence, = row["evidence"]
    assert evidence["where"] == "2 GPUs wait; AllReduce of 3, last 10 times, 80.000 ms behind"
    assert (evidence["ns"], evidence["count"]) == (pytest.approx(1200 * MS, rel=1e-3), 20)
    assert row["ns"] == pytest.approx(600 * MS, rel=1e-3)


def test_healthy(found):
    job = Job()
    job.fill(2000 * MS)
    job.copy(500 * MS, PINNED, at=100 * MS, stream=13)  # beside kernels
    assert found(job) == []


# ---- what is charged to what -------------------------------------------------------------------

@pytest.mark.parametrize("seed", range(6))
def test_each_nanosecond_once(found, seed):
    dice = random.Random(seed)
    job = Job()
    copies = [(made_findings.PAGEABLE, True), (PINNED, True), (PINNED, False)]
    names = (GEMM, GEMM, ADD, ADD, ADD, RELU, RELU, NCCL, PLAIN)
    while job.now < 1000 * MS:
        at = max(US, job.now + dice.choice((-900, -500, 0, 0, 0, 0, 0, 0, 0, 300, 1100)) * US)
        stream = dice.choice((7, 7, 7, 7, 7, 7, 8))
        if dice.random() < 0.4:
            memory, is_async = dice.choice(copies)
            job.copy(dice.randrange(1, 3000) * US, memory, is_async=is_async, at=at,
                     stream=dice.choice((stream, 9)) if seed == 0 else stream,
                     content=dice.choice((0, 0, 1, 2, 1000 + job.uploads)))
        for _ in range(dice.randrange(5)):
            job.kernel(dice.choice(names), dice.randrange(1, 3000) * US, stream, at)
            at = max(US, job.now + dice.choice((-900, 0, 0, 0, 0, 0, 0, 10)) * US)
        if dice.random() < 0.2:
            for _ in range(250):
                job.kernel(dice.choice((ADD, RELU, PLAIN)), 4000)
    rows, cost = found(job), made_findings.costs(job)
    window = max(w.end for w in job.works)
    limits = {kind: max(share * window // 100, floor * MS)
              for kind, (share, floor) in THRESHOLDS.items()}
    assert {row["id"]: row["ns"] for row in rows} == \
        {kind: ns for kind, ns in cost.items() if ns > limits[kind]}
    assert [row["ns"] for row in rows] == sorted((row["ns"] for row in rows), reverse=True)
    assert sum(cost.values()) <= window


# ---- what is no fault --------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["ampere_fp16_s16816gemm_fp16_128x128_tn",
                                  "cutlass_80_tensorop_s1688gemm_128x128",
                                  "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16",
                                  "implicit_convolve_sgemm<__half, 128>", "ampere_dgemm_64x64"])
def test_products_on_tensor_cores(found, name):
    job = Job()
    job.kernel(name, 900 * MS)
    assert found(job) == []


def test_products_of_xmma_in_fp32(found):
    job = Job()
    job.kernel("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_ffma", 900 * MS)
    assert [row["id"] for row in found(job)] == ["fp32-gemm"]


def test_no_tensor_cores(found):
    for major, count in ((6, 0), (7, 1)):
        job = Job(major=major)
        gemms(job, 900 * MS)
        assert len(found(job, name=str(major))) == count


def test_copies_in_a_stream_of_their_own(found):
    job = Job()
    pinned(job, 500 * MS)
    job.copy(100 * MS, PINNED, stream=13)
    job.fill(1000 * MS)
    assert found(job) == []


@pytest.mark.parametrize("make", (synchronised, allocated, loads))
def test_what_is_done_once(found, make):
    """Three times 100 ms, and nothing else, are no loop; four times are."""
    for times, count in ((3, 0), (4, 1)):
        job = Job()
        make(job, times * 100 * MS, times)
        job.fill(2000 * MS)
        assert len(found(job, name=str(times))) == count


def test_short_chains(found):
    job = Job()
    while job.now < 1000 * MS:
        for name in (ADD, RELU, PLAIN):
            job.kernel(name, 10 * MS)
    assert found(job) == []


def test_names_that_come_late(found):
    job = Job()
    job.names_behind = 500 * MS
    for _ in range(1000):
        gemms(job, MS)
    row, = found(job)
    assert row["id"] == "fp32-gemm" and row["ns"] == 1000 * MS


def test_kernels_without_a_name(found):
    job = Job()
    for _ in range(30000):
        job.kernel(None, 4000)
        job.now += 200
    row, = found(job)
    assert row["id"] == "tiny-kernels" and row["ns"] == 60 * MS
    assert row["evidence"][0]["name"] == "kernels without a name"


# ---- where it was launched ---------------------------------------------------------------------

def in_range(job, text, ns, name=GEMM, late=0):
    """`late`: the call begins only after its work, which no real device was seen to do."""
    at = job.now + late
    job.add(TYPES["push"], MAIN, at, args=[0] * 6, text=text)
    call = job.call(at=at + 1)
    job.add(TYPES["pop"], MAIN, at + US, args=[0])
    job.now += 0 if late else US
    job.kernel(name, ns, call=call)


@pytest.mark.parametrize("late", (0, 40 * US))
@pytest.mark.parametrize("kinds", ((GEMM, GEMM), (NCCL, NCCL), (GEMM, "other_sgemm")))
def test_where(found, run_verb, tmp_path, late, kinds):
    """The place of work that comes before its call is not known; its time counts all the same."""
    job = Job()
    in_range(job, "forward", 300 * MS, kinds[0], late)
    in_range(job, "backward", 200 * MS, kinds[1], late)
    in_range(job, "backward", 150 * MS, kinds[1], late)
    job.kernel(kinds[0], 40 * MS)
    row, = found(job)
    forward, backward = (None, None) if late else ("forward", "backward")
    assert row["where"] == backward and row["ns"] == 690 * MS
    told = {r["name"]: (r["where"], r["count"], r["ns"]) for r in row["evidence"]}
    if kinds[0] == kinds[1]:
        assert told == {kinds[0]: (backward, 4, 690 * MS)}
    else:
        assert told == {kinds[0]: (forward, 2, 340 * MS), kinds[1]: (backward, 2, 350 * MS)}
    text = run_verb("report", "--table=findings", tmp_path / "data").stdout
    assert (f"{kinds[1]}: backward: " in text.replace("\n", "")) == (not late)


def test_where_is_not_known(found):
    job = Job()
    job.kernel(GEMM, 200 * MS)
    row, = found(job, name="none")
    assert row["where"] is None and row["evidence"][0]["where"] is None
    in_range(job, "forward", 100 * MS)  # what is known counts
    row, = found(job, name="some")
    assert row["where"] == row["evidence"][0]["where"] == "forward"


def test_places_that_are_not_known_are_one(make_records, run_verb):
    """Of a part, too, in which a stack without a line and no stack at all are two."""
    jobs = [Job(0), Job(1)]
    lines = []
    for job in jobs:
        job.add(TYPES["stack"], MAIN, 1, args=(1, 0), text="\x01" * 7 + "\x20")
        for number in range(30000):
            job.kernel("small", 4000, call=job.call(at=job.now - 1) if number % 3 else 0)
            job.now += 200
        call = f"{TYPES['call']} "
        for line in job.lines():
            lines += ["stack 1", line] if line.startswith(call) else [line]
    folder = make_records(lines)
    rows = json.loads(run_verb("report", "--format=json", "--table=findings", "-j1",
                               folder).stdout)["findings"]
    row, = (row for row in rows if row["id"] == "tiny-kernels")
    assert [(r["where"], r["count"], r["ns"]) for r in row["evidence"]] == [(None, 30000, 60 * MS)]
    check_equal(run_verb, folder, make_parts(run_verb, folder, 2))


@pytest.mark.parametrize("known", (("prepare", None), ("prepare", "train"), (None, "train")))
def test_where_of_repeated_uploads(found, known):
    """Of calls without a place it is that of the first upload; each copy counts, a hidden one too.
    """
    job = Job()
    for i in range(6):
        place = known[i > 0]
        at = job.now
        if place:
            job.add(TYPES["push"], MAIN, at, args=[0] * 6, text=place)
        call = job.call("cudaMemcpyAsync", at=at + 1)
        if place:
            job.add(TYPES["pop"], MAIN, at + US, args=[0])
        job.now += US
        if i == 3:  # beside a kernel
            job.kernel(PLAIN, 100 * MS, stream=8, at=job.now - 100)
            job.copy(50 * MS, PINNED, at=job.now - 99 * MS, content=0x5eed, call=call)
        else:
            job.copy(50 * MS, PINNED, content=0x5eed, call=call)
        job.kernel(PLAIN, MS)
    row, = found(job)
    assert row["id"] == "repeated-upload" and row["ns"] == pytest.approx(200 * MS, rel=0.001)
    evidence, = row["evidence"]
    assert evidence["count"] == 5 and evidence["longest_ns"] == 50 * MS
    assert row["where"] == evidence["where"] == (known[1] or known[0])


def test_a_piece_knows_what_was_uploaded_before(make_records, run_verb):
    """And where, if only the first call has a place."""
    job = Job()
    for i in range(6):
        job.now += US
        if not i:
            job.add(TYPES["push"], MAIN, job.now, args=[0] * 6, text="prepare")
        call = job.call("cudaMemcpyAsync", at=job.now + 1)
        if not i:
            job.add(TYPES["pop"], MAIN, job.now + US, args=[0])
        job.now += US
        job.copy(50 * MS, PINNED, content=0x5eed, call=call)
        job.kernel(PLAIN, MS)
    folder = make_records(job.lines())
    row, *_ = json.loads(run_verb("report", "--format=json", "--table=findings",
                                  folder).stdout)["findings"]
    evidence, = row["evidence"]
    assert row["id"] == "repeated-upload" and row["where"] == "prepare"
    assert (evidence["count"], row["ns"]) == (5, 5 * 50 * MS)


# ---- what is said ------------------------------------------------------------------------------

STEP = "step (train.py:12), called at second (train.py:32)"


def test_a_place_that_many_ways_lead_to(run_verb, make_stacks):
    """It is one row of the evidence with all of its time, and comes before what has less; the way
    with most of it is told."""
    lines = [f"process {RANK}", "python 1 12 train.py\tstep", "python 2 22 train.py\tfirst",
             "python 3 32 train.py\tsecond", "python 4 42 train.py\tlog",
             "stack 1 0 p1 p2", "stack 2 0 p1 p3", "stack 3 0 p4", "name 1 gemm"]
    at = US
    for call in range(31):
        stack, ns = ((1, 39 * MS), (2, 41 * MS), (3, 60 * MS))[call % 3]
        at += ns
        lines += [f"call cudaLaunchKernel {at} 500 {call + 1} {stack} 0",
                  f"kernel 1 {at + 600} {MS} {call + 1}"]
        at += 600 + MS
    data = make_stacks(*lines)
    text = run_verb("report", "--full", data).stdout
    row, *_ = json.loads(run_verb("report", "--format=json", data).stdout)["findings"]
    assert [(one["name"], one["count"]) for one in row["evidence"]] == [
        ("between cudaLaunchKernel in step (train.py:12) and cudaLaunchKernel in log (train.py:42)",
         10), (f"before {STEP}", 10),
        ("between cudaLaunchKernel in log (train.py:42) and "
         "cudaLaunchKernel in step (train.py:12), called at first (train.py:22)", 10)]
    assert [one["ns"] // (10 * MS) for one in row["evidence"]] == [60, 41, 39]
    assert row["where"] == row["evidence"][0]["where"] == row["evidence"][0]["name"]
    run_verb("report", "--partial", "--share=0/1", "-o", "part", data)
    assert run_verb("report", "--combine", "part", "--full").stdout == \
        text.replace(str(data), "DATA")


def test_a_piece_is_in_what_to_run_next(run_verb, make_gpu):
    """But for what the line says itself."""
    text = run_verb("report", "--table=steps", "--step=0:9", "--rank=0-2", "--min-duration=1us",
                    make_gpu("late", 3)).stdout
    [line] = re.findall(r"\n  its ranges and calls: (.*)\n", text)
    assert re.fullmatch(r"gpuprof report --step=2 --rank=1 --table=nvtx_sum,functions "
                        r"--min-duration=1us \S+", line)


@pytest.mark.parametrize("wishes", (["--step-range=it*"], ["--step-by=it", "--step=2:8"]),
                         ids=" ".join)
def test_steps_are_the_same_in_what_to_run_next(run_verb, make_records, wishes):
    job = Job()
    for _ in range(10):
        job.add(TYPES["push"], MAIN, job.now + 1, args=[0] * 6, text="it")
        loads(job, 100 * MS, times=1)
        job.add(TYPES["pop"], MAIN, job.now, args=[0])
    data = make_records(job.lines())

    def report(*options):
        return json.loads(run_verb("report", "--format=json", *options).stdout)
    first = report("--table=findings,steps", *wishes, data)
    line, = (row["next"] for row in first["findings"] if row["id"] == "slow-loader")
    words = shlex.split(line)
    assert words[:3] == ["gpuprof", "report", "--table=idle,steps"]
    assert report(*words[2:])["steps"] == first["steps"] != []


def said_next(text):
    return re.findall(r"\n +next: (.*)\n", text)


def test_what_to_run_next_can_be_pasted(run_collector, make_records, tmp_path):
    """By whom gpuprof was called, of what it was told, and what was recorded, each as a shell reads
    it back; what holds what no terminal shows is not written."""
    waits, copies = Job(), Job()
    waits.meta = ["cmdline=./my prog --name a 'b' ", "argv=./my prog\x1f--name\x1fa 'b'\x1f"]
    own_code(waits, 200 * MS)
    copies.copy(700 * MS, PINNED, TO_HOST)
    copies.fill(copies.now + 100 * MS)
    for job, name in (waits, "it's data"), (copies, "-c"), (copies, "\x07bell"):
        make_records(job.lines(), name=name)
    waits.meta[1] = "argv=\x1f"  # an argument has what stands between them
    make_records(waits.lines(), name="marked")

    def commands(*arguments):
        return [shlex.split(line) for line in set(said_next(run_collector(*arguments).stdout))]
    assert commands("--called", "./gp", "report", "it's data") == [
        ["./gp", "run", "--sample", "--os", "./my prog", "--name", "a 'b'", ""]]
    assert commands("report", "marked") == [
        ["gpuprof", "run", "--sample", "--os", "PROGRAM"]]
    assert commands("report", "--", "-c") == [["gpuprof", "merge", "-o", "trace.json", "./-c"]]
    piece = ["--from=0", "--name=x y|."]
    assert commands("report", *piece, "--", "-c") == [
        ["gpuprof", "merge", "-o", "trace.json", *piece, "./-c"]]
    both, = (words for words in commands("report", tmp_path / "-c", "it's data")
             if "merge" in words)
    assert both[4:] == [str(tmp_path / "-c"), "it's data"]
    assert commands("report", "\x07bell") == [["gpuprof", "merge", "-o", "trace.json", "DATA"]]
    run_collector("report", "--partial", "--share=0/1", "-o", "part", "./-c")
    assert commands("report", "--combine", "part") == [
        ["gpuprof", "merge", "-o", "trace.json", "DATA"]]


@pytest.mark.parametrize("line, known", (("./train -x 3", "./train -x 3"), ("./a\x07", "PROGRAM"),
                                         (2000 * "x", "PROGRAM"), ("./$HOME", "'./$HOME'"),
                                         ("-bash x", "PROGRAM"), (" x", "PROGRAM"),
                                         ("./a =ls a=b", "./a '=ls' a=b"),
                                         ("sh -c x", "sh -c x")),
                         ids=("plain", "bell", "long", "dollar", "option", "empty", "zsh",
                              "path"))
def test_the_program_to_run_next(run_collector, make_records, line, known):
    """Ranks that something else has started are no program that could be run again."""
    jobs = [Job(RANK), Job(RANK + 1)]
    for job in jobs:
        job.meta = [f"cmdline={line}"]
        own_code(job, 200 * MS)
    for data, program in ((make_records(jobs[0].lines(), name="one"), known),
                          (make_records((line for job in jobs for line in job.lines()),
                                        name="two"), "PROGRAM")):
        text = run_collector("report", data).stdout
        assert said_next(text)[0] == f"gpuprof run --sample --os {program}"


def test_the_worst_device(found):
    jobs = [Job(rank) for rank in (400, 401, 402)]
    for job, ns in zip(jobs, (300, 500, 20)):
        gemms(job, ns * MS)
        job.fill(1000 * MS)
    row, = found(*jobs)
    assert (row["rank"], row["devices"], row["device"]) == ("401", 2, 0)
    assert row["ns"] == 500 * MS and row["total_ns"] == 800 * MS


def test_evidence(found, run_verb, tmp_path):
    job = Job()
    for name, ns in (("a_sgemm", 100), ("b_sgemm", 30), ("c_sgemm", 40), ("d_sgemm", 10),
                     ("a_sgemm", 200)):
        job.kernel(name, ns * MS)
    row, = found(job)
    evidence = [(r["name"], r["count"], r["ns"] // MS, r["longest_ns"] // MS, r["at_ns"] // MS)
                for r in row["evidence"]]
    assert evidence == [("a_sgemm", 2, 300, 200, 180), ("c_sgemm", 1, 40, 40, 130),
                        ("b_sgemm", 1, 30, 30, 100)]
    assert row["next"].startswith("gpuprof ") and row["advice"].endswith(".")
    text = run_verb("report", "--table=findings", tmp_path / "data").stdout
    assert "\nfindings, the most expensive first\n" in text and row["title"] in text
    assert "a_sgemm: 300.000 ms" in text
    made = csv_tables.tables(run_verb("report", "--format=csv", tmp_path / "data").stdout)
    assert [(r["id"], r["ns"], r["devices"], json.loads(r["evidence"])) for r in made["findings"]] \
        == [("fp32-gemm", str(380 * MS), "1", row["evidence"])]


KIND = re.compile(r'FINDING\(\w+, "([a-z0-9-]+)", \d+, \d+,\s+"([^"]+)",.*?'
                  r'"((?:env [^"]+)?gpuprof [^"]+)",\n', re.DOTALL)


@pytest.mark.parametrize("name", THRESHOLDS)
def test_help_has_the_threshold(run_collector, name):
    told = run_collector("help", name).stdout
    share, floor_ms = THRESHOLDS[name]
    floor = f"{floor_ms / 1000:.3f} s" if floor_ms >= 1000 else f"{floor_ms}.000 ms"
    more = f"{share} % of the time and more than " if share else ""
    part = " (less if only a part of the run is recorded or selected)" if share else ""
    assert f" Threshold: more than {more}{floor}{part}. " in " ".join(told.split())
    assert told.startswith("usage: gpuprof report --table=findings") and name in told
    assert all(f"\n{part}: " in told for part in ("Measures", "Advice", "Next"))


def test_what_to_run_next_is_taken(run_verb, run_collector, make_records, tmp_path):
    """Each command that a finding names works as it stands there, with a title that fits the first
    screen."""
    job = Job()
    job.kernel(GEMM, MS)
    data = make_records(job.lines())
    kinds = KIND.findall((ROOT / "collector/analyse/finding_kinds.def").read_text())
    assert {kind[0] for kind in kinds if not kind[0].startswith("memory-")} == set(THRESHOLDS)
    for name, title, command in kinds:
        assert len(title) <= 80 - 33, title
        words = command.replace("PROGRAM", "true").replace("DATA", str(data)).split()
        words = words[words.index("gpuprof") + 1:]
        if "-o" in words:
            place = words.index("-o") + 1
            words[place] = str(tmp_path / words[place])
        done = run_collector(*words) if words[0] == "run" else run_verb(*words)
        assert done.returncode == 0, (name, command, done.stderr)


def test_what_was_recorded_is_recorded_again(found):
    """The options that the recording had, but for what the line says itself."""
    job = Job()
    job.meta += ["env.GPUPROF_PYTORCH=names", "env.GPUPROF_BACKTRACE=launch",
                 "env.GPUPROF_DEVICE=on", "env.GPUPROF_NVTX="]
    job.meta.append("cmdline=python train.py")
    own_code(job, 500 * MS)
    job.fill(job.now + MS)
    row, = found(job)
    program = "python train.py" if shutil.which("python") else "PROGRAM"
    assert row["next"] == "gpuprof run --sample --os --device=on --backtrace=launch " \
        f"--pytorch=names {program}"
