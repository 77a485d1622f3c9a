# SPDX-License-Identifier: Apache-2.0
"""The Python frames of operators (--pytorch=stacks), beside those of torch.profiler's with_stack in
the same run."""

import collections
import json
import struct

import check_torch
import stream_reader

WORK = check_torch.HERE / "stacks_work.py"
LABEL = 7
CALLS_MODULE = "_wrapped_call_impl"  # torch.profiler has the module's name in its place


def functions(process, number):
    """Of a stack, the outermost first."""
    places = {r.args[0]: r.text.split(b"\0")[1].decode().rpartition(".")[2]
              for r in process.of_type(stream_reader.TYPE_NUMBERS["python"])}
    [text] = [r.text for r in process.of_type(stream_reader.TYPE_NUMBERS["stack"])
              if r.args[0] == number]
    return tuple(places[frame & 0xFFFFFFFF]
                 for frame in reversed(struct.unpack(f"<{len(text) // 8}Q", text)))


def ours(process):
    ops = [op for op in stream_reader.read_ops(process) if op.end]
    [window] = [op for op in ops if op.name == "window"]
    ops = [op for op in ops if op.thread == window.thread and op.scope != LABEL and
           window.begin < op.begin < window.end]
    known = {op.stack: functions(process, op.stack) for op in ops if op.stack}
    return [(op.name, known.get(op.stack)) for op in ops], len(ops)


def theirs(trace):
    """Each operator of the window, with the Python functions around it if it is in no other one."""
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("ph") == "X"]
    [window] = [e for e in events if e["name"] == "window" and e["cat"] == "user_annotation"]
    events = [e for e in events if e["tid"] == window["tid"] and
              e["cat"] in ("cpu_op", "python_function")]
    found, open_events = [], []
    for e in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        while open_events and open_events[-1]["ts"] + open_events[-1]["dur"] <= e["ts"]:
            open_events.pop()
        if e["cat"] == "cpu_op" and window["ts"] < e["ts"] < window["ts"] + window["dur"]:
            is_inner = any(o["cat"] == "cpu_op" for o in open_events)
            names = [o["name"] for o in open_events]
            found.append((e["name"], None if is_inner else tuple(
                CALLS_MODULE if name.startswith("nn.Module: ") else name.rpartition(": ")[2]
                for name in names if "): " in name or name.startswith("nn.Module: "))))
        open_events.append(e)
    return found


def test_stacks(tmp_path):
    trace = tmp_path / "trace.json"
    check_torch.run([check_torch.GPUPROF, "run", "-o", tmp_path / "out", "--pytorch=stacks", "--",
                     check_torch.PYTHON, WORK, trace], check_torch.environment())
    [process] = stream_reader.read_folder(tmp_path / "out")
    mine, count = ours(process)
    their = theirs(trace)
    assert [name for name, _ in mine] == [name for name, _ in their] and count > 100
    assert mine == their
    kinds = collections.Counter(stack is None for _, stack in mine)
    print(dict(kinds))
    assert kinds[True] > 50 and kinds[False] > 50
