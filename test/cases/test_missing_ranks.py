# SPDX-License-Identifier: Apache-2.0
"""Ranks of a job that have no file here: said where it is known, and then nobody is blamed for what
the missing ones may have been late to."""

import json

import pytest
import stream_reader
import toolchain
from test_idle import reduces
from test_partial import check_equal, make_parts
from test_ranks import Process, communicating, fixture_recorded  # noqa: F401

TORCHRUN = {"MASTER_ADDR": "node1", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none"}
BLAMELESS = "a rank, maybe one that is not here"
UNKNOWN = "; who waited for whom is not known"


@pytest.fixture(name="reduced")
def fixture_reduced(make_records):
    """Three collectives of those ranks, to which the last one of them comes 300 us late."""
    def make(ranks, rank_variable="RANK", communicates=True, **says):
        lines = []
        for rank in ranks:
            late = 300 if rank == ranks[-1] else 0
            s = reduces(rank, [1000 * n + late for n in range(3)], [500 - late] * 3,
                        kernel=3 if communicates else 1)
            first, *rest = s.text()
            own = {rank_variable: rank, **says}
            if rank_variable != "RANK":
                own["RANK"] = ""
            lines += [first, *(f"meta env.{name}={value}" for name, value in own.items()), *rest]
        return make_records(lines)
    return make


def said(run_verb, folder, *words):
    """The screen's line, the same in JSON, and whom devices waited for."""
    text = run_verb("report", *words, folder).stdout.partition("\n\n")[0]
    lines = [line[13:] for line in text.splitlines() if line.startswith("  missing ")]
    made = json.loads(run_verb("report", "--format=json", *words, folder).stdout)
    places = {row["place"] for row in made["idle"] if row["cause"] == "communication"}
    return lines, made["overview"]["missing_ranks"], places, made


def test_ranks_of_a_known_world(reduced, run_verb):
    """The last one that is here is not blamed; with all of them it is."""
    folder = reduced((0, 1, 3, 4), WORLD_SIZE=8)
    lines, missing, places, made = said(run_verb, folder)
    assert lines == ["ranks 2, 5-7 of 8 have no file" + UNKNOWN]
    assert missing == [{"job": 0, "count": 4, "world_size": 8, "ranks": [[2, 2], [5, 7]]}]
    assert places == {BLAMELESS} and made["arrivals"] == []
    assert made["arrivals_missed"]["piece"] == 3
    assert not any(row["late"] or row["awaited_ns"] for row in made["ranks"])
    assert sum(row["waits_ns"] for row in made["ranks"]) == 3 * 3 * 300_000
    for count in (2, 5):
        check_equal(run_verb, folder, make_parts(run_verb, folder, count)[::-1])


def test_all_ranks_are_here(reduced, run_verb):
    """Which no part of a report knows."""
    folder = reduced(range(5), WORLD_SIZE=5)
    lines, missing, places, made = said(run_verb, folder)
    assert (lines, missing, places) == ([], [], {"rank 4"})
    assert [row["rank"] for row in made["arrivals"]] == ["4"]
    whole = check_equal(run_verb, folder, make_parts(run_verb, folder, 3)[::-1])
    assert whole["overview"]["missing_ranks"] == []


@pytest.mark.parametrize("ranks, word, spans", [((0, 2, 5), "ranks 1, 3-4 have", [[1, 1], [3, 4]]),
                                                ((1, 2), "rank 0 has", [[0, 0]])])
def test_gaps(ranks, word, spans, reduced, run_verb):
    """Of how many it is one is not known; some are missing all the same."""
    folder = reduced(ranks)
    lines, missing, places, _ = said(run_verb, folder)
    assert lines == [f"{word} no file" + UNKNOWN] and places == {BLAMELESS}
    assert [(one["world_size"], one["ranks"]) for one in missing] == [(None, spans)]
    check_equal(run_verb, folder, make_parts(run_verb, folder, 2)[::-1])


@pytest.mark.parametrize("ranks, says", [
    ((0, 1), {}), ((0,), {"WORLD_SIZE": 1}), ((0, 1), {"WORLD_SIZE": 1}),
    ((0, 1), {"WORLD_SIZE": 2}), ((0, 1), {"WORLD_SIZE": "two"}), ((0, 1), {"PMI_SIZE": 8}),
    ((0, 1), {"OMPI_COMM_WORLD_SIZE": 8, "SLURM_NTASKS": 8})],
    ids=["none", "one", "less", "two", "words", "another's", "others'"])
def test_nobody_is_missing(ranks, says, reduced, run_verb):
    lines, missing, places, _ = said(run_verb, reduced(ranks, **says))
    assert (lines, missing) == ([], []) and places == ({"rank 1"} if len(ranks) > 1 else set())


@pytest.mark.parametrize("variable, size", [
    ("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")])
def test_launchers(variable, size, reduced, run_verb):
    """Each says it by words of its own."""
    lines, _, places, _ = said(run_verb, reduced((0, 1), variable, **{size: 3}))
    assert lines == ["rank 2 of 3 has no file" + UNKNOWN] and places == {BLAMELESS}


def test_variables_of_a_shell(reduced, run_verb):
    """One process that talks to no other may have nothing to do with ranks: only one that does
    lacks them. Two are a job, whatever they do."""
    for ranks, communicates, wanted in (((0,), False, []),
                                        ((0,), True, ["rank 1 of 2 has no file" + UNKNOWN])):
        folder = reduced(ranks, communicates=communicates, WORLD_SIZE=2)
        assert said(run_verb, folder)[0] == wanted
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    folder = reduced((0, 1), communicates=False, WORLD_SIZE=3)
    assert said(run_verb, folder)[0] == ["rank 2 of 3 has no file"]


def test_who_is_left_out_is_not_missing(reduced, run_verb):
    folder = reduced(range(3), WORLD_SIZE=3)
    for words in (("--rank=0,1",), ("--rank=0",), ("--pid=1000",)):
        assert said(run_verb, folder, *words)[:2] == ([], [])


def test_children_of_ranks(recorded, run_verb):
    """Processes that a rank has started have its variables; a launcher has none."""
    says = {"WORLD_SIZE": 2, **TORCHRUN}
    ranks = [Process(rank, 0.1 * rank, 10, says, parent=77, pid=100 + rank) for rank in range(2)]
    workers = [Process(rank, 1 + 0.1 * rank, 5, says, parent=100 + rank) for rank in range(2)]
    folder = recorded(ranks + workers + [Process("", 0, 12, {"WORLD_SIZE": 2})])
    assert said(run_verb, folder)[:2] == ([], [])


def elastic(size, begin, agents):
    """A world of ranks, each by an agent of those that start two each."""
    return [Process(rank, begin + 0.1 * (size - rank), 10, {**TORCHRUN, "WORLD_SIZE": size},
                    parent=agents[rank // 2], host=rank // 2) for rank in range(size)]


def test_a_job_that_grows(recorded, run_verb):
    """Its ranks are started anew, in any order, under the same words: two worlds are two jobs."""
    processes = elastic(2, 0, (70,)) + elastic(6, 10.5, (70, 71, 72)) + elastic(4, 21, (71, 70))
    folder = recorded(processes)
    lines, missing, _, made = said(run_verb, folder)
    assert (lines, missing) == ([], [])
    assert [(row["job"], int(row["rank"])) for row in made["ranks"]] == [
        (job, rank) for job, size in enumerate((2, 6, 4)) for rank in range(size)]


def test_worlds_of_one_agent(recorded, run_verb):
    """It starts other ranks the second time."""
    says = {**TORCHRUN, "WORLD_SIZE": 2}
    first = [Process(rank, 0.1 * rank, 10, says, parent=70) for rank in range(2)]
    says = {**says, "WORLD_SIZE": 4}
    second = [Process(rank, 11 + 0.1 * rank, 10, says, parent=70 + (rank < 2), host=rank < 2)
              for rank in range(4)]
    folder = recorded(first + second)
    lines, missing, _, made = said(run_verb, folder)
    assert (lines, missing) == ([], [])
    assert [row["job"] for row in made["ranks"]] == [0] * 2 + [1] * 4


def test_of_several_jobs(recorded, run_verb):
    """Each for itself, and none that is not looked at."""
    first = [Process(rank, 0.1 * rank, 10, {"WORLD_SIZE": 3, "MASTER_PORT": 1})
             for rank in range(3)]
    second = [Process(rank, 20 + 0.1 * rank, 10, {"WORLD_SIZE": 4, "MASTER_PORT": 2})
              for rank in (1, 2)]
    third = [Process(rank, 40 + 0.1 * rank, 10, {"WORLD_SIZE": 3, "MASTER_PORT": 3})
             for rank in range(2)]
    folder = recorded(first + second + third)
    lines, missing, _, _ = said(run_verb, folder)
    assert lines == [
        "in job 1 ranks 0, 3 of 4 have no file"]
    assert [(one["job"], one["ranks"]) for one in missing] == [(1, [[0, 0], [3, 3]]), (2, [[2, 2]])]
    for job, wanted in ((0, []), (1, missing[:1]), (2, missing[1:])):
        assert said(run_verb, folder, f"--job={job}")[1] == wanted
    assert said(run_verb, folder, "--job=2")[0] == ["in job 2 rank 2 of 3 has no file"]


def test_communicators_of_known_size(run_verb, tmp_path):
    """Who of them is late is told, whoever else is missing."""
    folder = communicating(tmp_path, more=("meta env.WORLD_SIZE=6",))
    lines, _, places, made = said(run_verb, folder)
    assert lines == ["ranks 4-5 of 6 have no file"] and places == {"rank 1", "rank 3"}
    assert [(row["rank"], row["count"]) for row in made["arrivals"]] == [("1", 5), ("3", 5)]
    check_equal(run_verb, folder, make_parts(run_verb, folder, 2))


def test_many_gaps(make_records, run_verb):
    """The first eight of them are said, and how many ranks they are."""
    ranks = range(0, 40, 2)
    scripts = [reduces(rank, (0, 1000), (500, 500)) for rank in ranks]
    folder = make_records(line for s in scripts for line in
                          (s.text()[0], "meta env.WORLD_SIZE=18446744073709551615", *s.text()[1:]))
    lines, missing, _, _ = said(run_verb, folder)
    assert lines == ["ranks 1, 3, 5, 7, 9, 11, 13, 15 and more have no file" + UNKNOWN]
    [one] = missing
    assert one["count"] == 19 and len(one["ranks"]) == 8 and one["world_size"] is None


def test_a_file_that_is_lost(make_gpu, run_verb):
    """Of a recording as the library writes it."""
    folder = make_gpu("late", 4)
    assert "straggler" in {row["id"] for row in said(run_verb, folder)[3]["findings"]}
    next(path for path in folder.iterdir() if "1" in path.name).unlink()
    lines, _, _, made = said(run_verb, folder)
    assert lines == ["rank 1 has no file" + UNKNOWN]
    assert "straggler" not in {row["id"] for row in made["findings"]}
    [finding] = [row for row in made["findings"] if row["id"] == "exposed-communication"]
    assert "ranks that are not here came late" in finding["advice"]


def test_what_launchers_say_is_recorded(library, tmp_path):
    says = {"WORLD_SIZE": "2", "OMPI_COMM_WORLD_SIZE": "3", "MV2_COMM_WORLD_SIZE": "4",
            "PMI_SIZE": "5", "SLURM_STEP_NUM_TASKS": "6"}
    env = toolchain.environment(tmp_path / "out", library, **says)
    toolchain.run([toolchain.build("killed_work.c", *toolchain.runtime(12), *toolchain.DRIVER),
                   "ends"], env)
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert {name: process.meta.get(f"env.{name}") for name in says} == says
