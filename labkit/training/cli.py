"""`labkit train …`: parse, call `train_nano`, no more."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from labkit.errors import UserError
from labkit.training import STAGES, WORK_FOLDER, train_nano

app = typer.Typer(help="Train a voice of ChatTTS's architecture from nothing.", no_args_is_help=True)


@app.callback()
def _root() -> None:
    """Keeps `nano` a command of its own while it is the only one."""


@app.command()
def nano(
    stage: Annotated[
        list[str] | None,
        typer.Option(help=f"Run only this stage (repeatable): {', '.join(STAGES)}; domain: data, check."),
    ] = None,
    corpus: Annotated[
        str, typer.Option(help="What it is taught: digits, or (speech only, so far) the whole domain.")
    ] = "digits",
    items: Annotated[int | None, typer.Option(help="Domain: speak only so many first items.")] = None,
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
        typer.Option(help=f"Work folder (default: {WORK_FOLDER}; speech of the domain: the lab's cache)."),
    ] = None,
    calib: Annotated[Path, typer.Option(help="Folder with the held-out texts.")] = Path("calib"),
) -> None:
    """Make the nano voice, from synthesized speech to a judged voice folder; hours on two cores.

    Example: `labkit train nano --resume` or `labkit train nano --evaluate --voice labkit/assets/nano/asset`
    or `labkit train nano --corpus domain --stage data`
    """
    say = partial(Console().print, highlight=False, soft_wrap=True)
    if corpus == "domain":
        from labkit.training.domain_speech import STAGES as DOMAIN_STAGES
        from labkit.training.domain_speech import run_stages

        if smoke:
            raise UserError("--smoke is for --corpus digits; --items 48 is a short run of the domain corpus.")
        stages = ["evaluate"] if evaluate else stage or DOMAIN_STAGES
        run_stages(stages, calib, folder=out, items=items, say=say)
        return
    if corpus != "digits":
        raise UserError(f"--corpus {corpus!r} is unknown; corpora to train on: digits, domain.")
    train_nano(
        stages=["evaluate"] if evaluate else stage or list(STAGES), out=out or WORK_FOLDER, calib=calib, resume=resume,
        smoke=smoke, voice=voice, card=card, say=say,
    )  # fmt: skip
