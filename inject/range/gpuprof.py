# SPDX-License-Identifier: Apache-2.0
"""
What a Python program can say to the profiler that it may be running under: gpuprof.h, for Python.

    import gpuprof

    gpuprof.step()                      # an iteration begins; it lasts until the next one
    with gpuprof.range("forward"):      # ranges nest
        ...
    @gpuprof.range("loss")              # each call is a range; @gpuprof.range alone: by its name
    def loss(output, target): ...
    gpuprof.mark("checkpoint")          # a moment
    gpuprof.stop()                      # CUDA calls are not recorded from here on ...
    gpuprof.start()                     # ... to here
    gpuprof.dump("slow request")        # what `gpuprof run --flight` keeps is written

This file is all there is: put it beside the program, or its folder into PYTHONPATH. Python 3.8 and
later; nothing is imported but the standard library. Without gpuprof nothing is done, and a
decorated function is the function itself. Any thread may call any of it. Texts are cut at 4096
bytes, and at a zero byte.

A range is its thread's: it ends on the thread on which it began, the last one first. So a `with`
belongs around code that does not wait (`await`, `yield`) meanwhile: what else the thread does by
then would be inside of it. A decorated coroutine or generator has a range each time that it goes
on, from then until it waits again.
"""

import functools
import inspect
import operator
import types

__all__ = []  # a program that imports all names keeps its own range()


def _functions():
    """The library's, where the process runs under it. Ranges, marks and steps keep Python's lock:
    they take less time than to give it up. start() and stop() may wait for CUDA's locks, so others
    are to run meanwhile."""
    try:
        import ctypes
        quick, slow = ctypes.PyDLL(None), ctypes.CDLL(None)
        found = [quick.gpuprof_range_push, quick.gpuprof_range_pop, quick.gpuprof_mark,
                 quick.gpuprof_step, slow.gpuprof_start, slow.gpuprof_stop,
                 getattr(slow, "gpuprof_dump", lambda _: -1)]  # which an older library has not
        found[3].argtypes = [ctypes.c_uint64]
        return found
    except (ImportError, AttributeError, OSError, TypeError):
        return None


_found = _functions()
_push, _pop, _mark, _step, _start, _stop, _dump = _found or [lambda *_: None] * 7
_number = -1


def _bytes(text):
    return str(text).encode("utf-8", "replace")


def _resumed(text, inner):
    """Runs a generator or coroutine: a range around each part of it that runs in one piece."""
    go_on, value = inner.send, None
    while True:
        _push(text)
        try:
            item = go_on(value)
        except StopIteration as done:
            return done.value
        finally:
            _pop()
        try:
            go_on, value = inner.send, (yield item)
        except GeneratorExit:
            _push(text)
            try:
                inner.close()
            finally:
                _pop()
            raise
        except BaseException as error:  # what was thrown in is its to handle
            go_on, value = inner.throw, error


_awaited = types.coroutine(_resumed)


def _decorated(function, text):
    if not callable(function) or isinstance(function, (type, staticmethod)):
        raise TypeError(f"gpuprof.range takes a text or a function, not {function!r}")
    if inspect.isasyncgenfunction(function):
        raise TypeError(f"gpuprof.range takes no asynchronous generator: {function!r}")
    if not _found:
        return function
    if inspect.iscoroutinefunction(function):
        async def run(*args, **kwargs):
            return await _awaited(text, function(*args, **kwargs))
    elif inspect.isgeneratorfunction(function):
        def run(*args, **kwargs):
            return (yield from _resumed(text, function(*args, **kwargs)))
    else:
        def run(*args, **kwargs):
            _push(text)
            try:
                return function(*args, **kwargs)
            finally:
                _pop()
    return functools.wraps(function)(run)


class _Range:
    """It keeps nothing of its uses: it may be used again, inside itself, and by many threads."""
    __slots__ = ("_text",)

    def __init__(self, text):
        self._text = _bytes(text)

    def __enter__(self):
        _push(self._text)
        return self

    def __exit__(self, *_):
        _pop()

    def __call__(self, function):
        return _decorated(function, self._text)


class _Nothing(_Range):
    """The same without gpuprof: one for all."""
    __slots__ = ()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


_nothing = _Nothing("")


def range(name):  # pylint: disable=redefined-builtin
    """A range of that name, for `with` or as a decorator; of a function, one of its own name."""
    if isinstance(name, str):
        return _Range(name) if _found else _nothing
    return _decorated(name, _bytes(getattr(name, "__qualname__", type(name).__qualname__)))


def mark(text):
    """A moment."""
    if _found:
        _mark(_bytes(text))


def step(number=None):
    """An iteration begins. `number` is the program's own, so that it means the same after a restart
    and on all ranks; without, they are counted: 0 is the first, or they go on from the last."""
    global _number
    _number = _number + 1 if number is None else operator.index(number)
    _step(_number)


def start():
    """All is recorded again."""
    _start()


def stop():
    """CUDA calls are not recorded from here on, in all threads."""
    _stop()


def dump(why=""):
    """Has the flight recorder's memory written, soon. False: there is none (run --flight=30s)."""
    return _dump(_bytes(why)) == 0
