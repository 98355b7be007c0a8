"""Is this machine fit for the lab? Each check says what was found and what to do about it.

It knows where trouble comes from: wheels that overwrite each other, a GPU that is listed but cannot load, missing
scorers, a damaged voice, full disks, tight limits. It changes nothing and imports no backend.
"""

from __future__ import annotations

from collections.abc import Callable

from labkit.doctor import installed, machine
from labkit.doctor.check import Check

__all__ = ["Check", "doctor"]


def doctor() -> list[Check]:
    """All checks, in the order in which to mend things."""
    checks: tuple[tuple[str, Callable[[], Check]], ...] = (
        ("Python", installed.python),
        ("ONNX Runtime wheel", installed.onnxruntime_wheel),
        ("torch", installed.torch_build),
        ("GPU", installed.gpu),
        ("nano voice", installed.nano_voice),
        ("DNSMOS", lambda: installed.scorer("DNSMOS", "dnsmos")),
        ("WER", lambda: installed.scorer("WER", "wer")),
        ("quality panel", installed.full_panel),
        ("results folder", machine.results_folder),
        ("cache folder", machine.cache),
        ("cores", machine.cores),
        ("CPU instructions", machine.instructions),
        ("memory", machine.memory),
        ("CJK font", machine.chinese_font),
        ("espeak-ng", installed.espeak),
        ("upstream", installed.upstream),
    )
    return [guarded(name, check) for name, check in checks]


def guarded(name: str, check: Callable[[], Check]) -> Check:
    """A check that breaks is itself a finding; the others still run."""
    try:
        return check()
    except Exception as error:
        return Check(
            name, "fail", f"the check broke: {type(error).__name__}: {error}", "Report this as a bug."
        )
