"""Commands that read the results store: report, compare, results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labkit.cli.words import (
    JsonFlag,
    StoreOption,
    console,
    print_json,
    print_rows,
    print_summary,
)
from labkit.errors import UserError


def report(
    sweep_name: Annotated[
        str | None, typer.Argument(help="Sweep to report on; all runs when left out.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="HTML file to write.")] = None,
    baseline: Annotated[str | None, typer.Option(help="Recipe that the others are compared with.")] = None,
    results: StoreOption = None,
) -> None:
    """Write one self-contained HTML page with tables, plots and audio from recorded runs.

    Example: `labkit report demo -o report.html --baseline torch-fp32`
    """
    from labkit.report import build_report
    from labkit.results.store import Store

    path = build_report(Store(results), sweep=sweep_name, out=out, baseline=baseline)
    console.print(f"report: [bold]{path}[/]", soft_wrap=True)


def compare(
    base: Annotated[str, typer.Argument(help="Run id or recipe to compare with.")],
    head: Annotated[str, typer.Argument(help="Run id or recipe to judge.")],
    results: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare two recorded runs, paired by text, with intervals; refuses unlike runs with exit code 1.

    Example: `labkit compare torch-fp32 ort-int8-dynamic`
    """
    from labkit.report import compare_runs
    from labkit.results.store import Store

    frame = compare_runs(Store(results), base, head)
    if as_json:
        print_json(frame.to_dict(orient="records"))
    else:
        named = {base: "base", head: "head"}
        frame["verdict"] = (frame["verdict"] + ": " + frame.pop("why")).str.strip(": ")
        for scenario, rows in frame.groupby("scenario", sort=False):
            shown = rows.drop(columns="scenario").rename(columns=named)
            title = f"{scenario}: {head} (head) against {base} (base)"
            print_rows(title, [str(name) for name in shown], shown.to_numpy(object).tolist())
    if frame["verdict"].str.startswith("not comparable").all():
        raise typer.Exit(1)


def results_list(
    sweep_name: Annotated[str | None, typer.Option("--sweep", help="Only this sweep.")] = None,
    results: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Table of recorded runs, failures included. Example: `labkit results list --sweep demo`"""
    from labkit.results.store import Store

    known = Store(results).documents()
    documents = [d for d in known if sweep_name in (None, d.sweep)]
    if sweep_name and not documents:
        sweeps = ", ".join(sorted({d.sweep for d in known if d.sweep})) or "none"
        raise UserError(f"no runs of sweep {sweep_name!r} are recorded; recorded sweeps: {sweeps}.")
    if as_json:
        print_json(
            [
                {
                    "run_id": d.run_id,
                    "sweep": d.sweep,
                    "recipe": d.spec.recipe.name,
                    "voice": d.spec.voice,
                    "scenario": d.spec.scenario,
                    "status": d.status,
                    "started_at": d.started_at,
                }
                for d in documents
            ]
        )
    else:
        print_summary(documents, with_ids=True)


def results_show(run_id: Annotated[str, typer.Argument()], results: StoreOption = None) -> None:
    """Print one run document as JSON. Example: `labkit results show RUN_ID | jq .measures`"""
    from labkit.results.store import Store

    print_json(Store(results).read(run_id).model_dump(mode="json"))
