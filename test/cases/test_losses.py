# SPDX-License-Identifier: Apache-2.0
"""Each counter of counters.def: made to rise, it is in the trace, the report and the exit code."""

import errno
import json
import re
import subprocess

import conftest
import csv_tables
import cupti_client
import pytest
import stream_reader
import toolchain

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUPTI runs natively")

INCLUDES = (f"-I{conftest.ROOT / 'inject'}",)


def tiny(source, *arguments, fault=None, **settings):
    folder, link = toolchain.tiny()
    settings["LD_LIBRARY_PATH"] = folder
    if fault:
        settings["IO_FAULT"] = fault
    return [toolchain.build(source, *link, *INCLUDES), *arguments], settings


def lossy(scenario, count, **settings):
    return tiny("lossy.c", scenario, count, **settings)


def gpu(*steps, **settings):
    settings = {"GPUPROF_GPU": "on",
                "GPUPROF_CUPTI": toolchain.SIM / cupti_client.VERSIONS["13.0"][0], **settings}
    return [cupti_client.build(13, source="gpu_work.c"), *steps], settings


def kineto():
    program = cupti_client.other_client("13.0")
    return [program, "kineto", "600"], gpu()[1]


def graphs():
    command, settings = kineto()
    return command, {**settings, "OTHER_CLIENT_GRAPHS": "1", "SIMCUPTI_GRAPH_DEFECT": "1"}


def operators(scenario):
    program, path = toolchain.torch_ops()
    return [program, scenario], {"LD_LIBRARY_PATH": path, "GPUPROF_PYTORCH": "shapes"}


def tensors(*arguments, **settings):
    program, path = toolchain.tensor_work()
    return [program, *arguments], {"LD_LIBRARY_PATH": path, **settings}


def deaf():
    program = toolchain.build("sample_work.c", *toolchain.runtime(12))
    return [program, "300", "1", "deaf"], {"GPUPROF_SAMPLE": "1000"}


FULL = f"pwrite={errno.ENOSPC}"
SMALL = {"GPUPROF_BUFFER": "1M", "GPUPROF_CHUNK": "512K"}

# What makes each rise. A function: the tools that it needs are looked for when it is called.
MEANS = {
    "dropped": lambda: lossy("calls", 300000, GPUPROF_ON_FULL="drop", **SMALL),
    "unrecorded": lambda: lossy("slowly", 100, fault=FULL + "@3", GPUPROF_SEAL="10ms"),
    "names_dropped": lambda: ([toolchain.build("lossy.c", "-DDRIVER", *toolchain.DRIVER), 18000],
                              {}),
    "names_truncated": lambda: lossy("long-name", 5000),
    "write_lost": lambda: lossy("slowly", 10, fault=FULL + "@1"),
    "stale": lambda: tiny("leave.c", "jump-same"),
    "waits": lambda: lossy("calls", 300000, **SMALL),
    "capture_overflow": lambda: lossy("captures", 33000),
    "ended": lambda: lossy("slowly", 100, fault=FULL + "@3", GPUPROF_SEAL="10ms"),
    "gpu_dropped": lambda: gpu("work", "launches", "sync", SIMCUPTI_DROP=7),
    "gpu_timeless": lambda: gpu("work", "launches", "sync", SIMCUPTI_ZERO=5),
    "gpu_strange_time": lambda: gpu("work", "launches", "sync", SIMCUPTI_STRANGE=5),
    "gpu_damaged": lambda: gpu("work", "launches", "sync", SIMCUPTI_DAMAGE=1),
    "gpu_yields": kineto,
    "graph_untied": graphs,
    "gpu_unflushed": lambda: gpu("work", "sync", SIMCUPTI_FLUSH_HANG=1, GPUPROF_EXIT_WAIT="300ms"),
    "stacks_dropped": lambda: lossy("stacks", 70000, GPUPROF_BACKTRACE_THRESHOLD="0",
                                    GPUPROF_WAIT="60s"),
    "stackless": lambda: tiny("leave.c", "handler", GPUPROF_BACKTRACE_THRESHOLD="0"),
    "passed_by": lambda: lossy("slowly", 300, GPUPROF_OVERHEAD_MAX="0.0001%"),
    "passed_failed": lambda: lossy("failing", 300, GPUPROF_OVERHEAD_MAX="0.0001%"),
    "texts_truncated": lambda: lossy("texts", 3),
    "ranges_dropped": lambda: lossy("ranges", 600),
    "op_inputs_dropped": lambda: operators("wide"),
    "tensors_dropped": lambda: tensors("many", 200000, GPUPROF_WAIT="60s", **SMALL),
    "overwritten": lambda: tiny("scribble.c", "record", 0, GPUPROF_SEAL="30s"),
    "samples_dropped": lambda: lossy("early", 60000, GPUPROF_SAMPLE="100"),
    "samples_torn": lambda: lossy("early", 20, GPUPROF_SAMPLE="100"),
    "samples_silent": deaf,
    "os_dropped": lambda: lossy("early", 2000, GPUPROF_OS="0"),
}


def counters():
    """name -> (is it a loss, its meaning, the constant's name)"""
    text = (conftest.ROOT / "formats" / "counters.def").read_text()
    rows = re.findall(r'^COUNTER\((\w+), "(\w+)", ([01]), "([^"]*)"\)', text, re.MULTILINE)
    assert len(rows) > 15
    return {name: (loss == "1", meaning, constant) for constant, name, loss, meaning in rows}


def test_every_counter_has_means():
    """Every one that the library raises."""
    source = "".join(p.read_text() for p in (conftest.ROOT / "inject").rglob("*.c"))
    assert "COUNTER_DROPPED" in source
    raised = {name for name, (_, _, constant) in counters().items()
              if re.search(rf"\bCOUNTER_{constant}\b", source)}
    assert raised == set(MEANS)


@pytest.mark.parametrize("name", sorted(MEANS))
def test_counter_rises_and_is_said(library, run_collector, tmp_path, name):
    command, settings = MEANS[name]()
    out = tmp_path / "out"
    env = toolchain.environment(out, library, GPUPROF_LIVE=tmp_path, **settings)
    if "IO_FAULT" in settings:
        shim = toolchain.build("io_fault.c", "-shared", "-fPIC")
        env["LD_PRELOAD"] = f"{shim}:{env['LD_PRELOAD']}"
    if "GPUPROF_OS" in settings:
        env["LD_PRELOAD"] += f":{conftest.built(conftest.BUILD / 'libgpuprof-os.so')}"
    done = toolchain.run(command, env, status=None)
    assert done.returncode in (0, 3), done
    is_loss, meaning, _ = counters()[name]
    [process] = stream_reader.read_folder(out)
    value = process.counters[name]
    assert value > 0

    plain = run_collector("merge", out, "-o", tmp_path / "trace.json")
    assert plain.returncode == 0, plain.stderr
    said = json.loads((tmp_path / "trace.json").read_text())["otherData"]
    assert said["losses"][name] == value
    strict = run_collector("merge", "--strict", out, "-o", tmp_path / "trace.json")
    lost = [n for n in said["losses"] if counters().get(n, (n in ("gpu_missing", "not_ended"),))[0]]
    assert strict.returncode == (3 if lost else 0) and (not is_loss or name in lost)
    if is_loss:
        assert f"{meaning}: {value}" in strict.stderr

    text = run_collector("report", out)
    assert re.search(rf"{value:,}[^\n]*{re.escape(meaning)}|{re.escape(meaning)}[^\n]*{value}",
                     text.stdout), text.stdout
    rows = csv_tables.tables(run_collector("report", "--format=csv", out).stdout)["losses"]
    assert [(r["kind"], r["count"]) for r in rows if r["name"] == name] == \
        [("loss" if is_loss else "note", str(value))]


def test_work_in_flight_is_not_lost(collector, program, tmp_path):
    """While a process runs, CUPTI may still deliver it."""
    found = []
    with conftest.Program([collector, "run", "--quiet", "-o", "data", program("demo")],
                          cwd=tmp_path) as process:
        while process.poll() is None:
            done = subprocess.run([collector, "report", "--keep-live", "--format=json", "data"],
                                  cwd=tmp_path, capture_output=True, text=True, check=False)
            if done.stdout:
                losses = json.loads(done.stdout)["losses"]
                found += [losses] if losses.get("running") == 2 else []
    assert found and not any("gpu_missing" in losses for losses in found)
