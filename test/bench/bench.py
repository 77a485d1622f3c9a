#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`make bench`: measures, prints the machine and a line a figure (name, value, unit, goal, ok or
over), and writes the same to <build>/bench.json. bench.py BUILD [PART ...], parts: call libraries
range os gaps sample operators torch walks peers bytes sort gpu collector devices stacks python.

Every time is measured in repetitions that alternate with those of a floor or a peer; the figure is
the median, in bench.json with the quartiles. Nothing here fails because a machine is slow."""

import json
import os
import shutil
import subprocess
import sys

from bench_calls import (bench_call, bench_flight, bench_gaps, bench_libraries, bench_os,
                         bench_python, bench_range, bench_sample)
from bench_data import (bench_bytes, bench_collector, bench_devices, bench_gpu, bench_outputs,
                        bench_questions, bench_ranks, bench_sort, bench_stacks)
from bench_operators import bench_operators, bench_tensors, bench_torch
from bench_peers import bench_peers, bench_walks
from bench_run import BUILD, WORK, figures, machine, not_run, tell_machine


def main():
    parts = {"call": bench_call, "libraries": bench_libraries, "flight": bench_flight,
             "range": bench_range, "os": bench_os, "gaps": bench_gaps, "sample": bench_sample,
             "operators": bench_operators, "tensors": bench_tensors, "torch": bench_torch,
             "walks": bench_walks, "peers": bench_peers, "bytes": bench_bytes, "sort": bench_sort,
             "gpu": bench_gpu, "collector": bench_collector, "devices": bench_devices,
             "outputs": bench_outputs, "ranks": bench_ranks, "questions": bench_questions,
             "stacks": bench_stacks, "python": bench_python}
    measured_on = machine()
    tell_machine(measured_on)
    try:
        for name in sys.argv[2:] or parts:
            try:
                parts[name]()
            except (RuntimeError, subprocess.SubprocessError, OSError) as error:
                not_run(name, str(error)[:300])
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
    with open(os.path.join(BUILD, "bench.json"), "w", encoding="utf-8") as file:
        json.dump({"machine": measured_on, "load_after": os.getloadavg(), "figures": figures}, file,
                  indent=1)
        file.write("\n")


main()
