"""One run against another in words. The statistics and the verdicts are `labkit.compare`'s.

It knows which metrics are compared how: times and sizes by ratio, scores by difference with a margin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from labkit.compare import Comparison, Rule, better_direction, comparable, difference, ratio
from labkit.errors import UserError
from labkit.report.noise import disturbed
from labkit.results.frames import long_frame
from labkit.results.schema import RunDocument
from labkit.results.units import describe, format_unit

if TYPE_CHECKING:
    from labkit.results.store import Store

RATIO_METRICS = (
    "rtf",
    "latency_s",
    "cpu_s",
    "ttft_s",
    "prefill_s",
    "decode_s",
    "decoder_s",
    "vocoder_s",
    "step_s",
)
RUN_METRICS = ("load_s", "cold_start_s", "rss_peak_bytes", "vram_peak_bytes", "size_on_disk_bytes")
SPEED_MARGIN = 0.05  # a change of time below 5 % is not worth a word
# the smallest change of each proxy that is worth a word; from white noise and Griffin-Lim on clean speech
QUALITY_MARGINS = {"dnsmos_p808": 0.10, "dnsmos_ovrl": 0.05, "wer": 0.02, "cer": 0.02, "log_mel_db": 0.5}


def speed_against(base: RunDocument, head: RunDocument) -> Comparison:
    """RTF of `head` over RTF of `base`, paired by text; not comparable when they are other work.

    Where either was disturbed by other programs, CPU time stands for wall clock: waiting for a core is not in it.
    """
    metric = "cpu_s" if disturbed(base) or disturbed(head) else "rtf"
    reasons = comparable(base, head)
    if reasons:
        return Comparison(
            metric, "ratio", Rule(SPEED_MARGIN, "lower"), "not comparable", reasons=tuple(reasons)
        )
    return ratio(long_frame([head]), long_frame([base]), metric, margin=SPEED_MARGIN)


def speedup_words(speed: Comparison) -> str:
    """How many times as fast, `2.83x`; with a tilde while the data cannot decide, empty without a number."""
    if speed.improvement is None:
        return ""
    return f"{'' if speed.decided else '~'}{speed.improvement:.2f}x"


def speedup_hint(speed: Comparison) -> str:
    """The interval of `speedup_words`, or why there is none."""
    if speed.low is None or speed.high is None:
        return "; ".join(speed.reasons) or "no interval"
    what = "of CPU time, because the machine was busy; " if speed.metric == "cpu_s" else ""
    return (
        f"{what}{speed.rule.confidence:.0%} interval {1 / speed.high:.2f}x to {1 / speed.low:.2f}x, "
        f"paired over {speed.n} texts, p {speed.p:.2g}: {speed.verdict}"
    )


def compare_runs(store: Store, base: str, head: str) -> pd.DataFrame:
    """Every metric that both runs have, with effect, interval and verdict, as printable text.

    `base` and `head` are run ids, or recipes: then the latest ok run of each is taken for every scenario that
    both have. Raises `UserError` for a name that is neither; runs of other work give rows `not comparable`.
    """
    documents = store.documents()
    pairs = _pairs(documents, base, head)
    columns = ["scenario", "metric", base, head, "change", "interval", "n", "verdict", "why"]
    return pd.DataFrame([row for pair in pairs for row in _rows(*pair)], columns=pd.Index(columns))


def _pairs(documents: list[RunDocument], base: str, head: str) -> list[tuple[RunDocument, RunDocument]]:
    one, other = _chosen(documents, base), _chosen(documents, head)
    if len(one) == len(other) == 1:
        return [(next(iter(one.values())), next(iter(other.values())))]
    shared = [work for work in one if work in other]
    if not shared:
        raise UserError(
            f"{base!r} and {head!r} have no scenario and corpus in common in this results folder."
        )
    return [(one[work], other[work]) for work in shared]


def _chosen(documents: list[RunDocument], name: str) -> dict[tuple[str, ...], RunDocument]:
    """The runs a name stands for, by the work they did; the latest of each work."""
    by_id = {document.run_id: document for document in documents}
    if name in by_id:
        return {(): by_id[name]}
    mine = [d for d in documents if d.spec.recipe.name == name and d.status == "ok"]
    if not mine:
        known = ", ".join(sorted({d.spec.recipe.name for d in documents if d.status == "ok"})) or "none"
        raise UserError(
            f"{name!r} is neither a run id nor a recipe with an ok run here; recipes with one: {known}."
        )
    return {
        (d.spec.scenario, d.spec.corpus, d.spec.voice, d.spec.audio_path, str(d.spec.threads)): d
        for d in mine
    }


def _rows(base: RunDocument, head: RunDocument) -> list[list[str | int]]:
    reasons = comparable(base, head)
    if reasons:
        return [[head.spec.scenario, "all", "", "", "—", "—", 0, "not comparable", "; ".join(reasons)]]
    frames = long_frame([base], steps=True), long_frame([head], steps=True)
    found = [
        ratio(frames[1], frames[0], metric)
        for metric in RATIO_METRICS
        if all((f["metric"] == metric).any() for f in frames)
    ]
    found += [
        difference(frames[1], frames[0], metric, margin=margin, direction=better_direction(metric))
        for metric, margin in QUALITY_MARGINS.items()
        if all(_has_scores(frame, metric) for frame in frames)
    ]
    return [_row(head.spec.scenario, comparison, *frames) for comparison in found] + [
        row for metric in RUN_METRICS if (row := _run_row(metric, base, head))
    ]


def _row(scenario: str, found: Comparison, base: pd.DataFrame, head: pd.DataFrame) -> list[str | int]:
    interval = "—"
    if found.low is not None and found.high is not None:
        interval = (
            f"{found.low:.2f}x to {found.high:.2f}x"
            if found.kind == "ratio"
            else f"{found.low:+.3g} to {found.high:+.3g}"
        )
    sides = [_typical(frame, found.metric) for frame in (base, head)]
    return [scenario, describe(found.metric).label, *sides, found.words(), interval, found.n, found.verdict,
            "; ".join(found.reasons)]  # fmt: skip


def _run_row(metric: str, base: RunDocument, head: RunDocument) -> list[str | int] | None:
    """A number that a run has once: shown side by side, without a verdict."""
    one, other = (_run_value(document, metric) for document in (base, head))
    if not one or not other:
        return None
    unit, label = describe(metric).unit, describe(metric).label
    return [head.spec.scenario, label, format_unit(unit, one), format_unit(unit, other), f"{other / one:.2f}x", "—", 1,
            "", "one number each"]  # fmt: skip


def _run_value(document: RunDocument, metric: str) -> float | None:
    if metric == "size_on_disk_bytes" and document.artifacts:
        return float(sum(artifact.size_bytes for artifact in document.artifacts))
    return document.measures.values.get(metric)


def _has_scores(frame: pd.DataFrame, metric: str) -> bool:
    return bool(frame.loc[frame["metric"] == metric, "value"].notna().any())


def _typical(frame: pd.DataFrame, metric: str) -> str:
    values = frame[(frame["metric"] == metric) & (frame["phase"] != "warmup")]["value"]
    typical = values.mean() if metric in QUALITY_MARGINS else values.median()
    return format_unit(describe(metric).unit, float(typical))
