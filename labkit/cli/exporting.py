"""Commands that hand a voice's graphs to other programs: export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labkit.cli.words import JsonFlag, console, print_json, print_rows, progress_lines
from labkit.spec import AudioPath


def export(
    out: Annotated[Path, typer.Option("--out", "-o", help="New or empty folder.")],
    voice: Annotated[str, typer.Option(help="nano, random, chattts, or a checkpoint folder.")] = "nano",
    graph: Annotated[
        str, typer.Option(help="portable: standard operators; ort: ONNX Runtime's fused ones in the GPT.")
    ] = "portable",
    stages: Annotated[
        list[str] | None,
        typer.Option("--stage", help="gpt, decoder or vocoder (repeatable); all when left out."),
    ] = None,
    precision: Annotated[str, typer.Option(help="fp32, fp16, or fp8 (for export only).")] = "fp32",
    audio_path: Annotated[
        AudioPath, typer.Option(help="What the decoder reads: hidden or codes.")
    ] = "hidden",
    inverse_stft: Annotated[
        str, typer.Option(help="graph: in the vocoder's graph; numpy: the graph ends at the spectrum.")
    ] = "graph",
    encoder: Annotated[
        bool, typer.Option("--encoder", help="Also the DVAE's encoder, mel to codes.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a voice's networks as ONNX graphs, each checked against torch, with a manifest.

    Example: `labkit export --voice nano --graph portable -o exported`
    """
    from labkit.artifacts.exporting import export_table, export_voice
    from labkit.spec import STAGES
    from labkit.voices import resolve_voice

    made = export_voice(
        resolve_voice(voice, progress_lines(as_json)), out, graph=graph, stages=stages or STAGES,
        precision=precision, audio_path=audio_path, inverse_stft=inverse_stft, encoder=encoder,
        progress=progress_lines(as_json),
    )  # fmt: skip
    if as_json:
        print_json({each.name: {"folder": each.folder, **each.manifest} for each in made})
        return
    table = export_table(made).drop(columns="graph").round(2)
    table = table if table["nodes kept in fp32"].any() else table.drop(columns="nodes kept in fp32")
    print_rows(f"{voice}, {graph} graph, {precision}", list(table.columns), table.to_numpy().tolist())
    console.print(f"wrote [bold]{out}[/]: in each folder the graph and manifest.json", soft_wrap=True)
