# SPDX-License-Identifier: Apache-2.0
"""
Programs made at random: chains of calls in every form that Python has, over several lines, of which
the innermost reads its frames and compares them with those that Python tells. Run by
test_python.py under each Python that is here:

    python_chains.py read SEED COUNT      the frames are read by python_reader
    python_chains.py record SEED COUNT    a call of CUDA is recorded; what Python tells is printed
"""

import asyncio
import contextlib
import functools
import json
import random
import sys
import threading

try:
    import ctypes
    CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int)
except ImportError:  # what it needs is not there
    CALLBACK = None
try:
    import greenlet
except ImportError:
    greenlet = None

MODE, SEED, COUNT = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if MODE == "read":
    import python_reader as extension
else:
    import python_cuda as extension

READ_MAX = 256
NAME = "co_qualname" if sys.version_info >= (3, 11) else "co_name"
threading.excepthook = lambda _: None  # some forms end in an exception
seen, failures = 0, []


def told(frame):
    """(file, function, line) of a frame and its callers, from Python itself."""
    found = []
    while frame:
        found.append((frame.f_code.co_filename, getattr(frame.f_code, NAME), frame.f_lineno or 0))
        frame = frame.f_back
    return found


def here():
    """True, so that it can stand anywhere. A failure in a destructor would go unnoticed."""
    global seen
    seen += 1
    if MODE == "record":
        extension.work(); want = told(sys._getframe())
        print(json.dumps(want))
        return True
    got, want = [f[:3] for f in extension.frames()[0]], told(sys._getframe())
    if got[1:] != want[1:READ_MAX] or got[0][:2] != want[0][:2]:
        failures.append((got, want))
    return True


class Thing:
    """Calls what it was given, whatever is done with it."""

    def __init__(self, call):
        self._call = call

    def run(self, *_, **__):
        return self._call() or True

    __call__ = __add__ = __getitem__ = __contains__ = __lt__ = run
    __bool__ = __hash__ = run

    def __getattr__(self, name):
        return self.run()

    @property
    def value(self):
        return self.run()

    @classmethod
    def of_class(cls, call):
        return call()

    @functools.cached_property
    def cached(self):
        return self.run()

    def __enter__(self):
        return self.run()

    def __exit__(self, *_):
        self.run()

    def __iter__(self):
        yield self.run()

    async def __aenter__(self):
        return self.run()

    async def __aexit__(self, *_):
        self.run()

    async def __aiter__(self):
        yield self.run()

    def __await__(self):
        self.run()
        yield
        return self.run()

    def __set_name__(self, owner, name):
        self.run()

    def chain(self, _):
        return self


class Ends(Thing):
    def __del__(self):
        self.run()


class Meta(type):
    def __new__(mcs, name, bases, names, call=None):
        if call:
            call()
        return super().__new__(mcs, name, bases, names)

    def __init__(cls, name, bases, names, call=None):
        super().__init__(name, bases, names)

    def __instancecheck__(cls, instance):
        return instance()


def decorator(call):
    call()

    def decorate(function):
        call()
        return function
    return decorate


def wrapped(function):
    @functools.wraps(function)
    def wrapper(*values, **more):
        return function(
            *values,
            **more,
        )
    return wrapper


def evaluate(call):
    return eval(compile("\n" * 7 + "call(\n)", "<ipython-input-7-0123456789ab>", "eval"),
                {"call": call})


def drive(coroutine):
    """What an event loop does."""
    while True:
        try:
            coroutine.send(None)
        except StopIteration as end:
            return end.value


def switched(call):
    """On a stack of its own."""
    return greenlet.greenlet(call).switch() if greenlet else call()


def one(call):
    async def run():
        return call()
    return run()


def threaded(call):
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    return True


def called_back(call):
    return CALLBACK(lambda: bool(call()))() if CALLBACK else extension.call_python(call)


def identity(*values, **more):
    return values[0] if values else more["value"]


if MODE == "read":
    extension.call_python = extension.call
NAMES = dict(globals())

# Around a call, "$"; "~" is a line break.
EXPRESSIONS = [part.replace("~", "\n") for line in r"""
$ | (~$~) | (0 or~$) | (1 if~$ else~2) | ($~if 1 else 0) | [$~for _ in~(1,)][0] | (-($))
{1: $ for _ in (1,)}[1] | identity(~$,~1,~) | identity(~value=~$~) | identity(~*[~$], 1) | (not $)
identity(**{'value':~$}) | (lambda:~$)() | (lambda x=$: x)() | (lambda *a:~(~$))(~1,~2)
next($~for _ in (1,)) | list(map(lambda _: $, [1]))[0] | sorted([2], key=~lambda _:~$)[0]
functools.reduce(lambda a, b:~$, [1, 2]) | any(x for x in [~$]) | max([1], key=lambda _: $)
(($) == (~1)) | (1, $)[1] | [*[$]][0] | Thing(lambda: $).value | (Thing(lambda: $)~+ 1)
Thing(lambda: $)[~0] | (0 in~Thing(lambda: $)) | Thing(lambda:~$).missing | bool(Thing(lambda: $))
Thing(lambda: $)(~1) | (Thing(lambda: $) <~1) | Thing.of_class(~lambda:~$) | hash(Thing(lambda: $))
Thing(lambda: $).cached | list(Thing(lambda: $))[0] | evaluate(lambda: $) | switched(lambda: $)
Thing(None).chain(~1~).chain(~$~).chain(2) | extension.call_python(lambda: $) | wrapped(lambda: $)()
called_back(lambda: $) | drive(one(lambda: $)) | functools.partial(identity,~$)(1)
isinstance(lambda: $, Meta('M', (), {})) | threaded(lambda:~$)
""".strip().split("\n") for part in line.split(" | ")]

# Bodies of functions around an expression, "$", always in brackets.
BODIES = """
return $
===
x = 1; return $
===
x = \\
 $
return x
===
try:
 raise ValueError
except ValueError:
 return $
===
try:
 1 / 0
except (ZeroDivisionError
 if $ else OSError):
 pass
===
try:
 x = 1
finally:
 x = $
===
try:
 return 1
finally:
 (
 $
 )
===
with Thing(lambda: $) as x:
 pass
===
with contextlib.suppress(ValueError), \\
   Thing(lambda: 1):
 return $
===
with contextlib.ExitStack() as stack:
 stack.callback(lambda:
  $)
===
with contextlib.ExitStack() as stack: stack.push(lambda *_: $); raise ValueError
===
for x in Thing(lambda: $):
 pass
else:
 $
===
x = 0
while x < 2 and $:
 x += 1
===
match $:
 case 1 | True if $:
  return $
===
class C:
 x = $
 y: int = $
===
class C(metaclass=Meta,
        call=lambda: $):
 pass
===
class C:
 x = Thing(lambda:
  $)
===
@decorator(lambda: $)
@decorator(lambda:
 $)
def f(): pass
===
@wrapped
@wrapped
def f(
  *a):
 return $
f(
 1)
===
def f(x=$, *,
  y=$): return x
f()
===
assert $, 1
assert not [], (
 $)
===
x = Ends(lambda: $)
x = None
===
x = Ends(lambda: $)
del x
===
def f():
 x = yield $
 yield $
g = f()
next(g)
g.send(1)
===
def f():
 yield
 yield $
def g():
 yield from f()
for x in g():
 pass
===
def f():
 try:
  yield
 finally:
  $
f = f(); next(f)
f.close()
===
async def f():
 return $
async def g():
 return (await
  f())
return drive(g())
===
async def f():
 async with Thing(lambda: $):
  async for x in Thing(lambda: $):
   x = [y async for y in Thing(lambda: $)]
 await Thing(lambda: $)
drive(f())
===
async def f(n):
 await asyncio.sleep(0)
 return $
async def g():
 return await asyncio.gather(f(1),
  f(2))
if asyncio._get_running_loop() is None:
 asyncio.run(g())
===
def f(n):
 return f(n - 1) if n else $
f(11)
===
class Base:
 def f(self): return $
class C(Base):
 def f(self):
  return super().f(
  )
C().f()
===
x, *y = [$, 1]
x += $
x = [1]; x[
 0 if $ else 0] = 2
del x[($) - 1]
===
import sys
sys.setprofile(lambda *_: None)
try:
 $
finally:
 sys.setprofile(None)
===
import sys
sys.settrace(lambda *_: None)
x = $
sys.settrace(None)
$
""".split("\n===\n")


def program(choose, depth):
    """Source of functions f0 to the last, each of which calls the next one."""
    lines = []
    for i in range(depth):
        call = f"f{i + 1}()" if i < depth - 1 else "here()"
        for _ in range(choose.randrange(3)):
            call = choose.choice(EXPRESSIONS).replace("$", call)
        body = choose.choice(BODIES).strip("\n").replace("$", f"({call})")
        gap = choose.choice((0, 0, 1, 3, 40, 3000))
        inside = "\n ".join(body.split("\n"))
        lines.append("\n" * gap + f"def f{i}():\n" + "\n" * choose.randrange(2) + f" {inside}")
    return "\n".join([*lines, "f0()"])


def main():
    choose = random.Random(SEED)
    for number in range(COUNT):
        source = program(choose, choose.randrange(1, 9))
        try:
            code = compile(source, f"chain-{SEED}-{number}.py", "exec")
        except SyntaxError:
            assert sys.version_info < (3, 10)  # some forms are newer
            continue
        for _ in range(1 if MODE == "record" else choose.choice((1, 3, 30))):
            with contextlib.suppress(Exception):  # some forms end in one
                exec(code, dict(NAMES))
            assert not failures, f"{source}\nread {failures[0][0]}\ntold {failures[0][1]}"
    assert seen > 5 * COUNT
    print("compared", seen, file=sys.stderr)


if __name__ == "__main__":
    main()
