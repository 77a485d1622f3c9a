# SPDX-License-Identifier: Apache-2.0
"""Builds the programs of test/cases/src, in the variants that a test asks for, and runs them."""

import fcntl
import hashlib
import os
import pathlib
import subprocess
import tempfile

import conftest  # test/conftest.py: pytest puts its folder on the path
import pytest

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE / "src"
SIM = conftest.BUILD / "sim"
SIM_INCLUDE = HERE.parent / "sim" / "include"
SIM_NCCL = HERE.parent / "sim" / "nccl"
OUT = conftest.BUILD / "cases"

# "aarch64-linux-gnu": everything is built for that machine and run by qemu-user (`make
# check-aarch64`).
CROSS = os.environ.get("GPUPROF_TEST_CROSS", "")

# Why a test that stops a program from outside is not run.
NO_TRACING = "not run: the kernel forbids ptrace here (seccomp, or kernel.yama.ptrace_scope)"

WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-unused-result")
DRIVER = (str(SIM / "libcuda.so.1"),)


def runtime(major):
    """Flags that compile and link against the simulated runtime of that major version."""
    return (f"-DSIM_CUDART_MAJOR={major}", str(SIM / f"libcudart.so.{major}"),
            "-Wl,--allow-shlib-undefined")


STATIC = ("-DSIM_CUDART_MAJOR=13", str(SIM / "libcudart_static.a"))


def build(source, *flags, compiler="gcc"):
    """The program or (with -shared) library made from src/`source`; made once per set of flags."""
    if CROSS:
        compiler = f"{CROSS}-{compiler}"
    conftest.need(compiler)
    source = SOURCES / source
    inputs = [source, *sorted(SIM_INCLUDE.glob("*.h")), *sorted(SOURCES.glob("*.h")),
              *sorted(SIM_NCCL.glob("*.h")), *sorted(SIM_INCLUDE.parent.glob("sim_cupti_[af]*"))]
    inputs += [pathlib.Path(f) for f in flags if f.startswith("/")]
    for path in inputs:
        if not path.exists():
            pytest.fail(f"{path} is not there; run make first", pytrace=False)
    key = hashlib.sha256(repr([compiler, flags, [(str(p), p.stat().st_mtime_ns)
                                                 for p in inputs]]).encode()).hexdigest()[:12]
    OUT.mkdir(parents=True, exist_ok=True)
    target = OUT / f"{source.stem}-{key}{'.so' if '-shared' in flags else ''}"
    with open(OUT / f".{target.name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            part = target.with_name(target.name + ".part")
            options = ["-O1"] if not any(f.startswith("-O") for f in flags) else []
            command = [compiler, "-g", *options, *WARNINGS, "-D_GNU_SOURCE", f"-I{SIM_INCLUDE}",
                       str(source), *flags, "-o", str(part), "-pthread", "-ldl"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
            part.rename(target)
    return target


def need_unwinder():
    """A cross build has libunwind only where the other machine's is installed; any other has it."""
    path = conftest.BUILD / "libgpuprof-unwind.so"
    if CROSS and not path.exists():
        pytest.skip(f"not run: no libunwind of {CROSS}'s (apt-get install libunwind8:arm64)")
    assert path.exists(), f"{path} is not there; run make first (libunwind-dev, patchelf)"
    return path


def environment(folder, library=None, **settings):
    """For a program on the simulated CUDA; under gpuprof, recording into `folder`, if `library`."""
    values = {k: v for k, v in os.environ.items()
              if not k.startswith(("GPUPROF_", "SIMCUDA_")) or k == "GPUPROF_LIVE"}
    values["LD_LIBRARY_PATH"] = str(SIM)
    if library:
        values["LD_PRELOAD"] = str(library)
        values["GPUPROF_OUT"] = str(folder)
        values["GPUPROF_GPU"] = "off"  # gpu_run.py turns it on
    values.update({k: str(v) for k, v in settings.items()})
    return values


def emulated(command, env):
    """The command under qemu-user: what the guest's loader is to see must not reach the host's."""
    guest = [item for name in ("LD_PRELOAD", "LD_LIBRARY_PATH") if name in env
             for item in ("-E", f"{name}={env.pop(name)}")]
    return [f"qemu-{CROSS.partition('-')[0]}", "-L", f"/usr/{CROSS}", *guest, *command]


def run(command, env, status=0, **options):
    if CROSS:
        env = dict(env)
        command = emulated(command, env)
    options.setdefault("timeout", 180)  # on a machine with much else to do
    options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run([str(c) for c in command], env=env, capture_output=True, check=False,
                          **options)
    done.stdout, done.stderr = (b.decode("utf-8", "replace") for b in (done.stdout, done.stderr))
    if status is not None:
        assert done.returncode == status, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def peak_kib(*command):
    """How much memory a command that ends well had at most."""
    if CROSS:
        pytest.skip("an emulator's memory is not ours")
    with tempfile.NamedTemporaryFile("r", encoding="ascii") as file:
        done = subprocess.run([build("peak.c"), file.name, *map(str, command)], check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=900)
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
        return int(file.read().split()[0])


def pytorch():
    """The simulated libtorch_cpu.so."""
    return build(SIM_INCLUDE.parent / "sim_torch.cpp", "-shared", "-fPIC", "-std=c++20",
                 "-fvisibility=hidden", "-Wl,-soname,libtorch_cpu.so",
                 f"-I{SIM_INCLUDE.parent}", compiler="g++")


def linked(link, target):
    """The link, as a text, which another test may make at the same time."""
    if not link.exists():
        try:
            link.symlink_to(target)
        except FileExistsError:
            pass
    return str(link)


def tensor_work(*flags):
    """The program of tensor_work.c, or with -DPLUGIN the library, and LD_LIBRARY_PATH for it."""
    folder, link = tiny()
    old = [flag for flag in flags if flag == "-DSIGNED_TOTALS"]
    c10 = build("c10.c", "-shared", "-fPIC", "-Wl,-soname,libc10.so", *old)
    libraries = OUT / f"c10-{c10.stem}"
    libraries.mkdir(exist_ok=True)
    name = linked(libraries / "libc10.so", c10)
    return (build("tensor_work.c", *runtime(12)[:1], *flags, *link, name),
            f"{folder}:{libraries}")


def torch_ops():
    """The program of torch_ops.c, and LD_LIBRARY_PATH for it."""
    folder, link = tiny()
    torch = pytorch()
    libraries = OUT / f"torch-{torch.stem}"
    libraries.mkdir(exist_ok=True)
    name = linked(libraries / "libtorch_cpu.so", torch)
    program = build("torch_ops.c", *link, f"-I{SIM_INCLUDE.parent}", name)
    return program, f"{folder}:{libraries}"


def remove_live(processes):
    for process in processes:
        if process.header.live_path:
            pathlib.Path(process.header.live_path).unlink(missing_ok=True)


def tiny():
    """The folder with the libcudart.so.12 of tiny_cudart.c, and flags to build with it."""
    library = build("tiny_cudart.c", "-shared", "-fPIC", "-fexceptions",
                    "-Wl,-soname,libcudart.so.12")
    folder = OUT / f"tiny-{library.stem}"
    folder.mkdir(exist_ok=True)
    link = linked(folder / "libcudart.so.12", library)
    return folder, (link,)
