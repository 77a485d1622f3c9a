# SPDX-License-Identifier: Apache-2.0
"""Jobs of many ranks: which processes are of one, and who was late to what."""

import dataclasses
import json
import random
import struct

import pytest
import stream_reader
from test_idle import Script

SECOND = 10 ** 9
EPOCH = 1_700_000_000 * SECOND  # as stream_builder has it


@dataclasses.dataclass
class Process:
    """A recorded process, which is there from `begin` on, in seconds, for `lasts`."""
    rank: int
    begin: float
    lasts: float
    says: dict = dataclasses.field(default_factory=dict)
    parent: int = 1
    host: int = 0
    pid: int = 0


def rewrite(path, process):
    """Sets what make_records gives to no two processes differently."""
    content = bytearray(path.read_bytes())
    header = stream_reader.read_header(bytes(content))
    content[40:56] = bytes([process.host + 1]) * 16
    struct.pack_into("<II", content, 72, process.pid or header.pid, process.parent)
    struct.pack_into("<Q", content, 108, EPOCH + int(process.begin * SECOND))
    crc = stream_reader.crc32c(bytes(content[:header.bytes - 4]))
    struct.pack_into("<I", content, header.bytes - 4, crc)
    path.write_bytes(content)


@pytest.fixture(name="recorded")
def fixture_recorded(make_records):
    def record(processes):
        lines = []
        for number, process in enumerate(processes):
            script = Script(number, now=0)
            script.launch()
            script.now = int(process.lasts * 1e6) - 200
            script.launch()
            says = {"RANK": process.rank, **process.says}
            text = script.text()
            lines += [text[0], *(f"meta env.{name}={value}" for name, value in says.items()),
                      *text[1:]]
        folder = make_records(lines)
        for path in folder.glob("*.gpuprof"):
            pid = stream_reader.read_header(path.read_bytes()).pid
            rewrite(path, processes[pid - 1000])
        return folder
    return record


def ranks_table(run_verb, *words):
    done = run_verb("report", "--format=json", "--table=ranks", *words)
    return [(row["job"], int(row["rank"])) for row in json.loads(done.stdout)["ranks"]], done.stderr


def world(size, begin, lasts=10, **says):
    return [Process(rank, begin + 0.1 * rank, lasts, dict(says)) for rank in range(size)]


TORCHRUN = {"MASTER_ADDR": "node1", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none"}
SEVERAL = {
    # Slurm's steps at one time, and one of them again under another number
    "slurm": [world(3, 0, SLURM_JOB_ID=17, SLURM_STEP_ID=0, RANK="", SLURM_PROCID=""),
              world(2, 1, SLURM_JOB_ID=17, SLURM_STEP_ID=1, RANK="", SLURM_PROCID=""),
              world(3, 2, SLURM_JOB_ID=18, SLURM_STEP_ID=0, RANK="", SLURM_PROCID="")],
    "torchrun": [world(4, 0, **TORCHRUN), world(2, 1, **{**TORCHRUN, "MASTER_PORT": "29501"})],
    # the same words twice: by time alone
    "again": [world(4, 0, **TORCHRUN), world(4, 20, **TORCHRUN), world(2, 40, **TORCHRUN)],
    "restarted": [world(4, 0, **TORCHRUN, TORCHELASTIC_RESTART_COUNT=0),
                  world(4, 10.5, **TORCHRUN, TORCHELASTIC_RESTART_COUNT=1)],
    "loop": [world(3, 0), world(3, 20)],
    "mpi": [world(2, 0, RANK="", OMPI_COMM_WORLD_RANK="", PMIX_NAMESPACE="1885732865"),
            world(3, 0.05, RANK="", OMPI_COMM_WORLD_RANK="", PMIX_NAMESPACE="1885732867")],
}


def with_rank(process):
    """Under the variable that its launcher has."""
    for name in ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
        if name in process.says:
            process.says[name] = process.rank
    return process


@pytest.mark.parametrize("kind", SEVERAL)
def test_jobs_in_one_folder(kind, run_verb, recorded):
    """Their processes in any order; each job can be looked at alone, and so can a rank of it."""
    jobs = [[with_rank(process) for process in job] for job in SEVERAL[kind]]
    processes = [process for job in jobs for process in job]
    random.Random(kind).shuffle(processes)
    folder = recorded(processes)
    rows, said = ranks_table(run_verb, folder)
    assert rows == [(number, process.rank) for number, job in enumerate(jobs) for process in job]
    assert f"are of {len(jobs)} jobs" in said and len(said.splitlines()) == 1
    for number, job in enumerate(jobs):
        rows, said = ranks_table(run_verb, f"--job={number}", folder)
        assert [rank for _, rank in rows] == [process.rank for process in job] and not said
    text = run_verb("report", "--table=ranks", folder).stdout
    assert "rank 1 of job 1 (" in text
    trace = folder.parent / "trace.json"
    run_verb("merge", "--job=1", "--rank=1", folder, "-o", trace)
    shown, = json.loads(trace.read_text())["otherData"]["processes"]
    assert (shown["rank"], shown["job"]) == ("1", 1)


ONE = {
    "plain": world(4, 0),
    "torchrun": world(4, 0, **TORCHRUN),
    "one after the other": [Process(rank, 20 * rank, 10) for rank in range(4)],
    "children": [*world(2, 0), Process(0, 1, 2, parent=1000), Process(1, 1, 2, parent=1001)],
    "two hosts": [Process(rank, 0.1 * rank, 10, parent=50 + rank // 2, host=rank // 2)
                  for rank in range(4)],
    # whoever started these, the launcher says that they are one
    "siblings": [*world(2, 0, **TORCHRUN), Process(0, 1, 2, TORCHRUN, parent=77)],
}


@pytest.mark.parametrize("kind", ONE)
def test_one_job(kind, run_verb, recorded):
    rows, said = ranks_table(run_verb, recorded(ONE[kind]))
    assert sorted(rows) == sorted((0, process.rank) for process in ONE[kind]) and not said


def test_jobs_at_one_time_of_which_nobody_says_anything(run_verb, recorded):
    """Who started them does."""
    jobs = [[Process(rank, 0.1 * rank + 0.05 * (job + rank) % 0.1, 10, parent=70 + job)
             for rank in range(3)] for job in range(2)]
    rows, said = ranks_table(run_verb, recorded(jobs[0] + jobs[1]))
    assert rows == [(job, rank) for job in range(2) for rank in range(3)] and "2 jobs" in said


def test_no_such_job(run_verb, recorded):
    folder = recorded(world(2, 0) + world(2, 20))
    for options in (("--job=2",), ("--job=1", "--rank=7")):
        said = run_verb("report", *options, folder, status=2).stderr
        assert "from 0 to 1" in said and len(said.splitlines()) == 1
    assert "list of numbers" in run_verb("report", "--job=x", folder, status=2).stderr
