"""How the nano voice is made: speech from a teacher, then DVAE, vocoder, GPT and Decoder, then a judged voice folder.

`train_nano` is all that others call. Importing this package loads no backend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

STAGES = ("data", "check", "dvae", "vocoder", "gpt", "decoder", "tune", "pack", "evaluate")
WORK_FOLDER = Path("results/training/nano")


def train_nano(
    *,
    stages: Sequence[str] = STAGES,
    out: Path = WORK_FOLDER,
    speech: Path | None = None,
    calib: Path = Path("calib"),
    workers: int = 1,
    resume: bool = False,
    smoke: bool = False,
    voice: Path | None = None,
    card: Path | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Run stages of the nano recipe in order in the work folder `out`.

    `resume` continues a stage from its last checkpoint; without it a stage starts over (speech on disk is kept).
    `smoke` runs the same code for a few steps on synthetic tones, without teacher or recognizers. `voice` is the
    folder that `evaluate` judges, by default the packed one; `card` is the markdown card whose figures it then
    rewrites. `workers` processes share what can be shared. Raises `UserError` for an unknown stage or a missing
    predecessor.
    """
    from labkit.errors import UserError

    unknown = [stage for stage in stages if stage not in STAGES]
    if unknown:
        raise UserError(f"training stage {unknown[0]!r} is unknown; known stages: {', '.join(STAGES)}.")
    if workers < 1:
        raise UserError(
            f"{workers} workers cannot train anything; give 1 or more, at best one for each core."
        )
    from labkit.training.parallel import Work, run_stages
    from labkit.training.recipe import NANO_RECIPE, SMOKE_RECIPE
    from labkit.training.speech import HeldOut
    from labkit.voices import cache_folder

    recipe = SMOKE_RECIPE if smoke else NANO_RECIPE
    speech = speech or (out / "speech" if smoke else cache_folder() / "training")
    work = Work(recipe, HeldOut.from_calib(calib), out, speech, resume)
    run_stages(work, [stage for stage in STAGES[:-1] if stage in stages], workers, say)
    if STAGES[-1] in stages and not smoke:
        work.training(say).evaluate(voice, card)
