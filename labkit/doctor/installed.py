"""Checks of what is installed: wheels, GPU driver, the nano voice, scorers, outside programs.

Everything is read from files and package metadata; no backend is imported.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

from labkit.doctor.check import GIB, Check
from labkit.environment import describe_gpus, package_versions
from labkit.errors import LabError

MIN_PYTHON = (3, 11)
WHEELS = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml")


def python() -> Check:
    found = f"{sys.version.split()[0]} at {sys.executable}"
    if sys.version_info < MIN_PYTHON:
        return Check("Python", "fail", found, "Make an environment with Python 3.11 or newer.")
    return Check("Python", "ok", found)


def onnxruntime_wheel() -> Check:
    name = "ONNX Runtime wheel"
    owners = sorted(set(packages_distributions().get("onnxruntime", [])))
    if not owners:
        return Check(
            name,
            "fail",
            "no ONNX Runtime is installed",
            "Install exactly one extra: labkit[cpu], [gpu] or [directml].",
        )
    versions = package_versions(WHEELS)
    found = ", ".join(f"{owner} {versions.get(owner, '?')}" for owner in owners)
    if len(owners) > 1:
        remedy = f"Uninstall {' and '.join(owners)}, then install one: they overwrite each other's files."
        return Check(name, "fail", f"several in one environment: {found}", remedy)
    return Check(name, "ok", found)


def torch_build() -> Check:
    """Read from the installed files: importing torch takes seconds."""
    version = package_versions(("torch",)).get("torch")
    package = importlib.util.find_spec("torch")
    if version is None or package is None or package.origin is None:
        remedy = "Install the lab with `make demo` or `pip install torch`."
        return Check("torch", "fail", "torch is not installed", remedy)
    facts = Path(package.origin).with_name("version.py").read_text(encoding="utf-8")
    match = re.search(r"^cuda.*=\s*'([^']+)'", facts, re.MULTILINE)
    build = f"CUDA {match[1]} build" if match else "CPU build"
    if not match and _driver_loads():
        remedy = "For the GPU, install a CUDA build: `make demo TORCH_ARGS=`."
        return Check("torch", "warn", f"{version}, {build} beside an NVIDIA driver", remedy)
    return Check("torch", "ok", f"{version}, {build}")


def gpu() -> Check:
    """ONNX Runtime lists its CUDA provider even where the driver is missing, so the driver is what is tried."""
    gpu_wheel = "onnxruntime-gpu" in package_versions(WHEELS)
    gpus = describe_gpus()
    if gpus["gpus"]:
        names = ", ".join(f"{gpu['name']} ({gpu['memory_bytes'] / GIB:.0f} GiB)" for gpu in gpus["gpus"])
        return Check("GPU", "ok", f"{names}, driver {gpus['gpu_driver']}")
    if gpu_wheel and not _driver_loads():
        remedy = "Install an NVIDIA driver, or labkit[cpu] instead: it would run on the CPU in silence."
        return Check(
            "GPU",
            "fail",
            f"onnxruntime-gpu is installed but no NVIDIA driver loads ({gpus['gpus_reason']})",
            remedy,
        )
    if _driver_loads():
        return Check(
            "GPU", "warn", f"a driver loads, but {gpus['gpus_reason']}", "Install the extra labkit[gpu]."
        )
    return Check("GPU", "ok", f"none ({gpus['gpus_reason']}); VRAM will be null with this reason")


def nano_voice() -> Check:
    from safetensors import SafetensorError, safe_open

    from labkit.voices import resolve_voice

    remedy = "Restore labkit/assets/nano from the repository, or make it again with `labkit train nano`."
    try:
        voice = resolve_voice("nano")
        for file in sorted(voice.folder.rglob("*.safetensors")):
            with safe_open(
                str(file), "numpy"
            ) as tensors:  # refuses a truncated file without reading its weights
                tensors.keys()
    except (LabError, OSError, SafetensorError) as error:
        return Check("nano voice", "fail", str(error), remedy)
    size = sum(file.stat().st_size for file in voice.folder.rglob("*") if file.is_file())
    return Check("nano voice", "ok", f"{voice.folder}, {size / 1e6:.1f} MB, weights {voice.weights_hash[:8]}")


def scorer(name: str, family: str) -> Check:
    from labkit.quality import catalogue

    entry = next(entry for entry in catalogue() if entry["scorer"] == family)
    if entry["available"]:
        return Check(name, "ok", entry["version"])
    return Check(name, "warn", entry["reason"] + " Its numbers will be null.", entry["remedy"])


def full_panel() -> Check:
    """The quality panel as a whole: how much of it can run, and what would bring the rest."""
    from labkit.quality import catalogue

    entries = {entry["scorer"]: entry for entry in catalogue()}
    missing = [entry for entry in entries.values() if not entry["available"]]
    found = f"{len(entries) - len(missing)} of {len(entries)} scorers can run"
    if not missing:
        return Check("quality panel", "ok", found)
    reasons = " ".join([*(entry["reason"] for entry in missing), "Their numbers will be null."])
    remedies = " ".join(dict.fromkeys(entry["remedy"] for entry in missing))
    return Check("quality panel", "warn", f"{found}. {reasons}", remedies)


def upstream() -> Check:
    from labkit.engines.base import Unavailable
    from labkit.upstream.environment import availability, find_python

    answer = availability()
    if isinstance(answer, Unavailable):
        return Check(
            "upstream", "warn", f"{answer.reason} The recipe `upstream` will be unavailable.", answer.remedy
        )
    return Check("upstream", "ok", str(find_python()))


def espeak() -> Check:
    program = shutil.which("espeak-ng")
    if program is None:
        return Check(
            "espeak-ng",
            "warn",
            "not installed; only `labkit train` needs it",
            "`apt install espeak-ng` before training.",
        )
    return Check("espeak-ng", "ok", program)


def _driver_loads() -> bool:
    try:
        ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return False
    return True
