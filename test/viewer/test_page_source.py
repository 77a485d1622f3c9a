# SPDX-License-Identifier: Apache-2.0
"""The page's section of source in a real Chromium: costs beside the lines of files."""

import os
import re

from shown_page import Page, check_nothing_is_wider_than_the_window, chromium, page_of, pytestmark

assert chromium and page_of  # fixtures

TRAIN = "import model\n\n\ndef step(batch):\n\tloss = model(batch)\n\treturn loss\n\n\nstep(1)\n"
MODEL = "def forward(x):\n    return x @ x\n"


def source_job(frames, kernels):
    """A script for make_stacks: `frames` from 1 on, and kernels of (stack, ns), a stack of frames.
    Each call takes 500 ns."""
    yield from ("process 0", "meta gpu_rows=from CUPTI", "meta stacks=made up",
                "meta python=3.11.7", "name 1 gemm")
    yield from (f"python {i} {line} {file}\tf{min(i, 9)}"
                for i, (file, line) in enumerate(frames, 1))
    yield from (f"stack {i} 0 " + " ".join(f"p{frame:x}" for frame in stack)
                for i, (stack, _) in enumerate(kernels, 1))
    for i, (_, ns) in enumerate(kernels, 1):
        yield f"call cudaLaunchKernel {1000 * i} 500 {i} {i} 0"
        if ns:
            yield f"kernel 1 {100_000 * i} {ns} {i}"


def test_source(chromium, page_of, tmp_path):
    folder = tmp_path / "src"
    (folder / "pkg").mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "pkg" / "model.py").write_text(MODEL)
    os.utime(folder / "pkg" / "model.py", (1, 1))
    script = list(source_job([("/there/train.py", 5), ("/there/train.py", 9), ("/old/model.py", 2),
                         ("/there/secret.py", 1)],
                        [((1, 2), 30_000), ((3, 1, 2), 50_000), ((3, 1, 2), 4_000), ((4,), 7_000)]))
    path = page_of(*script, options=(f"--source={folder}",))
    page = Page(chromium, path)
    assert "91.0 \u00b5s on the GPU, 2.00 \u00b5s on the host; of these 7.00 \u00b5s and 500 ns" \
        in page.text("#source .lead")
    titles = page.texts("#source summary")
    assert titles[0] == "pkg/model.py (recorded as /old/model.py)" \
        "54.0 \u00b5s GPU, 1.00 \u00b5s host, 2 calls"
    assert titles[1].startswith("train.py (newer than the recording: lines may have moved)30.0 ")
    assert page.rows("#source details:nth-of-type(1)") == [
        ["", "", "", "", "", "1", "def forward(x):"],
        [*["54.0 \u00b5s", "1.00 \u00b5s", "2", "54.0 \u00b5s", "1.00 \u00b5s"], "2",
         "    return x @ x"]]
    assert page.rows("#source details:nth-of-type(2)") == []  # not opened yet

    # What costs most leads to its line, by the keyboard alone.
    assert page.rows("#source .table") == [
        ["pkg/model.py:2", "f3", "54.0 \u00b5s", "1.00 \u00b5s", "2"],
        ["train.py:5", "f1", "30.0 \u00b5s", "500 ns", "1"]]
    page.focus("#source .table tbody tr")
    chromium.press("ArrowDown", "Enter")
    assert page.run("document.activeElement.matches('details[open] tr[aria-selected=true]')")
    rows = page.rows("#source details:nth-of-type(2)")
    assert [row[-2:] for row in rows] == [
        ["", "\u22ef"], ["4", "def step(batch):"], ["5", " " * 8 + "loss = model(batch)"],
        ["6", " " * 8 + "return loss"], ["7", ""], ["8", ""], ["9", "step(1)"]]
    assert rows[2][:5] == ["30.0 \u00b5s", "500 ns", "1", "84.0 \u00b5s", "1.50 \u00b5s"]
    assert rows[-1][:5] == ["", "", "", "84.0 \u00b5s", "1.50 \u00b5s"]
    assert page.run("document.activeElement.textContent").endswith("5        loss = model(batch)")
    page.focus("#source details:nth-of-type(1) summary")
    chromium.press("Enter", "Tab")
    page.browser.wait("!document.querySelector('#source details:nth-of-type(1)').open")
    assert page.run("document.activeElement.closest('details').textContent").startswith("train.py")
    assert "secret" not in page.text("#source")

    def ink(scheme):
        chromium.look_like(scheme=scheme)
        page.browser.wait(f"document.documentElement.dataset.theme === '{scheme}'")
        return page.run("getComputedStyle(document.querySelector('.costs .source-text')).color")
    assert ink("light") != ink("dark")
    check_nothing_is_wider_than_the_window(page, chromium)
    page.check_quiet()

    path = page_of(*script, options=(f"--source={tmp_path / 'data'}",), name="again")
    page = Page(chromium, path)
    assert dict(zip(page.texts("#absent dt"), page.texts("#absent dd")))["Source"].startswith(
        "No line of a file below the folder")


def test_source_that_is_hostile_or_large(chromium, page_of, tmp_path):
    """Its text is text; lines beyond what a page holds are counted."""
    folder = tmp_path / "src"
    folder.mkdir()
    evil = "<img src=x onerror=alert(1)>.py"
    (folder / evil).write_bytes(b"def f():\n    '</script><script>document.title = 1</script>'\n"
                                b"    \xff\x1b[2J\xe2\x80\xae <b>\r\n    " + b"y" * 5000 + b"\n")
    (folder / "long.py").write_text("def f():\n" + f"    pass  # {'x' * 900}\n" * 4000)
    frames = [(f"/there/{evil}", line) for line in (1, 2, 3, 4, 99)] + \
        [("/there/long.py", line) for line in range(100, 3000)]
    kernels = [((i,), 90_000_000 if i < 6 else 900) for i in range(1, 2906)]
    path = page_of(*source_job(frames, kernels), options=(f"--source={folder}",))
    text = path.read_text()
    assert text.count("</script") == 2 and "<img" not in text and "<b>" not in text
    page = Page(chromium, path)
    assert page.run("document.querySelectorAll('img, b b, main script').length") == 0
    assert page.texts("#source summary")[0].startswith(evil + " (newer than")
    rows = page.rows("#source details:nth-of-type(1)")
    assert [row[-1] for row in rows] == [
        "def f():", "    '</script><script>document.title = 1</script>'",
        "    \ufffd\ufffd[2J\ufffd <b>",
        rows[3][-1], "\u22ef", "?"]
    assert re.fullmatch(r"    y+\.\.\.y+", rows[3][-1]) and len(rows[3][-1]) == 1000
    page.click("#source details:nth-of-type(2) summary")
    page.browser.wait("document.querySelector('#source details:nth-of-type(2) tbody')")
    rows = page.rows("#source details:nth-of-type(2)")
    numbers = [row[-2] for row in rows if row[-2]]
    assert numbers == [str(line) for line in range(1, 1 + len(numbers))] and len(numbers) > 2000
    assert re.fullmatch(r"[\d,]+ more lines are not in this page: gpuprof report --source shows "
                        r"them\.", page.text("#source details:nth-of-type(2) p"))
    page.check_quiet()
