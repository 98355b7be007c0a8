"""`labkit train …`: parse, call `train_nano`, no more."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from labkit.training import STAGES, WORK_FOLDER, train_nano

app = typer.Typer(help="Train a voice of ChatTTS's architecture from nothing.", no_args_is_help=True)


@app.callback()
def _root() -> None:
    """Keeps `nano` a command of its own while it is the only one."""


@app.command()
def nano(
    stage: Annotated[
        list[str] | None,
        typer.Option(help=f"Run only this stage (repeatable): {', '.join(STAGES)}."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoints.")] = False,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="A few steps on synthetic tones: does it run?")
    ] = False,
    evaluate: Annotated[bool, typer.Option("--evaluate", help="Only judge a voice.")] = False,
    voice: Annotated[
        Path | None, typer.Option(help="Voice folder to judge (default: the packed one).")
    ] = None,
    card: Annotated[Path | None, typer.Option(help="Card whose figures the evaluation rewrites.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help=f"Work folder (default: {WORK_FOLDER})."),
    ] = None,
    speech: Annotated[
        Path | None, typer.Option(help="Folder of the speech (default: `training` in the lab's cache).")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that share speech, check and training.")] = 1,
    calib: Annotated[Path, typer.Option(help="Folder with the held-out texts.")] = Path("calib"),
) -> None:
    """Make the nano voice, from synthesized speech to a judged voice folder; hours on two cores.

    Example: `labkit train nano --workers 2 --resume` or `labkit train nano --evaluate --voice labkit/assets/nano/asset`
    """
    say = partial(Console().print, highlight=False, markup=False, soft_wrap=True)
    train_nano(
        stages=["evaluate"] if evaluate else stage or list(STAGES), out=out or WORK_FOLDER, speech=speech, calib=calib,
        workers=workers, resume=resume, smoke=smoke, voice=voice, card=card, say=say,
    )  # fmt: skip
