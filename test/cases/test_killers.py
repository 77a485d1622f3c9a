# SPDX-License-Identifier: Apache-2.0
"""Before a signal ends another process, the sender asks that (life/victims.c). What that costs a
sender whose signals end nothing, or nothing that records."""
import os
import subprocess
import sys

import pytest
from conftest import BUILD

CHILDREN = """
import os, resource, signal, sys, time
def child(prepare):
    ready, told = os.pipe()
    pid = os.fork()
    if not pid:
        prepare()
        os.write(told, b"1")
        time.sleep(60)
        os._exit(1)
    os.close(told)
    assert os.read(ready, 1)
    os.close(ready)
    return pid
def seconds(pid, number, send=os.kill):
    begin = time.monotonic()
    send(pid, number)
    return time.monotonic() - begin
def end(*pids):
    for pid in pids:
        os.kill(pid, signal.SIGHUP)
        os.waitpid(pid, 0)
"""
HARMLESS = CHILDREN + """
def lead():
    os.setpgid(0, 0)
    signal.signal(signal.SIGUSR1, lambda *_: None)
others = [child(lambda: None) for _ in range(100)]
leader = child(lead)
least = min(seconds(leader, signal.SIGUSR1, os.killpg) for _ in range(10))
end(leader, *others)
lists = min(seconds(0, 0, lambda *_: os.listdir("/proc")) for _ in range(10))
assert least < 15 * lists, (least, lists)
"""
DESCRIPTORS = CHILDREN + """
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
count = min(hard - 100, 20000)
pids = [child(lambda: [os.dup(0) for _ in range(count)]) for _ in range(3)]
least = min(seconds(pid, signal.SIGTERM) for pid in pids)
assert least < 0.05, least
"""
SILENT = CHILDREN + """
def hang(asked=0):
    live = os.open(f"{sys.argv[1]}/gpuprof-{os.getpid():032}.live", os.O_RDWR | os.O_CREAT)
    os.truncate(live, 4096)
    os.pwrite(live, b"\\0GUPIVE1", 2048)
    with open("/proc/self/stat") as stat:
        begin = int(stat.read().rpartition(")")[2].split()[19])
    os.pwrite(live, begin.to_bytes(8, "little")[:4], 2096)
    os.pwrite(live, asked.to_bytes(4, "little"), 2104)
pids = [child(hang) for _ in range(20)]
first = seconds(pids[0], signal.SIGTERM)
whole = first + sum(seconds(pid, signal.SIGTERM) for pid in pids[1:])
last = seconds(child(hang), signal.SIGKILL)
others = seconds(child(lambda: hang(1)), signal.SIGHUP)
assert 0.1 <= others < 0.2 and 0.1 <= first < 0.2 and 1 <= whole < 1.6 and last >= 0.1, \\
    (others, first, whole, last)
"""


@pytest.mark.parametrize("text", [HARMLESS, DESCRIPTORS, SILENT],
                         ids=["harmless", "descriptors", "silent"])
def test_what_asking_costs(text, tmp_path):
    """Signals to a group that handles them; the end of a process with many descriptors; those that
    do not answer, also whom others ask: a second for all, and another signal has its own time."""
    subprocess.run([sys.executable, "-c", text, tmp_path], check=True, timeout=60,
                   env=dict(os.environ, LD_PRELOAD=str(BUILD / "libgpuprof.so")))
