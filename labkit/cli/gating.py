"""Commands of the gate: gate, baseline record, baseline time, baseline list, baseline show."""

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
    print_rows,
    progress_lines,
)
from labkit.errors import LabError, NoVerdictError

if TYPE_CHECKING:
    from labkit.gate.baseline import Baseline
    from labkit.report.gate_result import GateResult, Line
    from labkit.spec import Recipe

SweepOption = Annotated[Path, typer.Option("--sweep", help="The gate's YAML file.")]
TiersOption = Annotated[
    str | None, typer.Option("--tiers", help="0-2, 1,3 …; those of the file when left out.")
]
SpeedOption = Annotated[bool, typer.Option("--speed/--no-speed", help="Time fresh processes, too.")]
VoiceOption = Annotated[str | None, typer.Option("--voice", help="Replace the file's voice.")]
_DEFAULT_SWEEP = Path("sweeps/gate.yaml")
_WIDE = 110  # columns of a terminal that shows every column of the table
_STYLES = {
    "fail": "bold red",
    "warn": "yellow",
    "inconclusive": "yellow",
    "not comparable": "dim",
    "pass": "green",
}


def gate(
    baseline: Annotated[str, typer.Option("--baseline", "-b", help="Folder of a baseline, or its name.")],
    sweep: SweepOption = _DEFAULT_SWEEP,
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

    known, replace = _known(recipe, recipes, tiers, voice)
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


def baseline_record(
    name: Annotated[str, typer.Argument(help="Name of the folder under results/baselines.")],
    sweep: SweepOption = _DEFAULT_SWEEP,
    tiers: TiersOption = None,
    speed: SpeedOption = True,
    voice: VoiceOption = None,
    recipes: RecipesOption = None,
    results: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Record what a voice scores today, to be committed; tiers 0 to 2 always, the rest as the file or --tiers says.

    Example: `labkit baseline record nano-cpu --sweep sweeps/gate.yaml`
    """
    from labkit.gate.recording import record_baseline
    from labkit.gate.spec import load_gate
    from labkit.results.store import Store

    known, replace = _known(None, recipes, tiers, voice)
    recorded = record_baseline(
        name, load_gate(sweep, **replace), recipes=known, store=Store(results), speed=speed,
        progress=progress_lines(as_json),
    )  # fmt: skip
    _tell_of(recorded, "recorded", as_json)


def baseline_time(
    name: Annotated[str, typer.Argument(help="Folder of a baseline, or its name.")],
    results: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Time a baseline's recipes anew, on this machine with nothing else running; its scores stay as they are.

    Example: `labkit baseline time nano-cpu`
    """
    from labkit.gate.recording import time_baseline
    from labkit.results.store import Store

    _tell_of(time_baseline(name, store=Store(results), progress=progress_lines(as_json)), "timed", as_json)


def _tell_of(baseline: Baseline, what: str, as_json: bool) -> None:
    if as_json:
        print_json({"folder": baseline.folder, "size_bytes": baseline.size_bytes()})
    else:
        size = f"{baseline.size_bytes() / 1000:.0f} kB"
        console.print(f"{what} [bold]{escape(str(baseline.folder))}[/], {size}; commit it", soft_wrap=True)


def baseline_list(results: StoreOption = None, as_json: JsonFlag = False) -> None:
    """List the baselines in the results folder. Example: `labkit baseline list`"""
    from labkit.gate.baseline import list_baselines, read_baseline

    rows = []
    for name in list_baselines(results):
        about = read_baseline(name, results).about
        rows.append(
            [name, about.gate.voice, about.weights_hash[:12], about.gate.corpus, len(about.items),
             ", ".join(about.recipes), about.recorded_at]
        )  # fmt: skip
    columns = ["baseline", "voice", "weights", "corpus", "sentences", "recipes", "recorded"]
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_rows("baselines", columns, rows)


def baseline_show(
    name: Annotated[str, typer.Argument(help="Folder of a baseline, or its name.")],
    results: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what a baseline holds: where it was recorded, and each recipe's mean scores.

    Example: `labkit baseline show nano-cpu`
    """
    from statistics import mean, median

    from labkit.gate.baseline import read_baseline
    from labkit.report.gate_result import name_of, value_words
    from labkit.results.units import MISSING

    found = read_baseline(name, results)
    about = found.about
    if as_json:
        print_json(about.model_dump(mode="json"))
        return
    facts = {
        "folder": found.folder, "size": f"{found.size_bytes() / 1000:.0f} kB", "recorded": about.recorded_at,
        "voice": f"{about.gate.voice} ({about.weights_hash[:12]})",
        "corpus": f"{about.gate.corpus} ({about.corpus_hash[:12]}), {len(about.items)} sentences",
        "machine": about.machine_class,
    }  # fmt: skip
    print_rows(f"baseline {about.name}", ["", ""], [[key, value] for key, value in facts.items()])
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for recipe, families in found.scores.items():
        for family, metrics in families.items():
            tier = family.replace("tier", "tier ")
            for metric, items in metrics.items():
                known = [value for values in items.values() for value in values if value is not None]
                label, unit = name_of(metric)
                if known:
                    rows.setdefault((tier, label), {})[recipe] = value_words(unit, mean(known))
        if (costs := about.costs.get(recipe)) and costs.cpu_s:
            rows.setdefault(("cost", f"CPU time of {about.gate.speed.texts} sentences"), {})[recipe] = (
                value_words("s", median(costs.cpu_s.values()))
            )
    table = [
        [*key, *(rows[key].get(recipe, MISSING) for recipe in found.scores)]
        for key in sorted(rows, key=lambda key: key[0].removeprefix("tier ").replace("cost", "9"))
    ]
    print_rows("means over sentences", ["tier", "metric", *found.scores], table)


@contextmanager
def _no_verdict() -> Iterator[None]:
    """A gate that broke off compared nothing: exit code 2, for 1 would say that the voice became worse."""
    try:
        yield
    except LabError as error:
        if error.exit_code == 1:
            raise NoVerdictError(f"{error} There is no verdict.") from error
        raise


def _known(
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
