# SPDX-License-Identifier: Apache-2.0
"""`gpuprof diff` and `gpuprof baseline`: what they say of runs of which all is known, their
statistics against enumeration, and how often they find what is there, and what is not."""

import base64
import hashlib
import itertools
import json
import random
import re
import statistics
import subprocess
import xml.etree.ElementTree

import made_runs
import pytest
from made_runs import FACTS, Run, baseline, noisy

SAME, WORSE, USAGE, UNSURE = 0, 1, 2, 3
KEYS = ("step_ns", "step_p95_ns", "gpu_busy_ns", "gpu_idle_ns", "peak_memory_bytes", "launches",
        "kernels", "copies", "copy_bytes", "syncs", "energy_mj")
COUNTS = KEYS[5:10]


@pytest.fixture(name="diff")
def fixture_diff(run_collector, tmp_path):
    """diff(RUNS, AGAINST, OPTIONS...): of baseline files of these metrics; the JSON."""
    def diff(runs, against, *options, status=None):
        (tmp_path / "new.json").write_text(baseline(runs))
        (tmp_path / "old.json").write_text(baseline(against))
        result = run_collector("diff", "new.json", "--against", "old.json", "--format=json",
                               *options)
        assert result.returncode in (SAME, WORSE, UNSURE), result.stderr
        assert status is None or result.returncode == status, result.stdout
        made = json.loads(result.stdout)
        made["status"] = result.returncode
        made["of"] = {row["metric"]: row for row in made["metrics"]}
        return made
    return diff


@pytest.fixture(name="recorded")
def fixture_recorded(make_records):
    """recorded(NAME, RUN): a recording of it."""
    return lambda name, run: make_records(run.lines(), name=name)


# ---- what a run comes to ------------------------------------------------------------------------


def test_metrics_of_a_recording(recorded, run_verb, tmp_path):
    """Each number is what the generator did in the steps behind the warm-up."""
    run = Run(steps=14, launches=7, copies=3, copy_bytes=1000, syncs=2, memory=3 << 20,
              slow={0: 6, 1: 2.5, 2: 2.4})
    run.lines()
    steady = run.times[3:]
    run_verb("baseline", "save", "one", recorded("run", run))
    row = json.loads((tmp_path / ".gpuprof/baselines/one.json").read_text())["runs"][0]
    assert (row["steps"], row["warm_up"]) == (11, 3)
    metrics = row["metrics"]
    assert {key: metrics[key] for key in COUNTS} == {
        "launches": 7, "kernels": 7, "copies": 3, "copy_bytes": 3000, "syncs": 2}
    assert metrics["peak_memory_bytes"] == 3 << 20
    assert metrics["step_ns"] == statistics.median(steady)
    busy = statistics.median(steady) * 0.8
    assert abs(metrics["gpu_busy_ns"] - busy) <= 7  # each kernel's time was cut to a whole ns
    assert metrics["gpu_busy_ns"] + metrics["gpu_idle_ns"] == metrics["step_ns"]
    assert row["facts"]["gpu"] == "1 x Made GPU"


@pytest.mark.parametrize("slow,left_out", [
    ({}, 0), ({0: 10}, 1), ({i: 3 for i in range(5)}, 5), ({0: 40, 1: 1.5, 2: 1.5, 3: 1.5}, 4),
    ({i: 3 for i in range(12)}, 0),  # that is the usual
    ({19: 10, 18: 3}, 0), ({10: 20}, 0)])  # what comes later is no warm-up
def test_warm_up(recorded, run_verb, tmp_path, slow, left_out):
    dice = random.Random(7)
    noise = {i: slow.get(i, 1) * (1 + 0.01 * dice.random()) for i in range(20)}
    run_verb("baseline", "save", "one", recorded("run", Run(steps=20, slow=noise)))
    row = json.loads((tmp_path / ".gpuprof/baselines/one.json").read_text())["runs"][0]
    assert (row["steps"], row["warm_up"]) == (20 - left_out, left_out)


def test_without_steps(recorded, run_verb, tmp_path):
    """A run is one step then, which the text says."""
    run = Run(steps=6)
    lines = [line for line in run.lines() if not line.startswith(f"{made_runs.STEP} ")]
    recorded_runs = [recorded(f"run{i}", type("", (), {"lines": lambda self: lines})())
                     for i in range(2)]
    run_verb("baseline", "save", "whole", *recorded_runs)
    row = json.loads((tmp_path / ".gpuprof/baselines/whole.json").read_text())["runs"][0]
    assert row["steps"] == 0 and row["facts"]["steps_by"] == "none"
    assert row["metrics"]["launches"] == 6 * 9 and row["metrics"]["copy_bytes"] == 6 * 2 * 4096
    text = run_verb("diff", *recorded_runs, "--against", "whole", status=UNSURE).stdout
    assert "no steps" in text and "a run" in text
    before, = re.findall(r"^run time +([\d.]+ m?s) ", text, re.MULTILINE)
    assert f" {before} (run) " in run_verb("baseline", "list").stdout


def test_ranks_are_one_run(make_records, run_verb, tmp_path):
    """Medians are of the steps of all ranks, the peak is the largest; their number must agree."""
    ranks = [Run(rank=400 + i, steps=9, step_ns=ns, launches=launches, memory=memory)
             for i, (ns, launches, memory) in enumerate([(10**6, 9, 1 << 20),
                                                         (2 * 10**6, 9, 5 << 20),
                                                         (3 * 10**6, 6, 1 << 20)])]
    make_records((line for rank in ranks for line in rank.lines()), name="three")
    make_records(ranks[1].lines(), name="one")
    run_verb("baseline", "save", "ranks", "three")
    row = json.loads((tmp_path / ".gpuprof/baselines/ranks.json").read_text())["runs"][0]
    assert row["steps"] == 27 and row["facts"]["processes"] == "3"
    assert row["facts"]["gpu"] == "3 x Made GPU"
    assert {key: row["metrics"][key] for key in ("step_ns", "launches", "peak_memory_bytes")} == {
        "step_ns": 2 * 10**6, "launches": 9, "peak_memory_bytes": 5 << 20}
    text = run_verb("diff", "one", "--against", "three", status=UNSURE).stdout
    assert "number of processes with steps: 1 (one), 3 (three)" in text


def test_ranks_that_share_a_device(make_records, run_verb, run_collector, tmp_path):
    """By its UUID; the report and its page count as many."""
    lines = [line.replace(" 0,9,0 ", f" 0,9,0,{'0,' * 9}7,{1 + rank % 2} ")
             for rank in range(4) for line in Run(rank=400 + rank).lines()]
    folder = make_records(lines, name="four")
    run_verb("baseline", "save", "shared", "four")
    row = json.loads((tmp_path / ".gpuprof/baselines/shared.json").read_text())["runs"][0]
    assert row["facts"]["gpu"] == "2 x Made GPU"
    told = json.loads(run_verb("report", "--format=json", folder).stdout)["overview"]
    assert told["devices"] == 2
    assert run_collector("report", "-o", "page.html", folder).returncode == 0
    page = (tmp_path / "page.html").read_text()
    data = json.loads(re.search(r'id="data">\n(.*?)</script>', page, re.DOTALL)[1])
    assert data["overview"]["devices"] == 2


def test_pages_allow_their_own_script(recorded, run_collector, tmp_path):
    """A browser runs nothing else."""
    one, two = recorded("one", Run()), recorded("two", Run())
    for words in (["report", one], ["diff", one, "--against", two]):
        assert run_collector(*words, "-o", "page.html").returncode in (SAME, UNSURE)
        page = (tmp_path / "page.html").read_bytes()
        allowed = re.search(rb"style-src 'sha256-([^']+)'; script-src 'sha256-([^']+)'; ", page)
        for tag, of in zip((b"style", b"script"), allowed.groups()):
            text = re.search(rb"<%s>(.*?)</%s>" % (tag, tag), page, re.DOTALL)[1]
            assert base64.b64encode(hashlib.sha256(text).digest()) == of


def test_recordings_and_baselines_are_the_same(recorded, run_collector, run_verb):
    """Recordings, the file that they were saved to, and its name give one answer."""
    dice = random.Random(3)
    runs = {side: [recorded(f"{side}{i}", Run(step_ns=step * (1 + 0.01 * dice.gauss(0, 1)),
                                              slow={0: 4})) for i in range(5)]
            for side, step in (("new", 1050000), ("old", 1000000))}
    for side, folders in runs.items():
        run_verb("baseline", "save", side, *folders)
    against = [runs["old"], ["old"], [".gpuprof/baselines/old.json"]]
    texts = {run_collector("diff", *runs["new"], "--against", *words).stdout for words in against}
    assert len(texts) == 1 and "worse: step time +" in texts.pop()
    listed = run_verb("baseline", "list").stdout.splitlines()
    assert [line.split()[:2] for line in listed[1:]] == [["new", "5"], ["old", "5"]]


def test_a_list_has_the_step_time_of_diff(recorded, run_collector, run_verb):
    """The median of all runs, not that of the first one."""
    folders = [recorded(f"run{i}", Run(step_ns=ms * 10**6))
               for i, ms in enumerate((1500, 900, 1000, 1100, 1300))]
    run_verb("baseline", "save", "main", *folders)
    row, = run_verb("baseline", "list").stdout.splitlines()[1:]
    told = run_collector("diff", folders[0], "--against", "main").stdout
    before, = re.findall(r"^step time +([\d.]+ m?s) ", told, re.MULTILINE)
    assert before == "1.100 s" and f" {before} " in row


# ---- statistics ---------------------------------------------------------------------------------


def p_by_enumeration(of, against):
    """One-sided: how many of all ways to choose the first group have ranks as high."""
    every = of + against
    ranks = [sum(b < a for b in every) + (sum(b == a for b in every) + 1) / 2 for a in every]
    seen = sum(ranks[:len(of)])
    sums = [sum(ranks[i] for i in chosen)
            for chosen in itertools.combinations(range(len(every)), len(of))]
    return sum(s >= seen - 1e-9 for s in sums) / len(sums)


def interval_by_enumeration(of, against):
    """The shortest interval between two of all differences that is sure enough."""
    size, pairs = len(of) + len(against), len(of) * len(against)
    reversed_pairs = [sum(a < b for a in chosen for b in range(size) if b not in chosen)
                      for chosen in itertools.combinations(range(size), len(of))]
    differences = sorted(a - b for a in of for b in against)
    sure = [(1 - 2 * sum(u <= cut for u in reversed_pairs) / len(reversed_pairs), cut)
            for cut in range(pairs // 2)]
    coverage, cut = min(((c, cut) for c, cut in sure if c >= 0.95 - 1e-12), default=sure[0])
    return differences[cut], differences[-1 - cut], coverage


@pytest.mark.parametrize("seed", range(6))
def test_statistics(diff, seed):
    """p, shift and interval of every metric, with ties and groups of different sizes."""
    dice = random.Random(seed)
    sizes = dice.choice([(4, 4), (5, 5), (4, 6), (6, 5)])
    runs = [[{key: dice.randrange(100, 100 + dice.choice([4, 50, 1000])) for key in KEYS}
             for _ in range(size)] for size in sizes]
    made = diff(*runs)
    step = statistics.median(run["step_ns"] for run in runs[1])
    for key, row in made["of"].items():
        of, against = ([run[key] for run in side] for side in runs)
        unit = step if key == "gpu_idle_ns" else statistics.median(against)
        of, against = ([n / unit for n in side] for side in (of, against))
        assert row["p"] == pytest.approx(p_by_enumeration(of, against), rel=1e-9)
        shift = statistics.median(a - b for a in of for b in against)
        assert row["change"] == pytest.approx(shift, abs=1e-12)
        low, high, coverage = interval_by_enumeration(of, against)
        assert row["coverage"] == pytest.approx(coverage)
        assert [row["low"], row["high"]] == pytest.approx([low, high], abs=1e-12)


def test_bonferroni(diff):
    """Three metrics with noise gate: each p is held against 0.045 / 3."""
    old = {"step_ns": [100, 101, 102, 103, 104], "gpu_busy_ns": [100, 101, 102, 103, 104],
           "gpu_idle_ns": [10, 10.1, 10.2, 10.3, 10.4]}

    def verdicts(step, busy):
        new = {"step_ns": step, "gpu_busy_ns": busy, "gpu_idle_ns": old["gpu_idle_ns"]}
        made = diff(*([{key: side[key][i] for key in side} for i in range(5)]
                      for side in (new, old)))
        return {key: (made["of"][key]["p"], made["of"][key]["verdict"] == "worse")
                for key in ("step_ns", "gpu_busy_ns")}

    clear = [110, 111, 112, 113, 114]  # above all
    mixed = [110, 111, 112, 113, 102.5]  # two pairs are the other way round: above 0.045 / 3
    for step, busy in ((clear, mixed), (mixed, clear)):
        found = verdicts(step, busy)
        for key, values in (("step_ns", step), ("gpu_busy_ns", busy)):
            assert found[key] == ((pytest.approx(1 / 252), True) if values is clear else
                                  (pytest.approx(4 / 252), False))
    better = [110, 111, 112, 113, 103.5]  # one pair: below
    assert verdicts(better, better)["gpu_busy_ns"] == (pytest.approx(2 / 252), True)


# ---- how often it is right ----------------------------------------------------------------------


def statuses(diff, noise, factor, count=5, repeat=20, first=0):
    made = []
    for seed in range(first, first + repeat):
        dice = random.Random(seed)
        made.append(diff(noisy(dice, noise, step=1e6 * factor, count=count),
                         noisy(dice, noise, count=count)))
    return made


def test_planted_regression_is_found(diff):
    """Noise of 1 %, 5 % planted: in 18 of 20 at least; and each says by how much."""
    found = [made for made in statuses(diff, 0.01, 1.05) if made["status"] == WORSE]
    assert len(found) >= 18
    inside = [made for made in found
              if made["of"]["step_ns"]["low"] <= 0.05 <= made["of"]["step_ns"]["high"]]
    assert len(inside) >= 18


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_nothing_planted(diff, noise):
    """At most one of 20 fails; with much noise it says that it cannot know, not that all is
    well."""
    found = [made["status"] for made in statuses(diff, noise, 1)]
    assert found.count(WORSE) <= 1
    assert found.count(SAME if noise < 0.02 else UNSURE) >= 17


def test_an_interval_that_holds_zero_is_no_regression(diff):
    """Runs of two kinds, mixed: many values are alike, and the test with ties is surer than the
    interval."""
    made = diff([{"step_ns": 1e7, "gpu_busy_ns": ns} for ns in (5582310, 5582311) * 2 + (3574863,)],
                [{"step_ns": 1e7, "gpu_busy_ns": ns} for ns in (5073921,) * 3 + (2638773,) * 2])
    busy = made["of"]["gpu_busy_ns"]
    assert busy["low"] < 0 < busy["high"] and busy["p"] < 0.02
    assert busy["verdict"] == "unsure" and made["status"] == UNSURE


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_what_it_would_have_seen_is_right(diff, noise):
    """A regression of the size that is printed is found in most; one of half the threshold is
    not."""
    seen = statistics.median(made["of"]["step_ns"]["seen_from"]
                             for made in statuses(diff, noise, 1))
    found = [made["status"] for made in statuses(diff, noise, 1 + seen, first=100)]
    assert found.count(WORSE) >= 17
    small = [made["status"] for made in statuses(diff, noise, 1.0125, first=200)]
    assert small.count(WORSE) <= 4


@pytest.mark.long
@pytest.mark.parametrize("noise,factor,count,least", [
    (0.01, 1.05, 5, {WORSE: 0.95}), (0.01, 1, 5, {SAME: 0.8}), (0.03, 1, 5, {UNSURE: 0.85}),
    (0.01, 1.05, 4, {WORSE: 0.95}), (0.02, 1.05, 8, {WORSE: 0.95})])
def test_rates(diff, noise, factor, count, least):
    """The same of 400."""
    found = [made["status"] for made in statuses(diff, noise, factor, count, 400)]
    assert all(found.count(status) / 400 >= rate for status, rate in least.items())
    assert factor > 1 or found.count(WORSE) / 400 <= 0.06


@pytest.mark.long
def test_planted_regression_is_found_in_recordings(recorded, run_collector):
    """The whole way: 20 times 5 recordings against 5 others."""
    found = 0
    for seed in range(20):
        dice = random.Random(seed)
        runs = {side: [recorded(f"{side}{seed}.{i}",
                                Run(step_ns=step * (1 + 0.01 * dice.gauss(0, 1)), slow={0: 3}))
                       for i in range(5)] for side, step in (("new", 1050000), ("old", 1000000))}
        found += run_collector("diff", *runs["new"], "--against", *runs["old"]).returncode == WORSE
    assert found >= 18


@pytest.mark.parametrize("key", COUNTS)
@pytest.mark.parametrize("noise,count", [(0.03, 5), (0.2, 2)])
def test_one_more_a_step_is_found_always(diff, key, noise, count):
    """Where the runs of each side agree, noise and few runs do not matter."""
    dice = random.Random(1)
    new, old = noisy(dice, noise, count=count), noisy(dice, noise, count=count)
    for run in new:
        run[key] += 1
    row = diff(new, old, status=WORSE)["of"][key]
    assert row["exact"] and row["verdict"] == "worse"
    for run in new:
        run[key] -= 2
    row = diff(new, old)["of"][key]
    assert row["exact"] and row["verdict"] == "better"


def test_counts_that_do_not_agree(diff):
    """Are compared as times are: one more in one run is nothing."""
    dice = random.Random(1)
    new, old = noisy(dice, 0.001, launches=1000), noisy(dice, 0.001, launches=1000)
    old[0]["launches"] += 1
    new[0]["launches"] += 2
    row = diff(new, old, status=SAME)["of"]["launches"]
    assert not row["exact"] and row["verdict"] == "same"


def test_one_launch_more_in_recordings(recorded, run_verb):
    dice = random.Random(5)
    runs = [[recorded(f"{launches}.{i}", Run(step_ns=1e6 * (1 + 0.1 * dice.gauss(0, 1)),
                                             launches=launches)) for i in range(2)]
            for launches in (10, 9)]
    text = run_verb("diff", *runs[0], "--against", *runs[1], status=WORSE).stdout
    assert text.splitlines()[-1] == "worse: launches +11.1 %, kernels +11.1 %"


# ---- when nothing can be said -------------------------------------------------------------------


def test_few_runs(diff, run_collector):
    dice = random.Random(2)
    for count, says in ((1, "too few runs"), (3, "too few runs for all but exact metrics")):
        made = diff(noisy(dice, 0.001, 2e6, count=count), noisy(dice, 0.001, count=count),
                    status=UNSURE)
        assert says in made["says"] and made["of"]["step_ns"]["verdict"] == "unsure"
    for use, status in (("pass", SAME), ("fail", WORSE)):
        result = run_collector("diff", "new.json", "--against", "old.json",
                               f"--inconclusive={use}", "--format=junit")
        assert result.returncode == status
        suite = xml.etree.ElementTree.fromstring(result.stdout)[0]
        failures = suite.findall("testcase/failure")
        assert int(suite.get("failures")) == len(failures) == (3 if use == "fail" else 0)
        assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped")) == \
            (0 if use == "fail" else 3)
        assert {failure.get("type") for failure in failures} <= {"inconclusive"}


def test_a_metric_of_some_runs_alone(diff):
    dice = random.Random(2)
    new, old = noisy(dice, 0.001), noisy(dice, 0.001)
    del new[3]["gpu_busy_ns"]
    row = diff(new, old, status=UNSURE)["of"]["gpu_busy_ns"]
    assert (row["verdict"], row["why"]) == ("unsure", "not in all runs")
    for run in new + old:
        run.pop("gpu_busy_ns", None)
    assert diff(new, old, status=SAME)["of"]["gpu_busy_ns"]["verdict"] == "absent"


@pytest.mark.parametrize("fact", ["gpu", "cuda_driver", "gpu_rows", "gpuprof", "processes",
                                  "steps_by", "CUDA_LAUNCH_BLOCKING", "losses", "given_up"])
def test_not_comparable(diff, run_collector, fact):
    """One run that differs is enough; --force compares and says so."""
    dice = random.Random(2)
    new, old = noisy(dice, 0.001, 2e6), noisy(dice, 0.001)
    new[4]["facts"] = {fact: "another"}
    made = diff(new, old, status=UNSURE)
    assert made["result"] == "not comparable" and len(made["differs"]) == 1
    assert "another" in made["differs"][0] and FACTS.get(fact, "") in made["differs"][0]
    made = diff(new, old, "--force", status=WORSE)
    assert made["result"] == "worse" and len(made["differs"]) == 1
    result = run_collector("diff", "new.json", "--against", "old.json")
    said, *text = result.stdout.split("\n\n")
    assert said.startswith("not comparable: ") and "5 runs" in text[0]
    amounts = [line.split() for line in text[1].splitlines()]
    assert amounts[0] == ["a", "step", "before", "now"] and amounts[1][:2] == ["step", "time"]
    assert "%" not in text[1] and "x " not in text[1] and "verdict" not in text[1]
    shown = run_collector("diff", "new.json", "--against", "old.json", "--format=junit").stdout
    assert "not comparable" in shown and "verdict" not in shown and "change" not in shown
    assert "2.000 ms" in shown or "2.00" in shown


def test_steps_on_one_side_alone(diff, run_collector, tmp_path):
    """A step is no run: what is not of one thing does not stand side by side."""
    dice = random.Random(2)
    new, old = noisy(dice, 0.001, 2e9), noisy(dice, 0.001)
    for run in new:
        run["facts"] = {"steps_by": "none"}
        del run["step_p95_ns"]
    assert diff(new, old, status=UNSURE)["result"] == "not comparable"
    text = (tmp_path / "new.json").read_text()
    (tmp_path / "new.json").write_text(text.replace('"steps": 40', '"steps": 0'))
    shown = run_collector("diff", "new.json", "--against", "old.json").stdout
    assert "not comparable" in shown.splitlines()[0] and "GPU busy" not in shown
    forced = run_collector("diff", "new.json", "--against", "old.json", "--force").stdout
    assert "; metrics of a side with no steps" in forced
    assert "\na run  " in forced and "\nrun time " in forced and "\na step" not in forced


def test_what_may_differ(diff):
    dice = random.Random(2)
    new, old = noisy(dice, 0.001), noisy(dice, 0.001)
    for run, name in zip(new, "abcde"):
        run["facts"] = {key: name for key in ("host", "commit", "time", "program")}
    assert diff(new, old, status=SAME)["differs"] == []
    for run in new + old:  # on both sides
        run["facts"] = {"given_up": "stacks"}
    assert diff(new, old, status=SAME)["differs"] == []


@pytest.mark.parametrize("step,cost,status", [
    (1, 0.02, SAME), (1, 0.08, UNSURE), (1.05, 0.08, UNSURE), (1.05, 0.04, WORSE),
    (1.5, 0.08, WORSE)])
def test_own_cost(diff, step, cost, status):
    """More of it than the step became slower, or than would have been found: it may be that."""
    dice = random.Random(2)
    new, old = noisy(dice, 0.002, step=1e6 * step), noisy(dice, 0.002)
    for run in new:
        run["cost"] = cost
    made = diff(new, old, status=status)
    assert any("own cost" in text for text in made["differs"]) == (status == UNSURE)


def test_losses_of_a_recording(recorded, run_collector, run_verb):
    """A recording that was cut off is not compared."""
    good = [recorded(f"good{i}", Run()) for i in range(4)]
    bad = recorded("bad", Run(steps=40))
    stream, = bad.glob("*.gpuprof")
    stream.write_bytes(stream.read_bytes()[:-200])
    old = [recorded(f"old{i}", Run()) for i in range(4)]
    result = run_collector("diff", *good, bad, "--against", *old)
    assert result.returncode == UNSURE and "losses: " in result.stdout.split("not comparable")[1]


# ---- on paper -----------------------------------------------------------------------------------

HOSTILE = "<script>alert(1)</script> | `*x*` \x1b[31m & \" ]]> \u202e --> " + 50 * "y"


def test_printers(diff, run_collector, tmp_path):
    """Each form is made at once, is what its readers read, and says the same."""
    dice = random.Random(4)
    new, old = noisy(dice, 0.01, 1.1e6), noisy(dice, 0.01)
    for run in new:
        run["facts"] = {"host": HOSTILE, "program": HOSTILE}
    new[0]["facts"] = {"host": HOSTILE, "gpu": HOSTILE}
    made = diff(new, old, "--force", status=WORSE)
    files = ("x.txt", "x.xml", "x.json")
    result = run_collector("diff", "new.json", "--against", "old.json", "--force",
                           *(word for name in files for word in ("-o", name)))
    assert (result.returncode, result.stdout, result.stderr) == (WORSE, "", "")
    text, junit, again = ((tmp_path / name).read_text() for name in files)
    again = json.loads(again)
    assert all(again[key] == made[key] for key in again)
    assert made["says"] in text and "\x1b" not in text + junit
    suite, = xml.etree.ElementTree.fromstring(junit)
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    failed = [name for name, case in cases.items() if case.find("failure") is not None]
    assert len(cases) == int(suite.get("tests")) == 9 and "step time" in failed
    assert len(failed) == int(suite.get("failures"))
    assert float(cases["step time"].get("time")) == \
        pytest.approx(made["of"]["step_ns"]["now"] / 1e9, abs=1e-9)
    lines = text.splitlines()
    assert len(lines) <= 24 and all(len(line) <= 140 for line in lines[:-1]
                                       if "differs" not in line)


def test_kernels_explain(diff, run_collector, tmp_path):
    """What takes longer and shorter in a step, as the files have it, the most first; one that was
    only renamed is one row; json has them all."""
    dice = random.Random(4)
    before = {"slower_kernel": 100, "faster_kernel": 500, "triton_poi_fused_add_7": 900,
              "steady_kernel": 4000, "gone_kernel": 30}
    now = {"slower_kernel": 300, "faster_kernel": 400, "triton_poi_fused_add_12": 900,
           "steady_kernel": 4000, "new_kernel": 70}
    diff(noisy(dice, 0.01), noisy(dice, 0.01))
    for name, kernels in (("new", now), ("old", before)):
        rows = [{"name": kernel, "count": 80, "ns": 40 * 1000 * us,
                 "operator": f"aten::{kernel.split('_')[0]}"} for kernel, us in kernels.items()]
        (tmp_path / f"{name}.json").write_text(baseline(noisy(dice, 0.01), rows))
    words = ("diff", "new.json", "--against", "old.json")
    text = run_collector(*words).stdout
    assert re.findall(r"^ +([+-][\d.]+) us  (.*)$", text, re.MULTILINE) == [
        ("+200.000", "slower_kernel"), ("+70.000", "new: new_kernel"),
        ("-100.000", "faster_kernel"), ("-30.000", "gone: gone_kernel")]
    made = json.loads(run_collector(*words, "--format=json").stdout)
    rows = {row["now"]["name"] or row["before"]["name"]: row for row in made["kernels"]}
    assert made["kernel_rows"] == len(rows) == 6
    for name, us in now.items():
        assert rows[name]["now"]["ns"] == us * 1000 and rows[name]["now"]["count"] == 2
    renamed = rows["triton_poi_fused_add_12"]
    assert (renamed["before"]["name"], renamed["added_ns"]) == ("triton_poi_fused_add_7", 0)


def test_junit_skips_what_is_not_sure(diff, run_collector):
    dice = random.Random(4)
    diff(noisy(dice, 0.1), noisy(dice, 0.1), status=UNSURE)
    junit = run_collector("diff", "new.json", "--against", "old.json", "--format=junit").stdout
    suite, = xml.etree.ElementTree.fromstring(junit)
    skipped = {case.get("name") for case in suite.iter("testcase")
               if case.find("skipped") is not None}
    assert {"step time", "GPU busy"} <= skipped and len(skipped) == int(suite.get("skipped"))
    assert suite.get("failures") == "0"


# ---- files and words ----------------------------------------------------------------------------


@pytest.mark.parametrize("words,says", [
    (["a.json"], "--against"), (["--against", "a.json"], "before and after"),
    (["a.json", "--against"], "before and after"),
    (["a.json", "--against", "a.json", "--against", "a.json"], "given twice"),
    (["a.json", "--against", "a.json", "--gate=no"], "no percentage"),
    (["a.json", "--against", "a.json", "--gate=5.%"], "no percentage"),
    (["a.json", "--against", "a.json", "--gate=1e1"], "no percentage"),
    (["a.json", "--against", "a.json", "--gate=0"], "not between 0.1% and 1000%"),
    (["a.json", "--against", "a.json", "--gate=0.0001%"], "not between 0.1% and 1000%"),
    (["a.json", "--against", "a.json", "--gate=5000%"], "not between 0.1% and 1000%"),
    (["a.json", "--against", "a.json", "--gate=nan"], "no percentage"),
    (["a.json", "--against", "a.json", "--gate=-1%"], "no percentage"),
    (["a.json", "--against", "a.json", "-o", "x.pdf"], "x.pdf"),
    (["a.json", "--against", "1.json", "-o", "no/x.txt"], "no/x.txt"),
    (["--save", "x"], "no recordings to save"), (["--save", "x", "--list"], "compare nothing"),
    (["--list", "a.json"], "compare nothing"),
    (["--save", "x", "a.json", "--against", "1.json"], "compare nothing"),
    (["a.json", "--against", "nobody"], "neither a recording nor a baseline in .gpuprof"),
    (["a.json", "--against", "../a"], "neither"),
    (["a.json", "--against", "1.json", "./1.json"], "named twice"),
    (["a.json", "--against", "1.json", "./a.json"], "on both sides"),
    (["a.json", "--against", *(f"{i}.json" for i in range(60))], "more than 50 runs")])
def test_usage(run_collector, tmp_path, words, says):
    """Each ends with 2, never with 1, which is a regression."""
    for name in ("a", *range(60)):
        (tmp_path / f"{name}.json").write_text(baseline(noisy(random.Random(1), 0.01, count=1)))
    result = run_collector("diff", *words)
    assert result.returncode == USAGE and says in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("change,says", [
    (lambda text: "{}", "not a gpuprof baseline"), (lambda text: "{", "not a gpuprof baseline"),
    (lambda text: text.replace('"gpuprof_baseline": 1', '"gpuprof_baseline": 2'), "version"),
    (lambda text: text[:-30], "damaged"), (lambda text: text[:len(text) // 2], "damaged"),
    (lambda text: text.replace('"metrics"', '"metric"'), "damaged"),
    (lambda text: text.replace('"steps": 40', '"steps": -4'), "damaged"),
    (lambda text: text.replace('"runs": [', '"runs": [[], '), "damaged"),
    (lambda text: baseline([]), "damaged"),
    (lambda text: baseline(51 * [{"step_ns": 1}]), "more than 50"),
    (lambda text: baseline([{"step_ns": 1}], kernels=501 * [{"name": "k", "count": 1, "ns": 1}]),
     "500 kernels"),
    (lambda text: baseline([{"step_ns": 1}], kernels=[{"name": "k"}]), "damaged"),
    (lambda text: text + (16 << 20) * " ", "too large")])
def test_damaged_baseline(run_collector, tmp_path, change, says):
    text = baseline(noisy(random.Random(1), 0.01))
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.json").write_text(change(text))
    result = run_collector("diff", "a.json", "--against", "b.json")
    assert result.returncode == USAGE and says in result.stderr.lower(), result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("key,value", [
    *(("step_ns", value) for value in (0, -5, "8", True, None, 1e19, float("nan"), [])),
    *(("launches", value) for value in (-1, "9", False, float("inf"))), ("peak_memory_bytes", 0),
    ("cost", -1), ("cost", "no")])
def test_damaged_numbers_of_a_baseline(run_collector, tmp_path, key, value):
    """Are refused."""
    runs = noisy(random.Random(1), 0.01)
    runs[3][key] = value
    (tmp_path / "a.json").write_text(baseline(runs))
    result = run_collector("diff", "a.json", "--against", "a.json")
    assert result.returncode == USAGE and result.stderr == (
        "gpuprof: diff: a.json: damaged; save the baseline again\n")


@pytest.mark.parametrize("indent", [1, "\t"])
def test_a_baseline_may_be_laid_out_anew(diff, run_collector, tmp_path, indent):
    new, old = noisy(random.Random(1), 0.01), noisy(random.Random(2), 0.01)
    made = diff(new, old)
    for name in ("new.json", "old.json"):
        text = json.dumps(json.loads((tmp_path / name).read_text()), indent=indent)
        (tmp_path / name).write_text(text.replace("\n", "\r\n"))
    again = run_collector("diff", "new.json", "--against", "old.json", "--format=json").stdout
    assert json.loads(again) == {key: made[key] for key in made if key not in ("status", "of")}


def test_baseline_words(recorded, run_collector, run_verb, tmp_path):
    run = recorded("run", Run())
    for name in ("../x", ".x", "-x", "a/b", "", "x" * 200):
        result = run_collector("baseline", "save", "--", name, run)
        assert result.returncode == USAGE and "not a valid name; use letters" in result.stderr
    for words in ([], ["list", "x"], ["save", "x"], ["remove"], ["remove", "x", "y"],
                  ["keep", "x"]):
        assert run_collector("baseline", *words).returncode == USAGE
    assert "no baselines" in run_verb("baseline", "list").stderr
    (tmp_path / "file").write_text("")
    assert "Not a directory" in run_verb("baseline", "list", "--dir", "file", status=1).stderr
    run_verb("baseline", "save", "x", run, "--dir=a/b", env={"CI_COMMIT_SHA": "0123abc"})
    saved = json.loads((tmp_path / "a/b/x.json").read_text())
    assert saved["runs"][0]["facts"]["commit"] == "0123abc"
    (tmp_path / "a/b/y.json").write_text("{}")
    listed = run_verb("baseline", "list", "--dir", "a/b", status=USAGE)
    assert "0123abc" in listed.stdout and "y.json" in listed.stderr
    run_verb("diff", "run", "--against", "x", "--dir=a/b", status=UNSURE)


def test_save_and_list(recorded, run_verb, run_collector, tmp_path):
    """By a name or as a file; the verb before it does the same, and says what replaces it."""
    run = recorded("run", Run())
    saved = run_verb("diff", "--save", "main", run)
    assert saved.stdout == ".gpuprof/baselines/main.json: 1 run\n" and saved.stderr == ""
    text = (tmp_path / ".gpuprof/baselines/main.json").read_text()
    for name in ("one.json", "./one"):
        assert run_verb("diff", run, "--save", name).stdout == f"{name}: 1 run\n"
        assert (tmp_path / name).read_text() == text
        (tmp_path / name).unlink()
    old = run_verb("baseline", "save", "old", run)
    assert old.stderr == (
        "gpuprof: baseline: 'gpuprof diff --save NAME DIR...' replaces this command\n")
    assert (tmp_path / ".gpuprof/baselines/old.json").read_text() == text
    listed = run_verb("diff", "--list")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["name", "main", "old"]
    before = run_verb("baseline", "list")
    assert (before.stdout, before.stderr) == (
        listed.stdout, "gpuprof: baseline: 'gpuprof diff --list' replaces this command\n")
    assert "diff --save" in run_collector("diff", "--list", "--dir=none").stderr
    assert run_collector("diff", "--save", "no/x", run).returncode == USAGE


def test_remove_a_baseline(run_collector, run_verb, tmp_path):
    """The one that is named; of another name nothing is removed."""
    folder = tmp_path / "kept"
    folder.mkdir()
    for name in ("main", "old", "next"):
        (folder / f"{name}.json").write_text(baseline([{"step_ns": 1}]))
    (tmp_path / "outside.json").write_text("")
    for wrong in ("mian", "../outside", "main.json"):
        result = run_collector("baseline", "remove", wrong, "--dir=kept")
        assert result.returncode == USAGE and result.stderr == (
            f"gpuprof: baseline: no baseline is named '{wrong}' in kept; 'gpuprof diff --list' "
            "shows the baselines\n")
    removed = run_verb("baseline", "remove", "old", "--dir=kept")
    assert removed.stdout == "kept/old.json: removed\n"
    assert sorted(path.name for path in folder.iterdir()) == ["main.json", "next.json"]


def test_kernels_of_a_baseline(recorded, run_verb, tmp_path):
    """Those of all runs together, that took longest first; their times are those of the steps."""
    run = Run(slow={0: 9})
    run_verb("baseline", "save", "two", recorded("a", run), recorded("b", run))
    saved = json.loads((tmp_path / ".gpuprof/baselines/two.json").read_text())
    assert saved["kernel_steps"] == 22
    assert [k["name"] for k in saved["kernels"]] == ["gemm", "adam", "relu"]
    assert [k["count"] for k in saved["kernels"]] == 3 * [22 * 3]
    total = sum(k["ns"] for k in saved["kernels"])
    assert abs(total - 22 * 800000) <= 22 * 9
    assert subprocess.run(["wc", "-c", ".gpuprof/baselines/two.json"], cwd=tmp_path,
                          capture_output=True, check=True).stdout.split()[0] < b"4000"
