"""Does an exported stage compute what the torch stage computes? Figures, and a refusal.

It knows stages only by their protocols and is given both. The reference is torch in fp32; inputs are seeded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from labkit.engines.base import DecoderStage, GptStage, StepOutput, VocoderStage
from labkit.errors import ParityError

Array = NDArray[Any]
EXACT_TOLERANCE = {"logits": 1e-4, "hidden": 1e-4, "mel": 1e-4, "audio": 1e-5}
"""Largest absolute difference of an fp32 export."""
LEAST_COSINE = {"half": 0.999, "quantized": 0.9, "coarse": 0.7}
"""Least cosine similarity of a stage at 16, 8 and 4 bits: below it something is broken, not merely rounded.

4 bits bring the logits of random weights at full size to 0.90 after a long prompt.
"""
Kind = Literal["exact", "half", "quantized", "coarse"]
_LARGEST = 1024


@dataclass(frozen=True)
class GptCase:
    """Prompt lengths of the rows, and decode steps after them."""

    name: str
    lengths: tuple[int, ...]
    steps: int


@dataclass(frozen=True)
class Figure:
    """How far one output of one case is from the reference."""

    case: str
    output: str
    max_abs: float
    cosine: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def gpt_cases(positions: int, with_largest: bool = False) -> tuple[GptCase, ...]:
    """The smallest prompt, mixed lengths in one batch, a long prompt, and if asked for every position filled.

    Of a voice with more than 1024 positions, 1024 are filled: attention over all 4096 takes gigabytes.
    """
    cases = (
        GptCase("smallest", (1,), 1),
        GptCase("mixed batch", (17, 5, 9), 8),
        GptCase("long", (min(384, positions - 8),), 4),
    )
    return (*cases, GptCase("largest", (min(_LARGEST, positions) - 4,), 4)) if with_largest else cases


def check_gpt(
    reference: GptStage, candidate: GptStage, *, vocabulary: int, speaker_token: int, codes: int, width: int,
    cases: Sequence[GptCase], kind: Kind,
) -> list[Figure]:  # fmt: skip
    """Prefill and teacher-forced steps on seeded ids, codes (4 of `codes` values) and a speaker of `width`."""
    figures = []
    for case in cases:
        ids, mask, speaker, fed = _gpt_inputs(case, vocabulary, speaker_token, codes, width)
        outputs = [_drive(stage, ids, mask, speaker, fed) for stage in (reference, candidate)]
        for name in ("logits", "hidden"):
            wanted, found = (np.stack([getattr(step, name) for step in steps]) for steps in outputs)
            figures.append(_compare(case.name, name, wanted, found))
    return _require(figures, "gpt", kind)


def check_network(
    reference: DecoderStage | VocoderStage,
    candidate: DecoderStage | VocoderStage,
    example: Callable[[int, int], Array],
    *,
    stage: str,
    output: str,
    kind: Kind,
) -> list[Figure]:
    """Compare on `example(batch, steps)` at the smallest, a typical and a larger length, and in a batch."""
    figures = []
    for name, batch, steps in (("smallest", 1, 1), ("batch", 3, 25), ("typical", 1, 60), ("long", 1, 300)):
        given = example(batch, steps)
        figures.append(_compare(name, output, reference(given), candidate(given)))
    return _require(figures, stage, kind)


def _gpt_inputs(
    case: GptCase, vocabulary: int, speaker_token: int, codes: int, width: int
) -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(0)
    batch, longest = len(case.lengths), max(case.lengths)
    starts = longest - np.array(case.lengths)
    ids = rng.integers(0, vocabulary, (batch, longest))
    ids[np.arange(batch), starts] = speaker_token
    mask = np.arange(longest)[None] >= starts[:, None]
    speaker = rng.standard_normal((batch, width)).astype(np.float32)
    speaker /= np.linalg.norm(speaker, axis=1, keepdims=True)
    return ids, mask, speaker, rng.integers(0, codes, (case.steps, batch, 4))


def _drive(stage: GptStage, ids: Array, mask: Array, speaker: Array, fed: Array) -> list[StepOutput]:
    stage.reset(len(ids), ids.shape[1] + len(fed))
    return [stage.prefill(ids, mask, speaker), *(stage.step(codes) for codes in fed)]


def _compare(case: str, output: str, wanted: Array, found: Array) -> Figure:
    if wanted.shape != found.shape:
        raise ParityError(f"{case} case: {output} has shape {found.shape}, torch gives {wanted.shape}.")
    a, b = wanted.ravel().astype(np.float64), found.ravel().astype(np.float64)
    norms = np.linalg.norm(a) * np.linalg.norm(b)
    return Figure(case, output, float(np.abs(a - b).max(initial=0.0)), float(a @ b / norms) if norms else 1.0)


def _require(figures: list[Figure], stage: str, kind: Kind) -> list[Figure]:
    for figure in figures:
        tolerance = EXACT_TOLERANCE[figure.output]
        if kind == "exact" and not figure.max_abs <= tolerance:
            raise ParityError(
                f"exported {stage}: {figure.output} of the {figure.case!r} case differs from torch by "
                f"{figure.max_abs:.2g}, more than {tolerance:.0e}. Nothing was cached; use the torch engine for this "
                "stage and report the voice and the tool versions."
            )
        if kind != "exact" and not figure.cosine >= LEAST_COSINE[kind]:
            raise ParityError(
                f"quantized {stage}: {figure.output} of the {figure.case!r} case has cosine {figure.cosine:.3f} to "
                f"torch fp32, less than {LEAST_COSINE[kind]}. Nothing was cached; choose a higher precision."
            )
    return figures
