# SPDX-License-Identifier: Apache-2.0
"""
Frames as the library reads them, compared with those that Python tells of itself, in everything
that makes frames. Run by test_python.py under each Python that is here: python_scenes.py SCENE.
"""

import asyncio
import contextlib
import functools
import gc
import queue
import struct
import sys
import threading
import time
import traceback
import types
import weakref

import python_reader

SEEN = 0
HAS_QUALIFIED = sys.version_info >= (3, 11)
NAME = "co_qualname" if HAS_QUALIFIED else "co_name"


def name_of(code):
    """Up to 3.10 a code object does not know in which function or class it is."""
    return getattr(code, NAME)


def short(names):
    return names if HAS_QUALIFIED else [name.rsplit(".", 1)[-1] for name in names]


def told(frame, limit=10**6):
    """(file, function, line) of a frame and its callers, from Python itself."""
    found = []
    while frame and len(found) < limit:
        found.append((frame.f_code.co_filename, name_of(frame.f_code), frame.f_lineno or 0))
        frame = frame.f_back
    return found


def same(got, frame):
    """Compares; what was read must have been read on the line that `frame` is on now."""
    global SEEN
    frames, is_cut, is_borrowed = got
    want = told(frame)
    assert not is_borrowed
    assert is_cut == (len(want) > 256)
    assert [f[:3] for f in frames] == want[:256], f"\nread {frames}\ntold {want}"
    assert is_cut or frames[-1][3] or not HAS_QUALIFIED, frames
    SEEN += 1
    return True


def here():
    same(python_reader.frames(), sys._getframe())
    same(python_reader.frames_held(), sys._getframe())
    same(python_reader.frames_interrupted(), sys._getframe())
    return python_reader.frames()[0]


class Thing:
    def method(self):
        return here()

    @classmethod
    def of_class(cls):
        return here()

    @staticmethod
    def static():
        return here()

    @property
    def value(self):
        return here()

    def __call__(self):
        return here()

    def __add__(self, other):
        return here()

    def __del__(self):
        here()


class Begun:
    def __init__(self):
        self.frames = here()

    def __enter__(self):
        here()
        return self

    def __exit__(self, *what):
        here()


class Derived(Begun):
    def __init__(self):
        super().__init__()


def functions():
    for _ in range(50):  # so that the interpreter specialises what is called
        frames = here()
        assert [f[1] for f in frames[:3]] == ["here", "functions", "<module>"]
        frames = Thing().method()
        assert [f[1] for f in frames[1:3]] == short(["Thing.method", "functions"])
        Thing.of_class()
        Thing.static()
        Thing().value
        Thing()()
        Thing() + 1
        assert [f[1] for f in Begun().frames[1:3]] == short(["Begun.__init__", "functions"])
        assert [f[1] for f in Derived().frames[1:4]] == short(
            ["Begun.__init__", "Derived.__init__", "functions"])
        with Begun(), contextlib.suppress(ValueError):
            here()

    class Inside:
        frames = here()

    assert [Inside.frames[1][1]] == short(["functions.<locals>.Inside"])


def nested():
    def outer(n):
        def inner(m):
            return (lambda: here() if m == 0 else inner(m - 1))()
        return inner(n)
    frames = outer(3)
    assert [f[1] for f in frames[1:3]] == short(
        ["nested.<locals>.outer.<locals>.inner.<locals>.<lambda>",
         "nested.<locals>.outer.<locals>.inner"])


def generators():
    def leaf():
        received = yield here()
        while received:
            received = yield here()

    def middle():
        yield from leaf()

    for _ in range(50):
        g = middle()
        frames = next(g)
        assert frames[1][1].endswith("leaf") and frames[2][1].endswith("middle")
        g.send(1)
        for _ in middle():
            pass
        with contextlib.suppress(StopIteration):
            g.send(None)
        list(middle())
        sum(1 for _ in middle())
        assert max(here()[0][2] for _ in (1, 2))
        with contextlib.contextmanager(middle)():
            here()


def comprehensions():
    for _ in range(50):
        [here() for _ in (1, 2)]
        {len(here()): here() for _ in (1, 2)}
        {len(here()) for _ in (1, 2)}
        [[here() for _ in (1,)] for _ in (1, 2)]
        tuple(here() for _ in (1, 2))


def decorators():
    def plain(f):
        @functools.wraps(f)
        def wrapper(*a, **k):
            return f(*a, **k)
        return wrapper

    @plain
    @functools.lru_cache
    @plain
    def decorated(n):
        return here()

    assert sum(f[1].endswith("wrapper") for f in decorated(1)) == 2


def recursion():
    def down(n):
        return here() if n == 0 else down(n - 1)
    sys.setrecursionlimit(5000)
    for depth in (10, 100, 252, 253, 254, 255, 256, 257, 300, 1000):
        down(depth)
    frames, is_cut, _ = python_reader.frames(1)
    assert len(frames) == 1 and is_cut


async def leaf(n):
    await asyncio.sleep(0)
    here()
    return n


async def middle(n):
    return await leaf(n) + await leaf(n)


async def ticks():
    for i in range(3):
        await asyncio.sleep(0)
        here()
        yield i


async def everything():
    assert await asyncio.gather(*(middle(i) for i in range(20))) == [2 * i for i in range(20)]
    async for _ in ticks():
        here()
    [here() async for _ in ticks()]
    await asyncio.get_running_loop().run_in_executor(None, here)


def coroutines():
    asyncio.run(everything())


def threads():
    errors = []

    def work(n):
        try:
            for _ in range(200):
                functions_of_thread(n)
        except BaseException:
            errors.append(traceback.format_exc())

    def functions_of_thread(n):
        here() if n == 0 else functions_of_thread(n - 1)
    started = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    [t.start() for t in started]
    [t.join() for t in started]
    assert not errors, errors[0]


def paused():
    """Who has no time names its frames while another thread is reading names."""
    found = []

    def other():
        python_reader.pause_wait()
        try:
            found.append(same(python_reader.frames_interrupted(), sys._getframe()))
        finally:
            python_reader.pause_end()
    python_reader.pause_reading()
    thread = threading.Thread(target=other)
    thread.start()
    same(python_reader.frames(), sys._getframe())
    thread.join()
    assert found


SPREAD = """
def spread():
    return (
        here(
        ),
        (lambda:
         here())(),
        0 if
        here() else
        1,
    )
def backwards():
    for i in range(2):
        x = here() if i else (
          here())
    try:
        raise ValueError
    except ValueError:
        here()
    finally:
        here()
    while x:
        here(); x = None
    with contextlib.suppress(ZeroDivisionError):
        here() or 1 / 0
    match here()[0]:
        case (_, _, line, _) if here():
            here()
    assert here(), f"{
here()}"
"""


def lines():
    """Line tables: long distances forward and back, many lines, no lines."""
    names = {"here": here, "contextlib": contextlib}
    source = SPREAD if sys.version_info >= (3, 12) else SPREAD.replace('f"{\nhere()}"', "1")
    if sys.version_info < (3, 10):  # without the statement `match`
        source = source.replace("match here()[0]", "if here()[0]").replace(
            "case (_, _, line, _) if here()", "if here()")
    for before in (0, 1, 200, 70000, 5000000):
        exec(compile("\n" * before + source + "spread()\nbackwards()", "spread", "exec"), names)
    many = "def many(x):\n" + "    x += 1\n" * 30000 + "    here()\n    return x\nmany(0)"
    exec(compile(many, "many", "exec"), names)
    far = "def far():\n  here()" + "\n" * 100000 + "  here()" + "\n" * 63 + "  here()\nfar()"
    exec(compile(far, "far", "exec"), names)
    wide = "x = " + " " * 3000 + "[here(), " + "0, " * 500 + "here()]"
    exec(compile(wide, "wide", "exec"), names)
    if sys.version_info < (3, 10):
        return  # a code object's lines cannot be replaced
    no_lines = compile("def f():\n  here()\nf()", "none", "exec")
    inner = no_lines.co_consts[0]
    table = bytes([0xf8 | 7] * 20 if HAS_QUALIFIED else [254, 128] * 20)
    consts = (inner.replace(co_linetable=table),) + no_lines.co_consts[1:]
    exec(no_lines.replace(co_consts=consts), names)


def executed():
    names = {"here": here}
    exec("def f():\n    return here()\nf()", names)
    eval("here()", names)
    exec(compile("\n\nhere()", "<made up>", "exec"), names)
    types.FunctionType(here.__code__, globals())()
    here_too = here.__code__.replace(**{NAME: "another.name"}, co_filename="else/where.py",
                                     co_firstlineno=1234)
    types.FunctionType(here_too, globals())()


def texts():
    for name in ("é", "ÿ", "ж", "名前", "\U0001d49c", "a" * 1000, "é" * 500, "名" * 300):
        names = {"here": here}
        exec(compile(f"def {name}():\n    return here()", f"/tmp/{name}.py", "exec"), names)
        for function in list(names.values()):
            if isinstance(function, types.FunctionType) and function is not here:
                function()
    # What the recording can not hold: cut, and replaced.
    long = {"here": lambda: python_reader.frames()[0]}
    exec(compile("def " + "名" * 2000 + "(): return here()", "x" * 9000, "exec"), long)
    frames = long["名" * 2000]()
    assert frames[1][:2] == ("x" * 4096, "名" * 341), frames[1]
    exec(compile("x = here()", "a\udcffb", "exec"), long)
    assert long["x"][1][0] == "a\ufffdb", long["x"]

    class Derived(str):
        pass
    for name in ("ascii", "é", "ж", "\U0001d49c"):
        file = compile("here()", Derived(name + ".py"), "exec")
        exec(file.replace(**{NAME: Derived(name)}), {"here": here})


def again():
    """C to Python to C to Python."""
    def deep(n):
        return here() if n == 0 else python_reader.call(lambda: deep(n - 1))
    for _ in range(20):
        frames = deep(4)
        entries = [f[1] for f in frames if f[3]]
        assert not HAS_QUALIFIED or len(entries) == 5 and entries[-1] == "<module>", frames
        assert sorted([3, 1, 2], key=lambda x: len(here()))
        list(map(lambda x: here(), [1, 2]))
        functools.reduce(lambda x, y: here(), [1, 2, 3])
    kept = Thing()
    weakref.finalize(kept, here)
    del kept
    gc.collect()


def traced():
    """Debuggers and profilers change the code that runs."""
    def tracer(*what):
        here()
        return tracer

    def work():
        x = 0
        for i in range(5):
            x += i
        return [here() for _ in (1, 2)]
    for install in (sys.settrace, sys.setprofile):
        install(tracer)
        work()
        install(None)
    work()


def replaced():
    """Code objects that come to lie where others have been."""
    addresses, reused = set(), 0
    for i in range(3000):
        names = {"here": here}
        blank = "\n" * (i % 7)
        where = "one file" if i % 2 else f"file {i % 1000:03}"
        name = "f" if i % 4 == 0 else f"f{i % 1000:03}"
        exec(compile(f"def {name}():\n{blank}    return here()", where, "exec"), names)
        function = names.popitem()[1]
        address = id(function.__code__)
        reused += address in addresses
        addresses.add(address)
        function()
        names.clear()
        del function
    assert reused > 100, reused  # else nothing was tested
    assert python_reader.records() < 20000


def full():
    """More places than there is room for: those that are known stay known."""
    global SEEN
    frames = python_reader.frames
    lines = 100

    def run(number):
        found = []
        exec(compile("found.append(frames(1)[0][0])\n" * lines, f"file {number}", "exec"),
             {"frames": frames, "found": found})
        return [f[:3] for f in found]
    for number in range(700):
        found = run(number)
        if number < 655:
            assert found == [(f"file {number}", "<module>", i + 1) for i in range(lines)], (
                number, found)
    assert found == [("", "", 0)] * lines
    assert python_reader.records() == 65536
    assert run(0) == [("file 0", "<module>", i + 1) for i in range(lines)]
    python_reader.reset()
    assert run(699) == [("file 699", "<module>", i + 1) for i in range(lines)]
    SEEN += 700


def churn():
    """Others make and free code, frames and threads as fast as they can."""
    stop = False
    sys.setswitchinterval(1e-5)

    def mutate(seed):
        i = seed
        while not stop:
            i += 1
            names = {}
            exec(f"def f{i}(n):\n  return [x for x in range(n)] if n else f{i}(3)\nf{i}(0)", names)
            sys._current_frames()
            if i % 20 == 0:
                gc.collect(0)
                t = threading.Thread(target=lambda: sum(range(10)))
                t.start()
                t.join()
    others = [threading.Thread(target=mutate, args=(n * 10**6,)) for n in range(2)]
    [t.start() for t in others]
    try:
        for i in range(4000):
            names = {"here": here}
            exec(f"def g{i % 300}():\n  return (lambda: here())()\ng{i % 300}()", names)
    finally:
        stop = True
        [t.join() for t in others]


def busy(seconds):
    """Calls of all kinds, as fast as they can be; which function calls which is known."""
    end, i = time.thread_time() + seconds, 0

    class Key:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return 1

        def __eq__(self, other):
            return equal(self.n, other.n)

    def equal(a, b):
        return a == b

    def items(n):
        for i in range(n):
            yield thrice(i)

    def thrice(i):
        return (lambda k: 3 * k)(i)

    def fail(depth):
        if depth:
            fail(depth - 1)
        raise ValueError(depth)

    def caught():
        try:
            fail(2)
        except ValueError:
            return thrice(1)

    def made(i):
        names = {"thrice": thrice}
        exec(f"def new{i % 7}(n):\n  return thrice(n)\nfor _ in range(3): new{i % 7}(1)", names)

    def again(n):
        return again(n - 1) if n else sum(items(3))

    while time.thread_time() < end:
        i += 1
        {Key(1): 1}.get(Key(2))
        sum(items(5))
        list(map(thrice, range(4)))
        caught()
        again(3)
        if i % 10 == 0:
            made(i)


CALLERS = {"equal": ["__eq__"], "__eq__": ["busy"], "__init__": ["busy"],
           "__hash__": ["busy"], "Key": ["busy"],
           "items": ["busy", "again"], "thrice": ["items", "caught", "busy", "new"],
           "<lambda>": ["thrice"], "fail": ["fail", "caught"], "caught": ["busy"],
           "made": ["busy"], "new": ["<module>"], "again": ["again", "busy"],
           "busy": ["interrupted", "looked_at"], "interrupted": ["<module>"],
           "looked_at": ["<module>"], "<module>": ["made"]}


def possible(stacks, least, deep):
    """Not one that has a function under another than those that call it; many that were deep."""
    seen = set()
    for stack in stacks:
        names = [name.rsplit(".", 1)[-1].rstrip("0123456789") for name, _ in stack]
        for inner, outer in zip(names, names[1:]):
            assert outer in CALLERS[inner], stack
        assert names[-1] == "<module>", stack
        seen.update(names)
    assert len(stacks) > least and deep <= seen, (len(stacks), seen)


def interrupted():
    """Wherever a signal finds it."""
    global SEEN
    python_reader.sample_begin(200)
    busy(0.5)
    torn, unnamed, stacks = python_reader.sample_end()
    assert torn <= len(stacks) / 50 and not unnamed, (torn, unnamed, len(stacks))
    possible(stacks, 300, {"<lambda>", "items", "again", "fail"})
    SEEN += len(stacks)


def looked_at():
    """By another thread, while it goes on."""
    global SEEN
    python_reader.look_begin()
    busy(0.5)
    torn, unnamed, stacks = python_reader.look_end()
    possible([s for s in stacks if all(name for name, _ in s)], 50, {"busy"})
    SEEN += len(stacks)


def parts():
    """The debug offsets of 3.13, as far as they matter, and what is wrong with others."""
    def offsets(version, words=100, cookie=b"xdebugpy", free_threaded=0):
        return cookie + struct.pack("<QQ", version, free_threaded) + bytes(8 * (words - 3))
    reason = python_reader.reason
    for version in (0x030812f0, 0x030912f0, 0x030a0df0, 0x030b02f0, 0x030c01f0):
        assert reason(version, bytes(64)) is None and reason(version, b"")
    for version in (0, 0x02071200, 0x030710f0, 0x031000f0, 0x040000f0, 0x030d00a1, 0x030e00b2):
        assert "not supported" in reason(version, offsets(version)), hex(version)
    for version in (0x030d05f0, 0x030e00f0, 0x030f02f0):
        for runtime in (b"", offsets(version)[:400], offsets(version, cookie=b"otherpy!"),
                        offsets(version + 1), offsets(version),
                        offsets(version, free_threaded=1)):
            assert "have unexpected values" in reason(version, runtime), runtime


AUTOGRAD = """
def _engine_run_backward(call):
    return call()
"""


def is_innermost(function, thread):
    frame = sys._current_frames().get(thread.ident)
    return frame is not None and frame.f_code is function.__code__


def borrowed():
    """A thread without frames has those of the one that waits for it in torch.autograd."""
    global SEEN
    names = {}
    exec(compile(AUTOGRAD, "/opt/torch/autograd/graph.py", "exec"), names)
    run = names["_engine_run_backward"]
    native = python_reader.frames_of_native_thread
    hold = threading.Event()
    sleepers = [threading.Thread(target=hold.wait, daemon=True) for _ in range(8)]
    [t.start() for t in sleepers]
    assert native() == ([], False, False)
    for _ in range(300):
        python_reader.wait_us(200)  # that nobody waits holds so long
        first, line = run(native), sys._getframe().f_lineno
        second = run(native)
        for (frames, is_cut, is_borrowed), at in ((first, line), (second, line + 1)):
            assert is_borrowed and not is_cut
            assert [f[:3] for f in frames[:2]] == [
                ("/opt/torch/autograd/graph.py", "_engine_run_backward", 3),
                (__file__, "borrowed", at)], frames
            assert [f[:3] for f in frames[1:]][1:] == told(sys._getframe())[1:]
        assert native() == ([], False, False)
        SEEN += 2
    own, _, is_borrowed = run(python_reader.frames)
    assert own and not is_borrowed

    other = threading.Thread(target=lambda: run(lambda: hold.wait()), daemon=True)
    other.start()  # Python calls Python: it is not the innermost
    assert run(native)[2]
    for _ in range(100):  # until it waited there before and after
        waits = threading.Thread(target=run, daemon=True,
                                 args=(functools.partial(python_reader.wait_us, 300000),))
        waits.start()
        while waits.is_alive() and not is_innermost(run, waits):
            python_reader.wait_us(1000)
        python_reader.wait_us(50000)
        found = run(native)
        if is_innermost(run, waits):
            break
        waits.join()
    assert found == ([], False, False), "it is not known which of the two it works for"
    hold.set()
    [t.join() for t in (waits, other, *sleepers)]


def borrowed_places():
    """From one place after another, at once: none is taken for the one before, though its frames
    lie where those lay."""
    names = {}
    exec(compile(AUTOGRAD, "/opt/torch/autograd/graph.py", "exec"), names)
    run, native = names["_engine_run_backward"], python_reader.frames_of_native_thread
    known = python_reader.frames_of_known_thread

    def check(got, frame):
        global SEEN
        frames, is_cut, is_borrowed = got
        assert is_borrowed and not is_cut
        want = [("/opt/torch/autograd/graph.py", "_engine_run_backward", 3), *told(frame)]
        assert [f[:3] for f in frames] == want, f"\nread {frames}\ntold {want}"
        SEEN += 1

    def one():
        check(run(native), sys._getframe())

    def other():
        check(run(known), sys._getframe())

    def by_lines(call=one):
        check(run(native), sys._getframe())
        check(run(known), sys._getframe())
        call(); call()
        call()

    def deep(n, call):
        return deep(n - 1, call) if n else call()

    def generator():
        for _ in range(3):
            yield check(run(native), sys._getframe())
            yield one()

    async def coroutine(n):
        for _ in range(2):
            await coroutine(n - 1) if n else one()

    def woven():
        some = [generator(), generator(), (f() for f in (one, other, one))]
        for _ in zip(*some):
            pass

    def executed():
        for i in range(3):
            python_reader.wait_us(1500)  # of code that is replaced where it was, that is the bound
            exec("\n" * i + "check(run(native), sys._getframe())", space)
    space = {"check": check, "run": run, "native": native, "sys": sys}
    for i in range(100):
        for call in (one, other, by_lines, woven, executed, lambda: by_lines(other),
                     lambda: deep(i % 5, one), lambda: deep(3, other), lambda: deep(3, one),
                     lambda: asyncio.run(coroutine(2))):
            call()
            call()


def borrowed_by_turns():
    """From one place, while another thread now waits as well, now is elsewhere."""
    global SEEN
    names = {}
    exec(compile(AUTOGRAD, "/opt/torch/autograd/graph.py", "exec"), names)
    run = names["_engine_run_backward"]
    rest = functools.partial(python_reader.wait_us, 30000)
    turns = queue.SimpleQueue()

    def work():
        for is_waiting in iter(turns.get, None):
            run(rest) if is_waiting else python_reader.wait_us(30000)
    other = threading.Thread(target=work)
    other.start()
    seen = {True: 0, False: 0}
    while min(seen.values()) < 20:
        is_waiting = sum(seen.values()) % 3 == 1
        function = run if is_waiting else work
        turns.put(is_waiting)
        while not turns.empty() or not is_innermost(function, other):
            python_reader.wait_us(100)
        python_reader.wait_us(3000)  # it is in C by now, and was there when it was last looked at
        frames, _, is_borrowed = run(python_reader.frames_of_native_thread)
        if is_innermost(function, other) and turns.empty():
            assert bool(frames) == is_borrowed == (not is_waiting), (is_waiting, frames)
            seen[is_waiting] += 1
        while is_innermost(run, other):
            python_reader.wait_us(1000)
    turns.put(None)
    other.join()
    SEEN += seen[False]


def borrowed_in_churn():
    global SEEN
    names = {}
    exec(compile(AUTOGRAD, "/opt/torch/autograd/graph.py", "exec"), names)
    run = names["_engine_run_backward"]
    stop = False
    sys.setswitchinterval(1e-5)

    def mutate():
        while not stop:
            exec("def f(n):\n  return [x for x in range(n)] if n else f(3)\nf(0)", {})
            gc.collect(0)
            threading.Thread(target=gc.collect, args=(0,)).start()
    other = threading.Thread(target=mutate)
    other.start()
    python_reader.watch_begin()
    for i in range(500):
        names = {"run": run, "call": functools.partial(python_reader.wait_us, 50 * (i % 5))}
        exec(f"def train_{i}():\n  (lambda: run(call))()\ntrain_{i}()", names)
    stop = True
    other.join()
    right, none, bad = python_reader.watch_end()
    assert right > 30 and not bad, (right, none, bad)
    SEEN += right


def cost():
    """For `make bench`: ns for one's own frames, for borrowed ones, and in a handler."""
    global SEEN
    names = {}
    exec(compile(AUTOGRAD, "/opt/torch/autograd/graph.py", "exec"), names)

    def down(n, call):
        return down(n - 1, call) if n else call()
    SEEN = 1
    own_ns, count = down(6, lambda: python_reader.cost(200))
    interrupted_ns, interrupted_count = down(6, lambda: python_reader.cost_interrupted(50))
    waits = functools.partial(python_reader.cost_borrowed, 20)
    borrowed_ns, borrowed_count = down(6, functools.partial(names["_engine_run_backward"], waits))
    assert borrowed_count == interrupted_count == count == 10
    print(own_ns, borrowed_ns, interrupted_ns)


def wrong():
    """Wrong ideas of where things are: no frames, and never a fault."""
    assert python_reader.walk({}) == 2
    # Fields of struct python_layout by their order, and how many values may pass for them: a code
    # object has a name beside its qualified name and its file, and more tables than one.
    may_pass = {"thread_frame": (4, 1), "frame_code": (8, 1), "frame_instruction": (10, 1),
                "code_file": (16, 3), "code_function": (17, 3), "code_lines": (18, 3)}
    values = [*range(256), 4096, 65535, 1 << 20, 1 << 31, (1 << 32) - 1]
    counts = [[python_reader.walk({index: value}) for value in values] for index in range(37)]
    for name, (index, limit) in may_pass.items():
        passed = [value for value, count in zip(values, counts[index]) if count > 0]
        assert 1 <= len(passed) <= limit, (name, passed)
    state = 1
    for _ in range(3000):
        changes = {}
        for index in range(37):
            state = (state * 1103515245 + 12345) & 0x7fffffff
            if state >> 16 & 3 == 0:
                changes[index] = state >> 18 & 0xfc
        python_reader.walk(changes)
    assert python_reader.walk({}) == 2


if sys.argv[1] == "status":
    print(*python_reader.status(), sep="|")
else:
    for name in sys.argv[1:]:
        globals()[name]()
    assert SEEN or sys.argv[1] in ("wrong", "parts")
    print("compared", SEEN)
