from __future__ import annotations

import os
import sys
import types

import pytest

from labkit.measure.gpu import NO_GPU_RUN, process_vram_bytes


def test_a_cpu_run_has_no_number_but_a_reason() -> None:
    answer = process_vram_bytes(os.getpid(), "cpu")
    assert answer.value is None and answer.reason == NO_GPU_RUN


def fake_nvml(monkeypatch: pytest.MonkeyPatch, processes: list, broken: bool = False) -> None:
    module = types.ModuleType("pynvml")

    class NVMLError(Exception):
        pass

    def initialize() -> None:
        if broken:
            raise NVMLError("Driver Not Loaded")

    module.NVMLError = NVMLError  # type: ignore[attr-defined]
    module.nvmlInit = initialize  # type: ignore[attr-defined]
    module.nvmlShutdown = lambda: None  # type: ignore[attr-defined]
    module.nvmlDeviceGetHandleByIndex = lambda index: index  # type: ignore[attr-defined]
    module.nvmlDeviceGetComputeRunningProcesses = lambda handle: processes  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynvml", module)


def process(pid: int, used: int | None) -> types.SimpleNamespace:
    return types.SimpleNamespace(pid=pid, usedGpuMemory=used)


def test_nvml_counts_this_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nvml(monkeypatch, [process(1, 50), process(7, 123)])
    assert process_vram_bytes(7, "cuda:0").value == 123


@pytest.mark.parametrize("processes", [[], [process(7, None)]])
def test_memory_that_the_driver_hides_is_no_zero(monkeypatch: pytest.MonkeyPatch, processes: list) -> None:
    fake_nvml(monkeypatch, processes)
    answer = process_vram_bytes(7, "cuda")
    assert answer.value is None and "process 7" in answer.reason


def test_a_driver_that_is_not_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nvml(monkeypatch, [], broken=True)
    assert "Driver Not Loaded" in process_vram_bytes(7, "cuda").reason
