# SPDX-License-Identifier: Apache-2.0
"""What is said of memory unasked: when there was not enough, and what is worth fixing about it."""

import json
import re
import subprocess

import conftest
import pytest
import toolchain

from made_memory import TYPES, Process

MIB, GIB = 1 << 20, 1 << 30
TRAIN = "train (/home/me/train.py:{})"


@pytest.fixture(name="told")
def fixture_told(run_verb, tmp_path):
    """told(PROCESSES): the report of them, as JSON."""
    maker = conftest.built(conftest.BUILD / "make_raw")

    def run(*processes):
        for process in processes:
            process.write(maker, tmp_path / "data")
        return json.loads(run_verb("report", tmp_path / "data", "--format=json").stdout)
    return run


def tensor_oom(process, wanted, held, reserved, line):
    process.raw(1, TYPES["tensor_oom"], [wanted, held, reserved, 0, 1], code=process.stack(line))


def with_device(total=16 * GIB, **more):
    process = Process(pythonic=True, **more)
    process.call("cudaMemGetInfo", [total, total, 0])
    return process


def leaking(steps, each, spare=0):
    """One line keeps `each` bytes a step, another one gets and frees more."""
    process = with_device()
    process.get("linear", 1 << 30, 100 * MIB + spare, line=3)
    process.get("linear", 1 << 31, 1, line=3)
    for step in range(steps):
        process.step(step)
        process.now += 10_000
        process.get("linear", (1 << 40) + (step << 24), each, line=7)
        process.free(process.get("linear", 1 << 39, 50 * MIB, line=8))
    process.step(steps)
    return process


def too_large():
    process = with_device()
    process.get("linear", 0x1000, GIB, line=5)
    process.get("linear", 0, 20 * GIB, line=6, result=2)
    return process, 6, [5], "smaller batches"


def fragmented(largest=3 * GIB):
    """A segment of 8 GiB in which every other GiB, or more, is free."""
    process = with_device()
    base = 1 << 40
    process.get("linear", base, 8 * GIB, line=4)
    for place in (1, 4, 7):
        process.tensor(base + place * GIB, GIB, reserved=8 * GIB, line=5)
    tensor_oom(process, largest, 3 * GIB, 8 * GIB, 6)
    return process, 6, [5], "expandable_segments:True" if largest > 2 * GIB else "another stream"


def leak():
    process = leaking(20, 200 * MIB)
    process.get("linear", 0, 15 * GIB, line=9, result=2)
    return process, 9, [7, 3], "200.0 MiB each step"


def preallocation():
    process = with_device()
    process.get("linear", 0x1000, 12 * GIB, line=5)
    process.get("linear", 0, 5 * GIB, line=6, result=2)
    return process, 6, [5], "train (/home/me/train.py:5) allocated in advance; gpuprof does not " \
        "see what is in it; to lower it, set XLA_PYTHON_CLIENT_PREALLOCATE=false (JAX)"


def hidden():
    process = with_device()
    process.get("linear", 0x1000, 2 * GIB, line=5)
    process.get("linear", 0, 4 * GIB, line=6, result=2)
    return process, 6, [5], "more than 10.0 GiB of the rest belonged to other processes"


def limited():
    """By set_per_process_memory_fraction: no call of CUDA's failed."""
    process = with_device()
    process.get("linear", 1 << 40, 2 * GIB, line=5)
    process.tensor(1 << 40, 2 * GIB, reserved=2 * GIB, line=5)
    process.call("cudaMemGetInfo", [10 * GIB, 16 * GIB, 0])
    tensor_oom(process, 3 * GIB, 2 * GIB, 2 * GIB, 6)
    return process, 6, [5], "10.0 GiB of the device were free, but the program set a limit"


def one_owner():
    process = with_device()
    for number in range(4):
        process.get("linear", 0x1000 + number, 3 * GIB, line=5)
    process.get("linear", 0x2000, GIB, line=4)
    process.get("linear", 0, 4 * GIB, line=6, result=2)
    return process, 6, [5, 4], "held 12.0 GiB of it (92%): make that smaller first"


def full():
    process = with_device()
    for number in range(13):
        process.get("linear", 0x1000 + number, GIB, line=10 + number)
    process.get("linear", 0, 4 * GIB, line=6, result=2)
    return process, 6, range(10, 20), "many owners shared the memory"


SHORTAGES = {"larger-than-device": too_large, "fragmented": fragmented,
             "kept-apart": lambda: fragmented(2 * GIB), "leak": leak,
             "preallocation": preallocation, "limited": limited, "hidden": hidden,
             "one-owner": one_owner, "full": full}


@pytest.mark.parametrize("make", [lambda: leaking(20, 200 * MIB), lambda: leak()[0]])
def test_kept(make, tmp_path):
    """What a report keeps for the next one (test_kept_report.py) has it, too."""
    folder = tmp_path / "data"
    make().write(conftest.built(conftest.BUILD / "make_raw"), folder)
    keeper = conftest.built(conftest.BUILD / "gpuprof-collector-keeps")

    def ask(*arguments):
        return subprocess.run([keeper, "report", *arguments, folder], check=True, text=True,
                              capture_output=True).stdout
    questions = (["--table=findings"], [], ["--format=json"])
    truths = [ask("--no-index", *question) for question in questions]
    assert all("memory" in truth for truth in truths)
    assert [ask(*question) for question in ([], *questions)] == [truths[1], *truths]
    assert (folder / ".gpuprof-report").exists()


@pytest.mark.parametrize("advice", SHORTAGES)
def test_advice_that_fits(advice, told, run_verb, tmp_path):
    process, line, owners, text = SHORTAGES[advice]()
    found = told(process)["overview"]["out_of_memory"]
    assert found["advice"]["id"] == advice and text in found["advice"]["text"]
    assert found["owner"] == TRAIN.format(line) and found["count"] == 1
    assert [owner["name"] for owner in found["owners"]] == [TRAIN.format(n) for n in owners]
    assert found["device_bytes"] == 16 * GIB and found["where"]["pid"] == 1000
    screen = run_verb("report", tmp_path / "data", env={"COLUMNS": "80"}).stdout.splitlines()
    assert screen[0].startswith("  no memory  ") and screen[0].endswith(f"train.py:{line})")
    assert screen[1].startswith("  held by  ") and f"train.py:{owners[0]})" in screen[1]
    told_so = " ".join(row[13:] for row in screen[2:8])
    assert text in told_so and all(len(row) <= 100 for row in screen[:6])
    whole = " ".join(run_verb("memory", tmp_path / "data", "--full").stdout.split())
    assert " ".join(found["advice"]["text"].split()) in whole
    rows = json.loads(run_verb("memory", tmp_path / "data", "--format=json").stdout)
    assert [row["advice_id"] for row in rows["out_of_memory"]] == [advice]


@pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUDA runs natively")
@pytest.mark.parametrize("how, code", [("abort", -6), ("exit", 1), ("go", 0)])
def test_in_the_summary_of_a_run(how, code, run_collector, tmp_path):
    """However the program ends after it, the summary says it first, and the report."""
    program = toolchain.build("oom_work.c", *toolchain.runtime(13))
    env = toolchain.environment(tmp_path)
    done = run_collector("run", "--backtrace-threshold=off", "-o", tmp_path / "out", "--", program,
                         how, env=env)
    assert done.returncode == code, done.stderr
    lines = done.stderr[done.stderr.index("  no memory"):].splitlines()
    assert "1.0 PiB wanted, 4.0 MiB" in lines[0] and lines[0].endswith("at cudaMalloc")
    assert lines[1].startswith("  try  ")
    report = run_collector("report", tmp_path / "out", "--full").stdout.splitlines()
    assert report[0].startswith("  no memory")
    assert report[1].split()[:5] == ["held", "by", "4.0", "MiB", "cudaMalloc"]


def findings(found):
    return {row["id"]: row for row in found["findings"]}


def full_device(share, spike, reserved=None, steps=10):
    """Tensors that make the peak of a device of 10 GiB, whose CUDA memory is `share` of it: those
    that stay, and in each step one for a moment."""
    process = with_device(10 * GIB)
    process.get("linear", 1 << 40, int(10 * GIB * share), line=3)
    reserved = reserved or 5 * GIB
    for number in range(10):
        process.tensor((1 << 41) + number * GIB, (5 * GIB - spike) // 10, reserved=reserved,
                       line=20 + number)
    for step in range(steps):
        process.step(step)
        process.now += 1000
        process.free(process.tensor(1 << 42, spike, reserved=reserved, line=7))
    process.step(steps)
    return process


GROWN, OF_PEAK = 16 * MIB, 50
FAULTS = {  # just above its threshold, and just below
    "memory-leak": (lambda f: leaking(9, int(GROWN / 8 * f)), 7),
    "memory-temporary": (lambda f: full_device(.9, int(5 * GIB * .25 * f)), 7),
    "memory-fragmented": (lambda f: full_device(.9, GIB // 10, int(5 * GIB / (1 - .3 * f))), None),
}


def test_all_are_tried():
    text = (conftest.ROOT / "collector/analyse/finding_kinds.def").read_text()
    assert set(re.findall(r'"(memory-[a-z]+)", 0, 0,', text)) == set(FAULTS)
    guide = (conftest.ROOT / "GUIDE.md").read_text().partition("| advice |")[2].partition("###")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", guide, re.MULTILINE) == list(SHORTAGES)


@pytest.mark.parametrize("fault", FAULTS)
def test_thresholds(fault, told):
    make, line = FAULTS[fault]
    found = findings(told(make(1.1)))
    assert set(found) == {fault} and found[fault]["bytes"] > 0 and found[fault]["ns"] == 0
    assert found[fault]["where"] == (TRAIN.format(line) if line else None)
    assert findings(told(make(0.9))) == {}


def test_what_is_at_stake(told):
    """Bytes: of a leak all that has come since the first step's end, of a peak what makes it."""
    row = findings(told(leaking(40, 3 * MIB)))["memory-leak"]
    assert row["bytes"] == 39 * 3 * MIB == row["evidence"][0]["bytes"]
    assert row["evidence"][0]["count"] == 40
    assert row["share"] == pytest.approx(39 * 3 / (100 + 50 + 40 * 3), abs=1e-3)
    row = findings(told(full_device(.9, 2 * GIB)))["memory-temporary"]
    assert row["bytes"] == 2 * GIB and row["share"] == pytest.approx(.4, abs=1e-3)
    row = findings(told(full_device(.9, GIB // 10, 9 * GIB)))["memory-fragmented"]
    assert row["bytes"] == pytest.approx(4 * GIB, abs=10) and \
        row["share"] == pytest.approx(4 / 9, abs=1e-3)


@pytest.mark.parametrize("make", [
    lambda: leaking(7, 100 * MIB),  # too few steps to be sure
    lambda: leaking(40, MIB // 4, 900 * MIB),  # little of what there is
    lambda: full_device(.65, 3 * GIB),  # nobody needs the room
    lambda: full_device(.9, GIB),
], ids=["few-steps", "little", "room", "balanced"])
def test_healthy_ones_have_none(make, told):
    assert told(make())["findings"] == []


def test_caches_that_fill_up_are_no_leak(told):
    process = with_device()
    for step in range(40):
        process.step(step)
        process.now += 1000
        if step < 12:
            process.get("linear", (1 << 40) + (step << 26), 50 * MIB, line=7)
        process.free(process.get("linear", 1 << 39, 50 * MIB, line=8))
    process.step(40)
    assert told(process)["findings"] == []


def test_the_rank_that_leaks_most(told, run_verb, tmp_path):
    processes = []
    for rank in range(3):
        process = leaking(20, (rank + 1) * 4 * MIB)
        process.lines[0] = f"meta env.RANK={rank}"
        process.rank = rank
        processes.append(process)
    row = findings(told(*processes))["memory-leak"]
    assert (row["rank"], row["devices"], row["bytes"]) == ("2", 3, 19 * 12 * MIB)
    text = run_verb("report", tmp_path / "data", "--table=findings").stdout
    assert "228.0 MiB" in text and "memory grows from step to step, rank 2, GPU 0 (and 2 more)" in \
        text and f"{TRAIN.format(7)}: 228.0 MiB, 20 blocks left" in text
