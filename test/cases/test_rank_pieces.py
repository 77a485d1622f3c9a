# SPDX-License-Identifier: Apache-2.0
"""How ranks arrived at the collectives of a piece, and waited for each other: as in the whole, and
of one that is cut in the piece where the last one came; nobody is blamed where ranks are left out.
"""

import collections
import json
import random

import pytest
from test_idle import US, Script
from test_ranks import GATHER, NAMES, REDUCE, job

ORIGIN = 1_000_000  # a script's first event, us


def report(run_verb, folder, *words):
    done = run_verb("report", "--format=json", "--table=arrivals,ranks", *words, folder)
    return json.loads(done.stdout)


def scripts_text(scripts):
    return [line for s in scripts for line in s.text()]


def known(begins, first, end):
    """Of the collectives whose last kernel begins in that time, and how many it cuts."""
    rows, cut = {}, 0
    for kernel, at in begins:
        if first <= max(at) < end:
            rows.setdefault(kernel, []).append(at)
        there = [first <= begin < end for begin in at]
        cut += any(there) and not all(there)
    return rows, cut


@pytest.mark.parametrize("seed", range(3))
def test_arrivals_of_a_piece(seed, run_verb, make_records):
    scripts, begins = job(seed)
    folder = make_records(scripts_text(scripts))
    dice, cuts = random.Random(seed), 0
    for _ in range(12):
        # One border lies among the begins of a collective.
        at = sorted(dice.choice(begins)[1])
        border = dice.randrange(at[0], at[-1] + 1)
        first, end = dice.choice(((border, border + 20_000), (border - 20_000, border)))
        found = report(run_verb, folder, f"--from={max(0, first - ORIGIN)}us",
                       f"--to={end - ORIGIN}us")
        rows, cut = known(begins, first, end)
        assert found["arrivals_missed"] == {"kernel": 0, "number": 0, "time": 0,
                                            "piece": 0, "lost": 0}
        assert {row["collective"]: (row["count"], row["ranks"], row["skew_total_ns"])
                for row in found["arrivals"]} == {
            {REDUCE: "AllReduce", GATHER: "AllGather"}[kernel]: (
                len(its), 4, sum(max(at) - min(at) for at in its) * US)
            for kernel, its in rows.items()}
        cuts += cut
    assert cuts


def stalled(make_records, kernel=REDUCE):
    """Three ranks reduce four times; rank 2 comes 2 s late to the third, and does nothing before.
    """
    scripts = [Script(rank) for rank in range(3)]
    for rank, s in enumerate(scripts):
        s.add("kernel_name", 2, 0, 0, args=(kernel,), text=NAMES[kernel])
        for n in range(4):
            s.now = 1_000_000 + 10_000 * n + (2_000_000 if n > 2 else 0) + rank
            begin = s.now + (2_000_000 if n == rank == 2 else 0)
            s.now = begin
            s.launch(us=3, after=5, lasts=(2_000_000 if n == 2 and rank < 2 else 0) + 500 - rank,
                     kernel=kernel)
    return make_records(scripts_text(scripts))


# Ranks 0 and 1 wait for rank 2, from the third collective's begin (20 ms) on; the wait goes on
# behind a piece's end, and is there of kernels that began before it.
@pytest.mark.parametrize("options, count, waited_ms", [
    ((), 4, 2000), (("--to=1s",), 2, 980), (("--from=15ms", "--to=1s"), 0, 980),
    (("--from=1s", "--to=1500ms"), 0, 500), (("--from=1s",), 2, 1020),
    (("--min-duration=1s",), 0, 2000), (("--name=AllReduce",), 4, 2000)])
def test_a_rank_that_has_not_come_yet(options, count, waited_ms, run_verb, make_records):
    """Rank 1, which came 1 us behind rank 0, is not blamed, nor awaited."""
    found = report(run_verb, stalled(make_records), *options)
    assert not any(found["arrivals_missed"].values())
    assert [row["count"] for row in found["arrivals"]] == [count] * bool(count)
    assert {row["rank"] for row in found["arrivals"]} <= {"2"}
    ranks = found["ranks"]
    assert sum(row["collectives"] for row in ranks) == count * 3
    for row in ranks[:2]:
        assert abs(row["waits_ns"] - waited_ms * 1_000_000) < 20_000
        assert row["communication_ns"] < 2_000_000 + 20_000
    assert sum(row["waits_ns"] for row in ranks) - ranks[2]["awaited_ns"] < 20_000


def test_cuts_add_up(run_verb, make_gpu):
    """To the whole, by what the GPUs did, and by who was waited for."""
    folder, dice = make_gpu("late", 4), random.Random(7)

    def sums(*words):
        tables = "--table=gpu_time,ranks,arrivals,idle"
        found = json.loads(run_verb("report", "--format=json", tables, *words, folder).stdout)
        rows = collections.Counter({"missed": sum(found["arrivals_missed"].values())})
        for row in found["gpu_time"]:
            for part in ("compute", "communication", "copies", "other", "idle_communication"):
                rows[row["pid"], part] += row[f"{part}_ns"]
        for row in found["ranks"]:
            for what in ("collectives", "late", "late_ns", "awaited_ns", "waits_ns"):
                rows[row["rank"], what] += row[what]
        for row in found["arrivals"]:
            rows[row["collective"]] += row["skew_total_ns"]
        for row in found["idle"]:
            if row["cause"] != "start-up":
                rows[row["cause"], row["place"]] += row["total_ns"]
        return rows
    whole = sums()
    assert whole["communication", "rank 1"] == 240_000_000
    for _ in range(4):
        cuts = sorted(dice.sample(range(1_000_000, 180_000_000), 4))
        pieces = [sums(f"--from={first}ns", *[f"--to={end}ns"] * bool(end))
                  for first, end in zip([0, *cuts], [*cuts, 0])]
        assert +sum(pieces, collections.Counter()) == +whole, cuts


def test_what_a_late_rank_costs_in_a_piece(run_verb, make_gpu):
    """Each of the others waited 80 ms, whether its own kernels are in the piece or too short."""
    folder = make_gpu("late", 4)
    for options in ((), ("--min-duration=10ms",), ("--kind=kernel", "--name=nccl")):
        found = json.loads(run_verb("report", "--format=json", *options, folder).stdout)
        assert [row["ns"] for row in found["findings"] if row["id"] == "straggler"] == [80_000_000]


def test_waits_for_ranks_that_are_left_out(run_verb, make_gpu):
    """What was waited until the last of those that are there came is idle time, whoever it was
    for; nobody is named, in no table and format."""
    folder = make_gpu("late", 4)
    for ranks, waited in (("0,2,3", 0), ("0,1,3", 160_000_000)):
        found = report(run_verb, folder, f"--rank={ranks}")
        assert found["arrivals"] == [] and found["arrivals_missed"]["piece"] == 12
        assert sum(row["waits_ns"] for row in found["ranks"]) == waited
        assert not any(row["late"] or row["awaited_ns"] for row in found["ranks"])
        whole = run_verb("report", "--full", f"--rank={ranks}", folder).stdout
        steps = run_verb("report", "--table=steps", f"--rank={ranks}", folder).stdout
        assert "waited for" not in steps
        assert "left out   1 of 4 processes; who waited for whom is not known\n" in whole
        assert ("a rank, maybe one that is not here" in whole) == bool(waited)
    one = run_verb("report", "--rank=2", folder).stdout
    assert "left out   3 of 4 processes; who waited for whom is not known\n" in one
    page = json.loads(run_verb("report", "--rank=2", "--format=json", folder).stdout)
    assert page["overview"]["left_out"] == 3
    [finding] = [row for row in page["findings"] if row["id"] == "exposed-communication"]
    assert "ranks that are not here came late" in finding["advice"]
    for words in ((), ("--rank=0-3",), ("--kind=kernel",)):
        assert "left out" not in run_verb("report", *words, folder).stdout


def test_devices_that_leave_no_rank_out(run_verb, make_records):
    """Where each process has one GPU of its own they all have that number: all are there."""
    scripts, _ = job(1)
    folder = make_records(scripts_text(scripts))
    whole, found = report(run_verb, folder), report(run_verb, folder, "--device=0")
    assert whole["arrivals"] and all(found[table] == whole[table] for table in (
        "arrivals", "arrivals_missed", "ranks"))
    scripts[3].now += 1000
    scripts[3].launch(lasts=10, device=1, kernel=REDUCE)
    found = report(run_verb, make_records(scripts_text(scripts), "two"), "--device=0")
    assert not found["arrivals"] and found["arrivals_missed"]["piece"] == 40
