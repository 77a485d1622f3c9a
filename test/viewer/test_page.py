# SPDX-License-Identifier: Apache-2.0
"""The page of a report in a real Chromium: each section has what the recording says, follows clicks
and keys, says nothing on the console and asks nobody for anything."""

import json
import math
import os
import pathlib
import re
import resource
import sys
import time

import pytest

import conftest
import trace_viewer
from browser import DRAWN, browser

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from made_libraries import F32, Libraries # pylint: disable=wrong-import-position

pytestmark = pytest.mark.skipif(not trace_viewer.find_chromium(),
                                reason="not run: no chromium; ./scripts/check installs it")

STEP_NS, SLOW, MORE_NS = 100_000, (1, 3), 50_000  # of rank 1 step 3 takes more
GEMM_NS, REDUCE_NS, COPY_NS = 40_000, 10_000, 8_000
SECTIONS = ("overview", "hang", "steps", "use", "ranks", "kernels", "operators", "libraries",
            "memory", "flame", "source", "tables", "cost", "settings")
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

    def rows(self, table):
        return self.run(f"""Array.from(document.querySelectorAll({json.dumps(table + ' tbody tr')}),
          (row) => Array.from(row.children, (cell) => cell.textContent))""")

    def check_quiet(self):
        assert self.browser.complaints() == []
        assert set(self.browser.requests()) == {self.url}


def data_of(path):
    return json.loads(re.search(r'id="data">\n(.*?)</script>', path.read_text(), re.DOTALL)[1])


def check_sections_are_there_with_what_was_recorded(page, chromium):
    drawn = page.run("Object.fromEntries(Array.from(document.querySelectorAll('section'), "
                     "(s) => [s.id, s.dataset.drawn]))")
    assert drawn == dict.fromkeys(SECTIONS, "yes") | dict.fromkeys(
        ("hang", "operators", "libraries", "memory", "source"), "none")
    assert "report --source=DIR" in page.text("#source .none")
    assert page.texts("nav a") == page.texts("section > h2")
    parts = gpu_time(data_of_page(page))
    assert parts["compute_ns"] == 2 * 6 * GEMM_NS + MORE_NS
    assert parts["copies_ns"] == 2 * 6 * COPY_NS
    idle, run = (parts[key] - parts["idle_start_up_ns"] for key in ("idle_ns", "window_ns"))
    parts["idle_ns"] = idle
    assert page.text(".hero em") == percent(1 - idle / run)
    shown = [percent(parts[key] / run)
             for key in ("compute_ns", "communication_ns", "copies_ns", "idle_ns") if parts[key]]
    assert page.texts("#overview .legend b") == shown
    why = sum(float(share.strip("%<\u2009 ")) for share in page.texts(".causes .soft"))
    assert abs(why - 100 * idle / run) < 0.5
    facts = dict(zip(page.texts(".facts dt"), page.texts(".facts dd")))
    assert (facts["Processes"], facts["GPUs"], facts["Steps"]) == ("2", "2", "12")
    assert facts["Median step"] == "100 \u00b5s" and facts["Kernels"] == "24"
    assert [row[0] for row in page.rows("#kernels")] == ["gemm", "ncclDevKernel_AllReduce"]
    assert page.rows("#kernels")[0][3] == "12"
    assert "3.11.7" in page.text("#settings")
    chromium.look_like(media="print")
    assert page.run("getComputedStyle(document.querySelector('nav')).display") == "none"


def percent(share):
    return "< 0.01 %" if 0 < share < .00005 else \
        f"{100 * share:.{2 if share < .001 else 1}f} %"


def rows_of(data, key):
    table = next(table for table in data["tables"] if table["key"] == key)
    return [{column["key"]: value for column, value in zip(table["columns"], row)}
            for row in table["rows"]]


def gpu_time(data):
    """The sums of that table's columns."""
    rows = rows_of(data, "gpu_time")
    return {key: sum(row[key] for row in rows) for key in rows[0] if key.endswith("_ns")}


def data_of_page(page):
    return page.run("data")


def heading(page):
    return page.text("#step h3")


def check_a_step_is_chosen_and_compared(page, chromium):
    assert heading(page).startswith("Step 3 of rank 1: 150 \u00b5s, 1.50 \u00d7 the median")
    rows = {row[0]: row[2:] for row in page.rows("#step")}
    assert rows["compute"][:3] == ["90.0 \u00b5s", "40.0 \u00b5s", "50.0 \u00b5s"]
    assert rows["gemm"][:3] == ["90.0 \u00b5s", "40.0 \u00b5s", "50.0 \u00b5s"]
    page.focus("#steps-chart")
    chromium.press("ArrowRight", "ArrowRight")
    assert heading(page).startswith("Step 5 of rank 1: 100 \u00b5s")
    chromium.press("ArrowLeft")
    assert heading(page).startswith("Step 4 of rank 1")
    assert "step 4" in page.run("document.activeElement.getAttribute('aria-valuetext')")
    page.click("#steps-chart", across=.25)
    assert heading(page).startswith("Step 1 of rank 1")
    page.run("""(() => { const who = document.querySelector('#steps select');
      who.value = 0; who.dispatchEvent(new Event('change')); })()""")
    assert " of rank 0: " in heading(page)


def check_ranks_lead_to_their_steps(page, chromium):
    page.click("#ranks .pick", across=.25, down=.25)
    assert heading(page).startswith("Step 1 of rank 0")
    page.focus("#ranks .pick")
    chromium.press("ArrowRight", "ArrowDown")
    assert "rank 1, step 2: 100 \u00b5s" in page.run("document.activeElement.ariaLabel")
    chromium.press("ArrowRight", "Enter")
    assert heading(page).startswith("Step 3 of rank 1: 150 \u00b5s")
    rows = page.rows("#ranks [aria-label=Ranks]")
    assert [row[1] for row in rows] == ["6", "6"] and rows[1][3] == "150 \u00b5s"


def use_labels(page):
    return page.run("Array.from(document.querySelectorAll('#use svg'), (s) => s.ariaLabel)")


def check_gpu_over_time(page, chromium):
    use, times = data_of_page(page)["use"], rows_of(data_of_page(page), "gpu_time")
    assert [sum(device[2:6]) for device in use["devices"]] == [
        6 * (GEMM_NS + REDUCE_NS + COPY_NS) + MORE_NS * rank for rank in range(2)]
    assert use_labels(page) == [
        f"rank {rank}, GPU 0: busy " +
        percent(1 - (row["idle_ns"] - row["idle_start_up_ns"]) /
                (row["window_ns"] - row["idle_start_up_ns"])) + " of the time after start-up"
        for rank, row in enumerate(times)]
    # The bucket in the middle of the first kernel is compute, all of it.
    bucket = (2000 + GEMM_NS // 2) // use["bucket_ns"]
    assert [shares[bucket] for shares in use["devices"][0][6:10]] == ["_", "A", "A", "A"]


def check_kernels_show_how_they_are_distributed(page, chromium):
    assert page.text("#kernel h3") == "gemm" and "12 instances" in page.text("#kernel")
    page.click("#kernels tbody tr:nth-child(2) th")
    assert page.text("#kernel h3") == "ncclDevKernel_AllReduce"
    page.focus("#kernels tbody tr:nth-child(2)")
    chromium.press("ArrowUp", "Enter")
    assert page.text("#kernel h3") == "gemm"
    assert size_of_text(page, "#kernel svg") == 12
    assert len(page.run("Array.from(document.querySelectorAll('#kernel rect'))")) == 2


def size_of_text(page, drawing):
    """In pixels of the window, however the drawing is scaled."""
    return page.run(f"""(() => {{
      const svg = document.querySelector({json.dumps(drawing)});
      const shown = svg.getBoundingClientRect().width;
      return Math.round(12 * shown / svg.viewBox.baseVal.width); }})()""")


def check_tables_sort_and_filter(page, chromium):
    page.click("#table-functions summary")
    page.browser.wait("document.querySelector('#table-functions tbody tr')")
    assert [row[0] for row in page.rows("#table-functions")] == ["cudaMemcpyAsync",
                                                               "cudaLaunchKernel"]
    page.click("#table-functions th button")
    assert [row[0] for row in page.rows("#table-functions")] == ["cudaLaunchKernel",
                                                               "cudaMemcpyAsync"]
    assert page.run("document.querySelector('#table-functions th').ariaSort") == "ascending"
    page.click("#table-steps summary")
    page.browser.wait("document.querySelector('#table-steps tbody tr')")
    page.click("#table-steps th:nth-child(6) button")
    assert "150 \u00b5s" in page.rows("#table-steps")[0]
    page.type("#table-steps input", "rank 1")
    assert page.rows("#table-steps") == []
    page.type("#table-steps input", "1")
    assert len(page.rows("#table-steps")) > 0


def frames(page):
    return page.run("Array.from(document.querySelectorAll('.flame button'), "
                    "(b) => [b.ariaLabel.split(':')[0], b.offsetWidth])")


def check_flame_graph(page, chromium):
    """By GPU time first: gemm is called from step, everything else has no stack."""
    compute, rest = 2 * 6 * GEMM_NS + MORE_NS, 2 * 6 * (REDUCE_NS + COPY_NS)
    shown = dict(frames(page))
    assert set(shown) == {"all", "<module> (train.py", "step (train.py", "cudaLaunchKernel", "gemm",
                          "[no stack]"}
    assert shown["gemm"] / shown["all"] == pytest.approx(compute / (compute + rest), abs=.01)
    page.click(".flame [aria-label^='gemm']")
    assert dict(frames(page))["gemm"] == shown["all"] and "[no stack]" not in dict(frames(page))
    chromium.press("Escape")
    assert dict(frames(page)) == shown
    chromium.press("ArrowDown", "ArrowDown")
    label = page.run("document.activeElement.ariaLabel")
    assert label.startswith("step (train.py:12): 530 \u00b5s")
    page.type("#flame input", "STEP")
    assert page.run("document.querySelectorAll('.flame .hit').length") == 1
    assert page.text("#flame .end") == f"found in {100 * compute / (compute + rest):.1f} %"
    page.click("#flame .group button:nth-child(3)")
    assert page.run("document.querySelector('#flame .group [aria-pressed=true]').textContent") \
        == "calls"
    assert page.text("#flame .end") == "found in 50.0 %"


def check_numbers_are_written_as_one_reads_them(page, chromium):
    times = page.run("[-1e6, -1, -.3, 0, .3, 999, 999.6, 1e9, 6e3 * 1e9].map(time)")
    assert times == ["\u22121.00 ms", "\u22121 ns", "0 ns", "0 ns", "0 ns", "999 ns",
                     "1.00 \u00b5s", "1.00 s", "1.67 h"]
    assert page.run("[.00001, .0004, .012, 1].map(percent)") == \
        ["< 0.01 %", "0.04 %", "1.2 %", "100.0 %"]


def check_light_and_dark(page, chromium):
    def ground():
        return page.run("getComputedStyle(document.body).backgroundColor")
    light = ground()
    chromium.look_like(scheme="dark")
    dark = ground()
    page.click("#theme")
    assert light != dark and ground() == light
    page.click("#theme")
    assert ground() == dark


def check_nothing_is_wider_than_the_window(page, chromium):
    for width in (390, 1280):
        chromium.look_like(width)
        page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert page.run("document.documentElement.scrollWidth") <= width


def check_all_can_be_reached_by_the_tab_key(page, chromium):
    reached = set()
    for _ in range(100):
        chromium.press("Tab")
        reached.add(page.run("(document.activeElement.closest('section,nav,header') || {}).id || "
                             "document.activeElement.tagName"))
    assert {"nav", "steps", "ranks", "kernels", "flame", "tables"} <= reached
    assert page.run("Array.from(document.querySelectorAll('button,select,input,[tabindex=\"0\"]'))"
                    ".every((e) => e.textContent.trim() || e.ariaLabel || e.labels)")


def test_each_section(chromium, page_of):
    """One browser for all of these, which begin with the page as it is opened."""
    path = page_of(*job())
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            page = Page(chromium, path)
            check(page, chromium)
            page.check_quiet()


def test_long_names_that_end_differently(chromium, page_of):
    """Each kernel has its own times, though what the page has of their names is alike."""
    long = "k" * 3000
    path = page_of("process 0", "meta gpu_rows=from CUPTI", f"name 1 {long}1", f"name 2 {long}2",
                   "call cudaLaunchKernel 1000 10 1 0 0", "call cudaLaunchKernel 2000 10 2 0 0",
                   "call cudaLaunchKernel 3000 10 3 0 0", "kernel 1 5000 90000 1",
                   "kernel 2 200000 7000 2", "kernel 2 300000 7000 3", options=())
    page = Page(chromium, path)
    assert "1 instance by" in page.text("#kernel")
    page.click("#kernels tbody tr:nth-child(2) th")
    assert "2 instances" in page.text("#kernel")
    page.check_quiet()


def test_devices_by_rank_and_steps_beyond(chromium, run_verb, make_stacks, tmp_path):
    """Devices stand in the order of ranks, whoever worked first; a rank is as busy as its devices
    that worked are; and of steps for which there was no room the page tells."""
    count = 20_000
    script = []
    for rank, begin in (0, 500_000), (1, 0):
        script += [f"process {rank}", "meta gpu_rows=from CUPTI", "name 1 gemm",
                   f"call cudaLaunchKernel {begin + 1000} 10 1 0 0"]
        script += [f"step {1000 * step + 2000} {step}" for step in range(count if rank else 2)]
        script += [f"kernel 1 {begin + 1000} 100000 1"]
    folder = make_stacks(*script)
    run_verb("report", folder, "-o", "page.html")
    page = Page(chromium, tmp_path / "page.html")
    data = data_of_page(page)
    assert [device[0] for device in data["use"]["devices"]] == [0, 1]
    assert sum(len(series[3]) for series in data["steps"]["processes"]) < count
    assert "no room for" in page.text("#steps .lead")
    table = "#ranks [aria-label=Ranks]"
    busy = [row[-1] for row in page.rows(table)]
    page.run("""(() => {
      const [rank] = data.use.devices, twin = [...rank];
      [twin[2], twin[3], twin[4]] = [0, 0, 0];
      data.use.devices.push(twin);
      document.querySelectorAll("#ranks > :not(h2)").forEach((node) => node.remove());
      drawSection("ranks", document.getElementById("ranks")); })()""")
    assert [row[-1] for row in page.rows(table)] == busy
    page.check_quiet()


def test_a_late_rank(chromium, run_verb, make_gpu, tmp_path):
    """Of each 188.331 ms 108 are work. Rank 1 is late 4 times by 20 ms, and all sections agree."""
    run_verb("report", make_gpu("late", 4), "-o", "page.html")
    page = Page(chromium, tmp_path / "page.html")
    busy = percent(108_000 / 188_331)
    assert page.text(".hero em") == busy
    assert use_labels(page) == [f"rank {rank}, GPU {rank}: busy {busy} of the time after start-up"
                                for rank in range(4)]
    assert [row[-1] for row in page.rows("#ranks [aria-label=Ranks]")] == [busy] * 4
    behind = 80_000_000
    assert [device[5] for device in data_of_page(page)["use"]["devices"]] == [
        behind, 0, behind, behind]
    assert [[row[0], *row[-4:]] for row in page.rows("#ranks [aria-label^=Who]")] == [
        ["1", "0 ns", "4", "80.0 ms", "240 ms"] if rank == 1 else
        [str(rank), "80.0 ms", "0", "0 ns", "0 ns"] for rank in range(4)]
    assert page.rows("#ranks [aria-label^=How]") == [
        ["AllReduce", "4", "12", "80.0 ms", "20.0 ms", "1", "4", "80.0 ms", "host", "evaluate"]]
    assert page.text("#finding-straggler .cost") == "80.0 ms42.5 %"
    assert page.texts(".causes .where")[:2] == [" rank 1", " evaluate"]
    assert page.texts(".causes li:nth-child(4) .where") == ["240 \u00b5s on the device",
                                                            "20.0 \u00b5s cudaLaunchKernel"]
    assert page.run("placesOf([['a', 1], ['b', 5], ['c', 2], ['d', 3], ['e', 4]])") == [
        ["b", 5], ["e", 4], ["d", 3], ["2 more places", 3]]
    assert page.run("placesOf([['a', 1], ['b', 5], ['c', 2], ['d', 3]]).length") == 4
    page.check_quiet()


def test_ranks_without_steps(chromium, page_of):
    page = Page(chromium, page_of(*job(), options=()))
    assert page.run("document.getElementById('steps').dataset.drawn") == "none"
    assert [[row[0], row[5]] for row in page.rows("#ranks [aria-label^=Who]")] == [
        ["0", "240 \u00b5s"], ["1", "290 \u00b5s"]]  # it computes for MORE_NS more
    page.check_quiet()


def test_a_page_of_some_tables_is_refused(run_verb, make_stacks):
    folder = make_stacks(*job())
    for option in ("--table=idle", "--sort=total_ns", "--limit=3"):
        for to in (("-o", "x.html"), ("--format=html",)):
            done = run_verb("report", folder, option, *to, status=2)
            assert "a page has all tables" in done.stderr and not done.stdout


FOUND = {"name": "findings", "key": "findings", "title": None, "note": None, "behind": None,
         "columns": [{"key": key, "type": kind, "label": None} for key, kind in (
             ("title", "lines"), ("id", "text"), ("ns", "ns"), ("share", "share"),
             ("devices", "number"), ("rank", "text"), ("pid", "number"), ("device", "number"),
             ("evidence", "list"), ("advice", "text"), ("next", "text"))],
         "rows": [["The host waits", "sync-in-loop", 2_500_000_000, .25, 3, "1", 7, 0,
                   [{"name": "train.py:7", "count": 12, "ns": 2_400_000_000, "at_ns": 1_000_000}],
                   "Wait once a step.", "gpuprof report --by=python-line data"]], "left_out": 0}


def test_findings_and_open_calls(chromium, page_of):
    """As report's table has them."""
    path = page_of(*job())
    text = path.read_text()
    data = data_of(path)
    calls = next(table for table in data["tables"] if table["key"] == "open_calls")
    calls["rows"] = [[{"function": "cudaDeviceSynchronize", "lasted_ns": 3_000_000_000}.get(
        column["key"]) for column in calls["columns"]]]
    data["tables"] = [table for table in data["tables"] if table["key"] != "findings"]

    def look(rows):
        found = json.dumps(data | {"tables": [*data["tables"], FOUND | {"rows": rows}]})
        path.write_text(re.sub(r'(id="data">\n).*?(</script>)', lambda m: m[1] + found + m[2], text,
                               count=1, flags=re.DOTALL))
        return Page(chromium, path)
    page = look(FOUND["rows"])
    assert page.texts(".findings h3") == ["The host waits"]
    assert page.text(".findings .cost") == "2.50 s25.0 %"
    assert "rank 1, GPU 0 and 2 more" in page.text(".findings li")
    assert page.rows(".findings") == [["train.py:7", "2.40 s", "12", "1.00 ms"]]
    assert page.text(".next") == FOUND["rows"][0][-1]
    assert "cudaDeviceSynchronize for 3.00 s" in page.text(".alert")
    page.check_quiet()
    hang = [*FOUND["rows"][0][:5], None, 7, None, *FOUND["rows"][0][8:]]
    assert "null" not in look([hang]).text(".findings li")
    assert "Nothing stands out" in look([]).text("#overview")


def test_hang(chromium, page_of):
    """As the tables of two ranks have it, one of which waits; texts are text."""
    hostile = "</script><b>train.py:7"
    calls = [{"function": "cudaStreamSynchronize", "lasted_ns": 12_000_000_000, "rank": "1",
              "host": "node", "pid": 7, "tid": 9, "line": hostile, "stack": [hostile, "main"]},
             {"function": "cudaMemcpy", "lasted_ns": 0, "rank": "0", "host": "node", "pid": 6,
              "tid": 8}]
    launched = [{"kernel": "AllReduce", "age_ns": 12_500_000_000, "launches": 3, "rank": "1",
                 "host": "node", "pid": 7, "tid": 9, "state": "waited for", "device": 0,
                 "stream": 13, "stack": ["step (train.py:5)"]},
                {"function": "cudaGraphLaunch", "age_ns": 1_000_000, "launches": 1, "rank": "0",
                 "host": "node", "pid": 6, "tid": 8, "state": "may have ended", "handle": 255}]
    path = page_of(*job())
    assert Page(chromium, path).run("document.getElementById('hang').dataset.drawn") == "none"
    data = data_of(path)
    for key, rows in (("open_calls", calls), ("unfinished", launched)):
        table = next(table for table in data["tables"] if table["key"] == key)
        table["rows"] = [[row.get(column["key"]) for column in table["columns"]] for row in rows]
    found = json.dumps(data).replace("<", "\\u003c")
    path.write_text(re.sub(r'(id="data">\n).*?(</script>)', lambda m: m[1] + found + m[2],
                           path.read_text(), count=1, flags=re.DOTALL))
    page = Page(chromium, path)
    assert [text.split(" on ")[0] for text in page.texts("#hang h3")] == \
        ["Rank 1, process 7", "Rank 0, process 6"]
    assert "A call did not return" in page.text("#hang .lead")
    items = page.texts("#hang .hung > li")
    assert items[0].startswith("cudaStreamSynchronize open for 12.0 s in thread 9")
    assert items[1].startswith(
        "AllReduce or another of 3 on stream 13 of GPU 0 launched 12.5 s ago")
    assert items[2] == "cudaMemcpy just begun in thread 8"
    assert items[3] == "cudaGraphLaunch on stream 0xff launched 1.00 ms ago: may have ended"
    assert page.texts("#hang .stack li") == [hostile, "main", "step (train.py:5)"]
    assert page.texts("#hang h4") == ["Launched, not finished"] * 2
    assert hostile in page.text(".alert")
    page.click(".alert a")
    assert page.run("location.hash") == "#hang"
    page.check_quiet()


def test_hang_in_a_collective(chromium, page_of):
    """Each of them with its ranks by their states; the late ones first, with their lines."""
    hostile = "</script><b>load.py:3"
    one = {"function": "ncclAllReduce", "sequence": 37, "ranks": 4, "communicator": "0x12",
           "waited_ns": 12_000_000_000, "host": "node"}
    rows = [{**one, "state": "not called", "rank": "2", "communicator_rank": 2, "line": hostile}]
    rows += [{**one, "state": "kernel not finished", "rank": str(i)} for i in (0, 1)]
    rows += [{**one, "state": "finished", "communicator_rank": 3}]
    rows += [{**one, "function": "ncclSend", "state": state, "from": 0, "to": 1, "waited_ns": 0}
             for state in ("not recorded", "called")]
    path = page_of(*job())
    data = data_of(path)
    table = next(table for table in data["tables"] if table["key"] == "collectives")
    table["rows"] = [[row.get(column["key"]) for column in table["columns"]] for row in rows]
    found = json.dumps(data).replace("<", "\\u003c")
    path.write_text(re.sub(r'(id="data">\n).*?(</script>)', lambda m: m[1] + found + m[2],
                           path.read_text(), count=1, flags=re.DOTALL))
    page = Page(chromium, path)
    heads = page.texts("#hang .hung > li > p:first-child")
    assert heads[0].startswith("ncclAllReduce 37 of 4 ranks waited for 12.0 s")
    assert heads[1].startswith("ncclSend 37 of 4 ranks, the message from 0 to 1 communicator 0x12")
    assert page.texts("#hang .states") == ["not called2", "kernel not finished01", "finished3",
                                           "not recorded?", "called?"]
    standings = page.run("Array.from(document.querySelectorAll('#hang .ranks li'), "
                         "(li) => li.dataset.standing)")
    assert standings == ["late", "waits", "waits", "done", "unknown", "waits"]
    assert f"Rank 2 was at {hostile}" in page.text("#hang .hung")
    page.check_quiet()


def test_recording_without_gpu_and_steps(chromium, page_of):
    page = Page(chromium, page_of("process 0", "call cudaMalloc 1000 500 1 0 64", options=()))
    assert page.text(".hero") == "No work of a GPU was recorded"
    none = page.run("Array.from(document.querySelectorAll('section[data-drawn=none]'), "
                    "(s) => s.id)")
    assert none == ["hang", "steps", "use", "ranks", "kernels", "operators", "libraries", "memory",
                    "flame", "source"]
    page.check_quiet()


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


HOSTILE = ("</script><script>document.title='taken'</script>", "<img src=x onerror=alert(1)>",
           "\"'`${document.title='taken'}", "--><!--<script>", "\u202egnp.exe", "&lt;b&gt;",
           "x" * 8_000, "]]>\u2028\u2029\\u003c\\")


def test_hostile_names_are_inert(chromium, page_of, tmp_path):
    path = page_of(*job(names=(HOSTILE[0], "nccl" + HOSTILE[1], *HOSTILE[2:]), each=7,
                        python=f"a\"</title><b>.py\t{HOSTILE[0]}"), "process 9",
                   f"meta cmdline={HOSTILE[0]}", "call cudaMalloc 1000 500 1 0 64")
    text = path.read_text()
    assert text.count("</script") == 2 and "<img" not in text and "<b>" not in text
    page = Page(chromium, path)
    assert page.run("document.title").endswith("gpuprof")
    assert page.run("document.querySelectorAll('img, b b, main script').length") == 0
    names = {row[0] for row in data_of(path)["tables"][2]["rows"]} | \
        {row[0] for table in data_of(path)["tables"] for row in table["rows"] if row}
    for name in (HOSTILE[0], "nccl" + HOSTILE[1], *HOSTILE[2:4], HOSTILE[5]):
        assert name in names
    assert "x" * 1000 + "\u2026" in names  # the rest is cut
    assert HOSTILE[0] in page.text("#kernels")
    page.check_quiet()


def test_policy_lets_nothing_else_run(chromium, page_of):
    """Were something to get into the page after all, it would not run."""
    path = page_of(*job())
    path.write_text(path.read_text().replace("<main", "<script>document.title = 'taken'</script>"
                                             "<img src='http://127.0.0.1:9/x'><main", 1))
    page = Page(chromium, path)
    assert page.run("document.title").endswith("gpuprof")
    assert "Content Security Policy" in str(page.browser.complaints())
    assert not [event for event in page.browser.events
                if event.get("method") == "Network.responseReceived"
                and "127.0.0.1" in str(event)]


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
        return page.run("getComputedStyle(document.querySelector('.costs .source-text')).color")
    assert ink("light") != ink("dark")
    check_nothing_is_wider_than_the_window(page, chromium)
    page.check_quiet()

    path = page_of(*script, options=(f"--source={tmp_path / 'data'}",), name="again")
    page = Page(chromium, path)
    assert page.text("#source .none").startswith("No line of a file below the folder")


def test_source_that_is_hostile_or_large(chromium, page_of, tmp_path):
    """Its text is text; of a file that shows too much only the lines that cost something are there,
    and what is beyond is counted."""
    folder = tmp_path / "src"
    folder.mkdir()
    evil = "<img src=x onerror=alert(1)>.py"
    (folder / evil).write_bytes(b"def f():\n    '</script><script>document.title = 1</script>'\n"
                                b"    \xff\x1b[2J\xe2\x80\xae <b>\r\n    " + b"y" * 5000 + b"\n")
    (folder / "long.py").write_text("def f():\n" + "    pass\n" * 4000)
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
        "    " + "y" * 996 + "\u2026", "\u22ef", "?"]
    page.click("#source details:nth-of-type(2) summary")
    page.browser.wait("document.querySelector('#source details:nth-of-type(2) tbody')")
    rows = page.rows("#source details:nth-of-type(2)")
    assert [row[-2] for row in rows[1:-1]] == [str(line) for line in range(100, 2100)]
    assert page.text("#source details:nth-of-type(2) p") == \
        "2,001 more lines are not in this page, 900 of which cost something: " \
        "gpuprof report --source shows them."
    page.check_quiet()


def test_large_recording_is_a_page_that_is_there_soon(chromium, page_of):
    """1000 ranks and 5000 kernels: within 20 MB, and something to see before two seconds of the
    browser's own time are over."""
    names = [f"void kernel_of_the_model<float, {i}>(float const*, int)" for i in range(5000)]
    names[1] = "ncclDevKernel_AllReduce"
    path = page_of(*job(ranks=1000, steps=3, names=names, each=2))
    assert path.stat().st_size < MEGABYTES_MAX << 20
    page = Page(chromium, path)
    page.browser.wait("performance.getEntriesByName('first-contentful-paint').length")
    painted = page.run("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert painted < 20_000  # of a busy machine; 2000 on one of one's own
    assert page.run("document.querySelector('#kernels .pages span').textContent").endswith(
        "of 5,000")
    started = time.monotonic()
    page.type("#kernels input", "4321>")
    assert [row[0] for row in page.rows("#kernels")] == [names[4321]]
    assert time.monotonic() - started < 10
    page.click("#use .pick", down=.5)
    assert re.match(r"rank (49|50)\d,", page.text("#use h3"))
    page.click("#ranks .pick", across=.1, down=.9005)
    assert re.match(r"Step 0 of rank (89|90)\d", heading(page))
    page.check_quiet()


def test_page_is_whole_or_not_there(run_collector, make_stacks, tmp_path):
    folder = make_stacks(*job())

    def no_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    result = run_collector("report", folder, "-o", "page.html", preexec_fn=no_room)
    assert result.returncode != 0 and "page.html" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
