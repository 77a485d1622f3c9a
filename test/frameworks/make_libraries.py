# SPDX-License-Identifier: Apache-2.0
"""Libraries that stand for NVIDIA's for a framework that looks its functions up by name.

    make_libraries.py FOLDER SIM CC SONAME...

FOLDER is what scripts/fetch-framework made. Into FOLDER/lib come the simulated driver, runtime,
CUPTI and NVML, and for every other SONAME a stand-in (test/torch/make_standins.py) that exports
each name of its library that a shared object below FOLDER mentions.
"""

import collections
import mmap
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "torch"))

import make_standins  # pylint: disable=wrong-import-position

SIMULATED = ("libcudart", "libcupti", "libcuda", "libnvidia-ml")
ELF = b"\x7fELF"
NAME = re.compile(rb"(?<![A-Za-z0-9_])(?:cu(?:blas|blasLt|dnn|fft|rand|solver|sparse|sparseLt)|"
                  rb"nccl|nvrtc|nvJitLink|nvshmem)[A-Z][A-Za-z0-9_]{2,80}(?=\0)")


def mentioned(top):
    """Library -> the functions of its that a shared object mentions -> version node or ""."""
    found = collections.defaultdict(dict)
    for path in top.rglob("*.so*"):
        if path.is_symlink() or not path.is_file() or not path.stat().st_size or \
                "nvidia" in path.parts:
            continue
        with path.open("rb") as file, \
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            names = {name.decode() for name in NAME.findall(text)} if text[:4] == ELF else ()
        versions = make_standins.imports(path) if names else {}
        for name in names:
            owner = make_standins.owner(name)
            if owner:
                found[owner][name] = found[owner].get(name) or versions.get(name, "")
    return found


def main():
    top, sim = map(pathlib.Path, sys.argv[1:3])
    builder = make_standins.Builder(sim, top / "lib", top / "objects", sys.argv[3])
    functions = mentioned(top / "venv")
    for soname in sys.argv[4:]:
        stem = soname.partition(".so")[0]
        if stem in SIMULATED:
            shutil.copy(sim / soname, builder.target / soname)
        else:
            builder.build(soname, functions[stem])


if __name__ == "__main__":
    main()
