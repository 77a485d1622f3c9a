# SPDX-License-Identifier: Apache-2.0
"""The commands of GUIDE, chapter by chapter, as they stand there: run by a shell in a folder with a
recording of two ranks, in which `python train.py` is a program on the simulated CUDA. Recipes of CI
are test_ci.py's."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

import conftest
import made_findings
import pytest
import toolchain
from made_findings import MS, TYPES, US, Job

GUIDE = (conftest.ROOT / "GUIDE.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"^    \$ (.*(?:\n {8,}.*)*)", re.MULTILINE)
# What no test runs here: it builds, or goes on until somebody ends it (test_package, test_view).
ELSEWHERE = re.compile(r"make|gpuprof view|gpuprof top data($| *#)")


def whole(text):
    """Its lines that belong to the command: as long as quotes or a backslash leave it open."""
    lines = text.split("\n")
    made = lines.pop(0)
    while lines and (made.rstrip().endswith("\\") or made.count('"') % 2):
        made = f"{made}\n{lines.pop(0)}"
    return made


CHAPTERS = {part.partition("\n")[0]: [command for command in map(whole, COMMAND.findall(part))
                                      if not ELSEWHERE.match(command)]
            for part in re.split(r"^## ", GUIDE, flags=re.MULTILINE)[1:]}
TOOLS = {"torchrun": "for RANK in 0 1; do export RANK; $WORK; done",
         "srun": 'shift 2; for RANK in 0 1; do export RANK WORLD_SIZE=2; "$@" || exit; done',
         "go": "test -s profile.pb.gz", "python": "exec $WORK",
         "sqlite3": f"exec {sys.executable} -c 'import sqlite3, sys; print(*sqlite3.connect("
                    "sys.argv[1]).execute(sys.argv[2]))' \"$@\""}


def rank_lines(rank):
    """132 steps of 100 ms, in each a matrix product."""
    job = Job(rank)
    job.meta = [f"env.RANK={rank}", "env.WORLD_SIZE=8"]
    for step in range(133):
        job.now = US + step * 100 * MS
        job.add(TYPES["step"], made_findings.MAIN, job.now, args=(step,))
        if step < 132:
            call = job.call()
            job.kernel("gemm", 90 * MS, at=job.now + 5 * US, call=call)
    return job.lines()


@pytest.fixture(scope="module", name="prepared")
def fixture_prepared(tmp_path_factory, collector, library):
    """A folder with data, runs to compare, and the tools that GUIDE's commands name."""
    del library
    folder = tmp_path_factory.mktemp("guide")
    work = toolchain.build("ci_work.c", f"-I{conftest.ROOT / 'inject/range'}",
                           *toolchain.runtime(12))
    (folder / "bin").mkdir()
    for name, text in {**TOOLS, "gpuprof": f'exec {collector} "$@"'}.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\nWORK='{work} 3 --steps 40'\n{text}\n")
        (folder / "bin" / name).chmod(0o755)
    start = folder / "start"
    (start / "src").mkdir(parents=True)
    (start / "data").mkdir()
    subprocess.run([conftest.built(conftest.BUILD / "make_records"), start / "data"], check=True,
                   timeout=60, input="\n".join([*rank_lines(0), *rank_lines(7)]).encode())
    shell(folder, "start", "gpuprof run --quiet -o old1 python train.py; "
          "for name in recorded old2 new1 new2 run1 run2 run3 run4 run5; do cp -r old1 $name; done")
    return folder


def shell(folder, name, command):
    env = toolchain.environment(folder, PATH=f"{folder / 'bin'}:{os.environ['PATH']}")
    return subprocess.run(["sh", "-c", command], cwd=folder / name, check=False, timeout=120,
                          capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL)


@contextlib.contextmanager
def server(folder, cwd):
    """A process of rank 3 that records into data, with a flight recorder."""
    env = toolchain.environment(folder, RANK=3, PATH=f"{folder / 'bin'}:{os.environ['PATH']}")
    program = toolchain.build("control_work.c", *toolchain.runtime(12),
                              f"-I{conftest.ROOT / 'inject/range'}")
    command = ["gpuprof", "run", "--quiet", "-o", "data", "--flight=30s", "--gpu=off", program]
    with conftest.Program([str(word) for word in command], cwd=cwd, env=env, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        running.stdin.write("s1\n1\n")
        running.stdin.flush()
        assert running.stdout.readline() and running.stdout.readline()
        yield
        running.communicate(timeout=60)


def changed(command):
    """What cannot be as it stands there: recordings are kept apart, and a look ends."""
    command = command.replace("run -o data", "run -o recorded")
    command = re.sub(r"(--cycle=2|memory) data\b", r"\1 recorded", command)
    command = command.replace("/var/lib/node_exporter/", "")
    tomorrow = time.strftime("%Y-%m-%d", time.localtime(time.time() + 86400))
    command = re.sub(r"--at=(?=\d\d:)", f"--at={tomorrow}T", command)  # today it may be past
    if "top data --format" in command:
        command = command.partition("#")[0] + " --once"
    slow = "SIMCUDA_COPY_BYTES_PER_US=1 " if "schedule=wait=10," in command else ""
    return slow + command  # steps that last: a window is not over before it opens


def allowed(command):
    if " diff " in command and "flame" not in command:
        return {0, 3}
    if "doctor" in command:
        return {0, 4}
    return {0, 1} if "gpuprof ctl" in command else {0}  # 1: not with a flight recorder, or rank 3


def test_commands_are_found():
    assert sum(map(len, CHAPTERS.values())) > 75
    for begin in ("gpuprof run -o data --pytorch=shapes --schedule=wait=10", "gpuprof diff new?",
                  "gpuprof memory data", "gpuprof merge --per-rank", "sqlite3 profile.sqlite"):
        assert any(command.startswith(begin) for part in CHAPTERS.values() for command in part)


@pytest.mark.parametrize("chapter", [name for name, part in CHAPTERS.items() if part])
def test_each_command_works(prepared, chapter):
    name = re.sub(r"\W+", "-", chapter)
    shutil.copytree(prepared / "start", prepared / name)
    live = [command for command in CHAPTERS[chapter] if re.match("gpuprof (ctl|top)", command)]
    for command in map(changed, CHAPTERS[chapter]):
        if command.startswith(("gpuprof ctl", "gpuprof top")):
            continue
        done = shell(prepared, name, command)
        assert done.returncode in allowed(command), (command, done.stderr)
        words = shlex.split(command, comments=True)
        for option, value in zip(words, words[1:]):
            if option == "-o" and " run " not in command and "$" not in value:
                first, _, last = value.partition(".")  # of several processes each has a file
                assert list((prepared / name).glob(f"{first}*{last}")), command
    if live:
        with server(prepared, prepared / name), contextlib.ExitStack() as stack:
            env = toolchain.environment(prepared,
                                        PATH=f"{prepared / 'bin'}:{os.environ['PATH']}")
            running = [stack.enter_context(conftest.Program(
                ["sh", "-c", changed(command)], cwd=prepared / name, env=env, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)) for command in live]
            for command, one in zip(live, running):
                _, errors = one.communicate(timeout=60)
                assert one.returncode in allowed(command), (command, errors)


# Options of other programs: pkg-config, gh, docker, torchrun, nsys, and of a program of the user's.
FOREIGN = {"cflags", "create-if-none", "edit-last", "gpus", "nnodes", "no-python",
           "nproc-per-node", "shm-size", "steps", "type"}


def test_documents_name_what_there_is(run_collector):
    """Options of any verb, settings of --tune, and words that help explains."""
    listed = run_collector("help").stdout.partition("\ntopics:")[0].partition("\nverbs:")[2]
    verbs = re.findall(r"^  (\w+)", listed, re.MULTILINE)
    told = "".join(run_collector(*words).stdout for verb in verbs
                   for words in (("help", verb), (verb, "--help-all")))
    options = set(re.findall(r"--([a-z][a-z-]*)", told))
    tunings = set(re.findall(r"^  ([a-z-]+)=", run_collector("help", "tuning").stdout, re.M))
    assert len(options) > 100 and len(tunings) > 5
    for name in "GUIDE.md", "README.md", "formats/answers.md":
        text = (conftest.ROOT / name).read_text(encoding="utf-8")
        named = set(re.findall(r"(?<![\w-])--([a-z][a-z-]*)", text))
        assert named - options - FOREIGN == set(), name
        assert set(re.findall(r"--tune\s+([a-z-]+)", text)) <= tunings, name
        for word in set(re.findall(r"gpuprof\s+help\s+([a-z][\w-]*)", text)):
            assert run_collector("help", word).returncode == 0, word
