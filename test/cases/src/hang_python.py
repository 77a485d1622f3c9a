# SPDX-License-Identifier: Apache-2.0
"""Hangs in a call of the simulated CUDA, as a script does it; says where before it does."""

import ctypes
import sys
import threading
import traceback

runtime, driver = ctypes.CDLL("libcudart.so.12"), ctypes.CDLL("libcuda.so.1")


def done(result):
    assert result == 0, result


def say_where():
    """The caller's frames, innermost first: it is to hang on the line behind."""
    frames = traceback.extract_stack()[-2::-1]
    print(*(f"{frame.filename}\t{frame.name}\t{frame.lineno + (frame is frames[0])}"
            for frame in frames), "hangs", sep="\n", flush=True)


def wait_for(stream):
    if sys.argv[1].startswith("wait_"):  # a function of an extension in C
        import python_cuda
        wait = getattr(python_cuda, sys.argv[1])
        say_where()
        wait(stream.value)
    say_where()
    done(runtime.cudaStreamSynchronize(stream))


def train(kernels):
    stream, module = ctypes.c_void_p(), ctypes.c_void_p()
    done(runtime.cudaStreamCreate(ctypes.byref(stream)))
    done(driver.cuModuleLoadData(ctypes.byref(module), b"code"))
    for name in kernels:
        function = ctypes.c_void_p()
        done(driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
        done(driver.cuLaunchKernel(function, *(1,) * 6, 0, stream, None, None))
        if name == "waited_for":
            done(runtime.cudaStreamSynchronize(stream))
    wait_for(stream)


if sys.argv[1] == "thread":
    thread = threading.Thread(target=train, args=(sys.argv[2:],))
    thread.start()
    thread.join()
else:
    train(sys.argv[2:])
