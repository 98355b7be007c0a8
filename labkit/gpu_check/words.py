"""What a check says: one line for each case, and at the end what could not be measured and why."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from labkit.gpu_check import vram
from labkit.gpu_check.cases import Case
from labkit.gpu_check.documents import Outcome

Result = tuple[Case, int, Outcome]


def case_line(case: Case, batch: int, outcome: Outcome) -> str:
    """One line that fits a log: speed, share of the bandwidth, first audio, the three memories, parity."""
    head = f"{case.name:<21} x{batch}"
    if not outcome.samples:
        return f"{head}  {outcome.status}: {outcome.failure and outcome.failure['message']}"
    value = outcome.values.get
    speed = f"{_median(outcome, 'steps_per_s'):7.0f} steps/s"
    device = f"device {_number(_inverse(value('device_step_s')), '.0f')}/s"
    bandwidth = _number(value("bandwidth_bytes_per_s"), ".2f", 1e12)
    roof = f"{_number(value('device_roofline_share'), '.1%')} of {bandwidth} TB/s"
    first = f"first audio {_number(_median(outcome, 'ttft_s'), '.1f', 1e-3)} ms"
    memory = " / ".join(_number(value(name), ".0f", 2**20) for name in vram.NAMES)
    same = _number(value("parity_top1_share"), ".1%")
    parity = f"hidden {_number(value('parity_hidden_relative'), '.1e')}, top-1 {same}"
    end = outcome.status if outcome.failure is None else f"{outcome.status}: {outcome.failure['message']}"
    return f"{head} {speed} ({device}, {roof}), {first}, VRAM {memory} MiB, {parity}  {end}"


def closing_lines(results: list[Result], unreached: list[Case], seconds: float) -> list[str]:
    """How the check ended, and plainly what is missing from it."""
    well = sum(outcome.status == "ok" for _, _, outcome in results)
    lines = [
        "",
        "VRAM is torch's allocator / NVML for the process / the device above idle: three kinds, never to be compared.",
        f"{well} of {len(results)} results are well, in {seconds:.0f} s.",
    ]
    if unreached:
        lines.append(f"not reached in time: {', '.join(case.name for case in unreached)}")
    reasons: dict[str, list[str]] = {}
    for case, batch, outcome in results:
        for name, reason in _gaps(outcome):
            reasons.setdefault(f"{name}: {reason}", []).append(f"{case.name} x{batch}")
    for what, where in reasons.items():
        some = ", ".join(where) if len(where) <= 3 else f"{len(where)} results"
        place = "every result" if len(where) == len(results) else some
        lines.append(f"not measured in {place}: {what}")
    return lines


def _gaps(outcome: Outcome) -> Iterable[tuple[str, str]]:
    expected = ("cold_start_s",)  # told once for each process
    return [(n, outcome.reasons[n]) for n, v in outcome.values.items() if v is None and n not in expected]


def _median(outcome: Outcome, name: str) -> float | None:
    known = [
        value
        for sample in outcome.samples
        if sample["phase"] == "measured" and (value := sample["values"][name]) is not None
    ]
    return median(known) if known else None


def _inverse(value: float | int | None) -> float | None:
    return 1 / value if value else None


def _number(value: float | int | None, form: str, scale: float = 1.0) -> str:
    return "-" if value is None else format(value / scale, form)
