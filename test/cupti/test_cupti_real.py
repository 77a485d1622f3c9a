# SPDX-License-Identifier: Apache-2.0
"""What the real libcupti of each version does without a driver, as far as gpuprof builds on it."""

import re

import pytest

from cupti_versions import ANSWERING, HERE, SILENT, enumerators, have_driver, library, probe

OPTIONAL = {"cuptiSubscribe_v2": "13.0", "cuptiActivityEnableDriverApi": "12.9",
            "cuptiActivityEnableRuntimeApi": "12.9"}


def number(version):
    return tuple(map(int, version.split(".")))


@pytest.fixture(scope="module")
def seen():
    """seen(version): the probe's findings, once a version."""
    cache = {}

    def get(version):
        if version not in cache:
            cache[version] = probe(f"setting={library(version)}")
            assert cache[version].status == 0, cache[version].text
        return cache[version]
    return get


def size_table(version):
    """kind -> bytes, as once measured and committed."""
    lines = (HERE / "record-sizes.tsv").read_text().splitlines()
    column = lines[0].split("\t").index(version)
    rows = [line.split("\t") for line in lines[1:]]
    return {int(row[0]): int(row[column]) for row in rows if row[column] != "0"}


@pytest.mark.parametrize("version", ANSWERING)
def test_version_and_path(seen, version):
    assert int(seen(version).one("version")) == ANSWERING[version]
    assert seen(version).one("path") == str(library(version))


@pytest.mark.parametrize("version", ANSWERING)
def test_measured_sizes(seen, version):
    assert seen(version).sizes == size_table(version)


@pytest.mark.parametrize("version", ANSWERING)
def test_functions(seen, version):
    for name, there in seen(version).functions.items():
        since = OPTIONAL.get(name, "13.3" if name.endswith("_v2") else "11.8")
        assert there == (number(version) >= number(since)), name


@pytest.mark.parametrize("version", ANSWERING)
def test_walk(seen, version):
    """Three records, then the end; the kernel's name comes out of its field."""
    sizes = seen(version).sizes
    assert seen(version).values["record"] == [
        f"10 {sizes[10]} saxpy", f"1 {sizes[1]} -", f"10 {sizes[10]} saxpy"]
    assert seen(version).one("end") == "0 12"


@pytest.mark.parametrize("version", ANSWERING)
def test_callback_names_equal_the_header(seen, version):
    """What the map is made of at run time is what the enumerations say."""
    for domain in ("runtime", "driver"):
        names = {cbid: name for (d, cbid), (name, _) in seen(version).callbacks.items()
                 if d == domain}
        header = {cbid: name for name, cbid in enumerators(version, domain).items()}
        assert len(header) > 400
        assert {cbid: names.get(cbid) for cbid in header} == header


@pytest.mark.parametrize("version", ANSWERING)
def test_callbacks_are_mapped_to_their_own_symbol(seen, version):
    mapped = 0
    for (domain, _), (name, symbol) in seen(version).callbacks.items():
        if symbol != "-":
            expected = re.sub(r"_v\d+$", "", name) if domain == "runtime" else name
            assert symbol == expected
            mapped += 1
    assert seen(version).one("callbacks") == str(mapped)
    assert mapped > 340
    launches = {("runtime", 211): "cudaLaunchKernel", ("driver", 307): "cuLaunchKernel",
                ("driver", 514): "cuGraphLaunch", ("driver", 515): "cuGraphLaunch_ptsz"}
    assert {key: seen(version).callbacks[key][1] for key in launches} == launches


@pytest.mark.parametrize("version", ANSWERING)
@pytest.mark.skipif(have_driver(), reason="not run: there is a driver here")
def test_results_without_a_driver(version):
    """15 up to 12.9, 999 from 13.0 on; the clock needs no driver."""
    seen = probe(f"setting={library(version)}", "start")
    code = "999 CUPTI_ERROR_UNKNOWN" if number(version) >= (13,) else \
        "15 CUPTI_ERROR_NOT_INITIALIZED"
    assert seen.one("subscribe") == code
    assert seen.one("enable") == code.split()[0]


@pytest.mark.parametrize("version", SILENT)
@pytest.mark.skipif(have_driver(), reason="not run: there is a driver here")
def test_without_a_driver_the_newest_do_not_even_tell_their_version(version):
    seen = probe(f"setting={library(version)}")
    assert seen.status == 3
    assert seen.one("reason") == (
        f"no usable libcupti: {library(version)} does not start (error 999: the driver is missing "
        "or too old); GPUPROF_CUPTI names this one")
