# SPDX-License-Identifier: Apache-2.0
"""A page of a made-up job in a real Chromium, for the tests of its sections."""

import json
import pathlib
import re
import sys

import pytest

import trace_viewer
from browser import DRAWN, browser

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))

pytestmark = pytest.mark.skipif(not trace_viewer.find_chromium(),
                                reason="not run: no chromium; ./scripts/check installs it")

STEP_NS, SLOW, MORE_NS = 100_000, (1, 3), 50_000  # of rank 1 step 3 takes more
GEMM_NS, REDUCE_NS, COPY_NS = 40_000, 10_000, 8_000
MEGABYTES_MAX = 20


def job(ranks=2, steps=6, names=("gemm", "ncclDevKernel_AllReduce"), python="train.py\tstep",
        each=1):
    """A script for make_stacks: in each step kernels, communication and a copy, of lines of
    Python. A step has `each` kernels, of the names but the second in turn."""
    for rank in range(ranks):
        yield f"process {rank}"
        yield from ("meta gpu_rows=from CUPTI", "meta stacks=made up", "meta python=3.11.7",
                    f"python 1 12 {python}", "python 2 40 train.py\t<module>",
                    "stack 1 0 p1 p2")
        work, calls, now, used = [], [], 1000, {2}
        for step in range(steps):
            more = MORE_NS if (rank, step) == SLOW else 0
            calls.append(f"push {now} step")
            for kernel in range(each):
                name = name_of((rank * steps + step) * each + kernel, len(names))
                used.add(name)
                number = 1 + 1000 * step + 3 * kernel
                calls.append(f"call cudaLaunchKernel {now + 1000 + 20 * kernel} 10 {number} 1 0")
                ns = (GEMM_NS + more) // each
                work.append(f"kernel {name} {now + 2000 + kernel * ns} {ns} {number}")
            calls.append(f"call cudaMemcpyAsync {now + 60_000} 1000 {1000 * step + 999} 0 4096")
            work.append(f"kernel 2 {now + 45_000 + more} {REDUCE_NS} {1000 * step + 998}")
            work.append(f"copy {now + 62_000 + more} {COPY_NS} {1000 * step + 999} 4096")
            calls.append(f"pop {now + STEP_NS + more - 1}")
            now += STEP_NS + more
        yield from (f"name {i} {names[i - 1]}" for i in sorted(used))
        yield from calls
        yield from work


def name_of(kernel, count):
    """All numbers from 1 to `count` but 2, in turn."""
    place = kernel % (count - 1)
    return place + 1 + (place > 0)


@pytest.fixture
def page_of(run_verb, make_stacks, tmp_path):
    def make(*lines, options=("--step-range=step",), name="data"):
        run_verb("report", make_stacks(*lines, name=name), *options, "-o", "page.html")
        return tmp_path / "page.html"
    return make


@pytest.fixture
def chromium():
    with browser() as found:
        yield found


class Page:
    def __init__(self, found, path):
        self.browser, self.url, self.run = found, path.as_uri(), found.run
        found.events.clear()
        found.look_like()
        found.open(self.url, DRAWN)

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)}).textContent")

    def texts(self, selector):
        return self.run(f"Array.from(document.querySelectorAll({json.dumps(selector)}), "
                        "(e) => e.textContent)")

    def click(self, selector, across=.5, down=.5):
        """A real click, at a part of its width and height."""
        x, y = self.run(f"""(() => {{
          const node = document.querySelector({json.dumps(selector)});
          node.scrollIntoView({{block: "center"}});
          const r = node.getBoundingClientRect();
          return [r.left + {across} * r.width, r.top + {down} * r.height]; }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.browser.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                             clickCount=1)

    def focus(self, selector):
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")

    def type(self, selector, text):
        self.focus(selector)
        self.run(f"document.querySelector({json.dumps(selector)}).value = ''")
        self.browser.ask("Input.insertText", text=text)

    def choose(self, select, text):
        self.run(f"""(() => {{
          const select = document.querySelector({json.dumps(select)});
          select.value = [...select.options].find((o) => o.text === {json.dumps(text)}).value;
          select.dispatchEvent(new Event("change")); }})()""")

    def rows(self, table):
        return self.run(f"""Array.from(document.querySelectorAll({json.dumps(table + ' tbody tr')}),
          (row) => Array.from(row.children, (cell) => cell.textContent))""")

    def check_quiet(self):
        assert self.browser.complaints() == []
        assert set(self.browser.requests()) == {self.url}


def data_of(path):
    return json.loads(re.search(r'id="data">\n(.*?)</script>', path.read_text(), re.DOTALL)[1])


def put_data(path, data):
    """The page with that in the place of its data."""
    new = json.dumps(data).replace("<", "\\u003c")
    path.write_text(re.sub(r'(id="data">\n).*?(</script>)', lambda m: m[1] + new + m[2],
                           path.read_text(), count=1, flags=re.DOTALL))


def percent(share):
    return "< 0.01 %" if 0 < share < .00005 else \
        f"{100 * share:.{2 if share < .001 else 1}f} %"


def rows_of(data, key):
    table = max((table for table in data["tables"] if table["key"] == key),
                key=lambda table: len(table["rows"]))
    return [{column["key"]: value for column, value in zip(table["columns"], row)}
            for row in table["rows"]]


def data_of_page(page):
    return page.run("data")


def check_nothing_is_wider_than_the_window(page, chromium):
    for width in (390, 1280):
        chromium.look_like(width)
        page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert page.run("document.documentElement.scrollWidth") <= width


HOSTILE = ("</script><script>document.title='taken'</script>", "<img src=x onerror=alert(1)>",
           "\"'`${document.title='taken'}", "--><!--<script>", "\u202egnp.exe", "&lt;b&gt;",
           "x" * 8_000, "]]>\u2028\u2029\\u003c\\")
