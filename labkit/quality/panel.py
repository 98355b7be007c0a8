"""The panel: every clip before every scorer, each scorer loaded once, one row for each clip and metric.

It knows the order of work and how an outcome that is no number is recorded. It keeps no statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from labkit.quality.audio import unfit
from labkit.quality.base import (
    PANELS,
    Clip,
    Metric,
    Missing,
    Score,
    Scorer,
    scorer_class,
    scorer_names,
    selected_metrics,
)


def judge(
    clips: Sequence[Clip],
    metrics: Sequence[str] | None = None,
    *,
    progress: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """Score all clips with the named metrics, families or panels; by default with the panel of every run.

    Returns one dict per clip and metric, in clip order: item, repetition, metric, value (None with its reason),
    unit, reason, scorer, scorer_version. A scorer that is not installed, an unfit clip, a missing need, a scorer
    that crashed and a metric that it left out are all nulls with their reason. Scorers are loaded one after the
    other and dropped, so the largest one sets the peak memory. Raises `UserError` for an unknown metric name.
    """
    rows: list[list[dict[str, Any]]] = [[] for _ in clips]
    for family, names in selected_metrics(metrics).items():
        scorer = scorer_class(family)()
        if progress and clips:
            progress(f"judge: {scorer.name} on {len(clips)} clips")
        unmet = [_unmet(scorer, clip) for clip in clips]
        version, refusal = _prepare(scorer, is_wanted=not all(unmet))
        for index, (clip, reason) in enumerate(zip(clips, unmet, strict=True)):
            scores = _score(scorer, clip, refusal or reason)
            absent = Score(None, f"{scorer.name} gave no score of that name")
            rows[index] += [
                _row(clip, metric, scores.get(metric.name, absent), scorer, version) for metric in names
            ]
    return [row for clip_rows in rows for row in clip_rows]


def catalogue() -> list[dict[str, Any]]:
    """What the panel can measure here, for people: one dict per metric, with availability and price."""
    listing = []
    for name in scorer_names():
        scorer = scorer_class(name)()
        answer = scorer.availability()
        missing = answer if isinstance(answer, Missing) else None
        for metric in scorer.metrics:
            listing.append(
                {
                    "metric": metric.name, "unit": metric.unit, "direction": metric.direction,
                    "description": metric.description, "scorer": name, "needs": sorted(scorer.needs),
                    "languages": scorer.languages, "rate": scorer.rate, "max_s": scorer.max_s,
                    "cost_cpu_s": scorer.cost_cpu_s, "packages": scorer.packages, "weights": dict(scorer.weights),
                    "panels": [panel for panel, families in PANELS.items() if name in families],
                    "available": missing is None,
                    "version": "" if isinstance(answer, Missing) else answer.version,
                    "reason": missing.reason if missing else "", "remedy": missing.remedy if missing else "",
                }
            )  # fmt: skip
    return listing


def _prepare(scorer: Scorer, *, is_wanted: bool) -> tuple[str, str]:
    """The version, and why nothing can be scored ("" when it can). A scorer that no clip is fit for is not loaded."""
    answer = scorer.availability()
    if isinstance(answer, Missing):
        return "", f"{answer.reason} {answer.remedy}"
    try:
        if is_wanted:
            scorer.load()
    except Exception as error:  # a damaged scorer must cost its own numbers only, never the run's
        return answer.version, f"{scorer.name} could not be loaded: {type(error).__name__}: {error}"
    return answer.version, ""


def _score(scorer: Scorer, clip: Clip, reason: str) -> dict[str, Score]:
    if not reason:
        try:
            return {name: _finite(score) for name, score in scorer.score(clip).items()}
        except Exception as error:  # becomes a null with its cause, never a number
            reason = f"{scorer.name} failed: {type(error).__name__}: {error}"
    return {metric.name: Score(None, reason) for metric in scorer.metrics}


def _unmet(scorer: Scorer, clip: Clip) -> str:
    has = {"text": bool(clip.text.strip()), "reference": clip.reference_audio is not None}
    has["tokens"] = clip.codes is not None
    lacking = sorted(need for need in scorer.needs if not has[need])
    if lacking:
        return f"not applicable: the clip has no {' and no '.join(lacking)}"
    if scorer.languages is not None and clip.language not in scorer.languages:
        return f"not applicable: {scorer.name} judges {', '.join(scorer.languages)}, not {clip.language!r}"
    if scorer.accepts_damaged:
        return ""
    reason = unfit(clip.audio, sample_rate=clip.sample_rate, max_s=scorer.max_s)
    if not reason and clip.reference_audio is not None and "reference" in scorer.needs:
        reason = unfit(clip.reference_audio, sample_rate=clip.sample_rate, max_s=scorer.max_s)
        return f"the reference clip is {reason}" if reason else ""
    return reason


def _finite(score: Score) -> Score:
    if score.value is not None and not math.isfinite(score.value):
        return Score(None, f"the scorer gave {score.value}")
    return score


def _row(clip: Clip, metric: Metric, score: Score, scorer: Scorer, version: str) -> dict[str, Any]:
    return {
        "item": clip.item, "repetition": clip.repetition, "metric": metric.name, "value": score.value,
        "unit": metric.unit, "reason": score.reason, "scorer": scorer.name, "scorer_version": version,
    }  # fmt: skip
