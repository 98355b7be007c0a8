"""Command `gate`, and the options that it shares with `baseline record`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from labkit.cli.words import (
    JsonFlag,
    RecipesOption,
    StoreOption,
    console,
    print_json,
    progress_lines,
)
from labkit.errors import LabError, NoVerdictError

if TYPE_CHECKING:
    from labkit.report.gate_result import GateResult, Line
    from labkit.spec import Recipe

SweepOption = Annotated[Path, typer.Option("--sweep", help="The gate's YAML file.")]
TiersOption = Annotated[
    str | None, typer.Option("--tiers", help="0-2, 1,3 …; those of the file when left out.")
]
SpeedOption = Annotated[bool, typer.Option("--speed/--no-speed", help="Time fresh processes, too.")]
VoiceOption = Annotated[str | None, typer.Option("--voice", help="Replace the file's voice.")]
DEFAULT_SWEEP = Path("sweeps/gate.yaml")
_WIDE = 110  # columns of a terminal that shows every column of the table
_STYLES = {
    "fail": "bold red",
    "warn": "yellow",
    "inconclusive": "yellow",
    "not comparable": "dim",
    "informs": "dim",
    "pass": "green",
}


def gate(
    baseline: Annotated[str, typer.Option("--baseline", "-b", help="Folder of a baseline, or its name.")],
    sweep: SweepOption = DEFAULT_SWEEP,
    recipe: Annotated[
        list[str] | None,
        typer.Option("--recipe", help="Gate this instead: a name, or a YAML file of recipes (repeatable)."),
    ] = None,
    tiers: TiersOption = None,
    speed: SpeedOption = True,
    voice: VoiceOption = None,
    inconclusive_ok: Annotated[
        bool, typer.Option("--inconclusive-ok", help="What could not be decided does not fail.")
    ] = False,
    quiet_machine: Annotated[
        bool, typer.Option("--quiet-machine", help="Nothing else runs here: gate wall-clock time, too.")
    ] = False,
    margins: Annotated[Path | None, typer.Option(help="YAML file of margins of your own.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for gate.md, .junit.xml, .json, .html.")
    ] = None,
    recipes: RecipesOption = None,
    results: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Did the voice get worse or the bench slower? Exit code 0 pass, 1 regression, 3 inconclusive, 2 not comparable.

    Example: `labkit gate --baseline results/baselines/nano-cpu --sweep sweeps/gate.yaml --tiers 0-2`
    """
    from labkit.gate.baseline import read_baseline
    from labkit.gate.gating import gate as run_gate
    from labkit.gate.spec import load_gate
    from labkit.report.gate_files import write_gate
    from labkit.results.store import Store

    known, replace = known_recipes(recipe, recipes, tiers, voice)
    spec, store = load_gate(sweep, **replace), Store(results)
    with _no_verdict():
        result = run_gate(
            spec, read_baseline(baseline, results), recipes=known, store=store, speed=speed,
            inconclusive_ok=inconclusive_ok, quiet_machine=quiet_machine, margins=margins,
            progress=progress_lines(as_json),
        )  # fmt: skip
        written = write_gate(result, out or store.folder / "reports" / f"gate-{spec.name}")
    if as_json:
        print_json(result.record())
    else:
        _show(result)
        console.print(f"\nreport: [bold]{escape(str(written['html']))}[/]", soft_wrap=True)
    if result.overall.exit_code:
        raise typer.Exit(result.overall.exit_code)


@contextmanager
def _no_verdict() -> Iterator[None]:
    """A gate that broke off compared nothing: exit code 2, for 1 would say that the voice became worse."""
    try:
        yield
    except LabError as error:
        if error.exit_code == 1:
            raise NoVerdictError(f"{error} There is no verdict.") from error
        raise


def known_recipes(
    chosen: list[str] | None, files: list[Path] | None, tiers: str | None, voice: str | None
) -> tuple[dict[str, Recipe], dict[str, Any]]:
    """All recipes by name, and what replaces keys of the gate's file."""
    from labkit.gate.spec import parse_tiers
    from labkit.spec import load_recipes, read_recipes

    known = load_recipes(*(files or []))
    names: list[str] = []
    for each in chosen or []:
        if each.endswith((".yaml", ".yml")):
            added = read_recipes(Path(each))
            known, names = known | added, [*names, *added]
        else:
            names.append(each)
    replace = {"recipe": names or None, "tiers": tiers and list(parse_tiers(tiers)), "voice": voice}
    return known, {key: value for key, value in replace.items() if value}


def _show(result: GateResult) -> None:
    """A table for each recipe, the failed ones last, where the eye is; then reasons, notes and the outcome."""
    from labkit.report.gate_result import headline

    recipes = sorted(result.by_recipe(), key=lambda pair: any(line.word == "fail" for line in pair[1]))
    for recipe, lines in recipes:
        console.print(_table(recipe, lines))
    troubled = [line for line in result.lines if line.word != "pass"]
    words = [*(reason for line in troubled for reason in line.verdict.reasons), *result.notes]
    for each in dict.fromkeys(words):
        console.print(f"  {escape(each)}", style="dim", soft_wrap=True)
    outcome = result.overall.outcome
    console.print(f"[{_STYLES[outcome]}]{outcome.upper()}[/] {escape(headline(result))}", soft_wrap=True)


def _table(recipe: str, lines: list[Line]) -> Table:
    """Verdicts of one recipe; a narrow terminal gets fewer columns."""
    from labkit.report.gate_markdown import cells

    columns = ["tier", "metric", "base", "now", "change", "at 99 %", "limit", "N", "verdict"]
    shown = columns if console.width >= _WIDE else ["tier", "metric", "now", "change", "at 99 %", "verdict"]
    base = f", held to {lines[0].base} of the baseline" if lines[0].base != recipe else ""
    table = Table(
        title=f"{recipe}{base}", title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False
    )
    for column in shown:
        table.add_column(column, justify="left" if column in ("tier", "metric", "verdict") else "right")
    for line in lines:
        _, *row = cells(line)
        row[0] = row[0].removeprefix("tier ")
        row[-1] = f"[{_STYLES[line.word]}]{line.word}[/]"
        texts = dict(zip(columns, row, strict=True))
        table.add_row(*(texts[column] if column == "verdict" else escape(texts[column]) for column in shown))
    return table
