# SPDX-License-Identifier: Apache-2.0
"""What test_public.py runs: public_python.py SCENE. Prints the same with gpuprof and without."""

import asyncio
import ctypes
import functools
import inspect
import os
import pickle
import sys
import threading

import gpuprof

cuda = ctypes.CDLL("libcudart.so.12")


def call(size):
    cuda.cudaMemset(None, 0, size)


@gpuprof.range("named")
def named(first, *rest, key: int = 3) -> str:
    """Its words."""
    call(first)
    return f"{first} {rest} {key}"


@gpuprof.range
def unnamed():
    call(21)


class Thing:
    @gpuprof.range
    def method(self):
        call(22)

    @staticmethod
    @gpuprof.range("static")
    def static():
        call(23)


def calls():
    gpuprof.step(7)
    with gpuprof.range("outer"):
        with gpuprof.range("inner \u00e4"):
            gpuprof.mark("here")
    gpuprof.step()
    with gpuprof.range("lone \ud800"):
        gpuprof.mark(5)
    gpuprof.stop()
    call(2)
    gpuprof.start()
    call(3)
    gpuprof.step(2**64 - 1)


def decorated():
    print(named(20, "b", key=4), named.__name__, named.__qualname__, named.__doc__,
          inspect.signature(named), named.__module__, pickle.loads(pickle.dumps(named)) is named)
    unnamed()
    Thing().method()
    Thing.static()
    gpuprof.range("partial")(functools.partial(call, 24))()
    gpuprof.range("builtin")(len)("abc")
    for wrong in (3, None, b"bytes", Thing, staticmethod(call), classmethod(call), waits_not):
        try:
            gpuprof.range(wrong)
        except TypeError as error:
            print(str(error).split(":")[0].split(" at 0x")[0])


async def waits_not():
    yield 1


def fails():
    for function in (named, gpuprof.range("fails")(lambda first: 1 // first)):
        try:
            with gpuprof.range("around"):
                function(object() if function is named else 0)
        except (ctypes.ArgumentError, ZeroDivisionError) as error:
            print(type(error).__name__)
    one = gpuprof.range("again")
    with one, one:
        with one as it:
            print(it is one)
    call(30)


@gpuprof.range("generator")
def numbers(count):
    got = []
    try:
        for i in range(count):
            try:
                got.append((yield i))
                call(40 + i)
            except KeyError as error:
                got.append(repr(error))
    except GeneratorExit:
        got.append("closed")
        print(got)
        raise
    return got


def generators():
    print(inspect.isgeneratorfunction(numbers), numbers.__name__)
    one = numbers(3)
    print(next(one), one.send("sent"), one.throw(KeyError("thrown")))
    try:
        one.send("last")
    except StopIteration as done:
        print(done.value)
    one = numbers(3)
    print(next(one))
    one.close()
    numbers(1).close()
    one = numbers(1)
    next(one)
    try:
        one.throw(ValueError("through"))
    except ValueError as error:
        print(repr(error))

    def around():
        return (yield from numbers(2))
    print(list(around()))


@gpuprof.range
async def task(name, turns, waits):
    for _ in range(turns):
        gpuprof.mark(name)
        await waits()
    return name


async def tasks():
    async def yields():
        await asyncio.sleep(0)

    async def ends():
        waiting = asyncio.ensure_future(task("cancelled", 1, asyncio.Event().wait))
        await asyncio.sleep(0)
        waiting.cancel()
        try:
            await waiting
        except asyncio.CancelledError:
            print("cancelled")
    print(await asyncio.gather(task("a", 2, yields), task("b", 2, yields)))
    await ends()
    print(inspect.iscoroutinefunction(task), task.__name__)


def coroutines():
    asyncio.run(tasks())


def threads():
    shared = gpuprof.range("shared")

    @gpuprof.range("task")
    def work(number):
        for i in range(50):
            with shared, gpuprof.range(f"{number}.{i}"):
                call(100 * number + i)
    them = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for one in them:
        one.start()
    for one in them:
        one.join()


def fork():
    with gpuprof.range("across"):
        child = os.fork()
        with gpuprof.range("child" if child == 0 else "parent"):
            call(3 if child == 0 else 2)
    gpuprof.step()
    if child == 0:
        os._exit(0)
    print(os.waitpid(child, 0)[1])


call(1)
{f.__name__: f for f in (calls, decorated, fails, generators, coroutines, threads,
                         fork)}[sys.argv[1]]()
