"""Commands that look for recipes: recipe search."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from labkit.cli.words import JsonFlag, console, print_json, print_rows, progress_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from labkit.search import Proposal, Search

NOTHING = (
    1e-4  # nats or dB: the rounding of float32 sums, and no difference that any ear or choice would show
)


def recipe_search(
    voice: Annotated[str, typer.Option(help="nano, random, chattts, or a checkpoint folder.")] = "nano",
    budget: Annotated[
        list[str] | None,
        typer.Option(
            "--budget", help="kl<0.01, mel<0.5 (dB), size<12 (MB), step<0.6 (of fp32's); repeatable."
        ),
    ] = None,
    minimize: Annotated[str, typer.Option(help="size, step, kl or mel.")] = "size",
    block: Annotated[int, typer.Option(help="Inputs that share a scale: 16, 32, 64 or 128.")] = 32,
    algorithm: Annotated[str, typer.Option(help="Of the layers in INT4: rtn, hqq or gptq.")] = "rtn",
    name: Annotated[str | None, typer.Option(help="Name of the recipe (default: VOICE-mixed).")] = None,
    corpus: Annotated[
        str | None, typer.Option(help="Calibration list, several joined by +, or a .txt file.")
    ] = None,
    texts: Annotated[int, typer.Option(help="Sentences to compare on, 10 or more.")] = 16,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    speaker: Annotated[str | None, typer.Option()] = None,
    threads: Annotated[int, typer.Option(min=1)] = 1,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="YAML file for the recipes.")] = None,
    others: Annotated[
        int,
        typer.Option("--others", min=0, help="Write so many other mixes of the front, too, as predicted."),
    ] = 0,
    plot: Annotated[Path | None, typer.Option(help="Picture of the front, .png or .svg.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Find which layers of the GPT to keep wide: the best mix of fp32, INT8 and INT4 within a budget, then measure it.

    Example: `labkit recipe search --voice nano --budget "kl<0.01" --minimize size -o recipes.yaml`
    """
    from labkit.search import Scheme, front_chart, search, write_recipes
    from labkit.search.files import check_writable
    from labkit.voices import resolve_voice

    check_writable(out, plot)
    found = search(
        resolve_voice(voice), budget=budget or ["kl<0.01"], minimize=minimize, scheme=Scheme(block, algorithm),
        name=name, corpus=corpus, texts=texts, seed=seed, speaker=speaker, threads=threads,
        progress=progress_lines(as_json),
    )  # fmt: skip
    names = write_recipes(found, out, others=others) if out and (found.chosen or others) else []
    if plot is not None:
        front_chart(found).savefig(plot, dpi=144)
    if as_json:
        print_json(found.as_dict())
    else:
        _print_search(found)
        if names:
            console.print(escape(f"wrote {', '.join(names)} to {out}"), soft_wrap=True)
            console.print(escape(f"measure it: labkit run {names[0]} --recipes {out}"), soft_wrap=True)
    if found.chosen is None:
        raise typer.Exit(1)


def _print_search(found: Search) -> None:
    from labkit.search import words_of

    columns = ["", "MB", "step", "KL, nats", "mel, dB", "top-1"]
    rows = [_row(name, trial.figures(), trial.top1) for name, trial in found.corners.items()]
    print_rows("the whole GPT in one precision, measured (step: CPU time beside fp32's)", columns, rows)
    rows = [row for i, each in enumerate(found.tried, 1) for row in _rows(i, each)]
    print_rows("mixes made, by what was predicted and what was measured", columns, rows)
    for i, each in enumerate(found.tried, 1):
        decoder = each.recipe.decoder.precision
        console.print(escape(f"mix {i}: {words_of(each.precisions)}; decoder {decoder}"), soft_wrap=True)
    if found.chosen is None:
        tried = (
            f"{len(found.tried)} were made and exceed it" if found.tried else "none is predicted to meet it"
        )
        console.print(f"[yellow]no mix[/] within {escape(str(found.budget))}: {tried}.", soft_wrap=True)
    else:
        console.print(escape(f"chosen: mix {len(found.tried)}, least {found.minimize} with {found.budget}"))
    console.print("Code heads and vocoder stay in fp32: they are never quantized unasked.")


def _rows(number: int, proposal: Proposal) -> list[list[str]]:
    rows = [_row(f"mix {number}, predicted", proposal.predicted, None)]
    if proposal.measured is not None:
        rows.append(_row("  measured", proposal.measured.figures(), proposal.measured.top1))
    return rows


def _row(name: str, figures: Mapping[str, float], top1: float | None) -> list[str]:
    loss = [f"{value:.2g}" if value > NOTHING else "0" for value in (figures["kl"], figures["mel"])]
    sizes = [f"{figures['size']:.1f}", f"{figures['step']:.2f}"]
    return [name, *sizes, *loss, "" if top1 is None else f"{top1:.3f}"]
