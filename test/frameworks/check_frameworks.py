# SPDX-License-Identifier: Apache-2.0
"""Real frameworks under gpuprof on the simulated CUDA: `make check-frameworks`; see README.md.

Each NAME_work.py runs bare and under gpuprof with the same output; the recording is held against
the simulated CUDA's log, call by call.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "test" / "cases")]

import stream_reader  # pylint: disable=wrong-import-position
import truth  # pylint: disable=wrong-import-position

BUILD = ROOT / os.environ.get("BUILD", "build")
SECONDS_MAX = 600
pytestmark = pytest.mark.timeout(0)  # each program has that bound
STATIC_KERNELS = "standin_cublas_"  # launched by the static runtime of the stand-in for cuBLAS
LAUNCHES_MIN = 20                   # each program's loop

# Arguments that the log does not have.
UNLOGGED = re.compile(r"cuMem(Create|Map|AddressReserve) (device|flags)|cuLaunchHostFunc ptr|"
                      r"cuMemcpyPeer\w* (kind|(src|dst)_handle)")

SETTINGS = {
    "JAX_PLATFORMS": "cuda",
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",      # the stand-ins' versions are those of one day
    "XLA_FLAGS": "--xla_gpu_autotune_level=0",   # its answer would be read from the GPU's memory
    "TF_CPP_MIN_LOG_LEVEL": "3",                 # lines with times and addresses
    "PYTHONWARNINGS": "ignore",
}


def environment(top, folder, **settings):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("GPUPROF_", "LD_", "SIMCUDA_", "SIMCUPTI_"))}
    compilers = [str(path.parent) for pattern in ("libnvrtc.so.*", "libnvvm.so")
                 for path in top.glob(f"venv/lib/*/site-packages/nvidia/**/{pattern}")]
    env["LD_LIBRARY_PATH"] = ":".join([str(top / "lib"), *compilers])
    for cache in ("CUPY_CACHE_DIR", "TRITON_CACHE_DIR", "NUMBA_CACHE_DIR"):
        env[cache] = str(folder / cache)
    env.update(SETTINGS)
    env.update({k: str(v) for k, v in settings.items()})
    return env


def run(command, env):
    done = subprocess.run([str(part) for part in command], env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr[-4000:]}"
    return done.stdout


def _relabel(line):
    """Calls of a static runtime beside a shared one: the driver's calls inside are the events."""
    if line.layer == "R" and str(line.args.get("kernel", "")).startswith(STATIC_KERNELS):
        line.layer = "S"


@pytest.mark.parametrize("name", os.environ.get("FRAMEWORKS", "").split())
def test_framework(name, tmp_path):
    top = (BUILD / "frameworks" / name).resolve()
    [cupti] = (top / "lib").glob("libcupti.so.*")
    command = [top / "venv" / "bin" / "python", HERE / f"{name}_work.py"]
    bare = run(command, environment(top, tmp_path))
    log = tmp_path / "log"
    log.mkdir()
    env = environment(top, tmp_path, SIMCUDA_LOG=log, GPUPROF_CUPTI=cupti)
    recorded = run([BUILD / "gpuprof-collector", "run", "-o", tmp_path / "out", *command], env)
    assert recorded == bare
    processes = stream_reader.read_folder(tmp_path / "out")
    logs = {int(path.name.partition(".")[0]): path for path in log.iterdir()}
    [process] = processes
    count, left = truth.compare(process, logs[process.header.pid], hidden="S", relabel=_relabel)
    assert count == len(process.calls())
    assert not [label for label in left if not UNLOGGED.fullmatch(label)]
    assert not process.losses
    assert process.meta["gpu_rows"].startswith("from CUPTI ")
    launches = [c for c in process.calls() if c.cls == "launch" and "kernel" in c.args]
    assert len(launches) >= LAUNCHES_MIN
    kernels = sum(r.type == stream_reader.TYPE_NUMBERS["kernel"] for r in process.records)
    assert kernels >= sum(not c.flags & stream_reader.CAPTURED for c in launches)
