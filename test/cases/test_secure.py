# SPDX-License-Identifier: Apache-2.0
"""In a program that runs with more rights than its caller's the library does nothing, even where
the loader lets it in: by a name without a slash, from a folder of the system, with the setuid bit.
A folder of the tests stands for the system (chroot), so nothing of the machine is touched."""

import os
import re
import shutil
import stat
import struct
import subprocess

import pytest
import toolchain

NOBODY = 65534
CAP_NET_RAW = 13
CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << CAP_NET_RAW, 0, 0, 0)  # effective; v2


def put(root, path, target=None):
    """Copies a file to where it lies on the machine, or to `target`, in the folder that is its."""
    there = root / str(target or path).lstrip("/")
    there.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, there)
    there.chmod(0o755)
    return there


@pytest.fixture(name="root")
def fixture_root(tmp_path, library):
    """A system with the program, the library, and what the two need."""
    folder, flags = toolchain.tiny()
    program = toolchain.build("secure.c", *flags)
    root = tmp_path / "root"
    listed = subprocess.run(["ldd", program], check=True, stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "LD_LIBRARY_PATH": str(folder)}).stdout
    system = None
    for path in re.findall(r"(/\S+)", listed):
        if "libcudart" not in path:
            put(root, path)
        if path.endswith("libc.so.6"):
            system = path.rpartition("/")[0]
    put(root, folder / "libcudart.so.12", f"{system}/libcudart.so.12")
    put(root, library, f"{system}/libgpuprof.so").chmod(0o4755)
    put(root, program, "/program")
    (root / "out").mkdir()
    (root / "out").chmod(0o777)
    for path in [tmp_path, *tmp_path.parents]:
        if path.stat().st_uid == os.getuid() and str(path) not in ("/", "/tmp"):
            path.chmod(path.stat().st_mode | stat.S_IXOTH)
    return root


def run(root):
    def enter():
        os.chroot(root)
        os.chdir("/")
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    env = {"LD_PRELOAD": "libgpuprof.so", "GPUPROF_OUT": "/out/data", "GPUPROF_GPU": "on"}
    return subprocess.run(["/program"], env=env, preexec_fn=enter, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=60)


pytestmark = [
    pytest.mark.skipif(os.getuid() != 0, reason="not run: only root may change its root folder"),
    pytest.mark.skipif(bool(toolchain.CROSS), reason="not run: no setuid in qemu-user"),
]


def test_without_such_rights_it_records(root):
    """The folder is complete: what follows says something."""
    done = run(root)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch("secure=0 library=1 call=0 looked-up=1 nvtx=set injection=set\n",
                        done.stdout)
    assert list((root / "out" / "data").glob("*.gpuprof"))


@pytest.mark.parametrize("how", ["setuid", "capability"])
def test_with_more_rights_it_does_nothing(root, how):
    program = root / "program"
    if how == "setuid":
        program.chmod(0o4755)
    else:
        try:
            os.setxattr(program, "security.capability", CAPABILITY)
        except OSError as error:
            pytest.skip(f"not run: no capabilities on files here: {error}")
    done = run(root)
    assert done.returncode == 0, done.stderr
    if done.stdout.startswith("secure=0 "):
        pytest.skip("not run: the file system of the tests gives no such rights (nosuid)")
    assert done.stdout == \
        "secure=1 library=1 call=0 looked-up=1 nvtx=unset injection=unset\n"
    assert done.stderr == ""
    assert not list((root / "out").iterdir())
    assert not [path for path in root.rglob("gpuprof*") if path.name.endswith(".live")]
