# SPDX-License-Identifier: Apache-2.0
"""
Python frames: as the library's sources read them in a module of Python's own, compared with what
Python says of itself (src/python_scenes.py), and as they are in a recording. Under the system's
Python, and under those that `make fetch-python` has fetched.
"""

import json
import os
import pathlib
import shutil
import subprocess
import textwrap

import conftest
import pytest
import stream_reader
import toolchain

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="Python runs natively")

SYSTEM = "/usr/bin/python3"
FETCHED = conftest.BUILD / "python"
KNOWN = ("3.12", "3.13", "3.14", "3.15")
OLD = ("3.8", "3.9", "3.10")  # if some other Python that is installed is that
FREE = ("3.13t", "3.14t")  # free-threaded, likewise: no package of Debian's has one
UNKNOWN = "3.7"
SCENES = ("functions nested generators comprehensions decorators recursion coroutines threads "
          "paused lines executed texts again traced replaced churn interrupted looked_at parts "
          "borrowed borrowed_places borrowed_by_turns borrowed_in_churn wrong").split()
READER = ("python_reader python python_walk python_code python_text python_layout python_places "
          "python_borrow python_facts memory_read objects pages signals futex leader proc status "
          "ticks").split()

CHAINS_SEED = 20  # another one makes other programs

PYTHON, STACK, MODULE, GC = 32, 33, 31, 66
CUT, BORROWED = 1, 2


SHARED = ("-shared", "-fPIC", "-fvisibility=hidden", "-std=gnu11")


def python_flags():
    found = subprocess.run(["pkg-config", "--cflags", "python3"], capture_output=True, text=True,
                           check=False)
    assert found.returncode == 0, f"python3-dev is not installed: {found.stderr}"
    return [*found.stdout.split(), *SHARED]


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """The folder of the modules python_reader and python_cuda, for every version of Python: one
    with the limited API for all, and others for free-threaded ones, which do not have that."""
    folder = tmp_path_factory.mktemp("modules")
    inject = conftest.ROOT / "inject"
    sources = [str(conftest.source("inject", f"{name}.c")) for name in READER[1:]]
    headers = [f"-I{inject}", f"-I{conftest.ROOT / 'formats'}"]
    kinds = [(python_flags(), ".abi3.so")]
    for python in filter(None, map(find_interpreter, FREE)):
        asked = ("import sysconfig as s; print(s.get_path('include'), "
                 "s.get_config_var('EXT_SUFFIX'))")
        include, suffix = subprocess.run([python, "-c", asked], text=True, check=True,
                                         stdout=subprocess.PIPE).stdout.split()
        kinds.append((["-isystem", include, "-DFREE_THREADED", *SHARED], suffix))
    for flags, suffix in kinds:
        for name, more in (("python_reader", [*headers, *sources, "-O2",
                                              "-Wl,--wrap=python_code_place"]),
                           ("python_cuda", toolchain.runtime(12))):
            module = toolchain.build(f"{name}.c", *flags, *more)
            (folder / f"{name}{suffix}").symlink_to(module)
    return folder


def find_interpreter(version):
    if version == "system":
        return SYSTEM
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"), "versions")
    for path in (FETCHED / version / "python", *pyenv.glob(f"{version}.*/bin/python{version}"),
                 *pyenv.glob(f"{version[:-1]}.*t/bin/python{version}"),
                 shutil.which(f"python{version}")):
        if path and os.path.exists(path):
            return str(path)
    return None


def interpreter(version):
    return find_interpreter(version) or pytest.skip(
        f"not run: no Python {version} is installed, or in {FETCHED} (make fetch-python)")


@pytest.fixture(params=("system", *KNOWN, *FREE))
def python(request):
    return interpreter(request.param)


@pytest.fixture(params=("system", *KNOWN, *OLD, *FREE))
def any_python(request):
    return interpreter(request.param)


def scene(python, modules, *names, **settings):
    env = toolchain.environment(None, PYTHONPATH=modules, PYTHONDONTWRITEBYTECODE=1, **settings)
    return toolchain.run([python, toolchain.SOURCES / "python_scenes.py", *names], env, timeout=300)


@pytest.mark.parametrize("name", SCENES)
def test_frames_are_those_that_python_tells(python, modules, name):
    assert scene(python, modules, name).stdout.startswith("compared ")


def test_more_places_than_there_is_room_for(modules):
    assert scene(SYSTEM, modules, "full").stdout.startswith("compared ")


@pytest.mark.parametrize("version", OLD)
def test_frames_of_old_versions_are_those_that_python_tells(modules, version):
    slow = ("replaced", "churn", "wrong")
    names = [name for name in SCENES if name not in slow and "borrowed" not in name]
    assert scene(interpreter(version), modules, *names).stdout.startswith("compared ")


def run_chains(python, modules, mode, count, env=None):
    """src/python_chains.py, with the numbers of programs made at random."""
    env = env or toolchain.environment(None)
    env.update(PYTHONPATH=str(modules), PYTHONDONTWRITEBYTECODE="1")
    program = toolchain.SOURCES / "python_chains.py"
    return toolchain.run([python, program, mode, CHAINS_SEED, count], env, timeout=300)


def test_chains_made_at_random(python, modules):
    assert "compared " in run_chains(python, modules, "read", 150).stderr


def test_without_the_call_that_reads(modules):
    """Where a container forbids process_vm_readv; and where nothing is left to read with."""
    assert scene(SYSTEM, modules, "functions", FORBID="call").stdout.startswith("compared ")
    status, said, is_here = scene(SYSTEM, modules, "status", FORBID="both").stdout.split("|")
    assert status.startswith("absent: Python 3.") and "process_vm_readv" in status
    assert status.removeprefix("absent: ") in said and is_here == "False\n"


def record(folder, library, modules, python, script, status=0, **settings):
    """Runs the script under gpuprof: a stack for every call. The processes, and its output."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(script), encoding="utf-8")
    settings = {"GPUPROF_BACKTRACE_THRESHOLD": "0", "PYTHONPATH": f"{modules}:{folder}",
                "PYTHONDONTWRITEBYTECODE": 1, **settings}
    env = toolchain.environment(folder / "data", library, **settings)
    done = toolchain.run([python, path], env, status)
    processes = stream_reader.read_folder(folder / "data")
    toolchain.remove_live(processes)
    return processes, done


class Stacks:
    """The calls of a process, each as a list of frames: (file, line, function), or a module."""

    def __init__(self, process):
        places, modules, self.stacks = {}, {}, {}
        for r in process.of_type(PYTHON):
            file, _, function = r.text.partition(b"\0")
            assert r.args[0] not in places
            places[r.args[0]] = (os.path.basename(file.decode()), r.args[1], function.decode())
        for r in process.of_type(MODULE):
            modules[r.args[0]] = os.path.basename(r.text.decode().partition(" ")[2])
        for r in process.of_type(STACK):
            frames = []
            for at in range(0, len(r.text), 8):
                word = int.from_bytes(r.text[at:at + 8], "little")
                kind = word >> 60
                assert kind in (0, 1, 2)
                frames.append(places[word & 0xffffffff] if kind == 2 else
                              modules[word >> 40 & 0xfffff] if kind == 0 else None)
            self.stacks[r.args[0]] = (r.args[1], frames)
        self.calls = [self.stacks.get(r.stack) for r in process.of_type(1)]

    def python(self, call):
        return [f for f in self.calls[call][1] if isinstance(f, tuple)]


def test_in_place_of_the_interpreters_loop(tmp_path, library, modules, any_python):
    (process,), _ = record(tmp_path, library, modules, any_python, """\
        import python_cuda
        class Layer:
            def forward(self):
                python_cuda.work()
        def deep(n):
            if n:
                return python_cuda.call_python(
                    lambda: deep(n - 1))
            return Layer().forward()
        deep(2)
        python_cuda.work_held()
        """)
    stacks = Stacks(process)
    assert process.meta["python"].startswith("3.") and not process.losses
    flags, frames = stacks.calls[0]
    assert flags == 0
    extension = "python_cuda"
    shown = [f if isinstance(f, tuple) else extension for f in frames
             if isinstance(f, tuple) or f and f.startswith(extension)]
    s = "script.py"
    wanted = [
        extension, extension, (s, 4, "Layer.forward"), (s, 9, "deep"),
        (s, 8, "deep.<locals>.<lambda>"),
        extension, (s, 7, "deep"), (s, 8, "deep.<locals>.<lambda>"),
        extension, (s, 7, "deep"), (s, 10, "<module>")]
    if process.meta["python"].startswith(OLD):  # it knows the functions' own names alone
        wanted = [f if f == extension else (*f[:2], f[2].rsplit(".", 1)[-1]) for f in wanted]
    # Before 3.11 one starts where it stands, later where the expression does.
    assert [f if f == extension else (f[0], f[2]) for f in shown] == \
        [f if f == extension else (f[0], f[2]) for f in wanted]
    assert shown == wanted or process.meta["python"].startswith(OLD)
    assert stacks.python(1) == [(s, 11, "<module>")]
    assert frames[-1] and not frames[-1].startswith(extension)  # it goes on to where C begins
    assert any(f and f.startswith("libc.so") for f in frames if isinstance(f, str))


def test_recorded_chains_made_at_random(tmp_path, library, modules, any_python):
    env = toolchain.environment(tmp_path, library, GPUPROF_BACKTRACE_THRESHOLD=0,
                                GPUPROF_BACKTRACE_DEPTH=512)
    told = run_chains(any_python, modules, "record", 100, env).stdout.splitlines()
    (process,) = stream_reader.read_folder(tmp_path)
    toolchain.remove_live([process])
    stacks, calls = Stacks(process), process.of_type(1)
    assert len(calls) == len(told) > 500 and not process.losses
    order = sorted(range(len(calls)), key=lambda i: calls[i].begin)
    for i, line in zip(order, told):
        want = [(os.path.basename(file), at, function) for file, function, at in json.loads(line)]
        assert stacks.python(i) == want
        frames = stacks.calls[i][1]
        assert stacks.calls[i][0] == 0 and isinstance(frames[0], str)


def test_known_places_are_written_once(tmp_path, library, modules):
    (process,), _ = record(tmp_path, library, modules, SYSTEM, """\
        import python_cuda
        def step():
            for _ in range(50):
                python_cuda.work()
        for _ in range(20):
            step()
        """)
    assert len(process.calls()) == 1000
    assert len(process.of_type(STACK)) == 1 and len(process.of_type(PYTHON)) == 2


def test_threads_and_tasks(tmp_path, library, modules, python):
    (process,), _ = record(tmp_path, library, modules, python, """\
        import asyncio, threading
        import python_cuda
        names = {"python_cuda": python_cuda}
        for i in range(6):
            exec(compile(f"def work_{i}():\\n" + "\\n" * i + "  python_cuda.work()", f"f{i}.py",
                         "exec"), names)
        def run(i):
            for _ in range(100):
                names[f"work_{i}"]()
        threads = [threading.Thread(target=run, args=(i,)) for i in range(6)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        async def leaf():
            await asyncio.sleep(0)
            python_cuda.work()
        async def task():
            await leaf()
        asyncio.run(task())
        """)
    stacks = Stacks(process)
    calls = process.of_type(1)
    seen = {}
    for i, call in enumerate(calls[:-1] if len(calls) == 601 else calls):
        python = stacks.python(i)
        if python[0][0].startswith("f"):
            seen.setdefault(call.thread, []).append(python)
    assert len(seen) == 6
    for frames in seen.values():
        number = int(frames[0][0][0][1])
        assert len(frames) == 100 and all(f == frames[0] for f in frames)
        assert frames[0][:2] == [(f"f{number}.py", 2 + number, f"work_{number}"),
                                 ("script.py", 9, "run")]
        assert frames[0][-1][2] == "Thread._bootstrap"
    tasks = [stacks.python(i) for i in range(len(calls)) if stacks.python(i)[0][2] == "leaf"]
    assert len(tasks) == 1
    assert tasks[0][:2] == [("script.py", 15, "leaf"), ("script.py", 17, "task")]


def test_depth(tmp_path, library, modules):
    script = """\
        import python_cuda
        def down(n):
            return down(n - 1) if n else python_cuda.work()
        down(500)
        """
    (process,), _ = record(tmp_path, library, modules, SYSTEM, script, GPUPROF_BACKTRACE_DEPTH=40)
    (flags, frames), = Stacks(process).calls
    assert flags == CUT and len(frames) == 40
    assert all(f == ("script.py", 3, "down") for f in frames if isinstance(f, tuple))
    shutil.rmtree(tmp_path / "data")
    (process,), _ = record(tmp_path, library, modules, SYSTEM, script, GPUPROF_BACKTRACE_DEPTH=512)
    (flags, frames), = Stacks(process).calls
    places = [i for i, f in enumerate(frames) if isinstance(f, tuple)]
    assert flags == CUT and len(places) == 256
    assert places == list(range(places[0], places[0] + 256))  # where the one loop is
    assert frames[-1] not in places and isinstance(frames[-1], str)


def test_switched_off(tmp_path, library, modules):
    (process,), _ = record(tmp_path, library, modules, SYSTEM, """\
        import python_cuda
        python_cuda.work()
        """, GPUPROF_PYTHON="off")
    stacks = Stacks(process)
    assert process.meta["python"] == "absent: switched off"
    assert stacks.calls[0][1] and not stacks.python(0)


def test_unknown_version_is_said(tmp_path, library, modules):
    (process,), done = record(tmp_path, library, modules, interpreter(UNKNOWN), """\
        import python_cuda
        [python_cuda.work() for _ in range(3)]
        """)
    stacks = Stacks(process)
    assert process.meta["python"].startswith(f"absent: Python {UNKNOWN}.")
    assert process.meta["said"].startswith(f"stacks have no Python frames: Python {UNKNOWN}.")
    assert done.stderr == ""  # a parent may read it
    assert stacks.calls[0][1] and not stacks.python(0)


def test_version_without_a_runtime_is_said(tmp_path, library):
    program = toolchain.build("python_old.c", *toolchain.runtime(12), "-rdynamic")
    env = toolchain.environment(tmp_path, library, GPUPROF_BACKTRACE_THRESHOLD=0)
    done = toolchain.run([program], env)
    (process,) = stream_reader.read_folder(tmp_path)
    toolchain.remove_live([process])
    assert process.meta["python"].startswith("absent: Python of an unknown version: ")
    assert "of an unknown version" in process.meta["said"] and done.stderr == ""
    assert Stacks(process).calls[0][1]


def test_borrowed_from_the_thread_that_waits(tmp_path, library, modules, python):
    autograd = tmp_path / "torch" / "autograd"
    autograd.mkdir(parents=True)
    (autograd / "__init__.py").write_text("")
    (autograd.parent / "__init__.py").write_text("")
    (autograd / "graph.py").write_text(
        "import python_cuda\ndef _engine_run_backward():\n    python_cuda.run_backward()\n")
    (process,), _ = record(tmp_path, library, modules, python, """\
        import python_cuda
        from torch.autograd.graph import _engine_run_backward
        def train():
            _engine_run_backward()
        train()
        python_cuda.run_backward()
        """)
    stacks = Stacks(process)
    for call in (0, 1):
        flags, frames = stacks.calls[call]
        assert flags == BORROWED
        assert stacks.python(call) == [("graph.py", 3, "_engine_run_backward"),
                                       ("script.py", 4, "train"), ("script.py", 5, "<module>")]
        assert isinstance(frames[0], str) and frames[-3:] == stacks.python(call)  # behind its own
    for call in (2, 3):
        flags, _ = stacks.calls[call]
        assert flags == 0 and not stacks.python(call)


def test_sub_interpreter(tmp_path, library, modules, python):
    """Of one interpreter alone, and in its own place."""
    (process,), _ = record(tmp_path, library, modules, python, """\
        import sys
        import python_cuda
        if sys.version_info < (3, 13):
            import _xxsubinterpreters as interpreters
            other = interpreters.create(isolated=False)
        else:
            import _interpreters as interpreters
            other = interpreters.create("legacy")
        def outside():
            python_cuda.work()
            interpreters.run_string(other, "import python_cuda\\ndef inside():\\n"
                                    "  python_cuda.work()\\ninside()")
        outside()
        """)
    stacks = Stacks(process)
    s = "script.py"
    assert stacks.python(0) == [(s, 10, "outside"), (s, 13, "<module>")]
    assert [f[1:] for f in stacks.python(1)] in (
        [(11, "outside"), (13, "<module>")], [(3, "inside"), (4, "<module>")])
    assert isinstance(stacks.calls[1][1][0], str) and isinstance(stacks.calls[1][1][-1], str)


@pytest.mark.parametrize("version", KNOWN)
def test_trampolines(tmp_path, library, modules, version):
    """Python's support of perf: code without tables ends the native frames, not Python's."""
    (process,), _ = record(tmp_path, library, modules, interpreter(version), """\
        import os, sys
        import python_cuda
        sys.activate_stack_trampoline("perf")
        def leaf():
            python_cuda.work()
        def middle():
            leaf()
        def outer():
            python_cuda.call_python(lambda: middle())
        try:
            outer()
        finally:
            os.remove(f"/tmp/perf-{os.getpid()}.map")
        """)
    stacks = Stacks(process)
    s = "script.py"
    assert stacks.python(0) == [(s, 5, "leaf"), (s, 7, "middle"), (s, 9, "outer.<locals>.<lambda>"),
                                (s, 9, "outer"), (s, 11, "<module>")]
    assert stacks.calls[0][0] == 0


def test_child_of_a_fork(tmp_path, library, modules):
    processes, _ = record(tmp_path, library, modules, SYSTEM, """\
        import os
        import python_cuda
        def work():
            python_cuda.work()
        work()
        if os.fork() == 0:
            work()
            os._exit(0)
        os.wait()
        work()
        """)
    lines = sorted(tuple(Stacks(p).python(i)[1][1] for i in range(len(p.calls())))
                   for p in processes)
    assert lines == [(5, 10), (7,)]


def test_while_the_interpreter_ends(tmp_path, library, modules, python):
    """Threads that are in C keep calling CUDA when their states are gone."""
    processes, _ = record(tmp_path, library, modules, python, """\
        import threading, time
        import python_cuda
        ready = threading.Semaphore(0)
        def run():
            python_cuda.work()
            ready.release()
            python_cuda.work_on(100000)
        for _ in range(4):
            threading.Thread(target=run, daemon=True).start()
        [ready.acquire() for _ in range(4)]
        class Last:
            def __del__(self):
                python_cuda.work()
        last = Last()
        time.sleep(0.1)
        """)
    stacks = Stacks(processes[0])
    assert any(f and f[0][2] == "run" for f in map(stacks.python, range(len(stacks.calls))))


def test_interpreter_in_a_library_of_a_plugin(tmp_path, library):
    """Not of the program's own symbols; loaded after the first call; ended, begun again, gone."""
    name = next((line.split()[-1] for line in subprocess.run(
        ["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout.splitlines()
        if "libpython3." in line and ".so.1.0" in line), None)
    assert name, "libpython3 is not installed: python3-dev has it"
    script = tmp_path / "script.py"
    script.write_text("def f():\n  work()\nf()\nwork()\n")
    host = toolchain.build("python_host.c", *toolchain.runtime(12))
    env = toolchain.environment(tmp_path / "data", library, GPUPROF_BACKTRACE_THRESHOLD="0")
    toolchain.run([host, name, script], env)
    (process,) = stream_reader.read_folder(tmp_path / "data")
    stacks = Stacks(process)
    run = [[("<string>", 2, "f"), ("<string>", 3, "<module>")], [("<string>", 4, "<module>")],
           [], []]
    assert [stacks.python(i) for i in range(len(stacks.calls))] == [[], *run, *run, []]


def test_source_with_its_costs(tmp_path, library, modules, run_verb, python):
    """A library's lines, and Python's own, count for the line of the script below them; truths are
    the script's, which says how often it called from which of its lines."""
    package = tmp_path / "lib" / "python3.11" / "site-packages"
    package.mkdir(parents=True)
    (package / "layers.py").write_text("import python_cuda\ndef run():\n    python_cuda.work()\n")
    _, done = record(tmp_path, library, modules, python, """\
        import functools, sys
        sys.path.append(sys.argv[0].replace("script.py", "lib/python3.11/site-packages"))
        import layers
        def twice():
            layers.run()
            layers.run()
        def once(n):
            functools.reduce(lambda a, b: layers.run(), range(n + 1))
        for n in range(3):
            twice()
        once(4)
        """)
    assert not done.stdout
    report = json.loads(run_verb("report", f"--source={tmp_path}", "--format=json", "data").stdout)
    assert {row["line"]: (row["text"].strip(), row["calls"], row["calls_all"], row["bytes"])
            for row in report["source_lines"]} == {
        5: ("layers.run()", 3, 3, 192), 6: ("layers.run()", 3, 3, 192),
        8: ("functools.reduce(lambda a, b: layers.run(), range(n + 1))", 4, 4, 256),
        10: ("twice()", 0, 6, 0), 11: ("once(4)", 0, 4, 0)}
    mine = json.loads(run_verb("report", "--mine", "--format=json", "data").stdout)
    assert {(row["line"], row["calls"]) for row in mine["calls_by_python_line"]} >= \
        {(5, 3), (6, 3), (10, 0), (11, 0)}
    total = sum(row["calls"] for row in mine["calls_by_python_line"])
    assert total + mine["without_stack"]["calls"] == 10


COLLECTS = """\
    import gc, json, sys, threading, time
    import python_cuda
    told = []
    def tell(phase, info, begin=[0]):
        now = time.monotonic_ns()
        if phase == "stop":
            told.append((info["generation"], info["collected"], info["uncollectable"],
                         now - begin[0], threading.get_ident() == main))
        begin[0] = now
    main = threading.get_ident()
    gc.disable()
    python_cuda.work()
    end = time.monotonic() + WAIT
    while not gc.callbacks and time.monotonic() < end:
        time.sleep(0.005)
    if EXPECTED:
        gc.callbacks.append(tell)  # behind the other: inside it at the begin
    def cycles(n):
        for _ in range(n):
            a = []
            a.append(a)
    def work():
        kept = [[i] for i in range(60000)]
        for generation in (0, 1, 2, 0, 2):
            cycles(2000)
            gc.collect(generation)
        return kept
    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    gc.enable()
    kept = [[i] for i in range(20000)]  # of itself
    gc.disable()
    print(json.dumps([len(gc.callbacks), told]))
    sys.stdout.flush()
    if CLEARED:
        gc.callbacks.clear()
        gc.collect()
        time.sleep(1.5)
    """


def collections(folder, library, modules, python, wait=3, cleared=False, **settings):
    """Those in the recording, as Python tells them; how many callbacks there were; the process."""
    script = COLLECTS.replace("WAIT", str(wait)).replace("CLEARED", str(cleared)).replace(
        "EXPECTED", str(bool(settings)))
    (process,), done = record(folder, library, modules, python, script, **settings)
    callbacks, told = json.loads(done.stdout)
    main = process.of_type(1)[0].thread
    found = [(r.code, *r.args[:2], r.duration, r.thread == main) for r in process.of_type(GC)]
    return found, [tuple(t) for t in told], callbacks, process


def test_garbage_collections(tmp_path, library, modules, any_python):
    found, told, callbacks, process = collections(tmp_path, library, modules, any_python,
                                                  GPUPROF_GAPS="on")
    found = [f for f in found if f[4]] + [f for f in found if not f[4]]  # records are by thread
    assert callbacks == 2 and len(told) >= 10 and not process.losses
    told = [t for t in told if t[4]] + [t for t in told if not t[4]]
    assert [f[:3] + f[4:] for f in found] == [t[:3] + t[4:] for t in told]
    # Whatever else runs here may come between the two callbacks.
    others = [(f, t) for f, t in zip(found, told) if abs(f[3] - t[3]) > 0.1 * t[3] + 100000]
    assert len(others) <= len(told) / 5, others


def test_no_callback_where_nothing_is_asked_for(tmp_path, library, modules):
    found, _, callbacks, _ = collections(tmp_path, library, modules, SYSTEM, wait=0.3)
    assert not found and callbacks == 0


def test_callbacks_that_are_emptied(tmp_path, library, modules):
    found, told, _, process = collections(tmp_path, library, modules, SYSTEM, cleared=True,
                                          GPUPROF_OS="1ms")
    assert len(found) == len(told) and "cleared gc.callbacks" in process.meta["said"]
