# SPDX-License-Identifier: Apache-2.0
"""The page of a report in a real Chromium: each section has what the recording says, follows clicks
and keys, says nothing on the console and asks nobody for anything."""

import json
import re
import resource
import time

import pytest

from shown_page import (COPY_NS, GEMM_NS, HOSTILE, MEGABYTES_MAX, MORE_NS, REDUCE_NS, Page,
                        check_nothing_is_wider_than_the_window, chromium, data_of, data_of_page,
                        job, page_of, percent, pytestmark, rows_of)

from test_overhead import tiny_run  # shown_page has its folder on the path

assert chromium and page_of and check_nothing_is_wider_than_the_window  # of test_each_section

SECTIONS = ("overview", "hang", "steps", "use", "ranks", "kernels", "operators", "libraries",
            "memory", "flame", "source", "tables", "cost", "settings")
EMPTY = ("hang", "operators", "libraries", "memory", "source")


def check_sections_are_there_with_what_was_recorded(page, chromium):
    drawn = page.run("Object.fromEntries(Array.from(document.querySelectorAll('section'), "
                     "(s) => [s.id, s.dataset.drawn]))")
    assert drawn == dict.fromkeys((id for id in SECTIONS if id not in EMPTY), "yes")
    assert page.texts("nav a") == page.texts("section > h2")
    absent = dict(zip(page.texts("#absent dt"), page.texts("#absent dd")))
    assert list(absent) == ["Hang", "Operators", "Libraries", "Memory", "Source"]
    assert "report --source=DIR" in absent["Source"]
    assert page.text("#absent summary") == "Nothing to show of: " + ", ".join(absent)
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
    assert facts["Start-up"].endswith(" until " + data_of_page(page)["overview"]
                                            ["start_up_end"]), facts
    assert facts["Median step"] == "100 \u00b5s" and facts["Kernels"] == "24"
    assert [row[0] for row in page.rows("#kernels")] == ["gemm", "ncclDevKernel_AllReduce"]
    assert page.rows("#kernels")[0][3] == "12"
    assert "3.11.7" in page.text("#settings")
    chromium.look_like(media="print")
    assert page.run("getComputedStyle(document.querySelector('nav')).display") == "none"


def gpu_time(data):
    """The sums of that table's columns."""
    rows = rows_of(data, "gpu_time")
    return {key: sum(row[key] for row in rows) for key in rows[0] if key.endswith("_ns")}


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
    page.choose("#steps select", "rank 0")
    assert " of rank 0: " in heading(page)


def check_ranks_lead_to_their_steps(page, chromium):
    page.click("#ranks .pick", across=.25, down=.25)
    assert heading(page).startswith("Step 1 of rank 0")
    page.focus("#ranks .pick")
    chromium.press("ArrowRight", "ArrowDown")
    assert "rank 1, step 2: 100 \u00b5s" in page.run("document.activeElement.ariaLabel")
    chromium.press("ArrowRight", "Enter")
    assert heading(page).startswith("Step 3 of rank 1: 150 \u00b5s")


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
    assert page.run("document.querySelector('#table-functions th button').title") == \
        "the function that was called"
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
    page.choose("#flame select", "calls")
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
    page.browser.wait("document.documentElement.dataset.theme === 'dark'")
    dark = ground()
    page.click("#theme")
    assert light != dark and ground() == light
    page.click("#theme")
    assert ground() == dark


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
    """Devices stand in the order of ranks, whoever worked first; and the page tells of steps for
    which there was no room."""
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
    assert sum(len(series[2]) for series in data["steps"]["processes"]) < count
    assert "later steps did not fit" in page.text("#steps .lead")
    page.check_quiet()


@pytest.mark.parametrize("steps, spans", ((197, 197), (1500, 375), (12, 400)))
def test_equal_steps_make_no_waves(chromium, run_verb, make_stacks, tmp_path, steps, spans):
    """A span has whole steps, all of which are alike, or so little of one that it is seen."""
    script = ["process 0", "meta gpu_rows=from CUPTI", "name 1 gemm"]
    for step in range(steps):
        at = 1000 + 1_000_000 * step
        script += [f"step {at} {step}", f"call cudaLaunchKernel {at + 100} 500 {step + 1} 0 0",
                   f"kernel 1 {at + 1000} 300000 {step + 1}"]
    script += [f"step {1000 + 1_000_000 * steps} {steps}"]
    run_verb("report", make_stacks(*script), "-o", "page.html")
    page = Page(chromium, tmp_path / "page.html")
    use = data_of_page(page)["use"]
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    busy = [letters.index(letter) / 63 for letter in use["devices"][0][6]]
    assert len(busy) == use["spans"] and abs(use["spans"] - spans) <= 1
    if spans < 400:
        assert all(abs(share - .3) < .02 for share in busy[1:-1])
    else:
        assert min(busy) == 0 and max(busy) == 1
    assert len(page.run("Array.from(document.querySelectorAll('#use svg'))")) == 1
    page.check_quiet()


def test_a_late_rank(chromium, run_verb, make_gpu, tmp_path):
    """Of each 188.331 ms 108 are work. Rank 1 is late 4 times by 20 ms, and all sections agree."""
    run_verb("report", make_gpu("late", 4), "-o", "page.html")
    page = Page(chromium, tmp_path / "page.html")
    busy = percent(108_000 / 188_331)
    assert page.text(".hero em") == busy
    assert use_labels(page) == [f"rank {rank}, GPU {rank}: busy {busy} of the time after start-up"
                                for rank in range(4)]
    behind = 80_000_000
    assert [device[5] for device in data_of_page(page)["use"]["devices"]] == [
        behind, 0, behind, behind]
    assert [[row[0], *row[-4:]] for row in page.rows("#ranks [aria-label^=Waits]")] == [
        ["1", "0 ns", "4", "80.0 ms", "240 ms"] if rank == 1 else
        [str(rank), "80.0 ms", "0", "0 ns", "0 ns"] for rank in range(4)]
    heads = page.texts("#ranks [aria-label^=Waits] thead th")
    assert heads[0] == "rank" and not {"job", "host", "steps"} & set(heads)  # the same everywhere
    chromium.look_like(1280)
    assert page.run("(table => table.offsetWidth <= table.parentNode.clientWidth)"
                    "(document.querySelector('#ranks [aria-label^=Waits]'))")
    chromium.look_like()
    assert page.rows("#ranks [aria-label^=Arrival]") == [
        ["AllReduce", "4", "12", "80.0 ms", "20.0 ms", "1", "4", "80.0 ms", "host", "evaluate"]]
    assert page.text("#finding-straggler .cost") == "80.0 ms42.5 %"
    assert page.texts("#finding-straggler th[scope=col]")[-1] == "longest began at"
    assert page.texts(".causes .where")[:2] == [" rank 1", " evaluate"]
    assert page.texts(".causes li:nth-child(4) .where") == ["240 \u00b5s on the device",
                                                            "20.0 \u00b5s cudaLaunchKernel"]
    assert page.run("placesOf([['a', 1], ['b', 5], ['c', 2], ['d', 3], ['e', 4]])") == [
        ["b", 5], ["e", 4], ["d", 3], ["2 more places", 3]]
    assert page.run("placesOf([['a', 1], ['b', 5], ['c', 2], ['d', 3]]).length") == 4
    page.check_quiet()


def test_ranks_that_are_left_out(chromium, run_verb, make_gpu, tmp_path):
    """The page, too, says what of collectives it does not count; one host has no clocks."""
    folder = make_gpu("late", 4)
    run_verb("report", "--rank=0,1", folder, "-o", "page.html")
    page = Page(chromium, tmp_path / "page.html")
    assert page.text("#arrivals-missed") == (
        "collectives not counted here: ranks that are not here may have been last in 12")
    assert rows_of(data_of_page(page), "clocks")
    assert page.run("document.getElementById('table-clocks')") is None
    run_verb("report", folder, "-o", "all.html")
    page = Page(chromium, tmp_path / "all.html")
    assert page.run("document.getElementById('arrivals-missed')") is None
    page.check_quiet()


def test_parts_of_steps_are_called_as_in_the_text(chromium, run_verb, make_gpu, tmp_path):
    """And steps whose parts are not in the page have a colour of their own, which the legend
    has."""
    folder = make_gpu("train", 1, 15000)
    run_verb("report", folder, "-o", "page.html")
    page = Page(chromium, tmp_path / "page.html")
    text = run_verb("report", "--table=steps", folder).stdout
    titles = [line.rpartition("  ")[2] for line in text.partition("of the steps' time\n")[2]
              .partition("\n\n")[0].splitlines()]
    assert [title for _, title in data_of_page(page)["steps"]["parts"]] == titles
    assert page.text("#steps-chart ~ .legend").endswith(
        "whole; this page has the parts of the longest steps")
    assert page.run("document.querySelectorAll('#steps-chart .c-unsplit').length") > 0
    page.check_quiet()


def test_a_step_says_for_whom_it_waited(chromium, run_verb, make_gpu, tmp_path):
    """Ranks are alike in the length of their steps: the one that did not wait comes first."""
    run_verb("report", make_gpu("late", 4), "-o", "page.html")
    page = Page(chromium, tmp_path / "page.html")
    assert heading(page).startswith("Step 2 of rank 1: 29.0 ms")
    assert "it waited for no other rank; 3 ranks waited for it, up to 20.0 ms" in page.text("#step")
    assert rows_of(data_of_page(page), "phases")  # all of which are 0
    assert page.run("document.getElementById('table-phases')") is None
    assert page.texts("#steps-chart + .tools span") == ["step 0", "full height 29.0 ms", "step 11"]
    assert page.text("#steps-chart ~ .legend").startswith("not whole")  # the last one
    map_label = "document.querySelector('#ranks .pick').ariaLabel"
    assert page.run(map_label).endswith("rank 1, step 2: 29.0 ms")
    assert page.texts("#ranks .map-ranks span") == [f"rank {rank}" for rank in range(4)]
    assert page.texts("#ranks .map .tools span") == ["step 0", "step 11"]
    strong = page.run("""(() => {
      const canvas = document.querySelector('#ranks canvas');
      const image = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
      return [0, 1, 2, 3].map((y) => [1, 2].map((x) => image[4 * (canvas.width * y + x)]));
    })()""")
    assert strong[1][1] < strong[1][0]  # a cell of rank 1 alone has the strong colour
    assert all(strong[rank] == [strong[1][0]] * 2 for rank in (0, 2, 3))
    page.run("steps.choose(0, 2)")
    assert page.run(map_label).endswith("rank 0, step 2: 29.0 ms, without its waits 9.03 ms")
    assert heading(page).startswith("Step 2 of rank 0: 29.0 ms")
    assert page.text("#step .small").endswith("; it waited for rank 1, 20.0 ms")
    page.run("steps.choose(0, 3)")
    assert page.text("#step .small").endswith("; it waited for no other rank")
    page.check_quiet()


def test_a_program_without_python_has_no_table_of_it(chromium, page_of):
    page = Page(chromium, page_of(
        "process 0", "meta gpu_rows=from CUPTI", "meta stacks=made up", "stack 1 0 a1000 a2000",
        "name 1 gemm", "call cudaLaunchKernel 1000 10 1 1 0", "kernel 1 5000 90000 1", options=()))
    [row] = rows_of(data_of_page(page), "calls_by_python_line")
    assert row["file"] is None and row["calls"] == 1
    assert page.run("document.getElementById('table-calls_by_python_line')") is None
    assert page.run("document.getElementById('table-functions') !== null")
    page.check_quiet()


def test_a_cost_of_which_only_the_sum_is_known(chromium, library, run_verb, tmp_path):
    """Was not 0 times 0 ns."""
    tiny_run(library, tmp_path, "cost_shapes.c", "many", 700)
    run_verb("report", "out", "-o", "page.html")
    page = Page(chromium, tmp_path / "page.html")
    data = data_of_page(page)
    counts = {row["name"]: row["count"] for row in rows_of(data, "classes") if row["total_ns"]}
    assert None in counts.values()
    heads = page.texts("#cost [aria-label^=gpuprof] thead th")
    count, each = heads.index("count"), heads.index("each")
    shown = {row[0]: (row[count], row[each]) for row in page.rows("#cost [aria-label^=gpuprof]")}
    for name, known in counts.items():
        assert (known is None) == (shown[name] == ("", "")), name
    page.check_quiet()


def test_a_page_of_some_ranks_says_what_is_left_out(chromium, run_verb, make_gpu, tmp_path):
    """Of the ranks that are shown one came last to its collectives, for all that is known."""
    folder = make_gpu("late", 4)
    run_verb("report", folder, "-o", "page.html", "--rank=0,2")
    page = Page(chromium, tmp_path / "page.html")
    assert page.text("#left-out") == \
        "Left out: 2 of 4 processes; who waited for whom is not known"
    page.check_quiet()
    run_verb("report", folder, "-o", "page.html")
    page = Page(chromium, tmp_path / "page.html")
    assert page.run("document.getElementById('left-out')") is None


def test_a_page_says_which_ranks_have_no_file(chromium, run_verb, make_gpu, tmp_path):
    folder = make_gpu("late", 4)
    for names, said in (((), None), (("rank1", "rank2"), "Missing: ranks 1-2 have no file; who "
                                     "waited for whom is not known")):
        for name in names:
            (folder / f"{name}.gpuprof").unlink()
        run_verb("report", folder, "-o", "page.html")
        page = Page(chromium, tmp_path / "page.html")
        is_there = page.run("document.getElementById('missing-ranks')") is not None
        assert (page.text("#missing-ranks") if is_there else None) == said
        page.check_quiet()


def test_the_gpus_of_a_piece_begin_and_end_with_it(chromium, run_verb, make_gpu, tmp_path):
    """Times remain those of the recording, and work that a step has launched is in its piece."""
    folder = make_gpu("late", 4)
    run_verb("report", folder, "-o", "page.html", "--from=0.02", "--to=0.05")
    page = Page(chromium, tmp_path / "page.html")
    use = data_of_page(page)["use"]
    assert (use["from_ns"], use["window_ns"]) == (20_000_000, 30_000_000)
    assert "20.0 ms to 50.0 ms after the first event" in page.text("#use .lead")
    assert page.texts("#use .ends span") == ["20.0 ms", "50.0 ms"]
    assert page.run("momentText(data.use, data.use.devices[0], 200)").startswith(
        "rank 0, GPU 0, at 35.0")
    run_verb("report", folder, "-o", "page.html", "--step=2")
    page = Page(chromium, tmp_path / "page.html")
    data = data_of_page(page)
    begins, ends = zip(*((row["begin_ns"], row["begin_ns"] + row["duration_ns"])
                         for row in rows_of(data, "steps")))
    assert data["use"]["from_ns"] == min(begins)
    assert data["use"]["window_ns"] == max(ends) - min(begins)
    assert data["use"]["devices"][0][6][1] == "_"  # its kernel begins with the step
    assert f"begins {min(begins) / 1e6:.1f} ms into" in page.text("#step")
    page.check_quiet()


def test_what_was_not_recorded_is_in_no_share(chromium, run_verb, make_gpu, tmp_path):
    run_verb("report", make_gpu("train", 2, 20), "-o", "page.html")
    page = Page(chromium, tmp_path / "page.html")
    parts = gpu_time(data_of_page(page))
    assert parts["stopped_ns"]
    busy = sum(parts[key] for key in ("compute_ns", "communication_ns", "copies_ns"))
    run = parts["window_ns"] - parts["idle_start_up_ns"] - parts["stopped_ns"]
    assert page.text(".hero").endswith(
        f" {percent(busy / run)} of the time after start-up, as far as recorded")
    assert "not recorded" not in page.text("#overview .legend")
    facts = dict(zip(page.texts(".facts dt"), page.texts(".facts dd")))
    assert facts["Of the GPUs' time recorded"] == percent(1 - parts["stopped_ns"] /
                                                          parts["window_ns"])
    page.check_quiet()


def test_ranks_without_steps(chromium, page_of):
    page = Page(chromium, page_of(*job(), options=()))
    assert "Steps" in page.texts("#absent dt") and "Steps" not in page.texts("nav a")
    assert [row[:2] for row in page.rows("#ranks [aria-label^=Waits]")] == [
        ["0", "240 \u00b5s"], ["1", "290 \u00b5s"]]  # it computes for MORE_NS more
    page.click("#table-ranks summary")
    page.browser.wait("document.querySelector('#table-ranks tbody tr')")
    for table in ("#ranks [aria-label^=Waits]", "#table-ranks"):
        heads = page.texts(f"{table} thead th")
        assert "compute" in heads and not {"steps", "a step"} & set(heads)
    page.check_quiet()


def test_a_page_of_some_tables_is_refused(run_verb, make_stacks):
    folder = make_stacks(*job())
    for option in ("--table=idle", "--sort=total_ns", "--limit=3"):
        for to in (("-o", "x.html"), ("--format=html",)):
            done = run_verb("report", folder, option, *to, status=2)
            assert "a page has all tables, and sorts and filters them itself" in done.stderr and \
                not done.stdout


def test_recording_without_gpu_and_steps(chromium, page_of):
    page = Page(chromium, page_of("process 0", "call cudaMalloc 1000 500 1 0 64", options=()))
    assert page.text(".hero") == "No work of a GPU was recorded"
    assert page.texts("nav a") == ["Overview", "All tables", "Cost and losses",
                                   "Settings and versions"]
    assert len(page.texts("#absent dt")) == len(SECTIONS) - 4
    page.check_quiet()


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
    assert any(re.fullmatch(r"x+\.\.\.x+", str(name)) and len(name) == 1000 for name in names)
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
