"""Figures out of findings: rates and means with intervals over texts, by arm and by speaker. Measures nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from labkit.training.listen import Finding

BOOTSTRAP_DRAWS = 2000


@dataclass(frozen=True)
class Figure:
    """A value with its 95 % interval over texts; None where no clip had one."""

    value: float | None
    low: float = 0.0
    high: float = 0.0

    def percent(self) -> str:
        if self.value is None:
            return "-"
        return f"{100 * self.value:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"

    def plain(self, digits: int = 2) -> str:
        if self.value is None:
            return "-"
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


def ratio_figure(numerators: Sequence[float], denominators: Sequence[float]) -> Figure:
    """Sum over sum (word errors over words) with a percentile bootstrap over texts."""
    top, bottom = np.asarray(numerators, float), np.asarray(denominators, float)
    if len(top) == 0:
        return Figure(None)
    picks = np.random.default_rng(0).integers(len(top), size=(BOOTSTRAP_DRAWS, len(top)))
    low, high = np.quantile(top[picks].sum(1) / bottom[picks].sum(1), (0.025, 0.975))
    return Figure(float(top.sum() / bottom.sum()), float(low), float(high))


def mean_figure(values: Iterable[float | None]) -> Figure:
    known = [v for v in values if v is not None]
    return ratio_figure(known, [1.0] * len(known))


@dataclass(frozen=True)
class ArmFigures:
    arm: str
    clips: int
    whisper_wer: Figure
    closed_wer: Figure
    ended: Figure
    duration_ratio: Figure
    dnsmos_ovrl: Figure
    dnsmos_p808: Figure
    distill_mos: Figure
    right_speaker: Figure


def figures(findings: Sequence[Finding]) -> list[ArmFigures]:
    """One line per arm, in order of appearance."""
    return [
        _arm_figures(arm, [f for f in findings if f.arm == arm])
        for arm in dict.fromkeys(f.arm for f in findings)
    ]


def by_speaker(findings: Sequence[Finding]) -> dict[str, dict[str, Figure]]:
    """arm -> speaker -> Whisper's word error rate."""
    table: dict[str, dict[str, Figure]] = {}
    for arm in dict.fromkeys(f.arm for f in findings):
        for speaker in dict.fromkeys(f.speaker for f in findings):
            mine = [f.heard for f in findings if (f.arm, f.speaker) == (arm, speaker)]
            table.setdefault(arm, {})[speaker] = ratio_figure(
                [h.whisper_errors for h in mine], [h.words for h in mine]
            )
    return table


def _arm_figures(arm: str, findings: Sequence[Finding]) -> ArmFigures:
    heard = [f.heard for f in findings]
    words = [h.words for h in heard]
    return ArmFigures(
        arm=arm,
        clips=len(findings),
        whisper_wer=ratio_figure([h.whisper_errors for h in heard], words),
        closed_wer=ratio_figure([h.closed_errors for h in heard], words),
        ended=mean_figure(None if f.ended is None else float(f.ended) for f in findings),
        duration_ratio=mean_figure(f.duration_ratio for f in findings),
        dnsmos_ovrl=mean_figure(h.dnsmos_ovrl for h in heard),
        dnsmos_p808=mean_figure(h.dnsmos_p808 for h in heard),
        distill_mos=mean_figure(h.distill_mos for h in heard),
        right_speaker=mean_figure(
            None if f.heard.speaker is None else float(f.heard.speaker == f.speaker) for f in findings
        ),
    )


def summary(findings: Sequence[Finding]) -> str:
    """One arm in one line."""
    if not findings:
        return "nothing to judge"
    f = _arm_figures(findings[0].arm, findings)
    return (
        f"{f.clips} clips, WER Whisper {f.whisper_wer.percent()}, closed {f.closed_wer.percent()}, "
        f"ended {f.ended.percent()}, duration {f.duration_ratio.plain()}, "
        f"DNSMOS overall {f.dnsmos_ovrl.plain()}, P.808 {f.dnsmos_p808.plain()}, "
        f"Distill-MOS {f.distill_mos.plain()}, right speaker {f.right_speaker.percent()}"
    )
