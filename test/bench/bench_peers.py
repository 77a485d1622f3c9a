# SPDX-License-Identifier: Apache-2.0
"""bench.py: walks up the stack, and other tracers, for comparison."""

import os
import shutil
import signal
import statistics
import subprocess
import time

from bench_run import (WORK, bytes_below, call_rounds, drop_output, measured, not_run, program,
                       quartiles, rounds_of, run, tell)


def bench_walks():
    """What a stack costs, beside the same call without one; and what it costs not to take any."""
    for function, calls in (("deep10", 20000), ("deep30", 20000), ("deep60", 20000),
                            ("distinct", 1000)):
        costs = {"libunwind": [], "own": [], "off": []}
        for _ in range(3):
            for unwinder, values in costs.items():
                settings = ({"GPUPROF_BACKTRACE_THRESHOLD": "off"} if unwinder == "off" else
                            {"GPUPROF_BACKTRACE_THRESHOLD": "0", "GPUPROF_UNWINDER": unwinder})
                values += call_rounds(function, calls, 8, True, GPUPROF_BACKTRACE_DEPTH="128",
                                      **settings)
        frames = int(function[4:]) if function.startswith("deep") else 0
        goal = {"goal": 300 + 25 * frames} if frames else {}
        off = statistics.median(costs.pop("off"))
        for unwinder, values in costs.items():
            name = f"stack.{function}" + (".own" if unwinder == "own" else "")
            tell(name, statistics.median(values) - off, "ns",
                 **(goal if unwinder == "libunwind" else {}))
    costs = {"80us": [], "off": []}
    for _ in range(8):
        for threshold, values in costs.items():
            values += call_rounds("launch", 50000, 12, True,
                                  GPUPROF_BACKTRACE_THRESHOLD=threshold)
    tell("stack.none_slow", quartiles(costs["80us"])[0] / quartiles(costs["off"])[0],
         "x stacks off", 1.02)


def bench_uftrace():
    if not shutil.which("uftrace"):
        return not_run("peer.uftrace", "uftrace is not installed")
    data = os.path.join(WORK, "uftrace")
    work = ["sync", "1", "20000", "5"]
    record = ["uftrace", "record", "--no-event", "-d", data]
    ours, theirs = [], []
    for _ in range(3):
        shutil.rmtree(data, ignore_errors=True)
        for name, before, preload, ratios in (("call_cost_pg", record, False, theirs),
                                              ("call_cost", [], True, ours)):
            command = [program(name)] + work
            bare = statistics.median(r[3] for r in rounds_of(run(command)))
            ratios += [(r[3] - bare) / r[1] for r in rounds_of(run(before + command, preload))]
        drop_output()
    tell("peer.uftrace", statistics.median(theirs), "x floor", spread=quartiles(theirs))
    tell("peer.uftrace.ratio", statistics.median(theirs) / statistics.median(ours), "x gpuprof")
    size = bytes_below(data, lambda name: name.endswith(".dat"))
    tell("peer.uftrace.bytes", size / 100000, "B/call")
    return shutil.rmtree(data, ignore_errors=True)


def lttng_session(floor, daemon, environment):
    def lttng(*arguments):
        subprocess.run(["lttng", "--no-sessiond", *arguments], env=environment, check=True,
                       capture_output=True, timeout=30)

    data = os.path.join(WORK, "lttng-data")
    end = time.monotonic() + 20
    while True:
        try:
            lttng("create", "gpuprof-bench", "--output", data)
            break
        except subprocess.CalledProcessError:
            if time.monotonic() > end or daemon.poll() is not None:
                raise
            time.sleep(0.2)
    lttng("enable-channel", "-u", "--subbuf-size", "4M", "--num-subbuf", "4", "channel")
    lttng("enable-event", "-u", "-c", "channel", "gpuprof_bench:*")
    lttng("start")
    calls, rounds = 100000, 8
    done = subprocess.run([program("lttng_cost"), str(calls), str(rounds)], env=environment,
                          capture_output=True, text=True, timeout=60, check=True)
    lttng("stop")
    lttng("destroy", "gpuprof-bench")
    lines = [[float(x) for x in l.split()[1:]] for l in done.stdout.splitlines()]
    size = bytes_below(data, lambda name: "channel_" in name and not name.endswith(".idx"))
    if size < calls * rounds * 2 * 8:
        return not_run("peer.lttng", f"its session recorded {size} bytes only")
    costs = [(traced - bare) / floor for bare, traced in lines]
    tell("peer.lttng", statistics.median(costs), "x floor", spread=quartiles(costs))
    tell("peer.lttng.bytes", size / (calls * rounds), "B/call")
    return babeltrace2(data, size)


def babeltrace2(data, size):
    """Events a second that it prints of a session; a call is two of them, as it is two ends."""
    if not shutil.which("babeltrace2"):
        return not_run("peer.babeltrace2", "babeltrace2 is not installed")
    events = sum(1 for _ in subprocess.Popen(["babeltrace2", data], stdout=subprocess.PIPE).stdout)
    runs = [measured(["babeltrace2", data]) for _ in range(3)]
    if not events or any(code for *_, code, _ in runs):
        return not_run("peer.babeltrace2", runs[0][4])
    rates = [events / run[1] / 1e6 for run in runs]
    tell("peer.babeltrace2.MB", size / statistics.median(run[1] for run in runs) / 1e6,
         "MB/CPU s of CTF")
    return tell("peer.babeltrace2", statistics.median(rates), "M events/CPU s",
                spread=quartiles(rates))


def bench_lttng():
    if not shutil.which("lttng-sessiond") or not os.path.exists(program("lttng_cost")):
        return not_run("peer.lttng", "lttng-tools or liblttng-ust-dev is not installed")
    home = os.path.join(WORK, "lttng-home")
    os.makedirs(home, exist_ok=True)
    environment = dict(os.environ, LTTNG_HOME=home, LTTNG_UST_REGISTER_TIMEOUT="3000")
    rounds = rounds_of(run([program("call_cost"), "sync", "1", "50000", "20"]))
    floor = statistics.median(r[1] for r in rounds)
    daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return lttng_session(floor, daemon, environment)
    except (subprocess.SubprocessError, OSError) as error:
        return not_run("peer.lttng", str(error)[:150])
    finally:
        daemon.send_signal(signal.SIGTERM)
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()


def bench_peers():
    bench_uftrace()
    bench_lttng()
