# SPDX-License-Identifier: Apache-2.0
"""Finds the real CUDA headers and libraries that the tests of the table compare with."""

import functools
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NONE_FOUND = "not run: no CUDA toolkit; make fetch-cuda"

# Between them these have every function of the table; scripts/fetch-cuda gets them all.
COMPLETE = {"11.8", "12.9", "13.5"}

# Ways of including the headers. "internal" also declares the 32-bit functions and every per-thread
# form at once, "per_thread" is what nvcc --default-stream per-thread sees.
CONFIGURATIONS = {
    "default": [],
    "per_thread": ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"],
    "internal": ["-D__CUDA_API_VERSION_INTERNAL"],
}
PROFILER_HEADERS = ("cuda_profiler_api.h", "cudaProfiler.h", "cudaProfilerTypedefs.h")
HEADERS = "#include <cuda.h>\n#include <cuda_runtime_api.h>\n#include <cudaTypedefs.h>\n" + "".join(
    f"#if __has_include(<{header}>)\n#include <{header}>\n#endif\n"
    for header in PROFILER_HEADERS)  # which are not beside the others everywhere

# What compilers call without any C header: declared for C++, in nvcc's own headers.
COMPILER_HEADERS = ("device_functions.h", "host_runtime.h")
COMPILER_FUNCTION = re.compile(
    r'extern\s+(?:"C"\s+)?(\w+)\s+CUDARTAPI\s+(__cuda\w+)\s*\(([^;{}]*?)\)\s*;')


def run(*command, text=None):
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    assert not result.returncode, f"{' '.join(command)}:\n{result.stderr}"
    return result.stdout


def exported(library):
    """Names of the functions that a shared library defines, without version suffixes."""
    lines = run("nm", "-D", "--defined-only", str(library)).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.split()[-2] in "TtWwi"}


class Toolkit:
    """One version's headers and, where it has them, libcudart and the stub of libcuda."""

    def __init__(self, root):
        self.include = root / "include"
        text = (self.include / "cuda.h").read_text(errors="replace")
        self.number = int(re.search(r"#define CUDA_VERSION (\d+)", text).group(1))
        self.major = self.number // 1000
        self.name = f"{self.major}.{self.number % 1000 // 10}"
        folders = [root / "lib", root / "lib64"]
        self.runtime = self.first(folders, f"libcudart.so.{self.major}*")
        self.driver = self.first(folders, "stubs/libcuda.so")

    @staticmethod
    def first(folders, pattern):
        return next((path for f in folders for path in sorted(f.glob(pattern))), None)

    @functools.cached_property
    def runtime_symbols(self):
        return exported(self.runtime) if self.runtime else set()

    @functools.cached_property
    def driver_symbols(self):
        return exported(self.driver) if self.driver else set()

    @functools.lru_cache(maxsize=None)
    def declarations(self, configuration):
        """The preprocessed headers as one line, without comments."""
        out = run("gcc", "-E", "-P", "-I", str(self.include), *CONFIGURATIONS[configuration],
                  "-x", "c", "-", text=HEADERS)
        return " ".join(out.split())

    @functools.cached_property
    def words(self):
        """Every identifier of the headers, macros included."""
        out = run("gcc", "-E", "-dD", "-I", str(self.include), *CONFIGURATIONS["internal"],
                  "-x", "c", "-", text=HEADERS)
        return set(re.findall(r"\w+", out))

    @functools.cached_property
    def compiler_functions(self):
        """name -> C declaration of the functions that nvcc's output calls."""
        found = {}
        for header in COMPILER_HEADERS:
            path = self.include / "crt" / header
            if path.exists():
                for match in COMPILER_FUNCTION.finditer(path.read_text(errors="replace")):
                    returns, name, params = match.groups()
                    found[name] = f"{returns} {name}({' '.join(params.split())});"
        return found

    def declared(self, configuration, symbols):
        """Those of `symbols` that the headers declare or define as functions."""
        names = set(re.findall(r"\b(\w+) ?\(", self.declarations(configuration)))
        return {s for s in symbols if s in names or s in self.compiler_functions}


def candidates():
    for build in {pathlib.Path(os.environ.get("BUILD", ROOT / "build")), ROOT / "build"}:
        yield from sorted((build / "cuda").glob("*"))
    if "CUDA_HOME" in os.environ:
        yield pathlib.Path(os.environ["CUDA_HOME"])
    nvcc = shutil.which("nvcc")
    if nvcc:
        yield pathlib.Path(nvcc).resolve().parents[1]


@functools.lru_cache(maxsize=None)
def toolkits():
    """All versions found, oldest first. A full toolkit wins over fetched headers of its version."""
    found = {}
    for root in candidates():
        if (root / "include" / "cuda.h").exists():
            toolkit = Toolkit(root)
            old = found.get(toolkit.name)
            if old is None or (toolkit.driver and not old.driver):
                found[toolkit.name] = toolkit
    return sorted(found.values(), key=lambda t: t.number)


def require_any():
    """The versions found; skips the test if there are none."""
    if not toolkits():
        pytest.skip(NONE_FOUND)
    return toolkits()


def require_complete():
    """The versions found; skips the test unless they have every function of the table."""
    missing = COMPLETE - {t.name for t in require_any()}
    if missing:
        pytest.skip(f"not run: no CUDA {', '.join(sorted(missing))}; make fetch-cuda")
    return toolkits()
