# SPDX-License-Identifier: Apache-2.0
"""Runs src/cupti_client.c on the simulated CUPTI, or on a real one, and reads what it prints."""

import collections
import pathlib
import re

import conftest
import pytest
import toolchain

SIM_SOURCES = toolchain.HERE.parent / "sim"
PROGRAMS = toolchain.HERE.parent / "programs"

# The library of each version, and the runtime that goes with it.
VERSIONS = {"11.8": ("libcupti.so.11.8", 12), "12.4": ("libcupti.so.12", 12),
            "13.0": ("libcupti.so.13", 13)}
ORDER = list(VERSIONS)
# One that serves several subscribers.
VERSIONS["13.5"] = ("13.5/libcupti.so.13", 13)
REAL = conftest.BUILD / "cupti"

KERNEL, MEMCPY, MEMSET, MEMCPY2, SYNC, EVENT, GRAPH = 10, 1, 2, 22, 38, 36, 51
OVERHEAD, MEMORY2, POOL, DEVICE, CONTEXT, STREAM, RUNTIME, DRIVER = 17, 49, 50, 8, 9, 37, 5, 4
ALL = "10,1,2,22,38,17,49,50,8,9,37,5,4"


def flags(major, static=False):
    """Flags that find the headers of the tests and link a runtime."""
    includes = [f"-I{folder}" for folder in
                (SIM_SOURCES, PROGRAMS, toolchain.SOURCES, conftest.ROOT / "inject")]
    return (*includes, *(toolchain.STATIC if static else toolchain.runtime(major)),
            *toolchain.DRIVER)


def build(major=13, *more, static=False, source="cupti_client.c"):
    return toolchain.build(source, *flags(major, static), *more)


def _values(parts):
    found = {}
    for part in parts:
        key, _, value = part.partition("=")
        found[key] = int(value) if re.fullmatch(r"-?[0-9]+", value) else value
    return found


class Output:
    """What one run printed."""

    def __init__(self, done):
        self.done, self.text = done, done.stdout
        self.results, self.records, self.callbacks = {}, [], []
        self.buffers, self.requests, self.lines = [], [], collections.defaultdict(list)
        for line in done.stdout.splitlines():
            word, _, rest = line.partition(" ")
            parts = rest.split("\t")
            if word == "result":
                step, code = rest.split(" ")
                self.results.setdefault(step, int(code))
            elif word == "record":
                self.records.append((int(parts[0]), _values(parts[1:])))
            elif word == "callback":
                site, domain, cbid = map(int, parts[0].split(" "))
                self.callbacks.append((site, domain, cbid, _values(parts[1:])))
            elif word == "buffer":
                self.buffers.append(tuple(map(int, rest.split(" "))))
            elif word == "request":
                self.requests.append(int(rest))
            else:
                self.lines[word].append(rest)

    def of(self, kind):
        return [values for this, values in self.records if this == kind]


def run(version, *steps, status=0, kinds=ALL, static=False, library=None, wrap=(), **settings):
    """`library`: a real one, instead of the simulated one of that version."""
    name, major = VERSIONS[version]
    env = toolchain.environment(None, CUPTI_KINDS=kinds, CUPTI_LIB=library or toolchain.SIM / name,
                                **settings)
    command = [*wrap, build(major, static=static), *steps]
    return Output(toolchain.run(command, env, status=status))


def bare(library):
    """What src/cupti_bare.c prints with that library, by first word; there is no driver."""
    program = toolchain.build("cupti_bare.c", f"-I{SIM_SOURCES}")
    env = toolchain.environment(None, CUPTI_LIB=library)
    del env["LD_LIBRARY_PATH"]
    lines = collections.defaultdict(list)
    for line in toolchain.run([program], env).stdout.splitlines():
        word, _, rest = line.partition(" ")
        lines[word].append(rest)
    return lines


def other_client(version):
    """The other client as a program: `kineto` or `holder` is its argument."""
    library, major = VERSIONS[version]
    return build(major, "-DOTHER_CLIENT_PROGRAM", str(toolchain.SIM / library),
                 source="cupti_other_client.c")


def other_client_library(version):
    """The other client as a library to preload; OTHER_CLIENT says what it does at once."""
    library, major = VERSIONS[version]
    return build(major, "-shared", "-fPIC", str(toolchain.SIM / library),
                 source="cupti_other_client.c")


def read_log(folder):
    """Lines of all processes of the truth log: (layer, what, start, end, result, values, seq)."""
    lines = []
    for path in pathlib.Path(folder).iterdir():
        for text in path.read_bytes().translate(None, b"\0").decode().splitlines():
            _, seq, layer, _, what, start, end, result, _, *args = text.split("\t")
            lines.append((layer, what, int(start), int(end),
                          None if result.startswith("-") else int(result), _values(args),
                          int(seq)))
    return lines


def real_library(version):
    """The real library of that version, or skips the test."""
    for folder in sorted(REAL.glob(version + "*")):
        for path in sorted((folder / "lib").glob("libcupti.so.*")):
            return path
    pytest.skip(f"not run: no CUPTI {version} in {REAL} (make fetch-cupti)")


def real_headers(version):
    """The folders with cupti.h and cuda.h of that version, or skips the test."""
    cuda = conftest.BUILD / "cuda" / version / "include"
    for folder in (*sorted(REAL.glob(version + "*/include")), cuda):
        if (folder / "cupti.h").exists() and (cuda / "cuda.h").exists():
            return folder, cuda
    pytest.skip(f"not run: no headers of CUPTI {version} in {REAL} and {cuda.parents[1]} "
                "(make fetch-cupti fetch-cuda)")
