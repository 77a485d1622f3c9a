# SPDX-License-Identifier: Apache-2.0
"""Findings of a piece of a recording, and of one that has not all: by thresholds that are as much
less as the piece is shorter than the run, held against recordings of which all is known."""

import json
import re
import shlex

import pytest
from conftest import ROOT
from made_findings import ADD, GEMM, MAIN, MS, PLAIN, RANK, TYPES, US, Job
from test_findings import FAULTS, THRESHOLDS, loads, synchronised

STEPS = 4


@pytest.fixture(name="of_piece")
def fixture_of_piece(run_verb):
    def of_piece(folder, *piece):
        return json.loads(run_verb("report", "--format=json", "--table=findings", *piece,
                                   folder).stdout)["findings"]
    return of_piece


def between(begin, end):
    """As a piece, of times since 1 us, when a job has its first event."""
    return f"--from={max(0, begin - 1000)}ns", f"--to={end - 1000}ns"


def in_steps(fault, ns, step_ns):
    """A job of equal steps that have that fault, and when each begins."""
    job, begins = Job(), []
    for number in range(STEPS):
        begins.append(job.now)
        fault(job, ns)
        job.fill(begins[0] + (number + 1) * step_ns)
        assert job.now == begins[0] + (number + 1) * step_ns
    return job, begins


def test_work_ends_with_the_piece(make_records, of_piece):
    """A copy that goes on behind it costs what is in it: no more than there is."""
    job = Job()
    job.fill(100 * MS)
    job.copy(500 * MS)
    job.kernel(PLAIN, 100 * MS)
    folder = make_records(job.lines())
    for piece, ns, of_ns in (((), 500 * MS, 700 * MS),
                             (between(50 * MS, 400 * MS), 300 * MS, 350 * MS),
                             (between(100 * MS, 300 * MS), 200 * MS, 200 * MS)):
        row, = of_piece(folder, *piece)
        assert row["id"] == "pageable-copies" and row["share"] <= 1
        assert row["ns"] == pytest.approx(ns, rel=1e-3), piece
        assert row["of_ns"] == pytest.approx(of_ns, rel=1e-3), piece


def test_whose_device_it_is_in_a_piece(make_records, of_piece):
    """Rank 0 worked first in the run, and rank 1 in the piece."""
    jobs = [Job(RANK), Job(RANK + 1)]
    for number, job in enumerate(jobs):
        job.kernel(PLAIN, 10 * MS, at=(2 + 3 * number) * MS)
    jobs[0].kernel(PLAIN, 300 * MS, at=150 * MS)
    jobs[1].copy(300 * MS, at=100 * MS)
    for job in jobs:
        job.kernel(PLAIN, 10 * MS, at=600 * MS)
    folder = make_records(line for job in jobs for line in job.lines())
    for piece in (), between(50 * MS, 550 * MS):
        row, = of_piece(folder, *piece)
        assert (row["id"], row["rank"]) == ("pageable-copies", str(RANK + 1)), piece


@pytest.mark.parametrize("kind", sorted(FAULTS.keys() - {"start-up", "slow-import",
                                                         "repeated-upload"}))
@pytest.mark.parametrize("of", (0.5, 1.5))
def test_a_step_has_what_all_of_them_have(kind, of, make_records, of_piece):
    """A fault of each step is one of the whole if it is one of a step, and where it is not enough
    it is neither: where the minimum counts, and where the share does."""
    share, floor = THRESHOLDS[kind]
    step_ns = int(100 / share * floor * MS * of) // STEPS
    limit = max(share * step_ns // 100, floor * MS // STEPS)
    for factor in (8, 12):
        job, begins = in_steps(FAULTS[kind], limit * factor // 10, step_ns)
        folder = make_records(job.lines(), name=str(factor))
        for piece in (), between(begins[2], begins[3]), between(begins[1], begins[3]):
            rows = of_piece(folder, *piece)
            assert [row["id"] for row in rows] == [kind] * (factor == 12), piece
            for row in rows:
                assert all(row["of_ns"] > one["ns"] for one in row["evidence"])
                ns = limit * factor // 10 * round(row["of_ns"] / step_ns)
                assert row["ns"] == pytest.approx(ns, rel=0.03), piece


def test_a_short_step(make_records, of_piece):
    """Of its 46 ms 40 are one fault: that is worth it in a run of many, and not in one of one."""
    for count, found in ((50, True), (0, False)):
        job = Job()
        for number in range(1 + count):
            job.add(TYPES["step"], MAIN, job.now, args=[number])
            job.kernel(PLAIN, 2 * MS, at=job.now + 2 * US, call=job.call(at=job.now + US))
            job.now += 40 * MS
            job.kernel(PLAIN, 4 * MS, at=job.now + 2 * US, call=job.call(at=job.now + US))
        folder = make_records(job.lines(), name=str(count))
        for number in range(0, 1 + count, 10):
            rows = of_piece(folder, f"--step={number}")
            assert [row["id"] for row in rows] == ["host-bound"] * found
            for row in rows:
                evidence, = row["evidence"]
                begin = number * 46_004 * US
                assert row["of_ns"] == 46 * MS + (4 if number else 2) * US  # without start-up
                assert row["ns"] == pytest.approx(40 * MS, rel=1e-3)
                assert evidence["at_ns"] == pytest.approx(begin + 2 * MS, abs=10 * US)


def test_a_wait_of_each_step_is_a_habit(make_records, of_piece):
    """One step has one of them; three in nine tenths of a run are as few there."""
    often, begins = in_steps(lambda job, ns: loads(job, ns, 1), 400 * MS, 500 * MS)
    folder = make_records(often.lines(), name="often")
    row, = of_piece(folder, *between(begins[2], begins[3]))
    evidence, = row["evidence"]
    assert (row["id"], evidence["count"]) == ("slow-loader", 1)
    assert row["ns"] == pytest.approx(400 * MS, rel=0.01) and row["share"] == pytest.approx(.8, .01)
    assert begins[2] <= evidence["at_ns"] + 1000 < begins[3]
    seldom = Job()
    synchronised(seldom, 900 * MS, 3)
    end = seldom.now
    seldom.fill(10 * end // 9)
    folder = make_records(seldom.lines(), name="seldom")
    assert not of_piece(folder) and not of_piece(folder, *between(1000, end))
    row, = of_piece(folder, *between(240 * MS, 640 * MS))  # one of them in a sixth of the run
    assert (row["id"], row["evidence"][0]["count"]) == ("sync-in-loop", 1)


def test_start_up_is_once(make_records, of_piece):
    job = Job()
    job.now += 500 * MS
    job.fill(20_000 * MS)
    folder = make_records(job.lines())
    assert not of_piece(folder, "--to=0.6")


def test_what_was_recorded_is_a_part_of_the_run(make_records, of_piece, run_verb, tmp_path):
    """20 ms of 60, behind an hour of which nothing was recorded; parts say the same."""
    for name, stopped_ns in (("all", 0), ("end", 3_600_000 * MS)):
        job = Job()
        job.kernel(PLAIN, MS, call=job.call())
        if stopped_ns:
            job.add(TYPES["pause"], MAIN, job.now, args=[1])
            job.now += stopped_ns
            job.add(TYPES["pause"], MAIN, job.now, args=[0])
        for _ in range(40):
            job.kernel(ADD, MS // 2)
        job.fill(job.now + 40 * MS)
        job.call(at=job.now - US)  # or else it would be quiet
        folder = make_records(job.lines(), name=name)
        rows = of_piece(folder)
        assert [row["id"] for row in rows] == ["unfused-elementwise"] * (name == "end")
        part = tmp_path / f"{name}.part"
        run_verb("report", "--partial", "--share=0/1", "-o", part, folder)
        combined = run_verb("report", "--combine", "--format=json", "--table=findings", part).stdout
        assert [dict(row, next="") for row in json.loads(combined)["findings"]] == \
            [dict(row, next="") for row in rows]


def test_who_is_late_in_a_step(make_gpu, run_verb, of_piece):
    """Of each step what make_gpu says of it: in each third one rank 1 comes 20 ms late."""
    source = (ROOT / "test/unit/make_gpu.c").read_text()
    assert "#define LATE_NS 20000000u" in source and "#define STEP_NS 100000u" in source
    folder = make_gpu("late", 2)
    first, begin = 101, 100_000  # in its first call
    for number in range(12):
        is_late = number % 3 == 2
        computed = begin + 8_020_000
        end = computed + 1_010_000 + is_late * 20 * MS
        report = json.loads(run_verb("report", "--format=json", f"--step={number}", folder).stdout)
        piece, rows = report["overview"]["piece"], report["findings"]
        first = first if number else begin - piece["from_ns"]
        assert piece["options"] == {"step": str(number)}
        assert piece["from_ns"] + first == begin
        assert piece["to_ns"] + first == (end if number < 11 else end - 9_000)  # its last event
        assert rows == of_piece(folder, f"--step={number}")
        assert [(row["id"], row["rank"]) for row in rows] == \
            [("straggler", "1"), ("host-bound", "1")][:2 * is_late]
        for row, ns in zip(rows, (20 * MS, 20 * MS - 10_000)):
            evidence, = row["evidence"]
            assert (row["ns"], evidence["at_ns"] + first) == (ns, computed)
            assert evidence["where"].endswith("evaluate")
        begin = end


@pytest.mark.parametrize("piece", [
    ("--step=2",), ("--rank=400,1", "--to=1"), ("--kind=kernel", "--from=90ms", "--to=300ms"),
    ("--range=a* (b)", "--device=0,1"), ("--step-range=a 2 (b)", "--step=0")], ids=" ".join)
def test_what_to_run_next_is_of_the_piece(piece, make_records, run_verb, of_piece):
    job = Job()
    for number in range(4):
        job.add(TYPES["step"], MAIN, job.now, args=[number])
        job.add(TYPES["push"], MAIN, job.now, args=[0] * 6, text=f"a {number} (b)")
        job.kernel(PLAIN, MS, at=job.now + 2 * US, call=job.call(at=job.now + US))
        gemm = job.call(at=job.now + US)
        job.kernel(GEMM, 100 * MS, call=gemm)
        job.add(TYPES["pop"], MAIN, job.now, args=[0])
    folder = make_records(job.lines(), name="it's data")
    found = of_piece(folder, *piece)
    row, = (row for row in found if row["id"] == "fp32-gemm")
    words = shlex.split(row["next"])
    assert words[:3] == ["gpuprof", "report", "--table=cuda_gpu_kern_sum"]
    assert sorted(words[3:-1]) == sorted(piece) and words[-1] == str(folder)
    assert f"next: {row['next']}\n" in run_verb("report", *piece, folder).stdout
    assert run_verb(*words[1:]).stdout == run_verb("report", "--table=cuda_gpu_kern_sum", *piece,
                                                   folder).stdout


def test_what_a_step_is_is_in_what_to_run_next(make_records, run_verb):
    """Also where the line alone says which step; by another rule it would be another one."""
    job = Job()
    for number in range(8):
        job.add(TYPES["step"], MAIN, job.now, args=[100 + number])
        job.kernel(PLAIN, MS, call=job.call())
        job.add(TYPES["push"], MAIN, job.now, args=[0] * 6, text="evaluate")
        job.now += 90 * MS if number == 5 else 5 * MS + number * US
        job.add(TYPES["pop"], MAIN, job.now, args=[0])
    folder = make_records(job.lines())
    text = run_verb("report", "--table=steps", "--step-range=evaluate", folder).stdout
    rest, = re.findall(r"\n  its ranges and calls: gpuprof report --step=5 (.*)\n", text)
    assert rest == (f"--rank={RANK} --table=nvtx_sum,functions --step-range=evaluate {folder}")
    shown = run_verb("report", "--step=5", *rest.split()).stdout
    assert re.search(r"\n +90\.000 ms +1 .* evaluate\n", shown)
