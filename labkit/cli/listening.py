"""Commands of blind listening: listen page, import, results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from labkit.cli.words import JsonFlag, StoreOption, console, print_json, print_rows
from labkit.results.units import MISSING

listen_app = typer.Typer(help="Let people listen, blind, and count what they say.", no_args_is_help=True)


@listen_app.command("page")
def page(
    runs: Annotated[
        str, typer.Option(help="Run ids or recipes, the baseline first: torch-fp32,ort-int8-dynamic.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")] = Path("listen.html"),
    kind: Annotated[
        str, typer.Option(help="mos (rate each clip) or ab (compare with the first run).")
    ] = "mos",
    texts: Annotated[int | None, typer.Option(min=2, help="Only the first N texts.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed is another test in another order.")] = 0,
    results: StoreOption = None,
) -> None:
    """Write a blind test of runs with kept audio as one HTML page that anyone can open.

    Example: `labkit listen page --runs torch-fp32,ort-int8-dynamic --kind ab -o listen.html`
    """
    from labkit.listening import make_test, write_page
    from labkit.results.store import Store

    store = Store(results)
    wanted = [name.strip() for name in runs.split(",") if name.strip()]
    test = make_test(store, wanted, kind=kind, seed=seed, texts=texts)  # type: ignore[arg-type]  # checked there
    path = write_page(store, test, out)
    console.print(f"listening test {test.id}: [bold]{path}[/], {len(test.trials)} trials", soft_wrap=True)
    console.print(
        f"its key stays in {store.folder / 'listening'}; read votes with `labkit listen import votes.json`",
        soft_wrap=True,
    )


@listen_app.command("import")
def import_(
    files: Annotated[list[Path], typer.Argument(help="Files of votes that the page saved.")],
    results: StoreOption = None,
) -> None:
    """Read votes into the results store. Importing a file again adds nothing.

    Example: `labkit listen import votes-*.json`
    """
    from labkit.listening import import_votes
    from labkit.results.store import Store

    for file in files:
        found = import_votes(Store(results), file)
        missing = f", {found.missing} trials without an answer" if found.missing else ""
        again = f", {found.known} known already" if found.known else ""
        console.print(
            f"{found.rater}, test {found.test}: {found.added} votes added{again}{missing}", highlight=False
        )


@listen_app.command("results")
def results_(
    test: Annotated[str | None, typer.Argument(help="Only this test.")] = None,
    leave_out: Annotated[
        list[str] | None, typer.Option("--leave-out", help="A listener who does not count (repeatable).")
    ] = None,
    results: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """What listeners thought of each recipe, with intervals over listeners and texts, and how they did themselves.

    Example: `labkit listen results`
    """
    from labkit.listening import listeners, opinions
    from labkit.results.store import Store

    store = Store(results)
    found, people = opinions(store, test, leave_out=leave_out or ()), listeners(store, test)
    if as_json:
        print_json({"opinions": _plain(found), "listeners": _plain(people)})
        return
    if found.empty:
        console.print("no votes are in the store; `labkit listen page` makes a test")
        return
    for (name, metric), rows in found.groupby(["test", "metric"]):
        _print_test(f"test {name}: {metric}", rows, people[people["test"] == name])


def _print_test(title: str, found: Any, people: Any) -> None:
    """Two tables that fit a terminal, and below them what a table has no room for."""
    opinions = [
        [
            f"{row.recipe} against {row.against}" if row.against else row.recipe,
            _cell(row.mean),
            f"{row.low:.2f} to {row.high:.2f}" if row.low == row.low else MISSING,
            *(row.listeners, row.texts, row.votes),
        ]
        for row in found.itertuples()
    ]
    print_rows(title, ["recipe", "mean", "95 %", "listeners", "texts", "votes"], opinions)
    tested = [
        [row.rater, row.votes, *map(_cell, (row.muffled_below, row.repeat_within_1, row.null_same))]
        for row in people.itertuples()
    ]
    print_rows("its listeners", ["name", "votes", "muffled worse", "twice alike", "equal same"], tested)
    notes = [f"no interval: {reason}" for reason in found["reason"] if reason]
    notes += [f"{row.rater} {row.remark}" for row in people.itertuples() if row.remark]
    for note in dict.fromkeys(notes):
        console.print(note, highlight=False, markup=False)


def _plain(frame: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict(orient="records")
    return rows


def _cell(value: Any) -> str:
    if value is None or value != value:
        return MISSING
    return f"{value:.2f}" if isinstance(value, float) else str(value)
