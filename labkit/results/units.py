"""How each number is named, read and printed: the one table of labels, units, directions and formats.

It knows metric names and nothing of where numbers come from. A name carries its unit as a suffix
(`latency_s`, `rss_peak_bytes`), so a metric that is not listed here still prints with its right unit.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

Direction = Literal["lower", "higher", "none"]
MISSING = "—"
QUANTILES = (50, 90, 95, 99)


@dataclass(frozen=True)
class Metric:
    """What people see of one metric: its label, unit, which way is better, and one line of meaning."""

    name: str
    label: str
    unit: str
    better: Direction = "none"
    meaning: str = ""


_LISTED = (
    Metric(
        "rtf",
        "RTF",
        "s/s",
        "lower",
        "time to synthesize / duration of the audio; below 1 is faster than speech",
    ),
    Metric("rtfx", "RTFx", "x", "higher", "seconds of audio made per second; the inverse of RTF"),
    Metric("latency_s", "latency", "s", "lower", "from the call to the last sample of audio"),
    Metric("cpu_s", "CPU time", "s", "lower", "processor time of the measured process during one utterance"),
    Metric(
        "yardstick_s",
        "yardstick",
        "s",
        "none",
        "processor time of a fixed piece of work, beside each utterance",
    ),
    Metric(
        "cpu_yardsticks", "CPU time, yardsticks", "", "lower", "CPU time as a multiple of the yardstick's"
    ),
    Metric(
        "ttft_s", "first audio", "s", "lower", "from the call to the first chunk of the streaming generator"
    ),
    Metric("first_step_s", "first step", "s", "lower", "from the call to the first drawn code"),
    Metric("prefill_s", "prefill", "s", "lower", "reading the prompt"),
    Metric("decode_s", "GPT steps", "s", "lower", "all steps of the GPT after the prompt"),
    Metric("sample_s", "sampling", "s", "lower", "drawing codes from the GPT's logits, all steps"),
    Metric("prepare_s", "text", "s", "lower", "normalizing the text and making the prompt"),
    Metric("decoder_s", "decoder", "s", "lower", "hidden states to mel"),
    Metric("vocoder_s", "vocoder", "s", "lower", "mel to audio"),
    Metric("step_s", "step", "s", "lower", "one step of the GPT"),
    Metric("steps_per_s", "steps/s", "/s", "higher", "steps of the GPT per second"),
    Metric("steps", "steps", "", "none", "steps of the GPT in one utterance"),
    Metric("audio_s", "audio", "s", "none", "duration of the audio"),
    Metric("build_s", "build", "s", "lower", "export, quantization and compilation, once per machine"),
    Metric("load_s", "load", "s", "lower", "from files to a pipeline that can speak"),
    Metric("cold_start_s", "cold start", "s", "lower", "from the start of the process to its first audio"),
    Metric(
        "rss_peak_bytes", "peak memory", "B", "lower", "largest resident memory of the run's process tree"
    ),
    Metric("vram_peak_bytes", "peak VRAM", "B", "lower", "largest device memory of the run's processes"),
    Metric("size_on_disk_bytes", "on disk", "B", "lower", "files that the three stages load"),
    Metric(
        "roofline_share",
        "roofline",
        "share",
        "higher",
        "part of the measured memory bandwidth a step reaches",
    ),
    Metric(
        "bandwidth_bytes_per_s", "bandwidth", "B/s", "higher", "memory read bandwidth measured beside the run"
    ),
    Metric(
        "dnsmos_p808", "P808", "score", "higher", "DNSMOS P.808 estimate, 1 to 5; a proxy, not a listener"
    ),
    Metric(
        "dnsmos_ovrl",
        "OVRL",
        "score",
        "higher",
        "DNSMOS P.835 overall estimate, 1 to 5; a proxy, not a listener",
    ),
    Metric("plcmos", "PLCMOS", "score", "higher", "PLCMOS estimate, 1 to 5; a proxy, not a listener"),
    Metric(
        "visqol", "ViSQOL", "score", "higher", "ViSQOL similarity to the reference on the same tokens, 1 to 5"
    ),
    Metric(
        "f0_correlation",
        "melody",
        "correlation",
        "higher",
        "log pitch against the reference on the same tokens",
    ),
    Metric("f0_median_hz", "median pitch", "Hz", "none", "median pitch of the voiced frames"),
    Metric(
        "distillmos",
        "Distill-MOS",
        "score",
        "higher",
        "Distill-MOS estimate, 1 to 5; a proxy, not a listener",
    ),
    Metric(
        "campp_similarity", "CAM++", "cosine", "higher", "CAM++ speaker vector against the reference clip's"
    ),
    Metric("ge2e_similarity", "GE2E", "cosine", "higher", "GE2E speaker vector against the reference clip's"),
    Metric("wer", "WER", "share", "lower", "word error rate of an automatic transcript against the text"),
    Metric(
        "cer", "CER", "share", "lower", "character error rate of an automatic transcript against the text"
    ),
    Metric("forced_nll", "forced NLL", "nats", "lower", "a recognizer's mean loss on the tokens of the text"),
    Metric("spoken_tags", "spoken tags", "", "lower", "control tokens that were read out"),
    Metric("human_mos", "MOS", "score", "higher", "mean opinion of listeners, 1 bad to 5 excellent"),
    Metric(
        "human_ab",
        "preference",
        "",
        "higher",
        "listeners who preferred it less those who preferred the other, as a share; 0 is no preference",
    ),
    Metric(
        "log_mel_db", "log-mel", "dB", "lower", "log-mel distance to what torch-fp32 makes of the same tokens"
    ),
)
METRICS = {metric.name: metric for metric in _LISTED}
# longest first: `bandwidth_bytes_per_s` must not read as seconds
_SUFFIXES = (("_bytes_per_s", "B/s"), ("_per_s", "/s"), ("_bytes", "B"), ("_share", "share"), ("_ratio", "x"),
             ("_db", "dB"), ("_s", "s"))  # fmt: skip
_STATISTIC = re.compile(rf"_(p({'|'.join(map(str, QUANTILES))})|mean)$")


def base_name(column: str) -> str:
    """The metric behind a column of statistics: `latency_s_p90` -> `latency_s`."""
    return _STATISTIC.sub("", column)


def describe(column: str) -> Metric:
    """The table's line for a metric or a statistic of it; unlisted names are read by their suffix."""
    name = base_name(column)
    if name in METRICS:
        return METRICS[name]
    unit = next((unit for suffix, unit in _SUFFIXES if name.endswith(suffix)), "")
    return Metric(name, name.replace("_", " "), unit)


def format_value(column: str, value: float | None) -> str:
    """Print a value of a metric with its unit; a missing value is a dash, never a zero."""
    return format_unit(describe(column).unit, value)


def format_unit(unit: str, value: float | None) -> str:
    """Print a number of the given unit (the units of the table above) in at most five characters and a unit."""
    if value is None or not math.isfinite(value):
        return MISSING
    if unit == "s":
        return _scaled(value, ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s")))
    if unit in ("B", "B/s"):
        return _scaled(value, ((1.0, unit), (1e3, f"k{unit}"), (1e6, f"M{unit}"), (1e9, f"G{unit}")))
    if unit == "share":
        return f"{100 * value:.1f} %"
    if unit == "s/s":
        return f"{value:.3f}"
    if unit == "x":
        return f"{value:.2f}x"
    if unit in ("cosine", "correlation"):
        return f"{value:.3f}"
    if unit in ("dB", "score", "nats"):
        return f"{value:.2f}".replace("-0.00", "0.00") + (" dB" if unit == "dB" else "")
    return _short(value) + (f" {unit}" if unit and not unit.startswith("/") else unit)


def _scaled(value: float, scales: tuple[tuple[float, str], ...]) -> str:
    size, unit = scales[0]
    for candidate, name in scales:
        if abs(value) >= candidate:
            size, unit = candidate, name
    return f"{_short(value / size)} {unit}"


def _short(value: float) -> str:
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}"
