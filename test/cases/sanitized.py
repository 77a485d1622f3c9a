# SPDX-License-Identifier: Apache-2.0
"""Our own parts built with sanitizers: once, for all tests that want something of them."""

import fcntl
import os
import subprocess

from conftest import BUILD, ROOT

ADDRESS, THREAD = "address,undefined", "thread"

# Thousands of wrappers, each for a function of CUDA's: they take as long to build as all the rest,
# and what meets CUDA cannot be in a program with a sanitizer of its own.
LEFT_OUT = ("hooks.c", "library_hooks.c")


def make(kind, *targets):
    """Files in the folder that is returned, with that sanitizer and with assertions. Not optimised:
    that takes half the time to build, none to run, and nothing is optimised away."""
    folder = BUILD / kind.replace(",", "-")
    folder.mkdir(parents=True, exist_ok=True)
    inject = " ".join(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("inject/*/*.[cS]"))
                      if path.name not in LEFT_OUT)
    with open(folder / ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", f"SANITIZE={kind}",
                               f"BUILD={folder}", "CFLAGS=-O0 -g1 -fno-sanitize-recover=all",
                               f"INJECT_SRC={inject}",
                               *((folder / target).relative_to(ROOT) for target in targets)],
                              cwd=ROOT, check=False, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return folder
