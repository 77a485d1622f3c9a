# SPDX-License-Identifier: Apache-2.0
"""The devices' counters (--device): what is recorded is what NVML answered, and when; and what
happens where it answers less, late, or not at all."""

import os
import signal
import subprocess
import time

import conftest
import cupti_client as cupti
import pytest
import stream_reader
import toolchain
from stream_reader import (DEVICE_ABSENT, DEVICE_CLOCKS, DEVICE_GPM, DEVICE_LINKS, DEVICE_POWER,
                           DEVICE_SOURCE, DEVICE_USE)

pytestmark = pytest.mark.skipif(bool(toolchain.CROSS), reason="the simulated CUPTI runs natively")

LIBRARY, UNKNOWN, NOT_SUPPORTED, NO_PERMISSION, LOST, SLOW = range(1, 7)  # reasons
GPUS = [(int.from_bytes(b"simulate", "big"), int.from_bytes(b"d-gpu-0%d" % i, "big"))
        for i in range(2)]
S = 10**9
PART = int.from_bytes(b"d-mig-00", "big")
CLOCKS_NS = 100_000  # of two clocks
IDLE_MW, ACTIVE_MW = 50_000, 250_000  # of test/sim/sim_nvml_counters.c

# The numbers of fields in the log, by record and argument, and what a unit of theirs is.
FIELDS = {DEVICE_POWER: {1: (83, 1), 2: (186, 1), 3: (185, 1), 5: (190, 1), 7: (82, 1)},
          DEVICE_CLOCKS: {5: (74, 1), 6: (75, 1), 7: (76, 1), 8: (269, 1), 9: (270, 1),
                          10: (271, 1)},
          DEVICE_LINKS: {1: (197, 1), 2: (198, 1), 3: (138, 1024), 4: (139, 1024)}}


class Answer:
    """A line of NVML's log."""

    def __init__(self, line):
        begin, end, self.name, device, result, *rest = line.split(" ")
        self.begin, self.end, self.device, self.result = map(int, (begin, end, device, result))
        self.values = {int(k) if k.isdigit() else k: int(v)
                       for k, v in (word.split("=") for word in rest if "=" in word)}


class Done:
    def __init__(self, done, out, log):
        self.stdout, self.stderr = done.stdout, done.stderr
        self.process = max(stream_reader.read_folder(out), key=lambda p: len(p.records))
        self.log = [Answer(line) for path in log.glob("nvml-*") if str(self.process.header.pid)
                    in path.name for line in path.read_text().splitlines()]
        self.cuda_log = log

    def of(self, wanted, source=None):
        """Readings of power are those of what else there is, too."""
        return [r for r in self.process.of_type(wanted) if source in (None, r.args[0]) and
                (wanted != DEVICE_POWER or any(r.args[2:]))]

    def early(self):
        """Of the counter of energy alone, before it was known which devices the process uses."""
        return [r for r in self.process.of_type(DEVICE_POWER) if not any(r.args[2:])]

    def absent(self):
        """(source, group) -> reason, of what is missing as a whole"""
        return {r.args[:2]: r.args[2] for r in self.of(DEVICE_ABSENT) if not r.args[3]}

    def refused(self):
        """(source, group, argument) -> reason, of single counters"""
        return {(*r.args[:2], i): r.args[2] for r in self.of(DEVICE_ABSENT) for i in range(16)
                if r.args[3] >> i & 1}

    def reasons(self):
        """Of what is missing as a whole; that is said nowhere else."""
        assert "counters of" not in self.stderr and not self.process.said
        return [r.text.decode() for r in self.of(DEVICE_ABSENT) if not any(r.args[1::2])]


@pytest.fixture(name="device")
def fixture_device(library, tmp_path):
    def device(*words, status=0, under=(), **settings):
        out, log = tmp_path / "out", tmp_path / "log"
        log.mkdir()
        env = toolchain.environment(out, library, **{
            "GPUPROF_GPU": "on", "GPUPROF_CUPTI": toolchain.SIM / cupti.VERSIONS["13.0"][0],
            "GPUPROF_DEVICE": 1, "SIMCUDA_LOG": log, "SIMCUDA_LOG_GPU": 1, "SIMNVML_LOG": log,
            "SIMCUDA_KERNEL_NS": 3_000_000, **settings})
        program = cupti.build(source="device_work.c")
        done = toolchain.run([*under, program, *words], env, status)
        return Done(done, out, log)
    return device


def compare_fields(done, source, device):
    """Each record of a source is what the log says that was answered in its time."""
    monotonic = done.process.monotonic()
    compared = 0
    for wanted, fields in FIELDS.items():
        for record in done.of(wanted, source):
            begin, end = monotonic(record.begin), monotonic(record.end)
            # Not of energy alone; the last one may be close behind the one before.
            answer = min((a for a in done.log if a.name == "nvmlDeviceGetFieldValues" and
                          a.device == device and len(a.values) > 3),
                         key=lambda a: abs(a.begin - begin))
            assert begin - CLOCKS_NS < answer.begin < end + CLOCKS_NS
            for argument, (field, unit) in fields.items():
                known = answer.values.get(field)
                assert record.args[argument] == (0 if known is None else known * unit + 1), field
                compared += known is not None
    return compared


def work_ns(done, device, before):
    """How long work has run on the device in all, by the simulated CUDA's own log."""
    total = 0
    for path in done.cuda_log.glob("*.log"):
        for line in path.read_bytes().translate(None, b"\0").decode().splitlines():
            parts = line.split("\t")
            if len(parts) > 8 and parts[2] == "G" and f"device={device}" in parts:
                begin, end = int(parts[5]), int(parts[6])
                total += max(0, min(end, before) - begin)
    return total


@pytest.mark.parametrize("ends", [(), ("exit",)])
def test_readings_are_what_nvml_answered(device, ends):
    done = device("device=1", "get=64", "idle=150", "run=700", *ends, status=3 if ends else 0)
    source = done.of(DEVICE_SOURCE)[0]  # again where reading turns out dear
    assert source.args == (1, 2, *GPUS[1], 0, 0, 100_000_000)  # the other one has no context
    assert source.text == b"Simulated GPU"
    power, use = done.of(DEVICE_POWER), done.of(DEVICE_USE)
    assert compare_fields(done, 1, 1) > 50
    [early] = done.early()
    assert early.begin == source.begin < power[0].begin
    asked = [a for a in done.log if a.name == "nvmlDeviceGetFieldValues"][:2]
    assert [a.device for a in asked] == [0, 1] and early.args[1] == asked[1].values[83] + 1
    assert len(power) >= 4 and len(use) == len(power) and not done.absent() and not done.reasons()
    assert all(r.args[6] == 46 and r.args[4] == 0 for r in power)
    assert all(r.args[1:5] == (1981, 2620, 1981, 2) for r in done.of(DEVICE_CLOCKS))
    assert use[-1].args[3:6] == ((8 << 30) + 1, (576 << 20) + 1, (300 << 20) + 1)
    listed = [r for r in use if r.args[7]]
    assert 0 < len(listed) < len(use) and listed[-1].args[7] == 3  # once a second
    if done.process.header.pid_namespace == 0xEFFFFFFC:
        assert listed[-1].args[6] == (64 << 20) + 1
    # Energy is power by time, whoever adds it up.
    monotonic = done.process.monotonic()
    first, last = (next(a for a in done.log if a.values.get(83) == r.args[1] - 1)
                   for r in (power[0], power[-1]))
    assert monotonic(power[-1].begin) - monotonic(power[0].begin) > 500_000_000
    span = last.values["now"] - first.values["now"]
    active = work_ns(done, 1, last.values["now"]) - work_ns(done, 1, first.values["now"])
    assert active > 300_000_000
    expected = (span * IDLE_MW + active * ACTIVE_MW) / 1e9
    assert power[-1].args[1] - power[0].args[1] == pytest.approx(expected, abs=3)
    # The last one is at the end, after all work.
    assert last.begin >= max(a.begin for a in done.log if a.name == "nvmlDeviceGetFieldValues")


UUIDS = [f"GPU-73696d75-6c61-7465-642d-6770752d303{i}" for i in range(2)]


MIGS = [uuid.replace("GPU", "MIG").replace("6770752d", "6d69672d") for uuid in UUIDS]


@pytest.mark.parametrize("visible, number, mig", [
    ("1,0", 1, False), ("1,-1,0", 1, False), (f"{UUIDS[1]},{UUIDS[0]}", 1, False),
    ("0,nonesuch,1", 0, False), (f"{MIGS[1]},{MIGS[0]}", 1, True)])
def test_visible_devices(device, visible, number, mig):
    """CUDA's number 0 may be any device; what is read is that one's, whatever the order. The
    energy is that of the work on it, which would be the idle one's else."""
    settings = {"SIMCUDA_MIG": 1} if mig else {}
    done = device("get=1", "idle=150", "run=500", CUDA_VISIBLE_DEVICES=visible, **settings)
    whole = max(done.of(DEVICE_SOURCE), key=lambda r: r.args[0])
    assert whole.args[1:4] == (1, *GPUS[number])
    assert {r.args[4:6] for r in done.of(DEVICE_SOURCE)} == (
        {(GPUS[1][0], PART + 1), (0, 0)} if mig else {(0, 0)})
    assert compare_fields(done, whole.args[0], number) > 30
    power = done.of(DEVICE_POWER, whole.args[0])
    idle_mj = (power[-1].begin - power[0].begin) * IDLE_MW / S
    assert power[-1].args[1] - power[0].args[1] > 2 * idle_mj


@pytest.mark.parametrize("visible", ["", "-1", "0,0", "GPU-", "nonesuch,0", UUIDS[0] + "0",
                                     MIGS[0]])
def test_no_visible_device(device, visible):
    """What names none, or one twice, or two at once: CUDA has none (100), and nothing is asked."""
    env = toolchain.environment(None, CUDA_VISIBLE_DEVICES=visible)
    done = toolchain.run([cupti.build(source="device_work.c"), "count"], env)
    assert done.stdout == "0 100\n"


def test_gpm_is_between_two_samples(device):
    done = device("get=1", "idle=150", "run=800")
    monotonic = done.process.monotonic()
    rates = done.of(DEVICE_GPM)
    assert len(rates) >= 2 and all(r.duration >= 100_000_000 for r in rates)
    for before, after in zip(rates, rates[1:]):
        assert before.end == after.begin  # nothing is left out between
    for record in rates:
        begin, end = monotonic(record.begin), monotonic(record.end)
        share = (work_ns(done, 0, end) - work_ns(done, 0, begin)) / (end - begin)
        assert record.args[2] / 1e6 == pytest.approx(min(share, 1), abs=0.05)
        assert record.args[3] / 1e6 == pytest.approx(min(share, 1) / 2, abs=0.05)
        assert record.args[6] == 1 and record.args[8] == 0  # nothing; not a number
        assert record.args[12] == 0  # not supported


def test_mig(device):
    """The part has its memory and its rates; the whole has the rest."""
    done = device("get=1", "idle=150", "run=300", SIMCUDA_MIG=1)
    part, whole = sorted(done.of(DEVICE_SOURCE), key=lambda r: r.args[0])
    assert part.args[:6] == (1, 1, *GPUS[0], GPUS[0][0], PART)
    assert whole.args[:6] == (2, 1, *GPUS[0], 0, 0)
    assert done.absent() == {(1, DEVICE_POWER): NOT_SUPPORTED, (1, DEVICE_CLOCKS): NOT_SUPPORTED,
                             (1, DEVICE_LINKS): NOT_SUPPORTED, (2, DEVICE_GPM): NOT_SUPPORTED}
    assert all(r.args[1] == 0 and r.args[4] > 1 for r in done.of(DEVICE_USE))
    assert {r.args[0] for r in done.of(DEVICE_GPM)} == {1}
    assert {r.args[0] for r in done.of(DEVICE_POWER)} == {2}
    assert done.refused() == {(source, DEVICE_USE, i): NOT_SUPPORTED
                              for source in (1, 2) for i in (1, 2)}
    assert compare_fields(done, 2, 0) > 20


def test_no_permission(device):
    """As in a container with a part of a device: the rest is there, and it is said what is not."""
    done = device("get=1", "idle=150", "run=100", SIMNVML_FAIL=",".join(
        f"nvmlDeviceGet{name}=4"
        for name in ("MemoryInfo", "UtilizationRates", "ComputeRunningProcesses")))
    assert done.absent() == {(1, DEVICE_USE): NO_PERMISSION}
    assert not done.of(DEVICE_USE) and compare_fields(done, 1, 0) > 10
    refused = [a for a in done.log if a.result == 4]
    assert len(refused) == 3  # and is not asked for again


def test_no_permission_for_fields(device):
    """Each counter that is not there is told with the reason, once; what has another way has it."""
    done = device("get=1", "idle=150", "run=100", SIMNVML_FAIL="nvmlDeviceGetFieldValues=4")
    assert done.absent() == {(1, DEVICE_LINKS): NO_PERMISSION}
    assert done.refused() == {(1, group, i): NO_PERMISSION
                              for group in (DEVICE_POWER, DEVICE_CLOCKS) for i in FIELDS[group]}
    assert len(done.of(DEVICE_ABSENT)) == 3
    assert all(r.args[4] == IDLE_MW + 1 and r.args[6] == 46 for r in done.of(DEVICE_POWER))


def test_old_driver(device):
    """450 has other functions, and no fields for the power of now."""
    done = device("get=16", "idle=150", "run=200",
                  LD_LIBRARY_PATH=f"{toolchain.SIM}/nvml-450:{toolchain.SIM}")
    assert done.absent() == {(1, DEVICE_GPM): NOT_SUPPORTED}
    power = done.of(DEVICE_POWER)
    assert power and all(r.args[2:6] == (0, 0, IDLE_MW + 1, 0) for r in power)
    assert {r.args[5] for r in done.of(DEVICE_USE)} == {0}  # what is reserved is among the used
    assert done.of(DEVICE_USE)[-1].args[4] == (512 + 300 + 16 << 20) + 1
    assert {r.args[4] for r in done.of(DEVICE_CLOCKS)} == {2}


def test_numbers_of_fields_that_meant_something_else(device):
    """Until 580, 269 to 271 were no times of throttling."""
    done = device("get=1", "idle=150", "run=200", SIMNVML_DRIVER=575)
    assert {r.args[8:11] for r in done.of(DEVICE_CLOCKS)} == {(0, 0, 0)}
    assert not any(269 in a.values for a in done.log) and compare_fields(done, 1, 0) > 10


def test_lost_device(device):
    done = device("get=1", "idle=150", "run=600", SIMNVML_LOST=3)
    assert done.absent() == {(1, 0): LOST}
    [record] = done.of(DEVICE_ABSENT)
    assert record.result == 15 and len(done.of(DEVICE_LINKS)) == 2  # and an early reading
    assert len([a for a in done.log if a.result == 15]) == 1  # it is left in peace
    assert len(done.reasons()) == 1


@pytest.mark.parametrize("settings, reason, said", [
    ({"SIMNVML_FAIL": "nvmlInit=18"}, LIBRARY, "have different versions"),
    ({"SIMNVML_FAIL": "nvmlInit=4"}, NO_PERMISSION, "no permission"),
    ({"library": "no ELF file"}, LIBRARY, "file too short")])
def test_no_library(device, tmp_path, settings, reason, said):
    if settings.pop("library", None):
        (tmp_path / "libnvidia-ml.so.1").write_bytes(b"")
        settings["LD_LIBRARY_PATH"] = f"{tmp_path}:{toolchain.SIM}"
    done = device("get=1", "idle=100", "run=50", **settings)
    assert done.absent() == {(0, 0): reason} and not done.of(DEVICE_POWER)
    assert len(done.reasons()) == 1 and said in done.reasons()[0]


def test_dear_readings_are_fewer(device):
    """5 ms are more than 1 % of 20 ms; of half a second they are not."""
    done = device("get=1", "idle=1500", GPUPROF_DEVICE_PERIOD="20ms", SIMNVML_SLOW_MS=5)
    periods = [r.args[6] for r in done.of(DEVICE_SOURCE)]
    assert periods[0] == 20_000_000 and 500_000_000 < periods[-1] <= 5_120_000_000
    assert not done.reasons() and 6 <= len(done.of(DEVICE_POWER)) <= 12


def test_a_slow_driver_is_not_told_to_hang(device):
    """At the end a reading is under way, which is waited for in vain."""
    done = device("get=1", "idle=900", SIMNVML_SLOW_MS=400, GPUPROF_DEVICE_PERIOD="50ms")
    assert not done.absent() and not done.reasons()


def test_too_dear_readings_end(device):
    done = device("get=1", "idle=900", GPUPROF_DEVICE_PERIOD="20ms", SIMNVML_SLOW_MS=70)
    assert done.absent() == {(0, 0): SLOW} and len(done.of(DEVICE_POWER)) == 6
    assert len(done.reasons()) == 1 and "more than 1 % of the time" in done.reasons()[0]


@pytest.mark.parametrize("name", ["nvmlInit", "nvmlDeviceGetFieldValues",
                                  "nvmlDeviceGetTemperature"])
def test_a_call_that_hangs_holds_nothing_up(device, name):
    begin = time.monotonic()
    done = device("get=1", "idle=150", "run=100", "patience=2", "forks=1", status=None,
                  SIMNVML_FAIL=f"{name}=hang")
    assert time.monotonic() - begin < 20
    assert done.process.end_reason == 1 and done.process.of_type(stream_reader.CALL)
    [record], [reason] = done.of(DEVICE_ABSENT), done.reasons()
    assert record.args == (0, 0, SLOW, 0)
    assert f"the driver does not answer: {name}" in reason


def test_a_hang_is_told_before_a_kill(device):
    """The writer sees it, while the program runs."""
    done = device("get=1", "idle=4500", "exit", status=3,
                  SIMNVML_FAIL="nvmlDeviceGetFieldValues=hang")
    [record] = done.of(DEVICE_ABSENT)
    assert record.args == (0, 0, SLOW, 0)
    assert record.begin < 4_400_000_000 < done.process.of_type(stream_reader.RESIDENT)[-1].begin


def test_children_may_use_nvml(device):
    """A fork waits until nobody of ours is inside NVML, whose lock the child would inherit."""
    done = device("get=1", "idle=70", "forks=60", GPUPROF_DEVICE_PERIOD="20ms", SIMNVML_SLOW_MS=20)
    assert len(done.of(DEVICE_POWER)) >= 4


def test_nothing_is_read_in_a_pause(device):
    done = device("get=1", "idle=150", "run=250", "stop", "idle=500", "start", "run=250")
    stop, start = sorted(r.begin for r in done.process.of_type(stream_reader.PAUSE))
    begins = [r.begin for r in done.of(DEVICE_POWER)]
    inside = [b for b in begins if stop < b < start - 50_000_000]
    assert len(inside) == 1 and inside[0] - stop < 150_000_000  # that of the turn
    assert [b for b in begins if start - 50_000_000 < b < start + 90_000_000]
    assert not [r for r in done.of(DEVICE_GPM) if r.begin < start - 300_000_000 and r.end > start]


def test_a_short_program_has_its_energy(device):
    """By the reading of all devices at its begin, and the one at its end."""
    done = device("get=1", "run=60")
    readings = sorted((r for r in done.process.of_type(DEVICE_POWER) if r.args[1]),
                      key=lambda r: r.begin)
    assert len(readings) >= 2 and not done.reasons()
    first, last = (next(a for a in done.log if a.values.get(83) == r.args[1] - 1 and a.device == 0)
                   for r in (readings[0], readings[-1]))
    span = last.values["now"] - first.values["now"]
    active = work_ns(done, 0, last.values["now"]) - work_ns(done, 0, first.values["now"])
    assert active > 20_000_000
    assert readings[-1].args[1] - readings[0].args[1] == pytest.approx(
        (span * IDLE_MW + active * ACTIVE_MW) / 1e9, abs=3)


def test_a_program_that_is_over_at_once(device):
    """Either it was read, or a line says why not."""
    done = device("get=1", "exit", status=3)
    assert bool(done.of(DEVICE_POWER)) != (done.absent() == {(0, 0): UNKNOWN})
    assert len(done.reasons()) == bool(done.absent())


def test_without_cupti(device):
    """NVML's lists tell on which devices the process is."""
    done = device("get=1", "idle=150", "run=100", GPUPROF_GPU="off")
    if done.process.header.pid_namespace != 0xEFFFFFFC:
        assert done.absent() == {(0, 0): UNKNOWN}
        return
    assert [r.args[1:4] for r in done.of(DEVICE_SOURCE)] == [(0, *GPUS[0]), (0, *GPUS[1])]


@pytest.mark.parametrize("gpu", ["on", "off"])
def test_in_a_container(device, gpu):
    """In a PID namespace of its own NVML's lists do not help: devices are those that CUPTI tells
    of, and how much of their memory is this process's own is not known."""
    unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("not run: no PID namespace can be made here")
    done = device("device=1", "get=1", "idle=150", "run=300", under=unshare, GPUPROF_GPU=gpu)
    assert done.process.header.pid == 1
    if gpu == "off":
        assert done.absent() == {(0, 0): UNKNOWN} and "another PID namespace" in done.reasons()[0]
        return
    assert done.of(DEVICE_SOURCE)[0].args[1:4] == (2, *GPUS[1]) and not done.absent()
    uses = done.of(DEVICE_USE)
    assert len(uses) >= 3 and not any(r.args[6] for r in uses)
    assert any(r.args[7] for r in uses)
    [lack] = [r for r in done.of(DEVICE_ABSENT) if r.args[3] == 1 << 6]
    assert lack.args[:3] == (1, DEVICE_USE, UNKNOWN) and b"another PID namespace" in lack.text


def test_the_programs_own_use(device):
    """It starts and ends NVML as it likes; even once more than it should."""
    done = device("get=1", "idle=150", "nvml", "shutdown", "run=300")
    assert done.stdout == "nvml 0\n" and len(done.of(DEVICE_POWER)) >= 3
    assert not done.absent()


def test_flight(device):
    """What is let go of keeps which device it is."""
    done = device("get=1", "idle=150", "run=3500", GPUPROF_FLIGHT="1s", SIMCUDA_KERNEL_NS=100_000)
    [dump] = done.process.of_type(stream_reader.DUMP)
    source, power = done.of(DEVICE_SOURCE)[0], done.of(DEVICE_POWER)
    assert source.begin < dump.args[5] and 2 < len(power) < 30  # fewer where reading is dear


def test_off_by_default(device):
    done = device("get=1", "run=100", GPUPROF_DEVICE="")
    assert not done.log and not done.of(DEVICE_SOURCE) and not done.of(DEVICE_ABSENT)


def test_a_kill_leaves_the_readings(library, tmp_path):
    env = toolchain.environment(tmp_path / "out", library, **{
        "GPUPROF_GPU": "on", "GPUPROF_CUPTI": toolchain.SIM / cupti.VERSIONS["13.0"][0],
        "GPUPROF_DEVICE": 1, "SIMNVML_LOG": tmp_path, "GPUPROF_LIVE": tmp_path,
        "GPUPROF_SEAL": "60s"})
    with conftest.Program([cupti.build(source="device_work.c"), "get=1", "idle=60000"], env=env,
                          stdout=subprocess.DEVNULL) as running:
        end = time.monotonic() + 60
        while time.monotonic() < end and not any(
                "GetMemoryInfo" in p.read_text() for p in tmp_path.glob("nvml-*")):
            time.sleep(0.02)
        time.sleep(0.2)
        os.kill(running.pid, signal.SIGKILL)
    [process] = stream_reader.read_folder(tmp_path / "out")
    assert [r for r in process.of_type(DEVICE_POWER) if r.live] and process.of_type(DEVICE_SOURCE)
