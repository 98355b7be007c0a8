"""The driver's numbers through a stand-in for NVML."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from labkit.gpu_check.vram import DEVICE, PROCESS, DeviceWatch


class Nvml:
    """`used` and `processes` (pid -> bytes) are what the driver says now."""

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        self.used, self.processes, self.broken = 100, {}, False

    def nvmlInit(self) -> None:
        if self.broken:
            raise self.NVMLError("no driver")

    def nvmlShutdown(self) -> None: ...

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(used=self.used)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in self.processes.items()]


@pytest.fixture
def nvml(monkeypatch) -> Nvml:
    fake = Nvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def test_peaks_are_the_process_s_own_and_the_device_s_above_idle(nvml: Nvml) -> None:
    watch = DeviceWatch(0)
    watch.pid = 7
    for used, own in ((150, 40), (400, 250), (300, 200)):
        nvml.used, nvml.processes = used, {7: own}
        watch.sample()
    assert watch.values() == ({PROCESS: 250, DEVICE: 300}, {})
    watch.restart()
    watch.sample()
    assert watch.values()[0] == {PROCESS: 200, DEVICE: 200}


def test_a_shared_device_and_a_hidden_process_are_null_with_a_reason(nvml: Nvml) -> None:
    nvml.processes = {99: 10}
    watch = DeviceWatch(0)
    watch.pid = 7
    watch.sample()
    values, reasons = watch.values()
    assert values == {PROCESS: None, DEVICE: None}
    assert "process 99" in reasons[DEVICE] and "process 7" in reasons[PROCESS]


def test_a_driver_that_is_silent_is_a_reason(nvml: Nvml) -> None:
    nvml.broken = True
    values, reasons = DeviceWatch(0).values()
    assert values == {PROCESS: None, DEVICE: None}
    assert reasons[PROCESS] == reasons[DEVICE] == "NVML does not answer: no driver"
