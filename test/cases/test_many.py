# SPDX-License-Identifier: Apache-2.0
"""A job of many processes, turned by step numbers: all of them at the same ones."""

import contextlib
import json
import os
import re
import subprocess
import time

import conftest
import csv_tables
import pytest
import stream_reader
import toolchain

LIMIT = 200


class Ranks:
    def __init__(self, library, folder, stack, count, **settings):
        program = toolchain.build("control_work.c", *toolchain.runtime(12),
                                  f"-I{conftest.ROOT / 'inject/range'}")
        settings = {f"GPUPROF_{name}": value for name, value in settings.items()}
        self.ranks = []
        for rank in range(count):
            env = toolchain.environment(folder / "out", library, GPUPROF_LIVE=folder,
                                        LD_LIBRARY_PATH=str(toolchain.SIM), RANK=str(rank),
                                        GPUPROF_BUFFER="1M", GPUPROF_CHUNK="16K", **settings)
            self.ranks.append(stack.enter_context(conftest.Program(
                [program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True)))

    def say(self, *words, but=()):
        for i, rank in enumerate(self.ranks):
            if i not in but:
                rank.stdin.write("".join(f"{word}\n" for word in words))
                rank.stdin.flush()
        for i, rank in enumerate(self.ranks):
            for word in words if i not in but else ():
                assert rank.stdout.readline() == f"{word}\n"

    def steps(self, numbers, but=()):
        """Each copies as much as its number says."""
        for number in numbers:
            self.say(f"s{number}", str(number), but=but)


COUNT = 64


def test_started_and_stopped_by_step(library, collector, tmp_path):
    def ctl(*words, status=0):
        done = subprocess.run([collector, "ctl", "--timeout=60", tmp_path / "out", *words],
                              capture_output=True, text=True, check=False, timeout=LIMIT)
        assert done.returncode == status, done
        return done.stdout

    with contextlib.ExitStack() as stack:
        job = Ranks(library, tmp_path, stack, COUNT, CONTROL="stopped")
        job.say("1000")
        job.steps(range(3))
        job.steps(range(3, 6), but=range(5))  # some are behind
        assert ctl("start", "--at-step=+4") == \
            f"at step 9:\n{COUNT} processes answered: 0 record, {COUNT} do not; 0 did not answer\n"
        job.steps(range(3, 6), but=range(5, COUNT))
        job.steps(range(6, 12))
        ctl("stop", "--at-step=14")
        job.steps(range(12, 16))
        os.kill(job.ranks[7].pid, 19)
        said = subprocess.run([collector, "ctl", "--timeout=3", tmp_path / "out", "start",
                               "--at-step=10"], capture_output=True, text=True, check=False)
        os.kill(job.ranks[7].pid, 18)
        lines = said.stdout.splitlines()
        assert said.returncode == 1 and len(lines) == 1 + COUNT
        assert "; 1 did not answer" in lines[0]
        assert sum("that step is over" in line for line in lines[1:]) == COUNT - 1
        assert [re.search(r"rank (\d+)", line)[1] for line in lines[1:]
                if "did not answer" in line] == ["7"]
        for rank in job.ranks:
            _, errors = rank.communicate(timeout=LIMIT)
            assert errors == ""
    processes = stream_reader.read_folder(tmp_path / "out")
    assert len(processes) == COUNT
    for p in processes:
        sizes = [c.args["bytes"] for c in p.calls() if c.symbol.startswith("cudaMemset")]
        assert sizes == [9, 10, 11, 12, 13] and not p.losses


@pytest.mark.long
def test_dumps_of_64_with_one_step(library, collector, tmp_path):
    with contextlib.ExitStack() as stack:
        job = Ranks(library, tmp_path, stack, COUNT, FLIGHT="10s")
        job.steps(range(1, 4))
        done = subprocess.run([collector, "ctl", "--timeout=60", tmp_path / "out", "dump",
                               "--at-step=6"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done
        job.steps(range(4, 9))
        time.sleep(5)
        for rank in job.ranks:
            rank.kill()
            rank.wait()
    done = subprocess.run([collector, "report", "--format=json", "--table=dumps",
                           tmp_path / "out"], capture_output=True, text=True, check=True)
    dumps = json.loads(done.stdout)["dumps"]
    assert sum("step 6" in json.dumps(dump) for dump in dumps) == COUNT


@pytest.mark.long
def test_a_thousand_enrol(library, collector, tmp_path):
    """All of them answer, begin later ones as well, and stop with the same step."""
    with contextlib.ExitStack() as stack:
        job = Ranks(library, tmp_path, stack, 900)
        job.say("1")
        done = subprocess.run([collector, "ctl", "--timeout=100", tmp_path / "out", "stop",
                               "--at-step=3"], capture_output=True, text=True, check=False)
        assert done.stdout == "900 processes answered: 900 record, 0 do not; 0 did not answer\n"
        later = Ranks(library, tmp_path, stack, 100)
        later.say("1")
        for its in job, later:
            its.steps(range(2, 5))
        done = subprocess.run([collector, "ctl", "--timeout=100", tmp_path / "out", "status"],
                              capture_output=True, text=True, check=False)
        assert done.stdout == "1000 processes answered: 0 record, 1000 do not; 0 did not answer\n"
        for rank in job.ranks + later.ranks:
            assert rank.communicate(timeout=LIMIT)[1] == ""
    done = subprocess.run([collector, "report", "--format=csv", tmp_path / "out"],
                          capture_output=True, text=True, check=True)
    [row] = [r for r in csv_tables.tables(done.stdout)["functions"]
             if r["function"] == "cudaMemset"]
    assert int(row["calls"]) == 2000  # of the sizes 1 and 2
