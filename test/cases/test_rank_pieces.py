# SPDX-License-Identifier: Apache-2.0
"""How ranks arrived at the collectives of a piece: as in the whole, at those of which it has all
kernels; nobody is blamed for one that the border of the piece cuts."""

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
    """Of the collectives whose kernels all begin in that time, and how many it cuts."""
    rows, cut = {}, 0
    for kernel, at in begins:
        there = [first <= begin < end for begin in at]
        if all(there):
            rows.setdefault(kernel, []).append(at)
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
        assert found["arrivals_missed"] == {"kernel": 0, "number": 0, "time": 0, "piece": cut}
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


def test_a_rank_that_has_not_come_yet(run_verb, make_records):
    """Rank 1, which came 1 us behind rank 0, is not blamed, nor awaited."""
    folder = stalled(make_records)
    whole = report(run_verb, folder)
    [row] = whole["arrivals"]
    assert (row["rank"], row["count"], row["last"]) == ("2", 4, 4)
    for options, count, cut, ranks in (
            (("--to=1s",), 2, 1, 3), (("--from=15ms", "--to=1s",), 0, 1, 3),
            (("--from=1s",), 1, 1, 3), (("--min-duration=1s",), 0, 1, 3),
            (("--from=15ms", "--to=1s", "--rank=0-1"), 1, 0, 2)):
        found = report(run_verb, folder, *options)
        assert found["arrivals_missed"]["piece"] == cut, options
        assert [row["count"] for row in found["arrivals"]] == [count] * bool(count), options
        assert [row["rank"] for row in found["arrivals"]] == (
            ["1" if "--rank=0-1" in options else "2"] if count else []), options
        assert len(found["ranks"]) == ranks
        assert sum(row["collectives"] for row in found["ranks"]) == count * ranks, options
    text = run_verb("report", "--table=arrivals", "--to=1s", folder).stdout
    assert "collectives not counted here: the piece has not all ranks' kernels of 1\n" in text


@pytest.mark.parametrize("jobs", ("-j1", "-j2"))
def test_ranks_that_are_left_out_are_said(run_verb, make_gpu, jobs):
    """Who was waited for may be one of them."""
    folder = make_gpu("late", 4)
    assert "2 processes are left out" in run_verb("report", jobs, "--rank=0,1", folder).stderr
    assert "1 process is left out" in run_verb("report", jobs, "--rank=1-3", folder).stderr
    for words in ((), ("--rank=0-3",), ("--kind=kernel",)):
        assert "left out" not in run_verb("report", jobs, *words, folder).stderr
