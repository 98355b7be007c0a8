"""`labkit …`: parse, call one function, print, exit code.

0 done, 1 something failed, 2 the request was wrong, 130 interrupted. With `--json` standard output is one JSON value
and nothing else. All work lives in the functions called here; this package only words their results.
"""

from __future__ import annotations

import warnings
from typing import Annotated

import typer
from rich.markup import escape

from labkit import __version__
from labkit.cli import (
    baselines,
    benching,
    doing,
    exporting,
    faulting,
    gating,
    looking,
    probing,
    reading,
    searching,
)
from labkit.cli.listening import listen_app
from labkit.cli.words import console, notes, show_warning
from labkit.errors import LabError
from labkit.training.cli import app as train_app

app = typer.Typer(
    help="ChatTTS Lab: which way of running ChatTTS is fast enough, small enough and still sounds right here?",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
voices_app = typer.Typer(help="List, inspect and make voices.", no_args_is_help=True)
results_app = typer.Typer(help="Read the results store.", no_args_is_help=True)
recipe_app = typer.Typer(help="Make recipes.", no_args_is_help=True)
baseline_app = typer.Typer(help="Record and inspect what the gate compares with.", no_args_is_help=True)
bench_app = typer.Typer(help="Benchmarks of the lab itself, measured side by side.", no_args_is_help=True)

# every command of the lab, in the order of its help
app.command()(doing.say)
app.command()(doing.run)
app.command()(doing.sweep)
app.command()(reading.report)
app.command()(reading.compare)
app.command()(gating.gate)
app.command()(faulting.faults)
app.command()(looking.recipes)
app.add_typer(recipe_app, name="recipe")
recipe_app.command("search")(searching.recipe_search)
app.command()(exporting.export)
app.command()(looking.doctor)
app.command()(probing.sensitivity)
app.add_typer(voices_app, name="voices")
voices_app.command("list")(looking.voices_list)
voices_app.command("show")(looking.voices_show)
voices_app.command("random")(looking.voices_random)
app.add_typer(baseline_app, name="baseline")
baseline_app.command("record")(baselines.record)
baseline_app.command("time")(baselines.time_again)
baseline_app.command("list")(baselines.list_all)
baseline_app.command("show")(baselines.show)
app.add_typer(results_app, name="results")
results_app.command("list")(reading.results_list)
results_app.command("show")(reading.results_show)
app.add_typer(bench_app, name="bench")
bench_app.command("self")(benching.bench_self)
bench_app.command("peers")(benching.bench_peers)
app.add_typer(listen_app, name="listen")
app.add_typer(train_app, name="train")


def main() -> None:
    """Entry point of the `labkit` command: one place turns errors into words and exit codes."""
    warnings.showwarning = show_warning
    try:
        app(standalone_mode=True)
    except LabError as error:
        notes.print(f"[bold red]error[/]: {escape(str(error))}", highlight=False, soft_wrap=True)
        raise SystemExit(error.exit_code) from None


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        console.print(__version__)
        raise typer.Exit
