# SPDX-License-Identifier: Apache-2.0
"""Why a device was idle, from the simulated CUDA's own log of a program with one thread, and the
guide's rules."""

import collections
import re

import gpu_truth
import truth

NEAR, NOTHING = 50_000, 5_000_000_000
CAUSES = (("sync", "Synchronize"), ("copy", "cudaMemcpy"), ("allocation", "cudaMalloc|cudaFree"),
          ("launch", "cudaLaunch|cudaMemset|cudaEvent"))


def cause_of(symbol):
    return next(cause for cause, pattern in CAUSES if re.search(pattern, symbol))


def calls_of(log):
    """(begin, end, cause, seq) of the program's own calls."""
    return sorted((line.begin, line.end, cause_of(line.symbol), line.seq)
                  for lines in truth.read_log(log) for line in lines
                  if line.depth == 0 and not truth.UNRECORDED.fullmatch(line.symbol))


def works_of(log):
    """(begin, end, seq of its call, whether it computes) of the device's work."""
    return sorted((a.begin, a.end, a.seq, a.values["kind"] == gpu_truth.KERNEL)
                  for a in gpu_truth.made(gpu_truth.read_log(log)).values()
                  if a.values["kind"] in gpu_truth.DEVICE_WORK)


def pieces(calls, loads, begin, end, call, busy_from):
    """(cause, ns) of a gap that the work of `call` ends."""
    at, credit = begin, 0
    spans = sorted([c[:3] for c in calls if not any(a <= c[0] < b for a, b in loads)] +
                   [(a, b, "loader") for a, b in loads])
    before = max((b for _, b, _ in spans if b <= begin), default=begin)
    for first, last, cause in spans:
        if last <= begin or first >= min(call[1], end):
            continue
        if first > at:
            ns = first - before
            own = cause if ns < NEAR else "host" if ns < NOTHING else "nothing"
            paid = min(credit, first - at) if own in ("host", "launch") else 0
            credit -= paid
            yield "sync", paid
            yield own, first - at - paid
            at = first
        until = min(last, end, call[1])
        paid = min(credit, until - at) if cause == "launch" else 0
        credit -= paid
        yield "sync", paid
        yield cause, until - at - paid
        at, before = until, last
        if cause in ("sync", "copy") and first < begin < last:
            credit = max(0, (begin if cause == "sync" else busy_from) - first)
    if at < end:
        yield ("launch" if end - at < NEAR else "sync"), end - at


def idle(log, loads):
    """Sums by cause, from the first work to the last."""
    calls, works = calls_of(log), works_of(log)
    by_seq = {c[3]: c for c in calls}
    sums, until, compute = collections.Counter(), works[0][0], 0
    for begin, end, seq, computes in works:
        if begin > until:
            for cause, ns in pieces(calls, loads, until, begin, by_seq[seq], compute):
                sums[cause] += ns
        until = max(until, end)
        compute = max(compute, end) if computes else compute
    return sums
