"""Opening a scorer's network: the published file, one thread, a clear word about what is not installed.

It knows file hashes, ONNX Runtime and torch; it knows no metric. Threads are one because scores are wanted, not
speed, and because a second pool of threads in somebody's process would disturb what is measured beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labkit.quality.base import Missing
from labkit.quality.files import package_folder, package_version, verify

RUNTIMES = {"onnxruntime": "Install labkit[cpu].", "torch": "Install torch, as `make demo` does."}


def missing_package(who: str, packages: Sequence[str], remedy: str) -> Missing | None:
    """The first of the import names that is not installed, as an answer of `who`; None when all are there.

    Torch and ONNX Runtime have remedies of their own; `remedy` is for the scorer's packages.
    """
    for package in packages:
        if package_folder(package) is None:
            return Missing(
                f"{who} needs the package {package}, which is not installed.", RUNTIMES.get(package, remedy)
            )
    return None


def installed_file(package: str, name: str, weights: Mapping[str, str]) -> Path:
    """The file `name` inside an installed package, verified against its sha256 in `weights`.

    Raises `ScorerFileError` when it is missing or is not the published one.
    """
    folder = package_folder(package)
    file = (folder or Path(package)) / name
    verify(weights[name], file)
    return file


def short_hashes(weights: Mapping[str, str]) -> str:
    """`file 1234abcd, …`: the weights as a scorer's version names them."""
    return ", ".join(f"{Path(name).name} {digest[:8]}" for name, digest in weights.items())


def onnxruntime_version() -> str:
    """The version of whichever ONNX Runtime wheel is installed."""
    return next(filter(None, map(package_version, ("onnxruntime", "onnxruntime-gpu"))), "?")


def onnx_session(file: Path) -> Any:
    """An ONNX Runtime session on the CPU with one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Inference on one torch thread; the process's own setting is restored."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            yield
    finally:
        torch.set_num_threads(before)
