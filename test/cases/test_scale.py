# SPDX-License-Identifier: Apache-2.0
"""What the collector takes of memory does not grow with the number of events."""

import pytest
import toolchain

MARGIN_KIB = 512  # what the allocator and the page cache's readahead make of it
SPOOL_KIB = 4096  # a report of few events does not fill what it keeps in memory before a file


def peak_kib(collector, verb, folder):
    own = ["--no-index"] if verb == ("report",) else []  # it keeps rows of the larger one alone
    return toolchain.peak_kib(collector, *verb, *own, "-o", "/dev/null", folder)


@pytest.mark.parametrize("verb", [("merge",), ("report",), ("merge", "--max-size=100M"),
                                  ("export", "--format=csv")])
@pytest.mark.parametrize("millions", [
    pytest.param(10, marks=pytest.mark.timeout(120)),
    pytest.param(100, marks=(pytest.mark.long, pytest.mark.timeout(900)))])
def test_peak_is_that_of_a_tenth(collector, make_gpu, verb, millions):
    """Launches and kernels, half each; merged into an uncompressed trace, and reported."""
    if len(verb) > 1 and millions < 100:
        millions = 2
    small = peak_kib(collector, verb, make_gpu("bench", millions * 50_000, name="small"))
    large = peak_kib(collector, verb, make_gpu("bench", millions * 500_000, name="large"))
    spool = SPOOL_KIB if verb == ("report",) and millions < 100 else 0
    assert large < 1.1 * small + MARGIN_KIB + spool, (small, large)
