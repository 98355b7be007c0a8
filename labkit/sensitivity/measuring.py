"""The table of sensitivity: every part of a stage at every number of bits."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from labkit.calibration import calibration_set
from labkit.errors import SpecError
from labkit.spec import AudioPath, StageName

if TYPE_CHECKING:
    import pandas as pd

    from labkit.calibration import CalibrationSet
    from labkit.sensitivity.comparing import Comparison
    from labkit.voices import Voice

MIN_TEXTS = 10
"""Fewer sentences tell nothing about a part (their spread is as large as the differences)."""
STAGES: tuple[StageName, ...] = ("gpt", "decoder", "vocoder")


def sensitivity(
    voice: Voice,
    *,
    stages: Sequence[str] = ("gpt", "decoder"),
    bits: Sequence[int] = (8, 6, 4, 3, 2),
    block: int | None = None,
    kinds: Sequence[str] = ("block", "operator", "edge", "all"),
    corpus: str | None = None,
    texts: int = 16,
    seed: int = 0,
    speaker: str | None = None,
    audio_path: AudioPath = "hidden",
    threads: int = 1,
    progress: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """One row for each part and number of bits: stage, kind, unit, parameters, scheme, bits, sqnr_db, kl,
    top1, nll_delta, hidden_error, mel_db (`comparing.FIGURES` says what these are; NaN where a stage has none).

    `block` inputs share a scale; None: one scale a channel. The sentences come from a calibration list, because what is
    chosen from this table is judged on an evaluation list. SpecError and CalibrationError before any work.
    """
    import pandas as pd

    from labkit.model.rounding import MAX_BITS, MIN_BITS, check_block, units_of
    from labkit.sensitivity.comparing import mean_figures
    from labkit.sensitivity.rounding import KINDS, count, rounded

    _check("stage", stages, STAGES)
    _check("kind", kinds, KINDS)
    _check("number of bits", bits, tuple(range(MIN_BITS, MAX_BITS + 1)))
    recorded = calibration_set(
        voice,
        corpus,
        texts,
        seed=seed,
        speaker=speaker,
        audio_path=audio_path,
        threads=threads,
        minimum=MIN_TEXTS,
    )
    if block is not None and "gpt" in stages:  # the others' widths are known when they are loaded
        check_block(
            block, {"layers.0.qkv": voice.config.gpt.hidden, "layers.0.down": voice.config.gpt.intermediate}
        )
    warn_of_random_weights(voice)
    tell = progress or (lambda _: None)
    recorded.record(tell)
    rows: list[dict[str, Any]] = []
    for stage in STAGES:
        if stage not in stages:
            continue
        comparison = comparison_of(stage, recorded)
        for unit in [unit for unit in units_of(comparison.network) if unit.kind in kinds]:
            tell(f"sensitivity: {stage} {unit.name}")
            about = {
                "stage": stage,
                "kind": unit.kind,
                "unit": unit.name,
                "parameters": count(comparison.network, unit),
                "scheme": f"block-{block}" if block else "channel",
            }
            for width in bits:
                with rounded(comparison.network, unit, width, block) as sqnr:
                    figures = mean_figures(comparison.sentences())
                rows.append({**about, "bits": width, "sqnr_db": sqnr, **figures})
    return pd.DataFrame(rows)


def comparison_of(stage: StageName, recorded: CalibrationSet) -> Comparison:
    """One stage in torch fp32 with what it was fed when the sentences were recorded."""
    import torch

    from labkit.model import checkpoint
    from labkit.sensitivity.comparing import GptComparison, NetworkComparison

    torch.set_num_threads(recorded.threads)
    folder, on_codes = recorded.voice.folder, recorded.audio_path == "codes"
    if stage == "gpt":
        gpt = checkpoint.load_gpt(folder, decoding_layout=False)
        del gpt.text_head  # it speaks in the refine stage only, which is not run here
        return GptComparison(recorded, gpt, None if on_codes else checkpoint.load_decoder(folder))
    if stage == "vocoder":
        return NetworkComparison(recorded, checkpoint.load_vocoder(folder), stage)
    if not on_codes:
        return NetworkComparison(recorded, checkpoint.load_decoder(folder), stage)
    dvae = checkpoint.load_dvae(folder)
    del dvae.encoder, dvae.downsample_conv  # speaking needs the decoding half alone
    return NetworkComparison(recorded, dvae, stage)


def warn_of_random_weights(voice: Voice) -> None:
    """For the caller of the public function that calls this."""
    if not voice.for_quality:
        warnings.warn(
            f"voice {voice.name!r} has random weights: its figures show the arithmetic, not what would be heard.",
            stacklevel=3,
        )


def _check(what: str, given: Sequence[object], known: Sequence[object]) -> None:
    if not given:
        raise SpecError(f"sensitivity: no {what} was asked for; known: {', '.join(map(str, known))}.")
    for each in given:
        if each not in known:
            raise SpecError(f"sensitivity: {what} {each!r} is unknown; known: {', '.join(map(str, known))}.")
