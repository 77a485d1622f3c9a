# SPDX-License-Identifier: Apache-2.0
"""Doors of servers and trainings, as their users open them: vLLM's and SGLang's workers, which call
cudaProfilerStart when a request says so; Megatron's one rank; TensorFlow's profile_batch."""

import json
import subprocess
import time

import conftest
import pytest
import stream_reader
import toolchain

LIMIT = 60


class Server:
    def __init__(self, program, how, workers, env):
        self.workers = workers
        self.program = conftest.Program([program, how, str(workers)], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def say(self, *lines):
        """Returns how many workers have answered the last one."""
        for line in lines:
            self.program.stdin.write(f"{line}\n")
            self.program.stdin.flush()
            answers = int(self.program.stdout.readline())
        return answers

    def end(self):
        _, errors = self.program.communicate(timeout=LIMIT)
        assert self.program.returncode == 0
        return errors


@pytest.fixture(name="serve")
def fixture_serve(library, tmp_path):
    """serve(HOW, lines, settings): what each worker has recorded, and the server's stderr."""
    def serve(how, lines, workers=3, patience=0, **settings):
        settings = {f"GPUPROF_{name}": value for name, value in settings.items()}
        env = toolchain.environment(tmp_path / "out", library, GPUPROF_LIVE=tmp_path, **settings)
        program = toolchain.build("server_work.c", *toolchain.runtime(12),
                                  f"-I{conftest.ROOT / 'inject/range'}")
        server = Server(program, how, workers, env)
        with server.program:
            answers = [server.say(line) for line in lines]
            deadline = time.monotonic() + patience
            while patience and answers[-1]:
                assert time.monotonic() < deadline
                time.sleep(0.02)
                answers.append(server.say("1"))
            errors = server.end()
        found = {}
        for process in stream_reader.read_folder(tmp_path / "out"):
            assert not process.losses and process.header.pid != server.program.pid
            sizes = [c.args["bytes"] for c in process.calls() if c.symbol == "cudaMemset"]
            assert len({size % 100 for size in sizes}) <= 1
            for size in sizes:
                found.setdefault(size % 100, []).append(size // 100)
        return found, answers, errors
    return serve


REQUESTS = ["1", "start", "2", "3", "stop", "4", "start", "5", "stop", "6", "start", "7", "stop",
            "8"]


@pytest.mark.parametrize("how", ["fork", "spawn"])
@pytest.mark.parametrize("end, wanted", [
    ("stop", [2, 3]), ("none", [2, 3, 4, 5, 6, 7, 8]), ("repeat:2", [2, 3, 5])])
def test_workers_open_the_door(serve, run_collector, tmp_path, how, end, wanted):
    found, answers, errors = serve(how, REQUESTS, CAPTURE_RANGE="cudaProfilerApi",
                                   CAPTURE_RANGE_END=end)
    assert found == {index: wanted for index in range(3)}
    assert answers == [3] * len(REQUESTS) and errors == ""
    trace = json.loads(run_collector("merge", "--cycle=1", tmp_path / "out", "-o", "-").stdout)
    sizes = sorted(e["args"]["bytes"] for e in trace["traceEvents"]
                   if e["name"].startswith("cudaMemset"))
    assert sizes == [100 * n + i for n in (wanted if end == "none" else [2, 3]) for i in range(3)]


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_workers_are_asked_to_end(serve, how):
    """Who has had its range; the server itself goes on."""
    found, answers, errors = serve(how, REQUESTS[:5], patience=10, CAPTURE_RANGE="cudaProfilerApi",
                                   CAPTURE_RANGE_END="exit")
    assert found == {index: [2, 3] for index in range(3)}
    assert answers[:4] == [3] * 4 and answers[-1] == 0 and errors == ""


def test_one_rank_opens_the_door(serve, run_collector, tmp_path):
    """Megatron's --profile-ranks, --profile-step-start and --profile-step-end."""
    lines = []
    for step in range(1, 9):
        lines += ["@1 start"] if step == 4 else ["@1 stop"] if step == 6 else []
        lines.append(str(step))
    found, _, errors = serve("spawn", lines, CAPTURE_RANGE="cudaProfilerApi")
    assert found == {1: [4, 5]} and errors == ""
    report = json.loads(run_collector("report", "--format=json", tmp_path / "out").stdout)
    assert not set(report["losses"]) - {"live_records"}  # the workers were ended by a signal


@pytest.mark.parametrize("marks, settings", [
    (lambda step: [f"step {step}", str(step)], {}),
    (lambda step: [f"(train#step_num={step}#", str(step), ")"], {"STEP_BY": "train#step_num=*"})],
    ids=["steps", "ranges"])
def test_batches_by_number(serve, marks, settings):
    """profile_batch=(3, 5): workers that train for themselves, each by its own steps."""
    lines = [line for step in range(8) for line in marks(step)]
    found, _, errors = serve("spawn", lines, SCHEDULE="3-5", **settings)
    assert found == {index: [3, 4, 5] for index in range(3)} and errors == ""
