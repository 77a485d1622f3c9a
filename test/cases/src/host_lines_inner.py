# SPDX-License-Identifier: Apache-2.0
"""See host_lines_outer.py."""
import time

begin = time.thread_time_ns()
while time.thread_time_ns() - begin < 120_000_000:
    pass
begin = time.monotonic_ns()
time.sleep(0.06)  # line of a sleep
SLEPT_NS = time.monotonic_ns() - begin
