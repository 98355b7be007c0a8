"""Run documents made up for tests: plausible, seeded, and quick to bend."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from labkit.results.schema import ArtifactRecord, ClipScore, Failure, Measures, RunDocument, Sample
from labkit.results.store import new_run_id
from labkit.spec import Recipe, RunSpec, StageChoice

SPEED = {"torch-fp32": 1.0, "torch-bf16": 1.2, "ort-fp32": 1.8, "ort-int8-dynamic": 2.9}
SIZE = {"torch-fp32": 24e6, "torch-bf16": 12e6, "ort-fp32": 24e6, "ort-int8-dynamic": 9e6}
TEXTS = ("seven-two-nine", "three-one-four", "eight-oh-six")


def recipe(name: str) -> Recipe:
    if name == "upstream":
        return Recipe(name=name, pipeline="upstream")
    engine = "ort-cpu" if name.startswith("ort") else "torch"
    precision = name.partition("-")[2] if name in SPEED else "fp32"
    return Recipe(
        name=name,
        gpt=StageChoice(engine=engine, precision=precision),
        decoder=StageChoice(engine=engine),
        vocoder=StageChoice(engine=engine),
    )


def spec(name: str = "torch-fp32", **changes: Any) -> RunSpec:
    return RunSpec(recipe=recipe(name), texts=len(TEXTS), **changes)


def document(name: str = "torch-fp32", *, sweep: str | None = "demo", **changes: Any) -> RunDocument:
    """An `ok` document of the recipe; `changes` replace fields, `scenario` goes into the spec."""
    scenario = changes.pop("scenario", "single")
    run = changes.pop("spec", None) or spec(name, scenario=scenario)
    speed = SPEED.get(name, 1.0)
    rng = np.random.default_rng(zlib.crc32(f"{name}{scenario}".encode()))
    values: dict[str, Any] = {
        "run_id": new_run_id(name),
        "started_at": "2026-01-31T12:00:00Z",
        "spec": run,
        "work_hash": run.work_hash(),
        "sweep": sweep,
        "status": "ok",
        "environment": {"cpu": {"model": "Example CPU 9000", "cores": 2}, "python": "3.11.9"},
        "weights_hash": "w" * 8,
        "corpus_hash": "c" * 8,
        "machine_class": "x86_64-example-2c",
        "measures": Measures(
            values={
                "load_s": 0.4 / speed,
                "build_s": 3.0,
                "cold_start_s": 1.9,
                "rss_peak_bytes": 4e8 / speed,
                "vram_peak_bytes": None,
                "roofline_share": 0.4 + 0.1 * speed,
                "bandwidth_bytes_per_s": 11.2e9,
            },
            reasons={"vram_peak_bytes": "the run used no GPU"},
        ),
        "artifacts": [
            ArtifactRecord(
                stage=stage, engine="torch", precision="fp32", size_bytes=int(SIZE.get(name, 24e6) * part),
                build_s=1.0, cached=False, content_hash=stage,
            )
            for stage, part in (("gpt", 0.7), ("decoder", 0.1), ("vocoder", 0.2))
        ],
        "samples": samples(speed, rng),
        "quality": scores(rng),
    }  # fmt: skip
    return RunDocument(**(values | changes))


def samples(speed: float, rng: np.random.Generator, repeats: int = 3) -> list[Sample]:
    made = []
    for repetition in range(-1, repeats):
        for number, item in enumerate(TEXTS):
            noise = float(rng.uniform(0.95, 1.05)) * (3 if repetition < 0 else 1)
            audio_s = 1.2 + 0.3 * number
            parts = {"prefill_s": 0.01, "decode_s": 0.2, "decoder_s": 0.02, "vocoder_s": 0.03}
            parts = {stage: seconds * noise / speed for stage, seconds in parts.items()}
            latency = sum(parts.values())
            made.append(
                Sample(
                    phase="warmup" if repetition < 0 else "measured",
                    repetition=max(repetition, 0),
                    item=item,
                    order=len(made),
                    ended=True,
                    values={
                        **parts,
                        "latency_s": latency,
                        "cpu_s": latency * 1.01,
                        "audio_s": audio_s,
                        "rtf": latency / audio_s,
                        "rtfx": audio_s / latency,
                        "ttft_s": latency * 0.3,
                        "steps": 60,
                        "steps_per_s": 60 / parts["decode_s"],
                    },
                    series={"step_s": [parts["decode_s"] / 60] * 5},
                    audio=f"{item}.flac" if repetition == 0 else None,
                )
            )
    return made


def scores(rng: np.random.Generator) -> list[ClipScore]:
    return [
        ClipScore(item=item, repetition=0, metric=metric, value=value, unit=unit, reason=reason)
        for item in TEXTS
        for metric, value, unit, reason in (
            ("dnsmos_p808", 3.1 + float(rng.normal(0, 0.03)), "score", ""),
            ("dnsmos_ovrl", 2.6 + float(rng.normal(0, 0.03)), "score", ""),
            ("wer", 0.0, "share", ""),
            ("log_mel_db", None, "dB", "a free-running clip has no reference"),
        )
    ]


def failed(
    name: str, status: str = "failed", *, message: str = "the kernel died", **changes: Any
) -> RunDocument:
    failure = Failure(kind="DeadKernelError", message=message, stage="speak", remedy="look into the log")
    bare: dict[str, Any] = {"samples": (), "quality": (), "artifacts": (), "measures": Measures()}
    return document(name, status=status, failure=failure, **(bare | changes))


def clip(frequency: float = 220.0, seconds: float = 1.2) -> np.ndarray:
    """A tone with harmonics and an envelope: something to draw and to play."""
    t = np.arange(int(24_000 * seconds)) / 24_000
    tone = sum(np.sin(2 * np.pi * frequency * k * t) / k for k in range(1, 12))
    return (0.15 * tone * np.sin(np.pi * t / seconds) ** 2).astype(np.float32)
