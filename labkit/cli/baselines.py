"""Commands of baselines: record, time, list, show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from labkit.cli.gating import (
    DEFAULT_SWEEP,
    SpeedOption,
    SweepOption,
    TiersOption,
    VoiceOption,
    known_recipes,
)
from labkit.cli.words import (
    JsonFlag,
    RecipesOption,
    StoreOption,
    console,
    print_json,
    print_rows,
    progress_lines,
)

if TYPE_CHECKING:
    from labkit.gate.baseline import Baseline


def record(
    name: Annotated[str, typer.Argument(help="Name of the folder under results/baselines.")],
    sweep: SweepOption = DEFAULT_SWEEP,
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

    known, replace = known_recipes(None, recipes, tiers, voice)
    recorded = record_baseline(
        name, load_gate(sweep, **replace), recipes=known, store=Store(results), speed=speed,
        progress=progress_lines(as_json),
    )  # fmt: skip
    _tell_of(recorded, "recorded", as_json)


def time_again(
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


def list_all(results: StoreOption = None, as_json: JsonFlag = False) -> None:
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


def show(
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
