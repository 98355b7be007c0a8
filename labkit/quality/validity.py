"""Is this clip a rendition at all? Integrity of the samples and health of the generation, in plain NumPy.

It knows what is broken, not what is beautiful: every clip goes through here first, and its flags make a run
`invalid` or a clip unfit for the other scorers. Flags are facts with a threshold; the numbers stand beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from labkit.quality.audio import MIN_SECONDS, SILENCE_PEAK, active_level, spectrum, unfit
from labkit.quality.base import SAMPLE_RATE, Clip, Metric, Need, Ready, Score
from labkit.quality.tokens import find_loop
from labkit.quality.transients import extra_transients

CLIP_LEVEL = 0.999  # full scale but for rounding
CLIP_RUN = 3  # samples in a row: single full-scale samples are peaks, a plateau is clipping
DC_LIMIT = 0.1  # |mean| over standard deviation; speech stays below 0.01
DROPOUT_RUN = SAMPLE_RATE // 200  # 5 ms of digital zero
DROPOUT_EDGE = 10 ** (-25 / 20)  # speech right beside it, against the active level: a hole, not a pause
TAIL_CUT_DB = -25.0  # the last 20 ms of finished speech have decayed below this
DURATION_RANGE = (0.5, 2.0)  # against the expected duration
FATAL = frozenset({"not_mono", "sample_rate", "empty", "one_sample", "non_finite", "silent", "ended_at_once"})

METRICS = (
    Metric("valid", "share", "higher", "1 when no flag was raised, else 0; its remark lists the flags"),
    Metric("duration_s", "s", "neither", "length of the clip"),
    Metric("duration_ratio", "ratio", "neither", "length against the reference's or the expected length"),
    Metric("level_dbfs", "dBFS", "neither", "RMS over the whole clip"),
    Metric("peak", "full scale", "neither", "largest magnitude"),
    Metric("clipped_samples", "count", "lower", "samples in full-scale plateaus of three or more"),
    Metric("dc_ratio", "ratio", "lower", "magnitude of the mean over the standard deviation"),
    Metric("dropouts", "count", "lower", "holes of 5 ms or more of digital zero with speech at an edge"),
    Metric("silence_share", "share", "neither", "10 ms frames more than 40 dB below the active level"),
    Metric("tail_db", "dB", "lower", "level of the last 20 ms against the active level"),
    Metric("high_band_db", "dB", "neither", "energy above 8 kHz against the energy below"),
    Metric(
        "high_band_loss_db", "dB", "lower", "how much of `high_band_db` is lost against the reference clip"
    ),
    Metric("extra_transients", "count", "lower", "clicks that the reference clip does not have"),
)
AGAINST_REFERENCE = ("high_band_loss_db", "extra_transients")


@dataclass(frozen=True)
class Validity:
    """What `check` found. numbers: metric name -> value; reasons: metric name -> why there is no value."""

    flags: tuple[str, ...]
    numbers: dict[str, float]
    reasons: dict[str, str]

    @property
    def fatal(self) -> bool:
        """There is no speech to judge or to time; other flags are defects of a clip that exists."""
        return bool(FATAL & set(self.flags))


def check(
    audio: NDArray[np.floating],
    *,
    sample_rate: int = SAMPLE_RATE,
    ended: bool | None = None,
    codes: NDArray[np.integer] | None = None,
    expected_s: float | None = None,
    reference_audio: NDArray[np.floating] | None = None,
) -> Validity:
    """Check one clip, audio [N], optionally with its codes [T, 4], its expected length in seconds, and what the
    reference recipe made of the same tokens [M].

    Flags, in this order: `not_mono`, `sample_rate`, `empty`, `one_sample`, `non_finite`, `silent`, `too_short`,
    `clipped`, `dc_offset`, `dropout`, `tail_cut`, `clicks`, `hit_max` (never ended), `ended_at_once`, `too_brief` and
    `too_long` (against the expected length), `token_loop`, `held_code`. Never raises for a bad clip.
    """
    samples = np.asarray(audio)
    flags, numbers, reasons = _integrity(samples, sample_rate)
    if "not_mono" not in flags:
        numbers["duration_s"] = samples.size / sample_rate
    flags += _against_reference(samples, reference_audio, numbers, reasons)
    flags += _generation(numbers, reasons, ended=ended, codes=codes, expected_s=expected_s)
    for metric in METRICS:
        if metric.name != "valid" and metric.name not in numbers:
            reasons.setdefault(metric.name, f"not measured: {', '.join(flags)}")
    return Validity(tuple(flags), numbers, reasons)


def _integrity(
    samples: NDArray[np.floating], rate: int
) -> tuple[list[str], dict[str, float], dict[str, str]]:
    if samples.ndim != 1:
        return ["not_mono"], {}, {}
    if rate != SAMPLE_RATE:
        return ["sample_rate"], {}, {}
    if samples.size < 2:
        return ["one_sample" if samples.size else "empty"], {}, {}
    if not np.isfinite(samples).all():
        return ["non_finite"], {}, {}
    wave = samples.astype(np.float64)
    peak = float(np.abs(wave).max())
    if peak < SILENCE_PEAK:
        return ["silent"], {"peak": peak}, {}
    numbers = {
        "peak": peak,
        "level_dbfs": 20 * float(np.log10(np.sqrt((wave**2).mean()))),
        "clipped_samples": float(
            sum(e - s for s, e in _runs(np.abs(wave) >= CLIP_LEVEL) if e - s >= CLIP_RUN)
        ),
        "dc_ratio": abs(float(wave.mean())) / max(float(wave.std()), 1e-12),
    }
    flags = []
    if wave.size < MIN_SECONDS * SAMPLE_RATE:
        flags.append("too_short")
    else:
        numbers |= _speech_numbers(wave)
    limits = {
        "clipped": numbers["clipped_samples"] > 0,
        "dc_offset": numbers["dc_ratio"] > DC_LIMIT,
        "dropout": numbers.get("dropouts", 0) > 0,
        "tail_cut": numbers.get("tail_db", -99.0) > TAIL_CUT_DB,
    }
    return flags + [flag for flag, raised in limits.items() if raised], numbers, {}


def _against_reference(
    samples: NDArray[np.floating],
    reference: NDArray[np.floating] | None,
    numbers: dict[str, float],
    reasons: dict[str, str],
) -> list[str]:
    """What the clip lost and gained; nothing, with a reason, where either clip is unfit."""
    if "high_band_db" not in numbers:
        return []
    lacking = "no reference clip"
    if reference is not None:
        reason = unfit(reference, sample_rate=SAMPLE_RATE, max_s=float("inf"))
        lacking = f"the reference clip is {reason}" if reason else ""
    if lacking or reference is None:
        reasons.update(dict.fromkeys(AGAINST_REFERENCE, lacking))
        return []
    wanted = _speech_numbers(np.asarray(reference, np.float64))["high_band_db"]
    numbers["high_band_loss_db"] = wanted - numbers["high_band_db"]
    clicks = extra_transients(samples, reference, active_level(samples))
    numbers["extra_transients"] = float(clicks)
    return ["clicks"] if clicks else []


def _speech_numbers(wave: NDArray[np.float64]) -> dict[str, float]:
    width = SAMPLE_RATE // 100
    rms = np.sqrt((wave[: wave.size // width * width].reshape(-1, width) ** 2).mean(1))
    active = float(np.percentile(rms, 95))
    active = active if active > 0 else float(rms.max())  # a click in digital silence
    power = (spectrum(wave, 1024, 256) ** 2).mean(0)
    high = np.arange(power.size) * SAMPLE_RATE / 1024 > 8000
    return {
        "dropouts": float(_dropouts(wave, active)),
        "silence_share": float((rms < active * 10 ** (-40 / 20)).mean()),
        "tail_db": 20 * float(np.log10(np.sqrt((wave[-2 * width :] ** 2).mean()) / active + 1e-6)),
        "high_band_db": 10 * float(np.log10(power[high].sum() / power[~high].sum() + 1e-12)),
    }


def _dropouts(wave: NDArray[np.float64], active: float) -> int:
    """Zero runs inside the clip with active speech in the 2 ms before or after them."""
    edge = SAMPLE_RATE // 500
    found = 0
    for start, end in _runs(np.abs(wave) < 1.5 / 32768):
        if end - start >= DROPOUT_RUN and start > 240 and end < wave.size - 240:
            beside = wave[start - edge : start], wave[end : end + edge]
            found += max(np.sqrt((side**2).mean()) for side in beside) > active * DROPOUT_EDGE
    return int(found)


def _generation(
    numbers: dict[str, float],
    reasons: dict[str, str],
    *,
    ended: bool | None,
    codes: NDArray[np.integer] | None,
    expected_s: float | None,
) -> list[str]:
    flags = []
    if ended is False:
        flags.append("hit_max")
    if codes is not None and len(codes) == 0:
        flags.append("ended_at_once")
    if not expected_s:
        reasons["duration_ratio"] = "no reference clip and no expected duration"
    elif "duration_s" in numbers:
        ratio = numbers["duration_ratio"] = numbers["duration_s"] / expected_s
        flags += ["too_brief"] * (ratio < DURATION_RANGE[0]) + ["too_long"] * (ratio > DURATION_RANGE[1])
    loop = find_loop(codes) if codes is not None and len(codes) else None
    if loop:
        flags.append("held_code" if loop.period == 1 else "token_loop")
    return flags


def _runs(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """[start, end) of each run of True."""
    steps = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(start), int(end)) for start, end in zip(steps[::2], steps[1::2], strict=True)]


class ValidityScorer:
    """`check` behind the metric contract: the flags are the remark of `valid`."""

    name = "validity"
    metrics = METRICS
    needs: frozenset[Need] = frozenset()
    languages: tuple[str, ...] | None = None
    rate = SAMPLE_RATE
    packages: tuple[str, ...] = ()
    weights: ClassVar[dict[str, str]] = {}
    max_s = float("inf")
    accepts_damaged = True
    cost_cpu_s = 0.03

    def availability(self) -> Ready:
        return Ready("labkit validity 2")

    def load(self) -> None:
        """Nothing to load."""

    def score(self, clip: Clip) -> dict[str, Score]:
        expected = clip.expected_s
        if expected is None and clip.reference_audio is not None:
            expected = len(clip.reference_audio) / SAMPLE_RATE
        found = check(
            clip.audio, sample_rate=clip.sample_rate, ended=clip.ended, codes=clip.codes, expected_s=expected,
            reference_audio=clip.reference_audio,
        )  # fmt: skip
        scores = {"valid": Score(float(not found.flags), ", ".join(found.flags))}
        for metric in METRICS[1:]:
            value = found.numbers.get(metric.name)
            scores[metric.name] = Score(value, "" if value is not None else found.reasons[metric.name])
        return scores
