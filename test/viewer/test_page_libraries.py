# SPDX-License-Identifier: Apache-2.0
"""The page's section of libraries in a real Chromium: points and roofs of a roofline."""

import math

import pytest

import conftest
from shown_page import HOSTILE, Page, chromium, pytestmark

from made_libraries import F32, Libraries  # shown_page has its folder on the path

assert chromium  # a fixture


def products(device, kernel="ampere_bf16_s16816gemm"):
    """Four shapes of bf16 and one of f32, of which the first take most time."""
    recording = Libraries()
    if device:
        recording.device(device)
    for size in (2048, 1024, 512, 256):
        recording.gemm(size, size, size, ns=size * 100, trans=(1, 0), kernel=kernel)
    recording.gemm(64, 64, 64, kind=F32, ns=900, kernel="ampere_sgemm_64x64")
    return recording


def logarithmic(page):
    """Where each point of the roofline is, and how large, by the place of the axes' numbers."""
    return page.run("""Array.from(document.querySelectorAll('#roofline circle'), (c) =>
      [c.cx.baseVal.value, c.cy.baseVal.value, c.r.baseVal.value])""")


@pytest.mark.parametrize("device", ["NVIDIA A100-SXM4-80GB", "NVIDIA X1", None])
def test_libraries(chromium, run_verb, tmp_path, device):
    """Points by intensity and speed; roofs of a known device only."""
    folder = products(device).write(conftest.built(conftest.BUILD / "make_raw"), tmp_path / "data")
    run_verb("report", folder, "-o", "page.html")
    page = Page(chromium, tmp_path / "page.html")
    points = logarithmic(page)
    assert len(points) == 5
    # FLOP for each byte: size / 3 of bf16; four times as many TFLOP/s for twice the size.
    intensities = [2 * n**3 / (3 * n * n * 2) for n in (2048, 1024, 512, 256)]
    xs = [math.log10(value) for value in intensities]
    scale = (points[0][0] - points[3][0]) / (xs[0] - xs[3])
    for (x, _, _), value in zip(points, xs):
        assert abs(x - points[0][0] - (value - xs[0]) * scale) < .5
    drops = [lower[1] - upper[1] for upper, lower in zip(points, points[1:4])]
    assert drops[0] > 0 and max(drops) - min(drops) < .5
    assert points[0][2] == 10 and sorted((r for *_, r in points), reverse=True) == [
        r for *_, r in points]
    roofs = page.texts("#roofline path + text")
    known = device == "NVIDIA A100-SXM4-80GB"
    assert roofs == (["bf16 312", "f32 19.5", "tf32 156"] if known else [])
    assert ("is not known" in page.text("#libraries .legend")) is not known
    said = page.run("document.querySelector('#roofline').ariaLabel")
    assert ("can do 312 TFLOP/s of bf16" in said) is known
    assert page.rows("#libraries table")[0][0] == "cublasGemmEx 2048x2048x2048 bf16 tn"
    page.focus("#libraries tbody tr:nth-child(2)")
    chromium.press("Enter")
    assert page.run("Array.from(document.querySelectorAll('#roofline circle'), "
                    "(c) => c.matches('.chosen'))") == [False, True, False, False, False]
    page.check_quiet()


def test_libraries_of_hostile_names(chromium, run_verb, tmp_path):
    recording = products(HOSTILE[0], kernel=HOSTILE[1])
    recording.plan(HOSTILE[2])
    with recording.library("cudnn" + HOSTILE[1], "cudnn", plan=1):
        recording.launch(1000, HOSTILE[3])
    folder = recording.write(conftest.built(conftest.BUILD / "make_raw"), tmp_path / "data")
    run_verb("report", folder, "-o", "page.html")
    page = Page(chromium, tmp_path / "page.html")
    assert page.run("document.querySelectorAll('img, main script').length") == 0
    assert f"cudnn{HOSTILE[1]} {HOSTILE[2]}" in page.text("#libraries")
    page.check_quiet()
