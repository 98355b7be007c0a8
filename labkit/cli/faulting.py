"""The command that tests the gate itself: faults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from labkit.cli.words import JsonFlag, StoreOption, console, print_json, progress_lines


def faults(
    sweep: Annotated[Path, typer.Option("--sweep", help="The gate's YAML file.")] = Path("sweeps/gate.yaml"),
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for faults.md and faults.json.")
    ] = None,
    docs: Annotated[
        Path | None, typer.Option(help="Document whose tables, between their marks, are replaced.")
    ] = None,
    work: Annotated[Path | None, typer.Option(help="Folder of the parts, to resume from.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Worker processes.")] = 1,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Four sentences and few processes: shows that it works, decides nothing."
        ),
    ] = False,
    margins: Annotated[Path | None, typer.Option(help="YAML file of margins of your own.")] = None,
    voice: Annotated[str | None, typer.Option("--voice", help="Replace the file's voice.")] = None,
    results: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Make known faults of a voice and table which are found, by which check and rule. Exit code 1 if one is missed.

    Example: `labkit faults --jobs 2 --out results/reports/faults`
    """
    from labkit.faults.running import QUICK, find_faults, write_findings
    from labkit.faults.tables import surprises
    from labkit.gate.spec import load_gate
    from labkit.results.store import Store

    store = Store(results)
    spec = load_gate(sweep, **({"voice": voice} if voice else {}))
    found = find_faults(
        spec, work or store.folder / "faults", effort=QUICK if quick else None, jobs=jobs, margins=margins,
        progress=progress_lines(as_json),
    )  # fmt: skip
    written = write_findings(found, out or store.folder / "reports" / "faults", docs)
    wrong = [] if quick else surprises(found)
    if as_json:
        print_json(found.record())
    else:
        console.print(f"tables: [bold]{escape(str(written['markdown']))}[/]", soft_wrap=True)
        for line in wrong:
            console.print(f"  [red]{escape(line)}[/]", soft_wrap=True)
    if wrong:
        raise typer.Exit(1)
