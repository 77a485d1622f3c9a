# SPDX-License-Identifier: Apache-2.0
"""What every test needs: where the built parts are, and an environment that is not the tester's."""

import gc
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")  # as in the Makefile
RANK_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
                  "PMI_RANK")

# The records of a stream are many objects without cycles: looking through them takes a third of the
# time of reading them.
gc.set_threshold(1_000_000)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("GPUPROF_", "LD_", "CUDA_INJECTION")) or name in RANK_VARIABLES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(BUILD / "sim"))


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
        options.setdefault("timeout", 60)
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
def run_verb(run_collector):
    def run(*arguments, status=0, **options):
        result = run_collector(*arguments, **options)
        assert result.returncode == status, result.stderr
        return result
    return run
