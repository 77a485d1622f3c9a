# SPDX-License-Identifier: Apache-2.0
"""What a folder's recordings hold, read from the collector's `dump`: nothing else is needed."""

import collections
import csv
import os
import re
import subprocess

from gpu_table import COLLECTOR, Failure, bare_environment, collect, tail

FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)')
LOOK = "1"  # SAMPLE_GAP
LABEL_SCOPE = "7"  # of PyTorch's RecordFunction
WORK = ("kernel", "copy", "set", "graph")
CLASSES = (("launch", re.compile("cu(da)?Launch(Kernel|Cooperative)")),
           ("graph_launch", re.compile("cu(da)?GraphLaunch")),
           ("copy", re.compile("cu(da)?Memcpy")), ("set", re.compile("cu(da)?Memset")),
           ("sync", re.compile("cu(da)?(Stream|Event|Device|Ctx)Synchronize")))

Call = collections.namedtuple("Call", "name kind begin end thread correlation captured")
Work = collections.namedtuple("Work", "kind begin end correlation graph name")
Silence = collections.namedtuple("Silence", "silent since cpu run_delay")
Look = collections.namedtuple("Look", "ns state syscall")  # into a gap; syscall: None where it runs


class Process:
    """One process's recording."""

    def __init__(self, header):
        self.pid = int(header["pid"])
        self.gpu_rows_at, self.gpu_rows = -1, "absent: the recording does not say"
        self.calls, self.work, self.notes, self.steps, self.silences = [], [], [], [], []
        self.looks, self.sampled_ns = [], 0  # the latter of the first thread
        self.waits = collections.Counter()  # of the C library's functions, by their codes
        self.further = {}  # a correlation id that a call made besides its own -> its own
        self.texts = collections.Counter()
        self.op_names, self.op_marks = {}, []  # number -> name; (time, is begin, object, ...)
        self.op_stacks = {}  # of what is no label: (object, begin) -> has it a stack
        self.python = ""
        self.capability = None

    def add(self, what, line):
        fields = dict(FIELD.findall(line))
        if what == "call":
            name = line.split(None, 2)[1]
            plain = re.sub(r"^__|_pt[ds][sz]$", "", name)
            kind = next((k for k, pattern in CLASSES if pattern.match(plain)), "other")
            begin = int(fields["begin"])
            self.calls.append(Call(name, kind, begin, begin + int(fields["dur"]),
                                   fields["thread"], int(fields.get("correlation", 0)),
                                   " captured" in line))
        elif what in WORK:
            begin = int(fields["begin"])
            self.work.append(Work(what, begin, begin + int(fields["dur"]),
                                  int(fields.get("correlation", 0)), int(fields["graph"]),
                                  fields.get("kernel", "").strip('"')))
        elif what == "silence":
            self.silences.append(Silence(*(int(fields[name]) for name in Silence._fields)))
        elif what == "sample" and fields.get("code") == LOOK:
            waits = fields["syscall"] if fields["syscall"] != "-" else None
            self.looks.append(Look(int(fields["period"]) * int(fields.get("weight", 1)),
                                   chr(int(fields["state"])), waits))
        elif what == "sample" and f" of_tid={self.pid} " in line:
            self.sampled_ns += int(fields["period"]) * int(fields.get("weight", 1))
        elif what == "os_call":
            self.waits[int(fields.get("code", 0))] += 1
        elif what == "link":
            self.further[int(fields["further"])] = int(fields["correlation"])
        elif what in ("note", "step"):
            (self.notes if what == "note" else self.steps).append(
                (int(fields["begin"]), fields.get("text", fields.get("number", "")).strip('"')))
        elif what == "op_name":
            self.op_names[int(fields["name"])] = fields["text"].strip('"')
        elif what in ("op_begin", "op_end"):
            self.op_marks.append((int(fields["begin"]), what == "op_begin", fields["op"],
                                  int(fields.get("name", 0)), fields["thread"]))
            if what == "op_begin" and fields.get("code") != LABEL_SCOPE:
                self.op_stacks[fields["op"], int(fields["begin"])] = "stack" in fields
        elif what == "push":
            self.texts[fields.get("text", "").strip('"')] += 1
        elif what == "meta" and fields["text"].startswith('"gpu_rows='):
            self.gpu_rows_at, self.gpu_rows = max(
                (self.gpu_rows_at, self.gpu_rows),
                (int(fields["begin"]), fields["text"][len('"gpu_rows='):-1]))
        elif what == "meta" and fields["text"].startswith('"python='):
            self.python = fields["text"][len('"python='):-1]
        elif what == "device" and self.capability is None:
            self.capability = int(fields["major"]), int(fields["minor"])

    def has_gpu_rows(self):
        return self.gpu_rows.startswith("from ")

    def of(self, kind, captured=False):
        """Calls of a class, in order of begin."""
        return sorted((c for c in self.calls if c.kind == kind and c.captured == captured),
                      key=lambda c: c.begin)

    def operators(self):
        """PyTorch's operators and labels that ended: (name, begin, end, thread)."""
        ended, opened = [], {}
        for time, begins, op, name, thread in sorted(self.op_marks, key=lambda mark: mark[0]):
            if begins:
                opened[op] = self.op_names.get(name), time, thread
            elif op in opened:
                text, begin, its = opened.pop(op)
                ended.append((text, begin, time, its))
        return ended

    def done(self, kind):
        """What the device did."""
        return [w for w in self.work if w.kind == kind]

    def owner(self, correlation):
        """A call's own correlation id, for one that its work has."""
        return self.further.get(correlation, correlation)

    def tolerance(self):
        """The resolution of the device's clock, ns: finer from GH100 on."""
        return 32 if (self.capability or (0, 0)) >= (9, 0) else 1000


def files(folder):
    return sorted(n for n in os.listdir(folder) if n.endswith(".gpuprof")) \
        if os.path.isdir(folder) else []


def read(folder):
    """The processes that recorded into `folder`."""
    processes = []
    with subprocess.Popen([str(COLLECTOR), "dump", str(folder)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, errors="replace",
                          env=bare_environment()) as dump:
        for line in dump.stdout:
            what = line.split(None, 1)[0]
            if what == "header":
                processes.append(Process(dict(FIELD.findall(line))))
            elif processes and what not in ("api", "block"):
                processes[-1].add(what, line)
        message = dump.stderr.read()
    if dump.returncode or not processes:
        raise Failure(f"dump ended with {dump.returncode} and {len(processes)} recordings: "
                      f"{message.strip()[:200]}")
    return processes


def losses(folder):
    """What the recording lacks, as `report` counts it: name -> count."""
    done = collect("report", "--format=csv", "--table=losses", folder)
    if done.status or not done.stdout.startswith("kind,"):
        raise Failure(f"report ended with {done.status}: {tail(done.stderr)}")
    rows = csv.DictReader(done.stdout.splitlines())
    return {r["name"]: int(r["count"]) for r in rows if r["kind"] in ("loss", "damage")}


def read_one(folder):
    processes = read(folder)
    if len(processes) != 1:
        raise Failure(f"{len(processes)} processes recorded, not 1")
    return processes[0]
