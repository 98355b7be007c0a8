"""GPU memory of a process: a number with its kind, or null with the reason.

The kinds are never compared with each other (an allocator's peak is blind to other libraries; the driver's count
sees all but may miss a spike), so the name of the value says which it is. On a machine without a GPU the answer is
a reason: an allocator that was never used would answer 0, which would be a lie.
"""

from __future__ import annotations

from dataclasses import dataclass

NO_GPU_RUN = "the run used no GPU"


@dataclass(frozen=True)
class DeviceMemory:
    """`value` bytes, or None and why."""

    value: int | None
    reason: str = ""


def process_vram_bytes(pid: int, device: str) -> DeviceMemory:
    """What the NVIDIA driver counts for one process now (NVML), for a run on `device`."""
    if not device.startswith("cuda"):
        return DeviceMemory(None, NO_GPU_RUN)
    try:
        import pynvml
    except ImportError:
        return DeviceMemory(None, "NVML cannot be asked: the package nvidia-ml-py is not installed")
    index = int(device.partition(":")[2] or 0)
    try:
        pynvml.nvmlInit()
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        return DeviceMemory(None, f"NVML does not answer: {error}")
    used = [process.usedGpuMemory for process in processes if process.pid == pid]
    if not used or used[0] is None:
        return DeviceMemory(None, f"NVML lists no memory for process {pid} (it may run in a container)")
    return DeviceMemory(int(used[0]))
