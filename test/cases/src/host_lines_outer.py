# SPDX-License-Identifier: Apache-2.0
"""A module that takes its time to be imported, and imports another one: see host_lines.py."""
import time

begin = time.thread_time_ns()
import host_lines_inner

SLEPT_NS = host_lines_inner.SLEPT_NS
INNER_NS = time.thread_time_ns() - begin
while time.thread_time_ns() - begin < 2 * INNER_NS:
    pass
