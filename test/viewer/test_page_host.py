# SPDX-License-Identifier: Apache-2.0
"""The page's flame graph of what the host did, in a real Chromium."""

import pytest

from shown_page import Page, chromium, page_of, pytestmark

from made_host import FRAMES, HOST, TOKENIZE  # shown_page has its folder on the path
from made_stacks import TRAIN

assert chromium and page_of  # fixtures

SHARES = """Array.from(document.querySelectorAll('.flame button'),
  (b) => [b.ariaLabel, b.offsetWidth]).reduce((sum, [label, width]) =>
    Object.assign(sum, {[label]: (sum[label] || 0) + width}), {})"""


def check_flame_graph(page, weight, all_ms, tokenize_ms):
    page.choose("#flame select", weight)
    assert page.text("#flame .end") == f"{all_ms:.1f} ms in all"
    shown = page.run(SHARES)
    [line] = [(label, width) for label, width in shown.items()
              if label.startswith(FRAMES[TOKENIZE][1])]
    assert f"{tokenize_ms}" in line[0]
    whole = next(width for label, width in shown.items() if label.startswith("all:"))
    assert line[1] / whole == pytest.approx(tokenize_ms / all_ms, abs=.01)


def check_table(page, table, first):
    """Those that the report declares are there by themselves."""
    page.click(f"#table-{table} summary")
    page.browser.wait(f"document.querySelector('#table-{table} tbody tr')")
    assert page.rows(f"#table-{table}")[0][:len(first)] == first


def test_what_the_host_did(chromium, page_of):
    page = Page(chromium, page_of(*HOST, options=()))
    check_flame_graph(page, "CPU time of samples", 60, 20)
    check_flame_graph(page, "time off the CPU", 25, 8)
    check_flame_graph(page, "on and off the CPU", 85, 28)
    check_table(page, "samples", ["forward", "/home/me/model.py", "7", "3", "30.0 ms"])
    check_table(page, "os", ["clock_nanosleep", "", "sleep", "1", "10.0 ms"])
    check_table(page, "gc", ["testhost", "1000", "2", "1", "20.0 ms"])
    page.check_quiet()


def test_weights_that_nobody_recorded(chromium, page_of):
    page = Page(chromium, page_of(*TRAIN, options=()))
    assert page.texts("#flame option") == \
        ["time on the host", "time on the GPU", "calls", "bytes"]
