"""Commands that race recipes: bench self, bench peers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labkit.cli.words import JsonFlag, StoreOption, console, print_json, progress_lines


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


def bench_peers(
    rounds: Annotated[int, typer.Option(min=2, help="Interleaved rounds.")] = 10,
    steps: Annotated[int, typer.Option(min=1, help="Decode steps of an arm in a round.")] = 8,
    context: Annotated[int, typer.Option(min=1, help="Positions in the cache, on average.")] = 300,
    voice: Annotated[str, typer.Option(help="random, or any voice: its size decides the speed.")] = "random",
    races: Annotated[
        list[str] | None, typer.Option("--race", help="step, threads or sound (repeatable; default: all).")
    ] = None,
    recipes: Annotated[
        list[str] | None, typer.Option("--recipe", help="Instead of each race's own (repeatable).")
    ] = None,
    llama: Annotated[bool, typer.Option(help="Race llama.cpp too.")] = True,
    core: Annotated[
        int | None, typer.Option(help="CPU of one-threaded arms; the last when left out.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for peers.json, .md and .png.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Upstream, the lab's recipes and llama.cpp at full size, interleaved; writes run documents, takes ten minutes.

    Example: `labkit bench peers --out results/reports/peers`
    """
    from labkit.bench import bench_peers as measure_peers
    from labkit.bench import render_peers
    from labkit.bench.files import Keeper
    from labkit.bench.llama_file import TYPES
    from labkit.bench.peers import RACES
    from labkit.results.store import Store

    keeper = Keeper(Store(store), voice, out)
    figures = measure_peers(
        rounds=rounds, steps=steps, context=context, voice=voice, races=races or RACES, recipes=recipes,
        llama=TYPES if llama else (), core=core, progress=progress_lines(as_json), on_race=keeper.keep,
    )  # fmt: skip
    files = keeper.finish(figures)
    if as_json:
        print_json(figures)
        return
    console.print(render_peers(figures, console.width))
    for file in files:
        console.print(f"wrote [bold]{file}[/]", soft_wrap=True)
