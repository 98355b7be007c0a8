"""Child: scores of what a probe left. `python -m labkit.gate.judge FOLDER`

Tier 0 is the panel's validity on every clip, tier 1 the figures of the tokens, tiers 2 and 3 the rest of the panel. It
runs in a process of its own, as a run's judge does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labkit.gate.anchor import Anchor, compare_anchor
from labkit.gate.document import OWN_SCORER
from labkit.gate.figures import compare_forced
from labkit.gate.order import ANCHORS, ForcedClip, Order, load_forced, load_free
from labkit.model.sampling import SamplingParams
from labkit.quality.base import SAMPLE_RATE, Clip, scorer_class, selected_metrics
from labkit.quality.log_mel import log_mel_db
from labkit.quality.panel import judge
from labkit.results.arrays import load_arrays
from labkit.run.tasks import Job, Reporter, child_main

VALIDITY, LOG_MEL = "validity", "log_mel"
# what every other score is deaf to: above 8 kHz, and an end that is missing
OF_VALIDITY = ("high_band_loss_db", "duration_ratio")
UNITS = {"kl": "nats", "kl_drawn": "nats", "nll": "nats", "nll_delta": "nats", "first_flip_steps": "steps",
         "log_mel_db": "dB", "heard_log_mel_db": "dB"}  # fmt: skip
_VERSION = "1"  # of the figures; raise it when one of them changes its meaning
Row = dict[str, Any]


def work(job: Job, reporter: Reporter, spawned_at: float) -> None:
    """One family of metrics after the other, each reported when it is done."""
    order = Order.read(job.folder)
    if order.part == "forced":
        judge_forced(job, order, reporter)
    else:
        judge_free(job, order, reporter)


def judge_forced(job: Job, order: Order, reporter: Reporter) -> None:
    """Tiers 1 and 2, and tier 0 of both clips of each sentence."""
    reporter.stage("judge", "tokens")
    anchors = load_arrays(job.folder / ANCHORS)
    heard, acoustic = [], []
    for number, text in enumerate(job.texts):
        clip = load_forced(job.folder, number)
        reference = clip if order.reference is None else load_forced(Path(order.reference), number)
        if anchors:
            rows = _anchored(job, text.id, clip, Anchor.from_arrays(anchors, text.id))
        else:
            rows = _tokens(job, text.id, clip, reference, reporter)
        reporter.event("scores", rows=rows)
        about: dict[str, Any] = {
            "text": text.text, "language": job.language, "codes": clip.codes, "ended": True,
            "expected_s": len(reference.heard) / SAMPLE_RATE,
        }  # fmt: skip
        heard.append(Clip(text.id, job.spec.seed, clip.heard, **about))
        acoustic.append(Clip(text.id, job.spec.seed, clip.acoustic, reference_audio=reference.heard, **about))
    _report(reporter, 0, judge([*heard, *acoustic], [VALIDITY]))
    if order.panel and not anchors:
        _report(reporter, 2, judge(acoustic, list(OF_VALIDITY)))
    # the reference's own acoustic path is held to the anchor: beside itself it would always be perfect
    for family in _families(order.panel, leave_out={VALIDITY, LOG_MEL} if anchors else {VALIDITY}):
        reporter.stage("judge", f"{family}, tier 2")
        _report(reporter, 2, judge(acoustic, [family]))


def judge_free(job: Job, order: Order, reporter: Reporter) -> None:
    """Tier 3, and tier 0 of its clips. Where the reference spoke too, the steps until the tokens part."""
    clips, rows = [], []
    for number, text in enumerate(job.texts):
        for seed in order.seeds:
            said = load_free(job.folder, number, seed)
            numbers = {"steps": float(len(said.codes))}
            if order.reference is not None:
                theirs = load_free(Path(order.reference), number, seed).codes
                numbers["first_flip_steps"] = float(steps_in_common(said.codes, theirs))
            rows += _rows(3, text.id, seed, numbers)
            clips.append(
                Clip(
                    text.id, seed, said.audio, text=text.text, language=job.language, codes=said.codes, ended=said.ended
                )
            )  # fmt: skip
    reporter.event("scores", rows=rows)
    _report(reporter, 0, judge(clips, [VALIDITY]))
    for family in _families(order.panel, leave_out={VALIDITY}):
        if "reference" in scorer_class(family).needs:
            continue  # two renditions of a text are never compared sample by sample
        reporter.stage("judge", f"{family}, tier 3")
        _report(reporter, 3, judge(clips, [family]))


def steps_in_common(codes: Any, others: Any) -> int:
    """Steps until two rows of codes [T, C] part; the shorter one's length when they do not."""
    shared = min(len(codes), len(others))
    apart = (codes[:shared] != others[:shared]).any(-1)
    return int(apart.argmax()) if apart.any() else shared


def _families(panel: Sequence[str], *, leave_out: set[str]) -> list[str]:
    return [family for family in selected_metrics(list(panel)) if family not in leave_out] if panel else []


def _tokens(job: Job, item: str, clip: ForcedClip, reference: ForcedClip, reporter: Reporter) -> list[Row]:
    """Tier 1 of one sentence; its details by codebook and step go up beside it."""
    params, seed = SamplingParams(max_steps=job.spec.max_steps), job.spec.seed
    figures = compare_forced(reference.answer, clip.answer, clip.codes, params=params, seed=seed)
    steps = [float(f"{value:.4g}") for value in figures.kl_steps.mean(1)]  # the report's strip
    reporter.event("codebooks", item=item, means=figures.by_codebook, kl_steps=steps)
    heard = {"heard_log_mel_db": log_mel_db(clip.heard, reference.heard)}
    return _rows(1, item, seed, figures.values | heard)


def _anchored(job: Job, item: str, clip: ForcedClip, anchor: Anchor) -> list[Row]:
    forced, acoustic = compare_anchor(clip.answer, clip.heard, anchor)
    seed = job.spec.seed
    return _rows(1, item, seed, forced) + _rows(2, item, seed, acoustic)


def _rows(tier: int, item: str, seed: int, values: dict[str, float]) -> list[Row]:
    about = {
        "tier": tier,
        "item": item,
        "seed": seed,
        "reason": "",
        "scorer": OWN_SCORER,
        "scorer_version": _VERSION,
    }
    return [
        {**about, "metric": metric, "value": value, "unit": UNITS.get(metric, "")}
        for metric, value in values.items()
    ]


def _report(reporter: Reporter, tier: int, rows: list[Row]) -> None:
    """The panel's rows; the repetition of a clip is the seed it was spoken with. Of two clips the worse one counts."""
    found: dict[tuple[str, int, str], Row] = {}
    for row in rows:
        seed = row.pop("repetition")
        key = (row["item"], seed, row["metric"])
        if key not in found or (row["metric"] == "valid" and row["value"] == 0):
            found[key] = {"tier": tier, "seed": seed, **row}
    reporter.event("scores", rows=list(found.values()))


if __name__ == "__main__":
    child_main("judge", work)
