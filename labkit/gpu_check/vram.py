"""Device memory of a process as the NVIDIA driver sees it, polled from outside while a case runs.

Two kinds: what NVML lists for the process, and what the device holds above what it held before the process began
(only when no other process uses the device). Both may miss a spike shorter than the polling interval. The third kind,
torch's own peak, is asked for inside the process.
"""

from __future__ import annotations

import contextlib
from typing import Any

PROCESS = "vram_nvml_peak_bytes"
DEVICE = "vram_device_above_idle_peak_bytes"
ALLOCATOR = "vram_allocator_peak_bytes"
NAMES = (ALLOCATOR, PROCESS, DEVICE)


class DeviceWatch:
    """Peaks of one process on one device since the last `restart`."""

    def __init__(self, index: int) -> None:
        """Note what the device holds before the process begins; `index` counts as NVML does."""
        self.pid: int | None = None
        self.process_peak: int | None = None
        self.device_peak: int | None = None
        self._why = ""
        self._nvml: Any = None
        try:
            import pynvml
        except ImportError:
            self._why = "NVML cannot be asked: the package nvidia-ml-py is not installed"
            return
        self._nvml = pynvml
        try:
            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            self.idle = self._used()
            self._others = {process.pid for process in self._processes()}
        except pynvml.NVMLError as error:
            self._nvml, self._why = None, f"NVML does not answer: {error}"

    def restart(self) -> None:
        """Forget the peaks seen so far."""
        self.process_peak = self.device_peak = None

    def sample(self) -> None:
        """Look once; an answer that fails to come leaves the peaks as they are."""
        if self._nvml is None:
            return
        with contextlib.suppress(self._nvml.NVMLError):
            self.device_peak = max(self.device_peak or 0, self._used())
            own = [p.usedGpuMemory for p in self._processes() if p.pid == self.pid]
            if own and own[0] is not None:
                self.process_peak = max(self.process_peak or 0, int(own[0]))

    def values(self) -> tuple[dict[str, int | None], dict[str, str]]:
        """Both peaks, or null and why."""
        if self._nvml is None:
            return {PROCESS: None, DEVICE: None}, {PROCESS: self._why, DEVICE: self._why}
        values: dict[str, int | None] = {PROCESS: self.process_peak, DEVICE: None}
        reasons = {}
        if self.process_peak is None:
            reasons[PROCESS] = f"NVML lists no memory for process {self.pid} (it may run in a container)"
        if self._others:
            listed = ", ".join(map(str, sorted(self._others)))
            reasons[DEVICE] = f"the device is not ours alone: process {listed} uses it too"
        elif self.device_peak is None:
            reasons[DEVICE] = "the case ended before the device was asked"
        else:
            values[DEVICE] = max(0, self.device_peak - self.idle)
        return values, reasons

    def close(self) -> None:
        """Let go of NVML."""
        if self._nvml is not None:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()

    def _used(self) -> int:
        return int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used)

    def _processes(self) -> list[Any]:
        return list(self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle))
