# SPDX-License-Identifier: Apache-2.0
"""`gpuprof diff`: what of a run is compared: which steps, over which of them the energy is, what
the runs are named by, and what is said of how they were."""

import json
import os
import random
import subprocess
import xml.etree.ElementTree

import pytest
from made_devices import MS, Board, Job, S
from made_runs import FACTS, US, Run, baseline, noisy
from stream_reader import TYPE_NUMBERS

SAME, WORSE, USAGE, UNSURE = 0, 1, 2, 3


@pytest.fixture(name="recorded")
def fixture_recorded(make_records):
    return lambda name, run: make_records(run.lines(), name=name)


@pytest.fixture(name="saved")
def fixture_saved(run_verb, tmp_path):
    """saved(RECORDING, OPTIONS...): what a baseline says of it."""
    def saved(recording, *options):
        run_verb("baseline", "save", "it", recording, *options)
        return json.loads((tmp_path / ".gpuprof/baselines/it.json").read_text())["runs"][0]
    return saved


# ---- steps --------------------------------------------------------------------------------------


@pytest.mark.parametrize("slow,left_out", [
    ({46: 50}, 0), ({2: 50}, 0), ({1: 50}, 0), ({3: 9, 46: 50, 47: 50}, 0), ({0: 9}, 1),
    ({0: 9, 46: 50}, 1), ({0: 9, 200: 50}, 1), ({0: 9, 150: 50, 180: 50, 200: 50}, 1),
    ({i: 1.04 for i in range(30)}, 30), ({**{i: 1.04 for i in range(30)}, 12: 50}, 30),
    ({**{i: 9 for i in range(8)}, 3: 1}, 8), ({i: 1.04 for i in range(80)}, 0),
    ({i: 1.035 - 0.035 * i / 238 for i in range(238)}, 0),  # a drift
    ({**{i: 1.035 - 0.035 * i / 238 for i in range(238)}, 0: 9, 1: 2}, 2)])
def test_one_slow_step_is_no_warm_up(recorded, saved, slow, left_out):
    """Of 238 steps with a noise of 1 %: it neither makes a warm-up of those before it, nor hides
    one."""
    dice = random.Random(7)
    slow = {i: slow.get(i, 1) * (1 + 0.01 * dice.gauss(0, 1)) for i in range(238)}
    row = saved(recorded("run", Run(steps=238, launches=1, slow=slow)))
    assert abs(row["warm_up"] - left_out) <= (1 if left_out == 30 else 0)
    assert row["steps"] == 238 - row["warm_up"]


@pytest.mark.parametrize("count", [12, 40])
def test_the_first_step_is_found_always(recorded, saved, count):
    """However the noise of few steps falls, and beside one that was held up."""
    for seed in range(10):
        dice = random.Random(seed)
        slow = {i: 1 + 0.01 * dice.gauss(0, 1) for i in range(count)} | {0: 4}
        if seed % 2:
            slow[count // 3] = 50
        run = Run(steps=count, launches=1, slow=slow)
        assert saved(recorded(f"run{seed}", run))["warm_up"] == 1


def test_steps_of_which_the_gpus_time_is_not_known(make_records, saved):
    """Others are compared, unless there are none."""
    at = {8: 10 * US + 8 * 1000 * US, 0: 5 * US}
    lines = Run().lines()
    rows = [saved(make_records(lines, name="whole"))]
    for known, ns in at.items():
        work = {str(TYPE_NUMBERS["kernel"]), str(TYPE_NUMBERS["copy"])}
        kept = [line for line in lines
                if line.split()[0] not in work or int(line.split()[2]) < ns]
        kept.append(f"{TYPE_NUMBERS['step_down']} 3 {ns} 0 0 0 5 0 1,1 CUPTI off")
        rows.append(saved(make_records(kept, name=f"known-{known}")))
    assert [row["steps"] for row in rows] == [12, 8, 12]
    busy = [row["metrics"].get("gpu_busy_ns") for row in rows]
    assert busy[0] == busy[1] > 0 and not busy[2]


def test_which_run_has_the_warm_up(recorded, run_verb, tmp_path):
    runs = [recorded(f"new{i}", Run(slow={k: 5 for k in range(i + 1)})) for i in range(3)]
    old = [recorded(f"old{i}", Run(slow={0: 3})) for i in range(3)]
    words = ("diff", *runs, "--against", *old, "-o", "x.txt", "-o", "x.json")
    run_verb(*words, status=UNSURE)
    says = "left out as warm-up: at most 3 steps of a run; before: at most 1"
    assert f"\n{says}\n" in (tmp_path / "x.txt").read_text()
    assert says in json.loads((tmp_path / "x.json").read_text())["notes"]
    text = run_verb("diff", old[0], "--against", old[1], status=UNSURE).stdout
    assert text.splitlines()[0] == "1 run (11 steps) against 1 (11 steps)"
    assert "\nleft out as warm-up: at most 1 step of a run; before: at most 1\n" in text


def test_steps_that_are_not_there(make_records, run_collector):
    """What was asked for, or nothing: the names that are there are told."""
    job = Job()
    for i in range(5):
        job.range(i * S + MS, i * S + 500 * MS, f"train {i}")
        job.range(i * S + 600 * MS, i * S + 700 * MS, "load")
    job.range(6 * S, 7 * S, "validate")
    job.add("push", 1, 8 * S, args=(0, 0, 0, 0, 0, 0), text="save it")  # it does not end
    job.call(9 * S)
    folder = make_records(job.lines())
    for words in (["diff", folder, "--against", folder], ["baseline", "save", "it", folder]):
        result = run_collector(*words, "--step-range=step *")
        assert result.returncode == USAGE and result.stdout == "" and result.stderr == (
            f"gpuprof: {words[0]}: --step-range: no range or label is named 'step *'; "
            "'gpuprof report --table=nvtx_sum' lists the names\n")
        result = run_collector(*words, "--step-range=save it")
        assert result.returncode == USAGE and \
            "no such step was recorded from start to end" in result.stderr
        result = run_collector(*words, "--step-by=graph")
        assert result.returncode == USAGE and "no graph was launched twice" in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_a_run_without_steps_has_a_time_of_its_own(diff_of_whole):
    text, junit = diff_of_whole
    assert "\nrun time " in text and "step time" not in text
    assert "\nchange of GPU idle is a share of the run before\n" in text
    assert 'name="run time"' in junit


@pytest.fixture(name="diff_of_whole")
def fixture_diff_of_whole(run_verb, tmp_path):
    def whole(seed):
        text = json.loads(baseline(noisy(random.Random(seed), 0.001)))
        for run in text["runs"]:
            run["steps"] = 0
            del run["metrics"]["step_p95_ns"]
        return json.dumps(text)
    for name in ("new", "old"):
        (tmp_path / f"{name}.json").write_text(whole(name))
    words = ("diff", "new.json", "--against", "old.json")
    return run_verb(*words).stdout, run_verb(*words, "--format=junit").stdout


def test_a_run_that_was_killed(make_records, run_collector):
    """Of its last step no kernel is recorded, as CUPTI had not handed them over: it is not
    compared, and who makes a baseline of it is told at once."""
    def run(name, is_killed=False):
        made = Run(step_ns=S // 5, meta=("gpu_rows=from CUPTI 22",))
        lines = made.lines()
        kernels = [line for line in lines if line.startswith(f"{TYPE_NUMBERS['kernel']} ")]
        for line in kernels[-9:] if is_killed else ():
            lines.remove(line)
        return make_records(lines, name=name)
    old, new = [run(f"old{i}") for i in range(5)], [run(f"new{i}") for i in range(4)]
    new.append(run("killed", is_killed=True))
    says = "losses: {}: kernels, copies and fills that are not recorded: 9"
    done = run_collector("diff", *new, "--against", *old)
    assert done.returncode == UNSURE and done.stderr == ""
    assert done.stdout.startswith(f"not comparable: {says.format(new[-1])}\n\n")
    for words in (("--format=json",), ("-o", "diff.xml")):  # nobody has read why
        done = run_collector("diff", *new, "--against", *old, *words)
        assert done.returncode == UNSURE
        assert done.stderr == f"gpuprof: diff: not comparable: {says.format(new[-1])}\n"
    junit = run_collector("diff", *new, "--against", *old, "--format=junit").stdout
    assert junit.count("<skipped message") == junit.count("<testcase") > 5
    done = run_collector("diff", *new, "--against", *old, "--force")
    assert done.returncode == SAME and says.format(new[-1]) in done.stdout
    done = run_collector("diff", "--save", "main", *new)
    assert done.returncode == SAME and done.stderr.startswith(
        f"gpuprof: baseline: {new[-1]}: losses: "
        "kernels, copies and fills that are not recorded: 9; ")
    assert run_collector("diff", "--save", "main", *old).stderr == ""
    assert run_collector("diff", *new[:-1], old[4], "--against", *old[:4]).returncode == SAME


# ---- energy -------------------------------------------------------------------------------------

STEP = 500 * MS


def burning(make_records, name, jobs):
    """`jobs` are (rank, first reading, boards by UUID); each has 20 steps from the first second on.
    """
    lines = []
    for rank, first, boards in jobs:
        job = Job(rank)
        for device, (uuid, board) in enumerate(boards.items()):
            job.read(board, job.source(device, uuid=(9, uuid)), first, 14 * S, 20 * MS)
        for number in range(21):
            job.step(S + number * STEP, number)
        lines += job.lines()
    return make_records(lines, name=name)


def test_energy_of_the_steps_that_were_read(make_records, saved):
    """Readings may begin behind the first step: it is of those that they reach."""
    board = Board([(0, 200000), (4 * S, 400000)], 20 * MS)
    late = burning(make_records, "late", [(1, 5 * S + MS, {1: board})])
    row = saved(late)
    assert row["steps"] == 20 and 10 <= row["energy_steps"] <= 11
    assert row["metrics"]["energy_mj"] == pytest.approx(400000 * 0.5, rel=0.03)
    early = burning(make_records, "early", [(1, 50 * MS, {1: board})])
    row = saved(early)
    assert row["energy_steps"] == 20
    assert row["metrics"]["energy_mj"] == pytest.approx((200000 * 3 + 400000 * 7) / 20, rel=0.03)


def test_energy_of_a_device_of_two_processes(make_records, saved):
    """Counts once, by its UUID; that of others beside it."""
    shared, own = Board([(0, 200000)], 20 * MS), Board([(0, 300000)], 20 * MS)
    assert saved(burning(make_records, "shared", [(1, 50 * MS, {1: shared}), (2, 50 * MS, {
        1: shared})]))["metrics"]["energy_mj"] == pytest.approx(100000, rel=0.03)
    both = saved(burning(make_records, "both", [(1, 50 * MS, {1: shared}), (2, 50 * MS, {
        1: shared, 2: own})]))
    assert both["metrics"]["energy_mj"] == pytest.approx(250000, rel=0.03)
    assert both["energy_steps"] == 40


@pytest.mark.parametrize("first", [1, 2])
def test_energy_is_of_the_steps_of_all_who_read(make_records, saved, first):
    """Whichever of two processes is the one that the device they share counts for: that depends on
    which was read first, and is no difference between runs."""
    shared, own = Board([(0, 200000)], 20 * MS), Board([(0, 300000)], 20 * MS)
    jobs = [(first, 50 * MS, {1: shared, 2: own}), (3 - first, 50 * MS, {1: shared})]
    row = saved(burning(make_records, "both", jobs))
    assert row["energy_steps"] == row["steps"] == 40
    assert row["metrics"]["energy_mj"] == pytest.approx(250000, rel=0.03)


def test_energy_counts_for_one_that_has_steps(make_records, saved):
    """A process without steps that reads the device as well, and first, takes nothing away."""
    board = Board([(0, 200000)], 20 * MS)
    idle, busy = Job(1), Job(2)
    for job in (idle, busy):
        job.read(board, job.source(0, uuid=(9, 1)), 50 * MS, 14 * S, 20 * MS)
    idle.call(S)
    for number in range(21):
        busy.step(S + number * STEP, number)
    row = saved(make_records(idle.lines() + busy.lines(), name="idle"))
    assert row["energy_steps"] == row["steps"] == 20
    assert row["metrics"]["energy_mj"] == pytest.approx(100000, rel=0.03)


def test_energy_that_nobody_read(make_records, saved):
    """Of a process without readings nothing is known: then of none."""
    board = Board([(0, 200000)], 20 * MS)
    row = saved(burning(make_records, "half", [(1, 50 * MS, {1: board}), (2, 50 * MS, {})]))
    assert "energy_mj" not in row["metrics"] and "energy_steps" not in row


# ---- what is meant by a word --------------------------------------------------------------------


def test_a_name_that_is_two_things(recorded, run_collector, run_verb, tmp_path):
    """Both a folder here and a baseline: nothing is taken for what was not meant."""
    other, second = (recorded(name, Run(launches=10)) for name in ("other", "second"))
    run_verb("baseline", "save", "main", other, second)
    run = recorded("main", Run())
    forgotten = run_collector("baseline", "save", "other", "second")
    assert forgotten.returncode == USAGE and \
        "put the baseline's name before the recordings" in forgotten.stderr
    assert not (tmp_path / ".gpuprof/baselines/other.json").exists()
    for words in (["other", "--against", "main"], ["main", "--against", "other"]):
        result = run_collector("diff", *words)
        assert result.returncode == USAGE and result.stderr == (
            "gpuprof: diff: main: both a folder 'main' and a baseline have this name; write "
            "./main or .gpuprof/baselines/main.json\n")
    assert "1 run " in run_verb("diff", "other", "--against", "./main", status=UNSURE).stdout
    assert " against 2 " in run_verb("diff", "other", "--against", ".gpuprof/baselines/main.json",
                                     status=UNSURE).stdout
    listed = run_verb("baseline", "list").stdout.splitlines()
    assert [line.split()[:2] for line in listed[1:]] == [["main", "2"]]
    assert run.is_dir() and (tmp_path / "main").is_dir()


def test_several_files_are_one_run(make_records, run_collector, run_verb, tmp_path):
    """With commas between: as the folder that has them all."""
    ranks = [Run(rank=400 + i, step_ns=10**6 * (1 + i)) for i in range(2)]
    folder = make_records((line for rank in ranks for line in rank.lines()), name="both")
    files = sorted(str(path.relative_to(tmp_path)) for path in folder.glob("*.gpuprof"))
    assert len(files) == 2
    run_verb("baseline", "save", "folder", folder)
    run_verb("baseline", "save", "files", ",".join(files))
    rows = [json.loads((tmp_path / f".gpuprof/baselines/{name}.json").read_text())["runs"]
            for name in ("folder", "files")]
    assert len(rows[1]) == 1 and rows[1][0].pop("name") == ",".join(files)
    rows[0][0].pop("name")
    assert rows[0] == rows[1] and rows[0][0]["facts"]["processes"] == "2"
    for word in (f"{files[0]},no", f"{files[0]},"):
        result = run_collector("diff", word, "--against", "files")
        assert result.returncode == USAGE and f"{word}: neither a recording nor" in result.stderr
        assert len(result.stderr.splitlines()) == 1


# ---- names and facts ----------------------------------------------------------------------------


def test_names_of_kernels_are_whole_in_files(run_collector, run_verb, tmp_path):
    name = "void cutlass::device_kernel<" + 30 * "cute::tuple<int, 128>, " + "end>"
    for side, ns in (("new", 9), ("old", 5)):
        rows = [{"name": name, "count": 80, "ns": ns * 10**6}]
        (tmp_path / f"{side}.json").write_text(baseline(noisy(random.Random(side), 0.001), rows))
    words = ("diff", "new.json", "--against", "old.json")
    run_verb(*words, "-o", "x.txt", "-o", "x.json")
    assert name in (tmp_path / "x.txt").read_text() and name in run_collector(*words).stdout
    assert name in json.loads((tmp_path / "x.json").read_text())["kernels"][0]["now"]["name"]


@pytest.mark.parametrize("fact", ["cuda_asked", "libraries", "power_limit"])
def test_facts_that_only_some_runs_know(diff_with_facts, fact):
    """Differ where both say something."""
    assert diff_with_facts({}, {fact: "12040"}) == []
    assert diff_with_facts({fact: "12040"}, {fact: "12040"}) == []
    differs, = diff_with_facts({fact: "12040"}, {fact: "13000"})
    assert "12040" in differs and "13000" in differs


@pytest.fixture(name="diff_with_facts")
def fixture_diff_with_facts(run_collector, tmp_path):
    def diff(new, old, key="differs"):
        for name, facts in (("new", new), ("old", old)):
            runs = noisy(random.Random(name), 0.001)
            for run in runs[1:]:
                run["facts"] = {**FACTS, **facts}
            (tmp_path / f"{name}.json").write_text(baseline(runs))
        result = run_collector("diff", "new.json", "--against", "old.json", "--format=json")
        made = json.loads(result.stdout)
        assert result.returncode == (UNSURE if made["differs"] else SAME)
        return made[key]
    return diff


def test_clocks_are_named_and_block_nothing(diff_with_facts):
    def notes(new, old):
        return diff_with_facts({"sm_clock": new}, {"sm_clock": old}, "notes")
    assert not any("clock" in note for note in notes("1980", "1900"))
    assert "clock of the SMs, MHz: 1410, before: 1980" in notes("1410", "1980")
    assert not any("clock" in note for note in notes("x", "1980"))


def test_facts_of_a_recording(make_records, saved):
    board = Board([(0, 200000)], 20 * MS)
    board.power_limit = 700000
    job = Job()
    job.read(board, job.source(), 50 * MS, 12 * S, 100 * MS)
    for number in range(10):
        job.step(S + number * S, number)
    lines = job.lines()
    lines[1:1] = ["meta env.PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                  "meta library=/usr/lib/libcudart.so.12.4.127", "meta cuda_asked=12040",
                  "meta library=/lib/libcuda.so.550.54"]
    facts = saved(make_records(lines))["facts"]
    assert facts["variables"] == "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
    assert facts["libraries"] == "libcuda.so.550.54, libcudart.so.12.4.127"
    assert (facts["cuda_asked"], facts["power_limit"]) == ("12040", "700.0 W")
    assert (facts["sm_clock"], facts["temperature"]) == ("1500", "61")


def test_a_long_fact_is_cut(diff_with_facts, run_collector, tmp_path):
    """XML with half a letter is none."""
    differs, = diff_with_facts({"gpu": 149 * "x" + 99 * "\u00e9"}, {"gpu": "y"})
    assert 149 * "x" in differs and 50 * "\u00e9" not in differs
    run_collector("diff", "new.json", "--against", "old.json", "-o", "x.xml")
    xml.etree.ElementTree.fromstring((tmp_path / "x.xml").read_bytes())


# ---- the commit ---------------------------------------------------------------------------------


@pytest.fixture(name="committed")
def fixture_committed(recorded, tmp_path, run_verb):
    """committed(FOLDER, VARIABLES): the commit that a baseline has that is saved there."""
    run = recorded("run", Run())

    def committed(folder, **variables):
        plain = {key: value for key, value in os.environ.items()
                 if key not in ("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT")}
        run_verb("baseline", "save", "it", run, f"--dir={tmp_path}/saved", cwd=folder,
                 env={**plain, **variables})
        saved = json.loads((tmp_path / "saved/it.json").read_text())
        return saved["runs"][0]["facts"].get("commit")
    return committed


def git(folder, *words):
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", "-C", folder, *who, *words], check=True, capture_output=True,
                          text=True).stdout.strip()


def test_commit_of_a_working_tree(committed, tmp_path):
    """As git itself says it: of a branch, in a folder below, in a further tree."""
    tree, other = tmp_path / "tree", tmp_path / "other"
    (tree / "a/b").mkdir(parents=True)
    git(tree, "init", "-q", "-b", "main/line")
    assert committed(tree) is None  # there is none yet
    git(tree, "commit", "-q", "--allow-empty", "-m", "1")
    assert committed(tree) == committed(tree / "a/b") == git(tree, "rev-parse", "HEAD")
    assert committed(tree, CI_COMMIT_SHA="0123abc") == "0123abc"
    git(tree, "worktree", "add", "-q", "-b", "side", other)
    git(other, "commit", "-q", "--allow-empty", "-m", "2")
    assert committed(other) == git(other, "rev-parse", "HEAD") != committed(tree)
    assert committed(tree, PATH="/nowhere") is None  # no git


# ---- what is worse, and does not gate ------------------------------------------------------------


@pytest.mark.parametrize("busy,idle,status", [
    (0.2e6, 0.25e6, SAME), (0.5e6, 0.25e6, SAME), (0.8e6, 0.25e6, WORSE), (0.7e6, 0.35e6, WORSE)])
def test_idle_time_of_a_step_that_became_shorter(run_verb, tmp_path, busy, idle, status):
    """Of a step of 1 ms before, 0.2 ms of which were idle: more idle time is no regression of the
    run where the step is shorter, and by more than that."""
    for name, parts in (("now", (busy, idle)), ("before", (0.8e6, 0.2e6))):
        dice = random.Random(name)
        runs = noisy(dice, 0.001, sum(parts), parts[0] / sum(parts), count=6)
        for run in runs:
            run["gpu_busy_ns"] = parts[0] * (1 + 0.001 * dice.gauss(0, 1))
            run["gpu_idle_ns"] = parts[1] * (1 + 0.001 * dice.gauss(0, 1))
        (tmp_path / f"{name}.json").write_text(baseline(runs))
    text = run_verb("diff", "now.json", "--against", "before.json", "-o", "-", "-o", "x.json",
                    "-o", "x.xml", status=status).stdout
    result = json.loads((tmp_path / "x.json").read_text())
    metric = next(m for m in result["metrics"] if m["metric"] == "gpu_idle_ns")
    assert metric["verdict"] == "worse" and metric["gates"] == (status == WORSE)
    case = xml.etree.ElementTree.parse(tmp_path / "x.xml").find(".//testcase[@name='GPU idle']")
    assert (case.find("failure") is not None) == (status == WORSE)
    row = next(line for line in text.splitlines() if line.startswith("GPU idle  "))
    assert row.endswith("worse" if status == WORSE else "worse (does not gate)")
    assert ("GPU idle is worse by 5.0 % of the time before, but the whole is better by"
            in text) == (status == SAME)


def test_worse_is_what_the_words_say(run_verb, tmp_path):
    """That it grew is sure, and by how much is not: the interval reaches below half of the gate."""
    before = noisy(random.Random(1), 0.001, count=6)
    now = noisy(random.Random(2), 0.001, count=6)
    for run, share in zip(now, (0.012, 0.02, 0.04, 0.05, 0.06, 0.09)):
        run["step_ns"] = 1e6 * (1 + share)
    (tmp_path / "before.json").write_text(baseline(before))
    (tmp_path / "now.json").write_text(baseline(now))
    words = ("diff", "now.json", "--against", "before.json", "-o", "-", "-o", "x.json")
    text = run_verb(*words, status=WORSE).stdout
    step = json.loads((tmp_path / "x.json").read_text())["metrics"][0]
    assert step["verdict"] == "worse" and 0 < step["low"] < 0.025 < step["change"]
    assert ("\ngate 5 %: a metric is worse if it grew by over 2.5 % and its interval is above 0\n"
            in text)


# ---- forms ---------------------------------------------------------------------------------------


def test_nothing_has_no_sign_and_before_stands_first(run_verb, tmp_path):
    """One run each, a hair faster: no sign before 0.0 %, and nothing of what is not known."""
    runs = noisy(random.Random(3), 0, count=1)
    (tmp_path / "before.json").write_text(baseline(runs))
    now = {**runs[0], "step_ns": runs[0]["step_ns"] * 0.9999, "facts": {"host": "new"}}
    (tmp_path / "now.json").write_text(baseline([now, now]))
    text = run_verb("diff", "now.json", "--against", "before.json", "-o", "-", "-o", "x.xml",
                    "-o", "x.json", status=UNSURE).stdout
    junit = (tmp_path / "x.xml").read_text()
    assert "-0.0 %" not in text + junit and "+0.0 %" not in text + junit
    row = next(line for line in text.splitlines() if line.startswith("step time "))
    assert row.split()[6:8] == ["0.0", "%"]
    assert "()" not in junit and "seen from none" not in junit and ", change 0.0 %" in junit
    assert json.loads((tmp_path / "x.json").read_text())["result"] == "inconclusive"
