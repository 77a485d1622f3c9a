# SPDX-License-Identifier: Apache-2.0
"""The page's section of memory in a real Chromium: what the books of a made-up program say."""

import pytest

import conftest
from shown_page import HOSTILE, MEGABYTES_MAX, Page, chromium, data_of, pytestmark

from made_memory import TYPES, Process  # shown_page has its folder on the path

MIB, GIB = 1 << 20, 1 << 30
assert chromium  # a fixture


def training(rank=0, steps=10, lines=range(20, 32), fails=False):
    """Tensors of some lines in each step, one of which stays; CUDA's memory below them."""
    process = Process(rank, pythonic=True)
    process.call("cudaMemGetInfo", [15 * GIB, 16 * GIB, 0])
    process.get("linear", 1 << 40, 8 * GIB, line=5)
    process.get("pinned", 1 << 30, GIB, line=6)
    for step in range(steps):
        process.step(step)
        made = [process.tensor((1 << 40) + number * 64 * MIB, 10 * MIB, reserved=8 * GIB, line=line)
                for number, line in enumerate(lines)]
        process.now += 100_000
        process.tensor((1 << 41) + step * 32 * MIB, 20 * MIB, reserved=8 * GIB, line=7)
        for block in made:
            process.free(block)
    process.step(steps)
    if fails:
        process.raw(1, TYPES["tensor_oom"], [20 * GIB, 200 * MIB, 8 * GIB, 0, 1],
                    code=process.stack(9))
    return process


@pytest.fixture(name="page_of")
def fixture_page_of(run_verb, tmp_path):
    maker = conftest.built(conftest.BUILD / "make_raw")

    def make(*processes, verb="report"):
        for process in processes:
            process.write(maker, tmp_path / "data")
        run_verb(verb, tmp_path / "data", "-o", "page.html")
        return tmp_path / "page.html"
    return make


def test_one_process(chromium, page_of):
    """Its places have a curve each; what failed, owners, growth; filter, colours, no wider than
    the window."""
    path = page_of(training(fails=True), verb="memory")
    page = Page(chromium, path)
    assert page.run("document.querySelector('#memory').dataset.drawn") == "yes"
    labels = page.run("Array.from(document.querySelectorAll('#memory-charts svg'), "
                      "(s) => s.getAttribute('aria-label'))")
    assert [label.split(": ")[0] for label in labels] == \
        ["tensors on device 0, rank 0", "device 0, rank 0", "host memory, pinned, rank 0"]
    assert "peak 320 MiB" in labels[0] and "200 MiB at the end" in labels[0]
    assert "peak 8.00 GiB, 50.0 % of the device" in labels[1]
    rows = {row[0]: row for row in page.rows("#memory-charts + .table")}
    tensors = rows["tensors on device 0, rank 0"]
    assert tensors[1] == "320 MiB" and "20.0 MiB" in tensors and "96.1 %" in tensors
    alert = page.text("#memory .alert")
    assert "20.0 GiB wanted by train (/home/me/train.py:9)" in alert
    assert "the request is larger than the device" in alert
    assert "200 MiB in 10: train (/home/me/train.py:7)" in alert
    assert "An allocation failed: 20.0 GiB wanted" in page.text("#overview .alert")
    assert "20.0 MiB" in page.text("#memory h3:nth-of-type(2) + .table")
    page.type("#memory input", "train.py:7)")
    [owner] = page.rows("#memory h3:nth-of-type(1) + .table")
    assert owner[:3] == ["train (/home/me/train.py:7)", "tensor", "200 MiB"]
    page.click("#overview .alert a")
    chromium.wait("location.hash === '#memory'")
    for width, scheme in ((1280, "dark"), (400, "light")):
        chromium.look_like(width, 900, scheme)
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
    page.check_quiet()


def test_a_curve_is_that_of_the_books(chromium, page_of):
    """As high as what was there, in each piece of the time, and what the pointer is told."""
    process = Process()
    process.get("linear", 0x1000, 96 * MIB)
    process.now += 1_000_000
    block = process.get("linear", 0x2000, 96 * MIB)
    process.now += 1_000_000
    process.free(block)
    process.now += 2_000_000
    process.get("linear", 0x3000, 1)
    page = Page(chromium, page_of(process))
    heights = page.run("curveOf(data.memory.curves[0])")
    assert len(heights) == 240
    assert {round(h, 3) for h in heights} == {.5, 1} and 59 <= heights.count(1) <= 61
    assert 59 <= heights.index(1) <= 61
    tip = page.run("""(() => {
      const drawing = document.querySelector('#memory-charts svg');
      const r = drawing.getBoundingClientRect();
      drawing.dispatchEvent(new PointerEvent('pointermove', {clientX: r.left + .1 * r.width,
                                                             clientY: r.top + 5}));
      return document.getElementById('tip').textContent; })()""")
    assert tip.endswith("at most 96.0 MiB")


def test_owners_of_one_stack(chromium, page_of):
    """Of a program without Python an owner is a stack, of one process: the row says of which."""
    processes = [Process(rank) for rank in range(2)]
    for process in processes:
        process.lines.insert(0, "meta stacks=native")
        process.raw(1, TYPES["stack"], [90, 0], (1 << 60 | 0x1000).to_bytes(8, "little"))
        process.raw(1, "cudaMalloc", [0x1000, (1 + process.rank) * MIB, 0], ns=9, code=90)
    table = "#memory [aria-label^='Owners at']"
    page = Page(chromium, page_of(*processes))
    who = page.texts(table + " thead th").index("process")
    assert len({row[0] for row in page.rows(table)}) == 1
    assert {(row[who], row[who + 1]) for row in page.rows(table)} == {
        ("rank 0", "1.00 MiB"), ("rank 1", "2.00 MiB")}
    page.check_quiet()


def test_many_ranks(chromium, page_of):
    """A row is chosen, by a click or a key, and has its curve."""
    path = page_of(*(training(rank, steps=9, lines=range(20, 21 + rank % 7))
                     for rank in range(24)))
    page = Page(chromium, path)
    chart = "document.querySelector('#memory-charts svg').getAttribute('aria-label')"
    assert page.run("document.querySelectorAll('#memory-charts svg').length") == 1
    first = page.run(chart)
    assert first.startswith("tensors on device 0, rank ") and "peak 250 MiB" in first
    page.type("#memory input", "tensors rank 17")
    page.click("#memory tbody tr")
    assert page.run(chart).startswith("tensors on device 0, rank 17: ")
    page.type("#memory input", "host rank 3")
    page.focus("#memory tbody tr")
    for kind in ("keyDown", "keyUp"):
        chromium.ask("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter",
                     windowsVirtualKeyCode=13, text="\r" if kind == "keyDown" else "")
    assert page.run(chart).startswith("host memory, pinned, rank 3")
    page.check_quiet()


def test_large(page_of):
    """As many places as a thousand ranks have: within the page's bounds, and all have a curve."""
    processes = []
    for rank in range(60):
        process = Process(rank, pythonic=True)
        for device in range(25):
            process.get("linear", 1 << 40 | device << 20, GIB, device, line=rank % 50 + 2)
            process.tensor(1 << 40 | device << 20, MIB, device, line=4)
        processes.append(process)
    path = page_of(*processes)
    memory = data_of(path)["memory"]
    places = next(table for table in memory["tables"] if table["key"] == "places")
    assert len(memory["curves"]) == 3000 <= len(places["rows"]) + places["left_out"]
    assert path.stat().st_size < MEGABYTES_MAX << 20


def test_hostile_names(chromium, page_of):
    process = Process(pythonic=True)
    for number, name in enumerate(HOSTILE):
        process.raw(1, TYPES["python"], [90 + number, 7],
                    name.encode("utf-8", "surrogateescape") + b"\0" + b"<b>f</b>")
        process.raw(1, TYPES["stack"], [90 + number, 0],
                    (2 << 60 | 90 + number).to_bytes(8, "little"))
        process.raw(1, "cudaMalloc", [0x1000 * (number + 1), MIB, 0], ns=9, code=90 + number)
    process.raw(1, "cudaMalloc", [0, 1 << 50, 0], ns=9, code=90, result=2)
    path = page_of(process)
    page = Page(chromium, path)
    assert page.run("document.title").endswith("gpuprof")
    assert page.run("document.querySelectorAll('#memory img, #memory script, #overview img').length"
                    ) == 0
    assert "<b>f</b>" in page.text("#memory") and "1.00 PiB wanted" in page.text("#memory .alert")
    page.check_quiet()
