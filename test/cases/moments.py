# SPDX-License-Identifier: Apache-2.0
"""What src/moments_work.c has done, by its own books, and the comparison with what was recorded:
every copy is there that had to be, none that had not, and the data says which is which."""

import bisect
import dataclasses
import struct

import stream_reader
from stream_reader import PAUSE, STEP_DOWN, WINDOW

BEGIN, COPY, STEP, OPEN, CLOSE, FORK = range(1, 7)
ENTRIES = 1 << 15  # of each thread
CLOCKS_NS = 50_000       # of two clocks: truth.py's
EDGE_NS = 200_000_000    # a thread of ours that turns something, on a machine with other work
DELAY_NS = 200_000_000   # the same of --delay and --duration
TENTH, HUNDREDTH = 3, 4
FOREVER = 1 << 63


@dataclasses.dataclass(slots=True)
class Entry:
    begin: int
    end: int  # FOREVER: it had not returned
    what: int
    number: int


class Book:
    """A process's own log."""

    def __init__(self, path):
        self.pid = int(path.suffix[1:])
        data = path.read_bytes()
        self.threads = []
        for at in range(0, len(data), 32 * ENTRIES):
            entries = []
            for begin, end, what, number in struct.iter_unpack("<4Q", data[at:at + 32 * ENTRIES]):
                if not begin:
                    break
                entries.append(Entry(begin, end or FOREVER, what, number))
            self.threads.append(entries)

    @property
    def memory(self):
        return self.threads[0][0].number

    @property
    def begin(self):
        return self.threads[0][0].begin

    def turns_of(self, *wanted):
        return [e for e in self.threads[0] if e.what in wanted]


class Times:
    """When something holds: `must` are intervals in which it does all the time, outside of `may` it
    never does."""

    def __init__(self):
        self.must, self.may = [], []

    def add(self, last_off, first_on, last_on, first_off):
        """Some change from off to on is between the first two, the one back between the others."""
        if first_on < last_on:
            self.must.append((first_on, last_on))
        self.may.append((last_off, first_off))

    def holds(self, begin, end):
        i = bisect.bisect(self.must, (begin, FOREVER)) - 1
        return i >= 0 and end <= self.must[i][1]

    def may_hold(self, begin, end):
        i = bisect.bisect(self.may, (end, FOREVER)) - 1
        return i >= 0 and begin <= self.may[i][1]


def alternating(changes):
    """Times of (begin, end, is it on?), where the change is between the two."""
    times, on = Times(), None
    for begin, end, state in changes:
        if state and not on:
            on = begin, end
        elif on and not state:
            times.add(*on, begin, end)
            on = None
    if on:
        times.add(*on, FOREVER, FOREVER)
    return times


def is_active(step, skip_first, wait, active, repeat):
    step -= skip_first
    cycle, at = divmod(step, wait + active)
    return step >= 0 and (not repeat or cycle < repeat) and at >= wait


def captures(book, end):
    """(entry, is it inside?)"""
    count, inside, over = 0, False, False
    for e in book.turns_of(OPEN, CLOSE):
        if e.what == OPEN and not inside and not over:
            count, inside = count + 1, True
        elif e.what == CLOSE and inside and end != "none":
            inside, over = False, end in ("stop", f"repeat:{count}")
        yield e, inside


def windows(book, kind, how, first):
    """When a window is open, by what the program did. `first`: when the first process began."""
    if kind == "schedule":
        return alternating((e.begin, e.end, is_active(i, **how))
                           for i, e in enumerate(book.turns_of(STEP)))
    if kind == "capture":
        return alternating((e.begin, e.end, inside) for e, inside in captures(book, how))
    times = Times()
    if kind == "delay":
        delay, duration = how
        begin = max(first + delay, book.begin)
        times.add(begin - DELAY_NS, begin + DELAY_NS, begin + duration - DELAY_NS,
                  begin + duration + DELAY_NS)
    else:
        times.add(0, 0, FOREVER, FOREVER)
    return times


def running(process, at):
    """When gpuprof ctl had it running, as the data says: of a stop it says no later time than the
    true one, of a start no earlier one."""
    changes = [(0, 0, True)]
    for r in sorted(process.of_type(PAUSE), key=lambda r: r.begin):
        assert r.args[1] == 1, "the program has stopped nothing"
        time = at(r.begin)
        changes.append((time - CLOCKS_NS, time + EDGE_NS, False) if r.args[0] else
                       (time - EDGE_NS, time + CLOCKS_NS, True))
    states = [state for _, _, state in changes]
    assert states == [i % 2 == 0 for i in range(len(states))], "a change is stated twice"
    return alternating(changes)


def stated(process, at):
    """When the data says that a window is open."""
    return alternating((at(r.begin), at(r.begin), r.args[1] == 1) for r in
                       sorted(process.of_type(WINDOW), key=lambda r: r.begin))


def kept(says):
    """Of a flight recorder: what some thread did just before, and was stored in it, is there."""
    times = Times()
    times.must = says.must
    times.may = [(begin - EDGE_NS, end) for begin, end in says.may]
    return times


def copies(process, book, at):
    """(thread, number) -> begin and end of each recorded copy, on the book's clock."""
    found = {}
    for call in process.calls():
        if call.symbol == "cudaMemset":
            key = call.args["bytes"] - 64, call.args["ptr"] - book.memory
            assert key not in found, "recorded twice"
            found[key] = at(call.begin), at(call.end) if call.end else FOREVER
    return found


def has_copied(book, window, first):
    open_ = windows(book, *window, first)
    return any(e.what == COPY and e.end != FOREVER and open_.holds(e.begin, e.end)
               for entries in book.threads for e in entries)


def compare(process, book, window, first):
    """What is wrong, as texts, and how many copies were of which sort."""
    at = process.monotonic()
    run, says = running(process, at), stated(process, at)
    open_ = kept(says) if window[0] == "flight" else windows(book, *window, first)
    down = [at(r.begin) for r in process.of_type(STEP_DOWN) if r.code in (TENTH, HUNDREDTH)]
    governed = min(down, default=FOREVER) - CLOCKS_NS
    found, wrong = copies(process, book, at), []
    counts = dict(must=0, may=0, never=0, passed=0, recorded=len(found))
    for thread, entries in enumerate(book.threads):
        for e in (e for e in entries if e.what == COPY):
            its = found.pop((thread, e.number), None)
            text = f"pid {book.pid}, thread {thread}, copy {e.number} at {e.begin - book.begin} ns"
            must = e.end != FOREVER and open_.holds(e.begin, e.end) and run.holds(e.begin, e.end)
            may = open_.may_hold(e.begin, e.end) and run.may_hold(e.begin, e.end)
            counts["must" if must else "may" if may else "never"] += 1
            if its and not may:
                wrong.append(f"{text}: recorded, though nothing was to be")
            if its and (its[0] < e.begin - CLOCKS_NS or its[1] > e.end + CLOCKS_NS):
                wrong.append(f"{text}: recorded at another time")
            if its and must and window[0] != "none" and \
                    not says.may_hold(its[0] - CLOCKS_NS, its[0] + CLOCKS_NS):
                wrong.append(f"{text}: recorded where the data has no window")
            if must and not its and e.end > governed:
                counts["passed"] += 1
            elif must and not its:
                wrong.append(f"{text}: not recorded")
    wrong += [f"pid {book.pid}: {key}: recorded, but never made" for key in found]
    return wrong, counts
