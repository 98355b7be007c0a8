"""What this machine is: the facts every run document carries, and the class of machines a result speaks for.

It knows the operating system, files and package metadata; it imports no backend and measures nothing. What cannot
be found is None beside a `…_reason`. Whether the machine is fit for the lab is asked in `labkit.doctor`.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = (
    "labkit", "numpy", "scipy", "pandas", "torch", "onnx", "onnxruntime", "onnxruntime-gpu", "onnxruntime-directml",
    "openvino",
    "tokenizers", "safetensors", "soxr", "ctranslate2", "faster-whisper", "speechmos", "jiwer", "papermill",
)  # fmt: skip
# the instruction sets that decide which kernels a CPU backend takes
ISA = (
    "sse4_2", "avx", "f16c", "fma", "avx2", "avx_vnni", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16",
    "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "asimd", "asimddp", "i8mm", "bf16", "sve",
)  # fmt: skip
# best first: the one word that tells machines of one CPU family apart for INT8 and BF16
ISA_LEVELS = ("amx_int8", "avx512_vnni", "avx_vnni", "avx512f", "avx2", "i8mm", "asimddp", "asimd")
_UNLIMITED = 1 << 60  # cgroup v1 writes a huge page-rounded number for "no limit"


def describe_environment() -> dict[str, Any]:
    """Facts about this machine and installation, fit for JSON; takes about a tenth of a second."""
    memory, memory_reason = _total_memory()
    return {
        "cpu": describe_cpu(),
        "memory_bytes": memory,
        **({"memory_reason": memory_reason} if memory is None else {}),
        **container_limits(),
        **describe_gpus(),
        "os": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "packages": package_versions(PACKAGES),
        **_git(Path(__file__).resolve().parents[1]),
    }


def machine_class(environment: dict[str, Any]) -> str:
    """One line that is equal for machines whose speeds may be compared: CPU, usable cores, instructions, GPU.

    Software versions are left out on purpose (comparing them is what the lab is for), and so is the amount of
    memory: it decides whether a run fits, not how fast it is.
    """
    cpu = environment["cpu"]
    flags = cpu["isa"] or []
    level = next((flag for flag in ISA_LEVELS if flag in flags), "instructions unknown")
    cores = cpu["cores_usable"]
    quota = environment["cpu_limit_cores"]
    usable = f"{cores} core{'s' if cores != 1 else ''}" + (f" limited to {quota:g}" if quota else "")
    gpus = [gpu["name"] for gpu in environment["gpus"] or []]
    system = environment["os"].split()[0].lower()
    parts = [cpu["model"], usable, level, f"{system}-{environment['architecture']}", *gpus]
    return " · ".join(parts)


def describe_cpu() -> dict[str, Any]:
    """Model (with family and model number where the name is vague), cores, usable cores, instruction sets."""
    info = _cpuinfo()
    name = info.get("model name") or platform.processor() or platform.machine() or "unknown CPU"
    number = (
        f" (family {info['cpu family']}, model {info['model']})"
        if {"cpu family", "model"} <= set(info)
        else ""
    )
    flags = set((info.get("flags") or info.get("Features") or "").split())
    return {
        "model": name + number,
        "isa": [flag for flag in ISA if flag in flags] if flags else None,
        **(
            {}
            if flags
            else {"isa_reason": "the system does not list instruction sets (no /proc/cpuinfo flags)"}
        ),
        **_core_counts(),
        "cores_usable": usable_cores(),
    }


def _core_counts() -> dict[str, Any]:
    try:
        import psutil
    except ImportError:
        why = "the package psutil is not installed"
        return {"cores_physical": None, "cores_physical_reason": why, "cores_logical": os.cpu_count()}
    return {"cores_physical": psutil.cpu_count(logical=False), "cores_logical": psutil.cpu_count()}


def usable_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def container_limits() -> dict[str, Any]:
    """`memory_limit_bytes` and `cpu_limit_cores` of the tightest control group above this process; None: no limit."""
    groups = _own_groups()
    memory = [_number(folder / name) for folder in groups for name in ("memory.max", "memory.limit_in_bytes")]
    limits = [limit for limit in memory if limit is not None and limit < _UNLIMITED]
    quotas = [quota for folder in groups if (quota := _cpu_quota(folder)) is not None]
    return {
        "memory_limit_bytes": int(min(limits)) if limits else None,
        "cpu_limit_cores": min(quotas) if quotas else None,
    }


def describe_gpus() -> dict[str, Any]:
    """`gpus`: name and memory of each NVIDIA GPU, and `gpu_driver`; None with `gpus_reason` when none answers."""
    try:
        import pynvml
    except ImportError:
        driver = Path("/proc/driver/nvidia/version").exists()
        why = "the package nvidia-ml-py is not installed" if driver else "no NVIDIA driver was found"
        return {"gpus": None, "gpu_driver": None, "gpus_reason": why}
    try:
        pynvml.nvmlInit()
        try:
            handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
            gpus = [
                {
                    "name": _text(pynvml.nvmlDeviceGetName(handle)),
                    "memory_bytes": int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
                }
                for handle in handles
            ]
            return {"gpus": gpus, "gpu_driver": _text(pynvml.nvmlSystemGetDriverVersion())}
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        return {"gpus": None, "gpu_driver": None, "gpus_reason": f"NVML does not answer: {error}"}


def package_versions(names: tuple[str, ...]) -> dict[str, str]:
    """Versions of those that are installed; the others are absent."""
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _git(root: Path) -> dict[str, Any]:
    """`git_commit` and `git_dirty` (changed tracked files) of the lab's checkout, or None with `git_reason`."""
    nothing = {"git_commit": None, "git_dirty": None}
    if not (root / ".git").exists():
        return nothing | {"git_reason": "the lab does not run from a git checkout"}
    try:
        commit, changes = (
            subprocess.run(
                ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=10, check=True
            )
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        return nothing | {"git_reason": f"git does not answer: {said.strip().splitlines()[0]}"}
    return {"git_commit": commit.stdout.strip(), "git_dirty": bool(changes.stdout.strip())}


def _cpuinfo() -> dict[str, str]:
    """The first processor's entries of /proc/cpuinfo; empty where there is none."""
    try:
        block = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in block.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs if value.strip()}


def _total_memory() -> tuple[int | None, str]:
    try:
        import psutil

        return int(psutil.virtual_memory().total), ""
    except ImportError:
        return None, "the package psutil is not installed"
    except (OSError, RuntimeError) as error:
        return None, f"the system does not say: {error}"


def _own_groups(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> list[Path]:
    """Folders of the control groups above this process, for version 2 and for version 1's memory and cpu."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    folders = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        names = controllers.split(",")
        mounts = [root] if not controllers else [root / name for name in names if name in ("memory", "cpu")]
        for mount in mounts:
            group = mount / path.strip("/")
            # inside a container the outer path does not exist: the mount itself is then the group
            folders += [
                folder
                for folder in (group, *group.parents)
                if folder.is_relative_to(mount) and folder.is_dir()
            ]
    return folders


def _cpu_quota(folder: Path) -> float | None:
    quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
    try:
        words = (folder / "cpu.max").read_text(encoding="utf-8").split()
        quota, period = (None, None) if words[0] == "max" else (float(words[0]), float(words[1]))
    except (OSError, ValueError, IndexError):
        pass  # version 1, or no cpu controller here
    return quota / period if quota and period and quota > 0 else None


def _number(file: Path) -> float | None:
    try:
        return float(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # absent, or the word "max"
        return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
