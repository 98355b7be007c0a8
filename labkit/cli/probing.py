"""Commands that examine a voice: sensitivity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from labkit.cli.words import (
    JsonFlag,
    console,
    print_json,
    print_rows,
    progress_lines,
)
from labkit.errors import UserError
from labkit.spec import AudioPath

if TYPE_CHECKING:
    from labkit.sensitivity import Rung
    from labkit.sensitivity.ladder import Figure


def sensitivity(
    voice: Annotated[str, typer.Option(help="nano, random, chattts, or a checkpoint folder.")] = "nano",
    stages: Annotated[
        list[str] | None, typer.Option("--stage", help="gpt, decoder or vocoder (repeatable).")
    ] = None,
    bits: Annotated[list[int] | None, typer.Option("--bits", help="2 to 8 (repeatable).")] = None,
    block: Annotated[
        int | None, typer.Option(help="Inputs that share a scale; one scale a channel when left out.")
    ] = None,
    corpus: Annotated[
        str | None, typer.Option(help="Calibration list, several joined by +, or a .txt file.")
    ] = None,
    texts: Annotated[int, typer.Option(help="Sentences to compare on, 10 or more.")] = 16,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    speaker: Annotated[str | None, typer.Option()] = None,
    audio_path: Annotated[AudioPath, typer.Option(help="hidden or codes.")] = "hidden",
    threads: Annotated[int, typer.Option(min=1)] = 1,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV file for the whole table.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Folder for a bar chart of each stage.")] = None,
    with_ladder: Annotated[
        bool, typer.Option("--ladder", help="The whole GPT instead: 8 to 2 bits, 30 and 50 % pruned.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Round one part of a voice at a time and tell what that does: codes, hidden states, mel.

    Example: `labkit sensitivity --stage gpt --bits 8 --bits 4 -o sensitivity.csv --plots .`
    """
    from labkit.sensitivity import FIGURE_NAMES, MAIN_FIGURE, at_bits, by_part, ladder
    from labkit.sensitivity import sensitivity as measure
    from labkit.sensitivity.files import check_writable, write_charts, write_table
    from labkit.voices import resolve_voice

    if with_ladder:
        _refuse_beside_ladder(stages=stages, bits=bits, block=block, out=out, plots=plots)
        rungs = ladder(
            resolve_voice(voice), corpus=corpus, texts=texts, seed=seed, speaker=speaker, threads=threads,
            progress=progress_lines(as_json),
        )  # fmt: skip
        print_json([rung.as_dict() for rung in rungs]) if as_json else _print_ladder(rungs)
        return
    check_writable(out, plots)
    frame = measure(
        resolve_voice(voice), stages=stages or ["gpt", "decoder"], bits=bits or [8, 6, 4, 3, 2], block=block,
        corpus=corpus, texts=texts, seed=seed, speaker=speaker, audio_path=audio_path, threads=threads,
        progress=progress_lines(as_json),
    )  # fmt: skip
    written = [*write_table(frame, out), *write_charts(frame, plots)]
    if as_json:
        print_json(frame.astype(object).where(frame.notna(), None).to_dict(orient="records"))
        return
    for stage in frame["stage"].unique():
        table = by_part(frame, stage).drop(columns="kind").rename(columns={"parameters": "weights"})
        cells = table.map(lambda cell: f"{cell:.2g}" if isinstance(cell, float) else cell)
        print_rows(
            f"{stage}: {FIGURE_NAMES[MAIN_FIGURE[stage]]}", list(table.columns), cells.to_numpy().tolist()
        )
        if stage == "gpt":  # the others have one figure
            width = min(frame["bits"], key=lambda bits: abs(bits - 4))
            table = at_bits(frame, stage, width).drop(columns=["kind", "parameters"])
            cells = table.map(lambda cell: f"{cell:.3g}" if isinstance(cell, float) else cell)
            print_rows(
                f"{stage} in {width} bits: every figure", list(table.columns), cells.to_numpy().tolist()
            )
    console.print("Heads and vocoder are measured here and never quantized unless a recipe asks for it.")
    for path in written:
        console.print(f"wrote [bold]{path}[/]", soft_wrap=True)


def _refuse_beside_ladder(**options: object) -> None:
    for name, value in options.items():
        if value:
            option = {"stages": "stage"}.get(name, name)
            raise UserError(f"--ladder takes the whole GPT through fixed steps; leave out --{option}.")


def _print_ladder(rungs: list[Rung]) -> None:
    def with_interval(figure: Figure, digits: int) -> str:
        return f"{figure.value:.{digits}f} ± {(figure.high - figure.low) / 2:.{digits}f}"

    words = {None: "", "worse": "worse", "same": "same", "better": Text("better", "yellow")}
    rows = [
        [
            rung.name, f"{rung.sqnr_db:.1f}", with_interval(rung.kl, 4), with_interval(rung.top1, 3),
            f"{rung.mel_db:.2f}", words[rung.order],
        ]
        for rung in rungs
    ]  # fmt: skip
    columns = ["weights", "SQNR", "KL, nats", "top-1", "mel, dB", "than above"]
    print_rows("the whole GPT, damaged step by step (95 % intervals over sentences)", columns, rows)
    broken = [rung.name for rung in rungs if rung.order == "better"]
    console.print(f"Out of order: {', '.join(broken)}." if broken else "In order, within noise.")
