# SPDX-License-Identifier: Apache-2.0
"""What every test needs: where the built parts are, and an environment that is not the tester's."""

import contextlib
import ctypes
import gc
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")  # as in the Makefile
RANK_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                  "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_PROCID",
                  "SLURM_LOCALID", "SLURM_JOB_ID", "SLURM_STEP_ID", "OMPI_COMM_WORLD_RANK",
                  "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_NAMESPACE", "MPI_LOCALRANKID", "PMI_RANK",
                  "PMI_LOCAL_RANK", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK",
                  "HOROVOD_RANK", "HOROVOD_LOCAL_RANK", "JOB_COMPLETION_INDEX",
                  "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE",
                  "SLURM_STEP_NUM_TASKS")

# The records of a stream are many objects without cycles: looking through them takes a third of the
# time of reading them.
gc.set_threshold(1_000_000)


PR_SET_CHILD_SUBREAPER = 36
LEFT_SECONDS_MAX = 20  # in which what a test has started may still end of itself
KILL_SECONDS_MAX = 10

begun = set()  # tests whose end has not been told


@pytest.fixture(scope="session")
def live_folder():
    """Where the tests of this process have their live files, unless they say where."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(prefix="gpuprof-test-", ignore_cleanup_errors=True,
                                     dir=memory if os.access(memory, os.W_OK) else None) as name:
        os.chmod(name, 0o1777)  # some programs run as another user
        yield pathlib.Path(name)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, live_folder):
    for name in list(os.environ):
        if name.startswith(("GPUPROF_", "LD_", "CUDA_INJECTION")) or name in RANK_VARIABLES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(BUILD / "sim"))
    monkeypatch.setenv("GPUPROF_LIVE", str(live_folder))
    yield
    for path in live_folder.iterdir():  # of programs that were killed, and read no more
        path.unlink()


def pytest_sessionstart():
    """What a program leaves behind becomes a child of this process, whatever group it is in."""
    assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def pytest_unconfigure():
    end_children(0)  # of a run that was interrupted: also what its killed workers had started


@pytest.fixture(autouse=True)
def nothing_left_running(request, clean_environment):
    """What a test has started ends with it, lest it disturb those after it. After a failure it is
    killed at once; a test that has passed and leaves something running has failed."""
    failed_before = request.session.testsfailed
    yield
    failed = request.session.testsfailed > failed_before
    left = end_children(0 if failed else LEFT_SECONDS_MAX)
    assert failed or not left, f"left running: {left}"


def children(pid):
    """Numbers of the processes that have this one as their parent."""
    numbers = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            numbers += map(int, path.read_text(encoding="ascii").split())
    return numbers


def end_children(seconds):
    """Waits for every child and those that become one; kills what has not ended in so many seconds,
    and returns the commands of that."""
    left, end = {}, time.monotonic() + seconds
    while time.monotonic() < end + KILL_SECONDS_MAX:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:  # there is none
            break
        for pid in children(os.getpid()) if time.monotonic() >= end else ():
            folder = pathlib.Path(f"/proc/{pid}")
            command = (folder / "cmdline").read_bytes().decode("utf-8", "replace")
            name, _, state = (folder / "stat").read_text(errors="replace").rpartition(") ")
            if not state.startswith("Z"):  # in the middle of exec it has no command
                left.setdefault(pid, command.replace("\0", " ") or name.partition("(")[2])
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
    return sorted(left.values())


class Program(subprocess.Popen):
    """One that a `with` waits for within a bound, and not at all once its body has failed: then
    nobody may be left to end it."""

    def wait(self, timeout=60):
        return super().wait(timeout)

    def __exit__(self, kind, value, trace):
        if kind:
            self.kill()
        super().__exit__(kind, value, trace)


def pytest_runtest_logstart(nodeid):
    begun.add(nodeid)


def pytest_runtest_logfinish(nodeid):
    begun.discard(nodeid)


def pytest_terminal_summary(terminalreporter):
    for nodeid in sorted(begun):
        terminalreporter.write_line(f"NOT ENDED {nodeid}")


def source(part, name):
    """The file of that name in a part of the tree, in whatever folder of it."""
    found, = (ROOT / part).rglob(name)
    return found


def built(path):
    if not path.exists():
        pytest.fail(f"{path} is not there; run make first", pytrace=False)
    return path


def need(command):
    """A program of the distribution's, which a test runs."""
    if not shutil.which(command):
        pytest.fail(f"{command} is not there; ./scripts/check installs it", pytrace=False)


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def build():
    return BUILD


@pytest.fixture(scope="session")
def collector():
    return built(BUILD / "gpuprof-collector")


@pytest.fixture(scope="session")
def library():
    return built(BUILD / "libgpuprof.so")


@pytest.fixture(scope="session")
def program():
    """program("name"): the built test/programs/name.c."""
    return lambda name: built(BUILD / "programs" / name)


@pytest.fixture
def run_collector(collector, tmp_path):
    """Runs a verb of the collector in tmp_path; output as text."""
    def run(*arguments, **options):
        options.setdefault("cwd", tmp_path)
        options.setdefault("timeout", 180)  # on a machine with much else to do
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([collector, *arguments], capture_output=True, text=True,
                              check=False, **options)
    return run


@pytest.fixture
def make_gpu(tmp_path):
    def make(*arguments, name="data"):
        folder = tmp_path / name
        folder.mkdir()
        subprocess.run([built(BUILD / "make_gpu"), folder, *map(str, arguments)], check=True,
                       timeout=300)
        return folder
    return make


@pytest.fixture
def make_ops(tmp_path):
    """make_ops(PROCESSES, EVENTS, SEED): a folder of recordings with operators."""
    def make(*arguments, name="data"):
        folder = tmp_path / name
        folder.mkdir()
        subprocess.run([built(BUILD / "make_ops"), folder, *map(str, arguments)], check=True,
                       timeout=60)
        return folder
    return make


@pytest.fixture
def make_records(tmp_path):
    """make_records(LINES): a folder with the recordings that the lines of a script describe."""
    def make(lines, name="data"):
        folder = tmp_path / name
        folder.mkdir()
        subprocess.run([built(BUILD / "make_records"), folder], check=True, timeout=60,
                       input="\n".join(lines).encode())
        return folder
    return make


@pytest.fixture
def make_stacks(tmp_path):
    """make_stacks(LINES): a folder with the recording that the lines of a script describe."""
    def make(*lines, name="data"):
        folder = tmp_path / name
        folder.mkdir()
        script = "\n".join(lines) + "\n"
        subprocess.run([built(BUILD / "make_stacks"), folder], check=True, timeout=60,
                       input=script.encode("utf-8", "surrogateescape"))
        return folder
    return make


@pytest.fixture
def make_ranges(tmp_path):
    """make_ranges(LINES): a folder with the recording that the lines of a script describe."""
    def make(lines, name="data"):
        folder = tmp_path / name
        folder.mkdir()
        script = "\n".join(lines) + "\n"
        subprocess.run([built(BUILD / "make_ranges"), folder], check=True, timeout=60,
                       input=script.encode("utf-8", "surrogateescape"))
        return folder
    return make


@pytest.fixture
def run_verb(run_collector):
    def run(*arguments, status=0, **options):
        result = run_collector(*arguments, **options)
        assert result.returncode == status, result.stderr
        return result
    return run
