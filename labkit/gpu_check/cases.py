"""What is checked, the most valuable first, and the fixed work that every case does.

It knows names and numbers only. A case is one process: a voice, a way of decoding and a precision, measured at each
batch size in turn.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Mode = Literal["eager", "compiled", "graph"]
VoiceName = Literal["nano", "random"]
BATCHES = (1, 8)
SEED = 0


@dataclass(frozen=True)
class Choice:
    """What `labkit.spec.StageChoice` is, for a machine without pydantic."""

    engine: str = "torch"
    precision: str = "fp32"
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One process of the check. `seconds`: about how long it takes on a data-centre card; it is not begun with less."""

    voice: VoiceName
    mode: Mode
    precision: str
    batches: tuple[int, ...] = BATCHES

    @property
    def name(self) -> str:
        return f"{self.voice} {self.mode} {self.precision}"

    @property
    def seconds(self) -> float:
        return {"eager": 20.0, "graph": 12.0, "compiled": 35.0}[self.mode]

    def choices(self) -> dict[str, Choice]:
        """The GPT in the case's way; decoder and vocoder always in eager torch, for decoding is what is compared."""
        plain = Choice(precision=self.precision)
        gpt = {
            "eager": plain,
            "compiled": Choice("torch-compile", self.precision),
            "graph": Choice(precision=self.precision, options={"cuda_graph": True}),
        }[self.mode]
        return {"gpt": gpt, "decoder": plain, "vocoder": plain}


def _cases(*names: str) -> tuple[Case, ...]:
    return tuple(Case(*name.split()) for name in names)  # type: ignore[arg-type]  # the names are the literals


CASES = _cases(
    # first what everything else is compared with, then what is likely the fastest
    "random eager fp32", "random graph bf16", "nano graph fp32", "nano eager fp32",
    "random graph fp16", "random eager bf16", "random graph fp32", "random compiled bf16",
    "random eager fp16", "nano graph bf16", "nano eager bf16", "nano compiled fp32",
    "random compiled fp32", "random compiled fp16", "nano graph fp16", "nano eager fp16",
    "nano compiled bf16", "nano compiled fp16",
)  # fmt: skip


@dataclass(frozen=True)
class Work:
    """The same tokens and codes for every case: `prompt` text tokens are read, then `steps` codes are fed.

    `parity_steps`: how many of them are compared with the CPU; `repeats`: measured repetitions after one warm-up.
    """

    prompt: int = 64
    steps: int = 256
    parity_steps: int = 32
    repeats: int = 3

    @property
    def capacity(self) -> int:
        return self.prompt + self.steps

    def rows(self, batch: int, vocabulary: int) -> list[NDArray[np.int64]]:
        """Token ids of each row; a batch mixes lengths, so that left padding is part of the check."""
        rng = np.random.default_rng(SEED)
        lengths = [max(1, self.prompt - 3 * row) for row in range(batch)]
        return [rng.integers(0, vocabulary, length) for length in lengths]

    def codes(self, batch: int) -> list[NDArray[np.int64]]:
        """Codes [steps, 4] of each row; never the end mark."""
        return list(np.random.default_rng(SEED + 1).integers(0, 625, (batch, self.steps, 4)))

    def corpus(self, batch: int) -> str:
        return f"fixed-{self.prompt}+{self.steps}-x{batch}"

    def corpus_hash(self, batch: int) -> str:
        text = json.dumps({**asdict(self), "batch": batch, "seed": SEED}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def run_spec(case: Case, work: Work, batch: int, device: str, threads: int) -> dict[str, Any]:
    """What `labkit.spec.RunSpec` would dump for this case: every key, with its default where the case has none."""
    name = "-".join(["torch", *([] if case.mode == "eager" else [case.mode]), case.precision])
    stages = {stage: asdict(choice) for stage, choice in case.choices().items()}
    return {
        "recipe": {"name": name, "description": "", **stages, "pipeline": None},
        "voice": case.voice,
        "scenario": "replay" if batch == 1 else "batch",
        "corpus": work.corpus(batch),
        "texts": None,
        "device": device,
        "threads": threads,
        "seed": SEED,
        "speaker": None,
        "audio_path": "hidden",
        "repeats": work.repeats,
        "warmups": 1,
        "max_steps": work.steps,
        "quality": False,
        "keep_audio": False,
        "limits": {"seconds": 600.0, "memory_gb": None},
    }


def work_hash(spec: dict[str, Any]) -> str:
    """As `RunSpec.work_hash`: sha256 of the canonical JSON; limits and kept audio are already at their defaults."""
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
