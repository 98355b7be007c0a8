"""Commands that examine the lab and a voice: bench self, sensitivity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labkit.cli.words import (
    JsonFlag,
    console,
    print_json,
    print_rows,
    progress_lines,
)
from labkit.spec import AudioPath

if TYPE_CHECKING:
    pass


def bench_self(
    rounds: Annotated[int, typer.Option(min=2, help="Interleaved rounds.")] = 10,
    as_json: JsonFlag = False,
) -> None:
    """Full-size decode steps of each recipe beside upstream, interleaved on one core; takes some minutes.

    Example: `labkit bench self --rounds 10`
    """
    from labkit.bench import bench_self as measure_bench
    from labkit.bench import render

    figures = measure_bench(rounds=rounds, progress=progress_lines(as_json))
    if as_json:
        print_json(figures)
    else:
        console.print(render(figures))


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
    as_json: JsonFlag = False,
) -> None:
    """Round one part of a voice at a time and tell what that does: codes, hidden states, mel.

    Example: `labkit sensitivity --stage gpt --bits 8 --bits 4 -o sensitivity.csv --plots .`
    """
    from labkit.sensitivity import FIGURE_NAMES, MAIN_FIGURE, by_part
    from labkit.sensitivity import sensitivity as measure
    from labkit.sensitivity.files import check_writable, write_charts, write_table
    from labkit.voices import resolve_voice

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
    console.print("Heads and vocoder are measured here and never quantized unless a recipe asks for it.")
    for path in written:
        console.print(f"wrote [bold]{path}[/]", soft_wrap=True)
