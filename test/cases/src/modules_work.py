# SPDX-License-Identifier: Apache-2.0
"""Modules as PyTorch calls them, in a package that has what gpuprof's hooks need of it, and a log
of each forward: LOG SCENE, with the simulated libtorch_cpu.so and CUDA runtime in argv[3:]."""
import ctypes
import json
import os
import sys
import threading
import time
import types

MODULE = '''
import torch
_global_forward_pre_hooks, _global_forward_hooks = {}, {}
def register_module_forward_pre_hook(hook):
    _global_forward_pre_hooks[len(_global_forward_pre_hooks)] = hook
def register_module_forward_hook(hook, *, always_call=False):
    assert always_call
    _global_forward_hooks[len(_global_forward_hooks)] = hook
class Module:
    def __call__(self, *args):
        called = False
        try:
            for hook in _global_forward_pre_hooks.values():
                hook(self, args)
            result = self.forward(*args)
            called = True
            for hook in _global_forward_hooks.values():
                hook(self, args, result)
            return result
        except Exception:
            for hook in () if called else _global_forward_hooks.values():
                hook(self, args, None)
            raise
    def named_modules(self, prefix=""):
        yield prefix, self
        for name, child in list(vars(self).items()):
            if isinstance(child, Module):
                yield from child.named_modules(prefix + ("." if prefix else "") + name)
'''

UNWANTED_SECONDS = 0.5  # in which hooks that somebody wants are set


def package():
    torch = types.ModuleType("torch")
    torch.compiler = types.SimpleNamespace(is_compiling=lambda: torch.compiles)
    torch._utils = types.SimpleNamespace(is_compiling=lambda: torch.compiles)
    torch.skipped = []
    torch._C = types.SimpleNamespace(_dynamo=types.SimpleNamespace(
        eval_frame=types.SimpleNamespace(skip_code=torch.skipped.append)))
    torch.compiles = False
    torch.__spec__ = types.SimpleNamespace(_initializing=True)
    module = types.ModuleType("torch.nn.modules.module")
    sys.modules["torch"] = torch
    exec(MODULE, vars(module))
    sys.modules[module.__name__] = module
    return torch, module


torch, module = package()
Module = module.Module
log, lock = [], threading.Lock()


def note(*what):
    with lock:
        log.append([threading.get_native_id(), *what])


class Layer(Module):
    def __init__(self, path, fails=False, depth=0):
        self.path, self.fails = path, fails
        if depth:
            self.inner = Layer(path + ".inner", depth=depth - 1)

    def forward(self, *args):
        note("begin", f"Layer {self.path}")
        try:
            op = simtorch.sim_op_begin(b"aten::add", 0, ctypes.c_long(-1), ctypes.c_ulong(0), b"")
            simtorch.sim_op_end(ctypes.c_void_p(op))
            if self.fails:
                raise ValueError(self.path)
            if hasattr(self, "inner"):
                self.inner(*args)
        finally:
            note("end")


class Net(Module):
    def __init__(self, root="Net"):
        self.path = root
        self.first, self.second = Layer(root + ".first"), Layer(root + ".second", True)

    def forward(self, *args):
        note("begin", f"Net {self.path}")
        try:
            self.first()
            try:
                self.second()
            except ValueError:
                pass
            self.first()
        finally:
            note("end")


class Wrapper(Module):
    """As DistributedDataParallel is."""
    def __init__(self, inner):
        self.module = inner

    def forward(self, *args):
        note("begin", f"Wrapper {type(self.module).__name__}")
        self.module()
        note("end")


def refuses(_, args):
    if args:
        raise RuntimeError("another hook, before gpuprof's")


def scene_plain():
    net = Net()
    for _ in range(3):
        net()
    Wrapper(net)()
    Layer("Layer", depth=3)()
    Layer("Layer", True)


def scene_threads():
    net, start = Net(), threading.Barrier(8)

    def work():
        start.wait()
        for _ in range(50):
            net()
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def scene_refused():
    """A hook that comes before ours raises an exception: ours behind the forward runs all the same.
    """
    hooks = module._global_forward_pre_hooks
    ours = dict(hooks)
    hooks.clear()
    hooks[-1] = refuses
    hooks.update(ours)

    class Outer(Layer):
        def forward(self, *args):
            note("begin", "Outer Outer")
            try:
                self.inner("refuse")
            except RuntimeError:
                pass
            self.inner()
            note("end")
    outer = Outer("Outer", depth=1)
    outer()


def scene_compiled():
    net = Net()
    torch.compiles = True
    net()
    log.clear()
    torch.compiles = False
    net()


def scene_unwanted():
    """Hooks that are set are set at the writer's next tick, and it has had many."""
    Net()()


def scene_deep():
    """64 in one another are recorded, no more."""
    Layer("Layer", depth=99)()
    depth, kept = 0, []
    for _, what, *name in log:
        depth -= what == "end"
        if depth < 64:
            kept.append([threading.get_native_id(), what, *name])
        depth += what == "begin"
    log[:] = kept


def scene_interrupted():
    """What gpuprof asks a new module for is ended by the program's own KeyboardInterrupt."""
    class Stopped(Layer):
        def named_modules(self, prefix=""):
            raise KeyboardInterrupt
    try:
        Stopped("Stopped")()
        raise AssertionError("nobody has seen the KeyboardInterrupt")
    except KeyboardInterrupt:
        pass
    Net()()


def scene_left():
    """No hook behind a forward runs where it is left by what is no Exception."""
    class Left(Layer):
        def forward(self, *args):
            note("begin", f"Left {self.path}")
            try:
                raise KeyboardInterrupt
            finally:
                note("end")

    class Outer(Module):
        def __init__(self):
            self.inner = Left("Outer.inner")

        def forward(self, *args):
            note("begin", "Outer Outer")
            try:
                self.inner()
            finally:
                note("end")
    outer = Outer()
    for _ in range(100):
        try:
            outer()
        except KeyboardInterrupt:
            pass
    Net()()


def scene_reused():
    """Modules come and go, at the same addresses."""
    for i in range(200):
        name = f"Kind{i % 7}"
        kind = type(name, (Module,), {"forward": lambda self: note("end")})
        one = kind()
        note("begin", f"{name} {name}")
        one()


def scene_paused():
    """What begins in a pause is not recorded, and what began before it ends in it."""
    net, program = Net(), ctypes.CDLL(None)

    class Pauses(Layer):
        def forward(self, *args):
            note("begin", "Pauses Pauses")
            program.gpuprof_stop()
            self.inner()
            note("end")
    net()
    Pauses("Pauses", depth=1)()
    del log[-3:-1]
    kept = list(log)
    net()
    log[:] = kept
    program.gpuprof_start()
    net()


PROFILERS = '''
import contextlib
class Profiler:
    @contextlib.contextmanager
    def profile(self, action_name):
        yield action_name
class PassThroughProfiler(Profiler):
    pass
class PyTorchProfiler(Profiler):  # it makes labels of its own
    pass
'''


def lightning():
    """As its package is laid out; imported before a module is met that is new."""
    profilers = types.ModuleType("lightning.pytorch.profilers.profiler")
    exec(PROFILERS, vars(profilers))
    sys.modules[profilers.__name__] = profilers
    return profilers


def scene_hooks():
    profilers, net = lightning(), Net()
    net()
    log.clear()

    def hook(profiler, name, inside):
        name = f"[LightningModule]Net.{name}"
        if type(profiler).__name__ != "PyTorchProfiler":
            note("begin", f"[pl][profile]{name}")
        try:
            with profiler.profile(name) as value:
                assert value == name
                inside()
        finally:
            if type(profiler).__name__ != "PyTorchProfiler":
                note("end")

    def fails():
        raise KeyboardInterrupt
    plain = profilers.PassThroughProfiler()
    for _ in range(3):
        hook(plain, "optimizer_step", lambda: hook(plain, "training_step", net))
        hook(profilers.PyTorchProfiler(), "backward", net)
        try:
            hook(plain, "outer", lambda: hook(plain, "on_exception", fails))
        except KeyboardInterrupt:
            pass
    assert profilers.Profiler.profile.__name__ == "profile"


def scene_fork():
    net = Net()
    net()
    child = os.fork()
    if child == 0:
        log.clear()
        cudart.cudaFree(None)
        net()
        return
    assert os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    simtorch, cudart = ctypes.CDLL(sys.argv[3]), ctypes.CDLL(sys.argv[4])
    simtorch.sim_op_begin.restype = ctypes.c_void_p
    torch.__spec__._initializing = sys.argv[2] == "plain"
    cudart.cudaFree(None)
    until = time.monotonic() + 0.3
    while time.monotonic() < until and torch.__spec__._initializing:
        assert not module._global_forward_hooks  # PyTorch is not whole yet
    torch.__spec__._initializing = False
    wanted = [] if sys.argv[2] == "unwanted" else ["after", "before", "keep", "learn", "look",
                                                    "path_of"]
    until = time.monotonic() + (60 if wanted else UNWANTED_SECONDS)
    while not module._global_forward_hooks and time.monotonic() < until:
        time.sleep(0.001)  # as PyTorch's operators do, it gives up Python's lock and takes it again
    names = sorted(code.co_name for code in torch.skipped)
    assert names == wanted and bool(module._global_forward_hooks) == bool(wanted), names
    globals()["scene_" + sys.argv[2]]()
    with open(f"{sys.argv[1]}.{os.getpid()}", "w", encoding="utf-8") as out:
        json.dump(log, out)
