# SPDX-License-Identifier: Apache-2.0
"""The real libcupti and CUPTI headers that `make fetch-cupti` unpacked, and the probe."""

import collections
import ctypes
import os
import pathlib
import re
import subprocess

import pytest

import conftest  # test/conftest.py: pytest puts its folder on the path

HERE = pathlib.Path(__file__).resolve().parent
TESTS = conftest.BUILD / "cupti-tests"
PROBE = TESTS / "cupti_probe"

# Version: cuptiGetVersion, of those that answer without a driver.
ANSWERING = {"11.8": 18, "12.4": 22, "12.9": 28, "13.0": 130001, "13.1": 130101}
SILENT = ("13.5",)
VERSIONS = (*ANSWERING, *SILENT)


def folder(version):
    """build/cupti/<version>; skips the test if it is not there."""
    for build in (conftest.BUILD, conftest.ROOT / "build"):
        path = build / "cupti" / version
        if path.is_dir():
            return path
    return pytest.skip(f"not run: no CUPTI {version}; make fetch-cupti")


def library(version):
    """Path of that version's libcupti; skips on a machine that cannot load it."""
    path = next((folder(version) / "lib").glob("libcupti.so.*"))
    if os.uname().machine != "x86_64":
        pytest.skip("not run: the wheels' libraries are for x86_64")
    return path


def have_driver():
    try:
        return ctypes.CDLL("libcuda.so.1") is not None
    except OSError:
        return False


class Probe:
    """What a run of cupti_probe.c printed: one value for each key, but lists of most words."""

    def __init__(self, text, status):
        self.text = text
        self.status = status
        self.values = collections.defaultdict(list)
        for line in text.splitlines():
            key, _, value = line.partition(" ")
            self.values[key].append(value)

    def one(self, key):
        assert len(self.values[key]) == 1, f"{key}:\n{self.text}"
        return self.values[key][0]

    @property
    def sizes(self):
        return {int(k): int(b) for k, b in (v.split() for v in self.values["size"])}

    @property
    def functions(self):
        return {n: there == "1" for n, there in (v.split() for v in self.values["function"])}

    @property
    def callbacks(self):
        """(domain, id) -> (CUPTI's name, our symbol or "-")."""
        rows = (v.split() for v in self.values["callback"])
        return {(domain, int(cbid)): (name, symbol) for domain, cbid, name, symbol in rows}


def probe(*arguments, folders="/nonexistent", **variables):
    """Runs the probe; the loader looks into `folders` before its own."""
    if not PROBE.exists():
        pytest.fail(f"{PROBE} is not there; run make unit-programs", pytrace=False)
    env = {k: v for k, v in os.environ.items() if not k.startswith("TINY_")}
    env.update(variables, LD_LIBRARY_PATH=str(folders))
    done = subprocess.run([PROBE, *map(str, arguments)], env=env, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode in (0, 3), f"status {done.returncode}\n{done.stdout}"
    seen = Probe(done.stdout, done.returncode)
    assert seen.one("errno") == "1" and seen.one("dlerror") == "none"
    return seen


def enumerators(version, domain):
    """name -> id, from the real header."""
    text = (folder(version) / "include" / f"cupti_{domain}_cbid.h").read_text()
    rows = re.findall(r"_TRACE_CBID_(\w+)\s+= (\d+)", text)
    return {name: int(cbid) for name, cbid in rows if name not in ("INVALID", "SIZE", "FORCE_INT")}
