# SPDX-License-Identifier: Apache-2.0
"""faulthandler's watchdog and its signal, timers of wall-clock and of CPU time, in threads."""

import faulthandler
import os
import signal
import sys
import tempfile
import threading

over = threading.Event()


def work():
    x = 0
    for i in range(400000):
        x = (x * 31 + i) & 0xffff
    over.wait()  # the watchdog reads threads' frames unlocked: none ends meanwhile


def count(number):
    hits = []
    signal.signal(number, lambda *_: hits.append(1))
    return hits


with tempfile.TemporaryFile("w+") as file:
    faulthandler.dump_traceback_later(0.02, repeat=True, file=file)
    faulthandler.register(signal.SIGUSR1, file=file)
    alarms, ticks = count(signal.SIGALRM), count(signal.SIGPROF)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    signal.setitimer(signal.ITIMER_PROF, 0.005, 0.005)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while len(alarms) < 10 or len(ticks) < 5:
        pass
    faulthandler.cancel_dump_traceback_later()
    for _ in range(50):
        os.kill(os.getpid(), signal.SIGUSR1)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.setitimer(signal.ITIMER_PROF, 0)
    over.set()
    for thread in threads:
        thread.join()
    file.seek(0)
    text = file.read()
print(text.count("Timeout") > 0, text.count("Current thread") >= 50, "in work" in text)
sys.exit(4)
