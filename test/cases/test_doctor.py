# SPDX-License-Identifier: Apache-2.0
"""gpuprof doctor: each check, on a machine that is described to it (a folder in the place of the
root, the environment, the simulated CUDA), and programs that lose the library on their way."""

import ctypes
import json
import os
import platform
import re
import shutil
import signal
import struct
import subprocess

import conftest
import pytest
import toolchain
from launched import has_ended, wait_until

SIM = conftest.BUILD / "sim"
OK, LIMITED, BROKEN = "ok", "limited", "broken"
STATUS = {OK: 0, LIMITED: 0, BROKEN: 4}


@pytest.fixture(autouse=True)
def of_no_container(monkeypatch, tmp_path):
    """What the tester's machine is says nothing: its root has what a test puts there."""
    for name in ("KUBERNETES_SERVICE_HOST", "APPTAINER_CONTAINER", "NVIDIA_DRIVER_CAPABILITIES",
                 "NVIDIA_VISIBLE_DEVICES", "CUDA_HOME", "PYTHONPATH", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GPUPROF_DOCTOR_ROOT", str(tmp_path / "root"))
    # Found first, whatever toolkit this machine has.
    monkeypatch.setenv("GPUPROF_CUPTI", str(SIM / "libcupti.so.13"))
    put(tmp_path / "root/proc/self/mem")


def put(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(name="doctor")
def fixture_doctor(run_collector, library):
    """doctor(PROGRAM...): what it finds, by the checks' names; its exit status fits that."""
    assert library

    def look(*words, **options):
        done = run_collector("doctor", "--json", *words, **options)
        assert done.stderr == ""
        answer = json.loads(done.stdout)
        found = {check.pop("id"): check for check in answer["checks"]}
        worst = max((check["state"] for check in found.values()), key=list(STATUS).index)
        assert (answer["state"], done.returncode) == (worst, STATUS[worst])
        assert all((check["advice"] is None) == (check["state"] == OK) for check in found.values())
        return found
    return look


@pytest.mark.parametrize("devices,version,text", [
    (1, 13000, "CUDA 13.0, 1 GPU ("), (3, 12040, "CUDA 12.4, 3 GPUs (")])
def test_a_machine_that_is_fit(doctor, run_collector, program, monkeypatch, devices, version, text):
    monkeypatch.setenv("SIMCUDA_DEVICES", str(devices))
    monkeypatch.setenv("SIMCUDA_DRIVER_VERSION", str(version))
    monkeypatch.setenv("GPUPROF_CUPTI", str(SIM / f"libcupti.so.{version // 1000}"))
    found = doctor(program("one_call"))
    assert {"library", "kernel", "libc", "memory", "live", "driver", "cupti", "client", "program",
            "preload"} == set(found)
    assert {check["state"] for name, check in found.items() if name != "live"} == {OK}
    assert found["driver"]["text"].startswith(text + str(SIM))
    assert found["preload"]["text"] == "libgpuprof.so will be loaded in one_call"
    lines = run_collector("doctor", program("one_call")).stdout.splitlines()
    assert [line.split()[:2] for line in lines if line[:1] not in ("", " ")][:-1] == \
        [[check["state"], name] for name, check in found.items()]
    assert lines[-1].endswith(", 0 broken")


def root_file(path, text=""):
    return lambda root, _: put(root / path, text)


def variable(name, text):
    return lambda _, monkeypatch: monkeypatch.setenv(name, text)


def garbage_driver(root, monkeypatch):
    put(root / "lib" / "libcuda.so.1", "no library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(root / "lib"))


def garbage_nvml(root, monkeypatch):
    put(root / "lib" / "libnvidia-ml.so.1", "no library")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{root / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}")


KERNEL = "proc/sys/kernel/osrelease"
PARAMS = "proc/driver/nvidia/params"
MODULE = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 20 12:00:00 UTC 2025\n"
DEVICE = variable("GPUPROF_DEVICE", "1")
TASK = "proc/self/task/1"
GAPS = variable("GPUPROF_GAPS", "on")
NO_GPU = variable("SIMCUDA_FAIL", "cuInit:*=100")
MACHINES = {
    "kernel 4.14": ([root_file(KERNEL, "4.14.336\n")], "kernel", OK, "Linux 4.14.336"),
    "kernel 4.9": ([root_file(KERNEL, "4.9.0-19\n")], "kernel", BROKEN, "4.9.0-19 is older than"),
    "kernel 3.10": ([root_file(KERNEL, "3.10.0-1160.el7\n")], "kernel", BROKEN, "older than 4.14"),
    "no memory of its own": ([lambda root, _: (root / "proc/self/mem").unlink()], "memory", LIMITED,
                             "no Python frames"),
    "/proc/self/mem": ([], "memory", OK, "through /proc/self/mem"),
    "no /dev/shm": ([variable("GPUPROF_LIVE", "")], "live", LIMITED, "/dev/shm: No such file"),
    "no live folder": ([variable("GPUPROF_LIVE", "/nonesuch")], "live", LIMITED, "/nonesuch: "),
    "a wrong setting": ([variable("GPUPROF_LEVEL", "99")], "settings", LIMITED, "GPUPROF_LEVEL: "),
    "a container": ([root_file(".dockerenv")], "container", OK, "on a mount"),
    "a podman": ([root_file("run/.containerenv")], "container", OK, "on a mount"),
    "no compute": ([root_file(".dockerenv"), variable("NVIDIA_DRIVER_CAPABILITIES", "utility")],
                   "container", BROKEN, "has no libcuda, .*CAPABILITIES=utility"),
    "compute": ([root_file(".dockerenv"),
                 variable("NVIDIA_DRIVER_CAPABILITIES", "utility,compute")], "container", OK, ""),
    "no devices": ([root_file(".dockerenv"), variable("NVIDIA_VISIBLE_DEVICES", "void")],
                   "container", BROKEN, "has no GPU, .*DEVICES=void"),
    "no driver": ([garbage_driver], "driver", BROKEN, "no CUDA driver: .*libcuda.so.1: "),
    "a module alone": ([garbage_driver, root_file("proc/driver/nvidia/version", MODULE)],
                       "driver", BROKEN, "no CUDA driver: .*, module 580.65.06"),
    "the module": ([root_file("proc/driver/nvidia/version", MODULE)], "driver", OK,
                   "CUDA 13.0, .*, module 580.65.06"),
    "counters of devices": ([DEVICE], "device", OK,
                            r"NVML reports the power of 2 devices \(driver 580.65.06\)"),
    "NVML does not start": ([DEVICE, variable("SIMNVML_FAIL", "nvmlInit=9")], "device", LIMITED,
                            r"no device counters: nvmlInit_v2 fails with 9 "
                            r"\(the driver is not loaded\)"),
    "NVML of another driver": ([DEVICE, variable("SIMNVML_FAIL", "nvmlInit=18")], "device",
                               LIMITED, r"fails with 18 \(library and driver have different"),
    "NVML of the future": ([DEVICE, variable("SIMNVML_FAIL", "nvmlInit=77")], "device", LIMITED,
                           r"fails with 77 \(an error that gpuprof does not know\)"),
    "no power": ([DEVICE, variable("SIMNVML_FAIL", "nvmlDeviceGetPowerUsage=4")], "device", LIMITED,
                 r"NVML reports the power of 0 of 2 devices \(error 4: no permission; driver "
                 r"580.65.06\)"),
    "NVML is garbage": ([DEVICE, garbage_nvml], "device", LIMITED, "too short"),
    "NVML sees nothing": ([DEVICE, variable("SIMCUDA_DEVICES", "0")], "device", LIMITED,
                          "NVML sees no device"),
    "looks": ([GAPS, *(root_file(f"{TASK}/{name}", "1") for name in ("stat", "syscall",
                                                                     "schedstat"))],
              "gaps", OK, "can be observed"),
    "looks by --sample": ([variable("GPUPROF_SAMPLE", "100"), root_file(f"{TASK}/stat", "1")],
                          "gaps", LIMITED,
                          "not say what waiting threads do: .*/syscall: No such"),
    "no looks": ([GAPS], "gaps", LIMITED, "not say what waiting threads do: .*/stat: No such file"),
    "looks without times": ([GAPS, root_file(f"{TASK}/stat", "1"),
                             root_file(f"{TASK}/syscall", "1"), root_file(f"{TASK}/schedstat")],
                            "gaps", LIMITED, "not say what waiting threads do: .*/schedstat: "
                                             "the file is empty"),
    "no GPU": ([NO_GPU], "driver", BROKEN, r"cuInit fails with 100 \(CUDA_ERROR_NO_DEVICE\)"),
    "no libcupti": ([variable("GPUPROF_CUPTI", "/nonesuch.so")], "cupti", LIMITED,
                    "host rows only: /nonesuch.so: "),
    "what is no libcupti": ([variable("GPUPROF_CUPTI", "libm.so.6")], "cupti", LIMITED,
                            "libm.so.6 is not a libcupti"),
    "a libcupti that is too new": ([variable("SIMCUPTI_NEWER", "1")], "cupti", LIMITED,
                                   "does not work with this driver: error 15"),
    "a holder": ([variable("SIMCUPTI_HOLDER", "other")], "cupti", LIMITED, "another client uses"),
    "GPU off": ([variable("GPUPROF_GPU", "off")], "cupti", LIMITED, "GPUPROF_GPU turns them off"),
    "another tool": ([variable("CUDA_INJECTION64_PATH", "/opt/nsys.so")], "client", LIMITED,
                     "CUDA_INJECTION64_PATH names another tool, /opt/nsys.so"),
    "another preload": ([variable("LD_PRELOAD", str(SIM / "../libToolsInjection64.so"))], "client",
                        LIMITED, "LD_PRELOAD names another profiler"),
    "closed counters": ([root_file(PARAMS, "EnableMSI: 1\nRmProfilingAdminOnly: 1\n")], "counters",
                        OK, "only administrators may"),
    "open counters": ([root_file(PARAMS, "RmProfilingAdminOnly: 0\n")], "counters", OK,
     "all users may"),
}


@pytest.mark.parametrize("name", MACHINES)
def test_machine(run_collector, monkeypatch, tmp_path, name):
    changes, check, state, text = MACHINES[name]
    for change in changes:
        change(tmp_path / "root", monkeypatch)
    done = run_collector("doctor", "--json")
    answer = json.loads(done.stdout)
    found, = [c for c in answer["checks"] if c["id"] == check]
    assert found["state"] == state, found
    assert re.search(text, found["text"]), found
    assert done.returncode == (4 if any(c["state"] == BROKEN for c in answer["checks"]) else 0)


def test_what_needs_no_word(doctor):
    """No line of a container where there is none, nor of a program where none is named."""
    found = doctor()
    assert not {"container", "settings", "counters", "program", "preload", "python"} & set(found)


def test_cupti_crashes(doctor, tmp_path, monkeypatch):
    """It takes its own process with it, and no other."""
    source = tmp_path / "crash.c"
    source.write_text("int cuptiGetVersion(void) { return *(volatile int *)0; }\n"
                      "int cuptiSubscribe(void) { return 0; }\n"
                      "int cuptiActivityEnable(void) { return 0; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "libcupti.so", source], check=True)
    monkeypatch.setenv("GPUPROF_CUPTI", str(tmp_path / "libcupti.so"))
    assert doctor()["cupti"]["text"].endswith("libcupti.so crashes, or does not answer")


def test_cupti_beside_one_that_is_refused(doctor, tmp_path, monkeypatch):
    """That of a toolkit for another driver does not end the search: both are named."""
    fits, refused = SIM / "libcupti.so.13", tmp_path / "lib64" / "libcupti.so.13"
    refused.parent.mkdir()
    refused.write_bytes(fits.read_bytes())
    monkeypatch.delenv("GPUPROF_CUPTI")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setenv("SIMCUPTI_REFUSED_BELOW", str(tmp_path))
    assert doctor()["cupti"]["text"] == f"{fits} fits the driver, which refuses {refused}"


@pytest.mark.skipif(os.geteuid() != 0, reason="not run: only root may mount")
def test_file_systems(tmp_path, build, monkeypatch):
    """A library that cannot be mapped as code, and a live folder without room."""
    script = ("set -e; mkdir fs; mount -t tmpfs -o noexec,size=60m none fs; "
              f"cp {build}/libgpuprof.so {build}/gpuprof-collector fs; cp fs/gpuprof-collector .; "
              "mount --bind gpuprof-collector fs/gpuprof-collector; "
              "exec fs/gpuprof-collector doctor --json")
    monkeypatch.setenv("GPUPROF_LIVE", "fs")
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=tmp_path, check=False,
                          capture_output=True, text=True, timeout=60)
    if "mount: " in done.stderr or "unshare: " in done.stderr:
        pytest.skip(f"not run: no mounts here: {done.stderr}")
    found = {check["id"]: check for check in json.loads(done.stdout)["checks"]}
    assert found["library"]["state"] == BROKEN and "noexec" in found["library"]["text"]
    assert found["live"]["state"] == LIMITED and "fs has " in found["live"]["text"]


# ---- programs --------------------------------------------------------------------------------


def test_program_does_not_run(doctor, tmp_path):
    """It is looked at before its main begins; what starts it may run, and records nothing."""
    assert doctor("touch", "made")["preload"]["text"] == "libgpuprof.so will be loaded in touch"
    assert not (tmp_path / "made").exists()
    found = doctor("sh", "-c", "touch made; exec touch other")
    assert re.fullmatch("libgpuprof.so will be loaded in touch, started by [a-z]+, touch",
                        found["preload"]["text"])
    assert (tmp_path / "made").exists() and not (tmp_path / "other").exists()
    assert not list(tmp_path.glob("gpuprof*"))


LOST = "LD_PRELOAD does not name gpuprof in its environment, or has no effect"


@pytest.mark.parametrize("words,name", [
    (["env", "-i", "PROGRAM"], "one_call"),
    (["env", "LD_PRELOAD=", "nice", "PROGRAM"], "nice"),
    (["sh", "-c", "true; env -u LD_PRELOAD PROGRAM; true"], "one_call"),
    (["SCRIPT"], "one_call"),
], ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]))
def test_lost_on_the_way(doctor, program, tmp_path, words, name):
    put(tmp_path / "wrapper", f"#!/bin/sh\nenv -i {program('one_call')}\n")
    (tmp_path / "wrapper").chmod(0o755)
    words = [word.replace("PROGRAM", str(program("one_call"))).replace("SCRIPT", "./wrapper")
             for word in words]
    preload = doctor(*words)["preload"]
    assert preload["state"] == BROKEN and preload["text"].endswith(f": {LOST}"), preload
    assert f"will not be loaded in {name}" in preload["text"]


def test_found_behind_wrappers(doctor, program):
    """Tools that a wrapper calls are not the program, even if nothing can be loaded in them."""
    tool = toolchain.build("foreign_libc.c", "-static")
    found = doctor("sh", "-c", f"dirname a/b; {tool}; nice env A=b {program('one_call')}; true")
    assert found["preload"]["state"] == OK and \
        "will be loaded in one_call" in found["preload"]["text"]
    found = doctor("sh", "-c", f"{tool}; true")
    assert found["preload"]["state"] == LIMITED
    assert "cannot be recorded (statically linked)" in found["preload"]["text"]
    found = doctor("sh", "-c", "dirname a/b; true")
    assert found["preload"]["state"] == OK and "(" in found["preload"]["text"]


@pytest.mark.skipif(os.geteuid() != 0, reason="not run: only root can make another user's program")
def test_with_more_rights(doctor, tmp_path):
    """As sudo is: neither itself, nor behind a shell."""
    shutil.copy("/usr/bin/env", tmp_path / "other")
    os.chown(tmp_path / "other", 65534, 65534)
    (tmp_path / "other").chmod(0o4755)
    found = doctor("./other", "true")
    assert found["program"]["state"] == BROKEN and "setuid" in found["program"]["text"]
    assert "preload" not in found
    found = doctor("sh", "-c", "exec ./other true")
    assert found["preload"]["state"] == BROKEN and "other, started by" in found["preload"]["text"]
    assert found["preload"]["text"].endswith(": setuid")


@pytest.mark.parametrize("compiler,flags,text", [
    ("gcc", ["-static"], "statically linked"),
    ("musl-gcc", [], "linked with musl instead of glibc")])
def test_program_that_cannot_be_recorded(doctor, compiler, flags, text):
    found = doctor(toolchain.build("foreign_libc.c", *flags, compiler=compiler))
    assert found["program"]["state"] == BROKEN and text in found["program"]["text"]
    assert doctor("nonesuch")["program"]["text"] == "nonesuch: No such file or directory"


def test_program_that_does_not_start(doctor, tmp_path):
    """A library of its own is missing."""
    for name, text, flags in (("libgone.so", "int gone(void) { return 0; }", ["-shared", "-fPIC"]),
                              ("lost", "int gone(void); int main(void) { return gone(); }",
                               [f"-L{tmp_path}", "-lgone"])):
        subprocess.run(["gcc", "-x", "c", "-", "-x", "none", *flags, "-o", tmp_path / name],
                       input=text, text=True, check=True)
    (tmp_path / "libgone.so").unlink()
    preload = doctor("./lost")["preload"]
    assert preload["state"] == BROKEN and preload["text"].startswith("lost does not start")


def test_runtime_that_is_linked_in(doctor, monkeypatch):
    program = toolchain.build("runtime_work.c", *toolchain.STATIC)
    assert doctor(program)["runtime"]["state"] == OK
    assert "runtime" not in doctor(toolchain.build("runtime_work.c", *toolchain.runtime(13)))
    monkeypatch.setenv("GPUPROF_GPU", "off")
    assert doctor(program)["runtime"]["state"] == LIMITED


def test_sanitizer(doctor):
    folder, link = toolchain.tiny()
    program = toolchain.build("foreign_work.c", *link, "-fsanitize=address")
    found = doctor(program, env={**os.environ, "LD_LIBRARY_PATH": f"{folder}:{SIM}"})
    assert found["sanitizer"]["text"].startswith("the program uses AddressSanitizer")
    assert found["preload"]["state"] == OK


def fake_python(folder, name, torch=None):
    """Its file and its packages, as far as they are looked at; it cannot run anything."""
    (folder / "bin").mkdir(parents=True)
    shutil.copy("/bin/true", folder / "bin" / name)
    packages = folder / "lib" / name.rstrip("t") / "site-packages"
    if torch:
        put(packages / "torch/version.py",
            f"from typing import Optional\n\n__version__ = '{torch}'\ndebug = False\n")
    return folder / "bin" / name, packages


@pytest.mark.parametrize("name,state,text", [
    ("python3.7", LIMITED, "3.7 is not supported (3.8 to 3.15 are)"), ("python3.8", OK, "3.8"),
    ("python3.15", OK, "3.15"), ("python3.16", LIMITED, "not supported"),
    ("python3.13t", OK, "3.13")])
def test_python(doctor, tmp_path, name, state, text):
    python, _ = fake_python(tmp_path / "conda", name)
    found = doctor(python, "train.py")
    assert found["python"]["state"] == state and text in found["python"]["text"]
    assert "pytorch" not in found


@pytest.mark.parametrize("version,state", [
    ("2.0.1", LIMITED), ("2.1.0", OK), ("2.5.1+cu124", OK), ("2.15.0a0+git1234", OK),
    ("2.16.0", LIMITED), ("1.13.1", LIMITED), ("3.1.0", LIMITED), ("strange", LIMITED)])
def test_pytorch(doctor, tmp_path, version, state):
    python, packages = fake_python(tmp_path / "conda", "python3.12", version)
    torch = doctor(python, "train.py")["pytorch"]
    assert torch["state"] == state and f"PyTorch {version} ({packages})" in torch["text"]


def test_pytorch_of_a_virtual_environment(doctor, tmp_path, monkeypatch):
    """Its python is a link to another folder's; a script names it; its wheels have a libcupti."""
    monkeypatch.delenv("GPUPROF_CUPTI")
    python, _ = fake_python(tmp_path / "base", "python3.12", "2.1.0")
    _, packages = fake_python(tmp_path / "venv", "python3.12", "2.4.0")
    (tmp_path / "venv/bin/python3").symlink_to(python)
    for wheel, name in (("cuda_runtime", "libcudart.so.12"), ("cuda_cupti", "libcupti.so.12")):
        (packages / "nvidia" / wheel / "lib").mkdir(parents=True)
        (packages / "nvidia" / wheel / "lib" / name).symlink_to(SIM / name)
    put(tmp_path / "torchrun", f"#!{tmp_path}/venv/bin/python3\nimport sys\n")
    (tmp_path / "torchrun").chmod(0o755)
    for words in (["venv/bin/python3", "train.py"], ["./torchrun", "train.py"]):
        found = doctor(*words)
        assert found["pytorch"]["text"].startswith("PyTorch 2.4.0 (")
        path = found["cupti"]["text"].split(" fits ")[0]
        assert "venv/" in path and (tmp_path / path).resolve() == SIM / "libcupti.so.12"


def test_real_python(doctor):
    found = doctor("/usr/bin/python3", "-c", "raise SystemExit(open('made', 'w'))")
    version = subprocess.run(["/usr/bin/python3", "-c", "import sys; print(sys.version_info[1])"],
                             capture_output=True, text=True, check=True).stdout.strip()
    assert f"Python 3.{version}" in found["python"]["text"]
    assert found["preload"]["state"] == OK


# ---- ends ------------------------------------------------------------------------------------


def test_nothing_stays(doctor, tmp_path):
    """What a wrapper has started ends with the look: also what nobody waits for."""
    doctor("sh", "-c", f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 300' & "
                       f"while ! [ -s {tmp_path}/pid ]; do :; done; exec env -i /bin/true")
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: has_ended(pid))


@pytest.mark.long
def test_nvml_that_hangs(doctor, monkeypatch):
    """What it said before counts for nothing."""
    monkeypatch.setenv("SIMNVML_FAIL", "nvmlDeviceGetPowerUsage=hang")
    found = doctor("--device")["device"]
    assert found["state"] == LIMITED and found["text"].endswith("crashes, or does not answer")


@pytest.mark.long
def test_wrapper_that_goes_on(doctor):
    found = doctor("sh", "-c", "sleep 300; true")
    assert found["preload"]["state"] == LIMITED
    assert "no program that uses CUDA was started within 10 seconds" in found["preload"]["text"]


PTRACE = {"x86_64": 101, "aarch64": 117}
TIMER_CREATE = {"x86_64": 222, "aarch64": 107}


def forbid(call):
    """A seccomp filter: EPERM."""
    libc = ctypes.CDLL(None, use_errno=True)
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, call[platform.machine()]), (0x06, 0, 0, 0x50001),
            (0x06, 0, 0, 0x7fff0000)]
    data = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *row) for row in code))
    program = struct.pack("<H6xQ", len(code), ctypes.addressof(data))
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0


def test_without_ptrace(doctor, program):
    found = doctor(program("one_call"), preexec_fn=lambda: forbid(PTRACE))
    assert found["preload"]["state"] == LIMITED
    assert found["preload"]["text"].endswith("will be loaded: ptrace: Operation not permitted")


def ignore_signals(*free):
    for number in range(signal.SIGRTMIN, signal.SIGRTMAX + 1):
        if number not in free:
            signal.signal(number, signal.SIG_IGN)


def test_samples(doctor, program):
    """Which signal they take, and what forbids them; the library says the same (test_sample)."""
    found = doctor(program("one_call"))
    assert not {"sample", "gaps", "os"} & set(found)
    for words, before, state, text in (
            (["--sample"], None, OK, "signal 62 is free for samples"),
            (["--sample", "--dump-signal=62"], None, OK, "signal 61 is free for samples"),
            (["--sample"], lambda: ignore_signals(40), OK, "signal 40 is free for samples"),
            (["--sample"], ignore_signals, LIMITED, "no real-time signal is free"),
            (["--sample"], lambda: forbid(TIMER_CREATE), LIMITED,
             "cannot create a timer on a thread's CPU time: Operation not permitted")):
        found = doctor(*words, program("one_call"), preexec_fn=before)
        assert found["sample"]["state"] == state and text in found["sample"]["text"], found


def test_calls_of_the_c_library(doctor, build, tmp_path, program):
    """Whether libgpuprof-os.so is beside the library; 'run' does not start without it."""
    assert doctor("--os")["os"]["text"] == f"{build}/libgpuprof-os.so can be preloaded"
    for name in ("gpuprof-collector", "libgpuprof.so"):
        shutil.copy(build / name, tmp_path)
    done = subprocess.run([tmp_path / "gpuprof-collector", "doctor", "--os", "--json"], check=False,
                          stdout=subprocess.PIPE, timeout=60)
    found = {check["id"]: check for check in json.loads(done.stdout)["checks"]}
    reason = f"{tmp_path}/libgpuprof-os.so: No such file or directory"
    assert (done.returncode, found["os"]["state"], found["os"]["text"]) == (
        4, BROKEN, f"'gpuprof run --os' will not start: {reason}")
    for words, code, said in ((["--os"], 2, f"gpuprof: run: {reason}\n"), ([], 0, "")):
        done = subprocess.run([tmp_path / "gpuprof-collector", "run", "--quiet", *words,
                               "touch", "made"], cwd=tmp_path, check=False, capture_output=True,
                              text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (code, "", said)
        assert (tmp_path / "made").exists() == (code == 0)


def test_wrong_use_and_help(run_collector, tmp_path):
    wrong = run_collector("doctor", "--jsno")
    assert (wrong.returncode, wrong.stdout) == (2, "") and "did you mean --json?" in wrong.stderr
    assert run_collector("doctor", "--help").stdout == run_collector("help", "doctor").stdout
    # The program's own options are not ours; and a name is nobody's terminal's.
    assert run_collector("doctor", "--", "true", "--json").stdout.startswith("ok ")
    (tmp_path / "a\x1b[31m").symlink_to("/bin/true")
    told = run_collector("doctor", "./a\x1b[31m")
    assert "\x1b" not in told.stdout and told.returncode == 0


def test_signal_ends_it(collector, library, tmp_path):
    assert library
    with conftest.Program([collector, "doctor", "sh", "-c", f"echo > {tmp_path}/on; sleep 300"],
                          stdout=subprocess.DEVNULL) as running:
        while not (tmp_path / "on").exists():
            assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        assert running.wait() == -signal.SIGTERM


def test_options_of_run(doctor, run_collector, monkeypatch):
    """The command line of run does, with one word changed; an option wins over its variable."""
    monkeypatch.setenv("GPUPROF_LIVE", "/dev/shm")
    found = doctor("-o", "data", "--quiet", "--exec", "--live=/nonesuch", "--pytorch", "names",
                   "true")
    assert found["live"]["state"] == LIMITED and found["live"]["text"].startswith("/nonesuch: ")
    told = run_collector("help", "doctor").stdout
    assert "options of 'gpuprof run'" in told and "--quiet" not in told and "--exec" not in told
    for option, text in (("--level=99", "--level: '99' is out of range (1 to 9)"),
                         ("--pytroch=names", "unknown option '--pytroch=names' (did you mean "
                          "--pytorch?); try 'gpuprof help doctor'")):
        done = run_collector("doctor", option, "true")
        assert (done.returncode, done.stdout, done.stderr) == (
            2, "", f"gpuprof: doctor: {text}\n")
