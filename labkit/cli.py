"""`labkit …`: parse, call one function, print, exit code.

0 done, 1 something failed, 2 the request was wrong, 130 interrupted. With `--json` standard output is one JSON
value and
nothing else. All work lives in the functions called here; this module only words their results.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from labkit import __version__
from labkit.errors import LabError, UserError
from labkit.spec import AudioPath
from labkit.training.cli import app as train_app

if TYPE_CHECKING:
    from labkit.results.schema import RunDocument
    from labkit.spec import Recipe

app = typer.Typer(
    help="ChatTTS Lab: which way of running ChatTTS is fast enough, small enough and still sounds right here?",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
voices_app = typer.Typer(help="List, inspect and make voices.", no_args_is_help=True)
results_app = typer.Typer(help="Read the results store.", no_args_is_help=True)
bench_app = typer.Typer(help="Benchmarks of the lab itself, measured side by side.", no_args_is_help=True)
for sub, name in (
    (voices_app, "voices"),
    (results_app, "results"),
    (bench_app, "bench"),
    (train_app, "train"),
):
    app.add_typer(sub, name=name)

console = Console()
notes = Console(stderr=True)

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON value for machines.")]
RecipesOption = Annotated[
    list[Path] | None, typer.Option("--recipes", help="YAML file with recipes of your own (repeatable).")
]
StoreOption = Annotated[
    Path | None, typer.Option("--results", help="Results folder (default: LABKIT_RESULTS or ./results).")
]


def main() -> None:
    """Entry point of the `labkit` command: one place turns errors into words and exit codes."""
    warnings.showwarning = _show_warning
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


@app.command()
def say(
    text: Annotated[str, typer.Argument(help="What to say. The nano voice knows English digits.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Audio file to write (.wav, .flac, .ogg).")] = Path(
        "out.wav"
    ),
    voice: Annotated[str, typer.Option(help="nano, random, chattts, or a checkpoint folder.")] = "nano",
    recipe: Annotated[str, typer.Option(help="How to run it; see `labkit recipes`.")] = "torch-fp32",
    speaker: Annotated[
        str | None, typer.Option(help="A name from the voice, random:SEED, or a speaker string.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same audio.")] = 0,
    stream: Annotated[
        bool, typer.Option("--stream", help="Decode while speaking, for early first audio.")
    ] = False,
    audio_path: Annotated[AudioPath, typer.Option(help="hidden (ChatTTS's default) or codes.")] = "hidden",
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    recipes: RecipesOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Speak a text into an audio file and tell how long it took.

    Example: `labkit say "three one four" -o out.wav --recipe ort-int8-dynamic --stream`
    """
    from labkit.speak import say as speak_text
    from labkit.spec import find_recipe, load_recipes

    choice = find_recipe(recipe, load_recipes(*(recipes or [])))
    spoken = speak_text(
        text, voice=voice, recipe=choice, speaker=speaker, seed=seed, out=out, stream=stream,
        audio_path=audio_path, threads=threads, device=device,
    )  # fmt: skip
    if as_json:
        _print_json(spoken.summary())
    else:
        console.print(spoken)


@app.command()
def run(
    recipe: Annotated[str, typer.Argument(help="Recipe to measure; see `labkit recipes`.")],
    voice: Annotated[str, typer.Option(help="nano, random, chattts, or a checkpoint folder.")] = "nano",
    scenario: Annotated[
        str, typer.Option(help="replay (same codes for all) or single (free-running).")
    ] = "single",
    corpus: Annotated[str, typer.Option(help="Text list under calib/.")] = "nano-eval",
    texts: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.")] = None,
    repeats: Annotated[int, typer.Option(min=1)] = 3,
    warmups: Annotated[int, typer.Option(min=0)] = 1,
    threads: Annotated[int, typer.Option(min=1)] = 1,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    seed: Annotated[int, typer.Option(min=0)] = 0,
    speaker: Annotated[str | None, typer.Option()] = None,
    audio_path: Annotated[AudioPath, typer.Option(help="hidden or codes.")] = "hidden",
    quality: Annotated[bool, typer.Option("--quality/--no-quality", help="Judge the audio as well.")] = True,
    keep_audio: Annotated[
        bool, typer.Option("--keep-audio", help="Keep the clips beside the document.")
    ] = False,
    seconds: Annotated[float, typer.Option(help="Stop the run after this long.")] = 600.0,
    memory_gb: Annotated[float | None, typer.Option(help="Stop the run above this much memory.")] = None,
    recipes: RecipesOption = None,
    results: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Measure one recipe once, in a process of its own, and record it.

    Example: `labkit run ort-int8-dynamic --scenario replay --texts 4`
    """
    from labkit.run import run as run_spec
    from labkit.spec import find_recipe, load_recipes, parse_run

    chosen = find_recipe(recipe, load_recipes(*(recipes or [])))
    spec = parse_run(
        {
            "recipe": chosen.model_dump(mode="json", exclude_unset=True), "voice": voice, "scenario": scenario,
            "corpus": corpus, "texts": texts, "repeats": repeats, "warmups": warmups, "threads": threads,
            "device": device, "seed": seed, "speaker": speaker, "audio_path": audio_path, "quality": quality,
            "keep_audio": keep_audio, "limits": {"seconds": seconds, "memory_gb": memory_gb},
        },
        place="labkit run",
    )  # fmt: skip
    document = run_spec(spec, store=results, progress=_progress(as_json))
    if as_json:
        _print_json(document.model_dump(mode="json"))
    else:
        _print_summary([document])
    if document.status != "ok":
        raise typer.Exit(1)


@app.command()
def sweep(
    file: Annotated[Path, typer.Argument(help="Sweep YAML, e.g. sweeps/demo.yaml.")],
    voice: Annotated[str | None, typer.Option(help="Replace the sweep's voice.")] = None,
    scenario: Annotated[str | None, typer.Option(help="Replace the sweep's scenario.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run again what the store already has.")] = False,
    recipes: RecipesOption = None,
    results: StoreOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Run a grid through the benchmark notebook, one process per run, then write the report.

    Interrupted, the same command goes on where it stopped. Example: `labkit sweep sweeps/demo.yaml`
    """
    from labkit.spec import load_recipes, load_sweep
    from labkit.sweep import sweep as run_sweep

    spec = load_sweep(file, **{k: v for k, v in {"voice": voice, "scenario": scenario}.items() if v})
    outcome = run_sweep(
        spec,
        store=results,
        recipes=load_recipes(*(recipes or [])),
        resume=not fresh,
        progress=_progress(as_json),
    )
    if as_json:
        _print_json(outcome.summary())
    else:
        _print_summary(outcome.documents, baseline=spec.baseline)
        if outcome.report:
            console.print(f"\nreport: [bold]{outcome.report}[/]", soft_wrap=True)
    if outcome.failed:
        raise typer.Exit(1)


@app.command()
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


@app.command()
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
        _print_json(frame.to_dict(orient="records"))
    else:
        named = {base: "base", head: "head"}
        frame["verdict"] = (frame["verdict"] + ": " + frame.pop("why")).str.strip(": ")
        for scenario, rows in frame.groupby("scenario", sort=False):
            shown = rows.drop(columns="scenario").rename(columns=named)
            title = f"{scenario}: {head} (head) against {base} (base)"
            _print_rows(title, [str(name) for name in shown], shown.to_numpy(object).tolist())
    if frame["verdict"].str.startswith("not comparable").all():
        raise typer.Exit(1)


@app.command()
def recipes(
    recipes: RecipesOption = None,
    device: Annotated[str, typer.Option(help="Device to ask the engines about.")] = "cpu",
    as_json: JsonFlag = False,
) -> None:
    """List recipes and whether each can run on this machine. Example: `labkit recipes --device cuda`"""
    from labkit.pipeline import recipe_availability
    from labkit.spec import load_recipes

    known = load_recipes(*(recipes or []))
    answers = {name: recipe_availability(recipe, device) for name, recipe in known.items()}
    if as_json:
        _print_json(
            {
                name: {**known[name].model_dump(mode="json"), "availability": vars(a)}
                for name, a in answers.items()
            }
        )
        return
    rows = [[name, _stage_words(known[name]), *_availability_words(answers[name])] for name in known]
    _print_rows("recipes", ["recipe", "gpt | decoder | vocoder", "here", "note"], rows)


@voices_app.command("list")
def voices_list(as_json: JsonFlag = False) -> None:
    """List the voices known by name. Example: `labkit voices list`"""
    from labkit.voices import known_voices

    rows = [[name, words] for name, words in known_voices().items()]
    if as_json:
        _print_json(dict(rows))
    else:
        _print_rows("voices", ["voice", "what it is"], rows)


@voices_app.command("show")
def voices_show(
    name: Annotated[str, typer.Argument(help="nano, random, chattts, or a folder.")] = "nano",
    as_json: JsonFlag = False,
) -> None:
    """Show a voice: sizes, speakers, words, licence, files. Example: `labkit voices show nano`"""
    from labkit.voices import resolve_voice

    voice = resolve_voice(name)
    size = sum(file.stat().st_size for file in voice.folder.rglob("*") if file.is_file())
    facts = {
        "folder": voice.folder,
        "size_bytes": size,
        "speakers": list(voice.speakers()),
        "words": list(voice.domain_words) if voice.domain_words else "open text",
        "for_quality": voice.for_quality,
        "licence": voice.licence,
        "weights_hash": voice.weights_hash,
        "gpt": voice.config.gpt,
        "decoder": voice.config.decoder,
        "dvae": voice.config.dvae,
        "vocoder": voice.config.vocoder,
    }
    if as_json:
        _print_json(facts)
    else:
        _print_rows(f"voice {name}", ["", ""], [[key, _words(value)] for key, value in facts.items()])


@voices_app.command("random")
def voices_random(
    folder: Annotated[Path, typer.Argument(help="Folder to write the asset layout into.")],
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Write full-size seeded random weights (about 1.1 GB): for speed only, never for quality.

    Example: `labkit voices random /data/random-voice --seed 0`
    """
    from labkit.voices import write_random_voice

    write_random_voice(folder, seed, progress=_progress(False))
    console.print(escape(f"wrote {folder}; use it with --voice {folder}"), soft_wrap=True)


@results_app.command("list")
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
        _print_json(
            [{"run_id": d.run_id, "recipe": d.spec.recipe.name, "status": d.status} for d in documents]
        )
    else:
        _print_summary(documents, with_ids=True)


@results_app.command("show")
def results_show(run_id: Annotated[str, typer.Argument()], results: StoreOption = None) -> None:
    """Print one run document as JSON. Example: `labkit results show RUN_ID | jq .measures`"""
    from labkit.results.store import Store

    _print_json(Store(results).read(run_id).model_dump(mode="json"))


@app.command()
def doctor(as_json: JsonFlag = False) -> None:
    """Check this machine, each finding with its remedy. Example: `labkit doctor`"""
    from labkit.doctor import doctor as examine

    checks = examine()
    if as_json:
        _print_json([vars(check) for check in checks])
    else:
        marks = {"ok": "[green]ok[/]", "warn": "[yellow]warn[/]", "fail": "[bold red]fail[/]"}
        rows = [[marks[c.status], c.name, c.found, c.remedy] for c in checks]
        _print_rows("doctor", ["", "check", "found", "remedy"], rows)
    if any(check.status == "fail" for check in checks):
        raise typer.Exit(1)


@app.command()
def sensitivity(
    voice: Annotated[str, typer.Option(help="nano, random, chattts, or a checkpoint folder.")] = "nano",
    stages: Annotated[
        list[str] | None, typer.Option("--stage", help="gpt, decoder or vocoder (repeatable).")
    ] = None,
    bits: Annotated[list[int] | None, typer.Option("--bits", help="2 to 8 (repeatable).")] = None,
    block: Annotated[
        int | None, typer.Option(help="Inputs that share a scale; one scale a channel when left out.")
    ] = None,
    corpus: Annotated[
        str | None, typer.Option(help="Calibration list, several joined by +, or a .txt file.")
    ] = None,
    texts: Annotated[int, typer.Option(help="Sentences to compare on, 10 or more.")] = 16,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    speaker: Annotated[str | None, typer.Option()] = None,
    audio_path: Annotated[AudioPath, typer.Option(help="hidden or codes.")] = "hidden",
    threads: Annotated[int, typer.Option(min=1)] = 1,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV file for the whole table.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Folder for a bar chart of each stage.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Round one part of a voice at a time and tell what that does: codes, hidden states, mel.

    Example: `labkit sensitivity --stage gpt --bits 8 --bits 4 -o sensitivity.csv --plots .`
    """
    from labkit.sensitivity import FIGURE_NAMES, MAIN_FIGURE, by_part
    from labkit.sensitivity import sensitivity as measure
    from labkit.sensitivity.files import check_writable, write_charts, write_table
    from labkit.voices import resolve_voice

    check_writable(out, plots)
    frame = measure(
        resolve_voice(voice), stages=stages or ["gpt", "decoder"], bits=bits or [8, 6, 4, 3, 2], block=block,
        corpus=corpus, texts=texts, seed=seed, speaker=speaker, audio_path=audio_path, threads=threads,
        progress=_progress(as_json),
    )  # fmt: skip
    written = [*write_table(frame, out), *write_charts(frame, plots)]
    if as_json:
        _print_json(frame.astype(object).where(frame.notna(), None).to_dict(orient="records"))
        return
    for stage in frame["stage"].unique():
        table = by_part(frame, stage).drop(columns="kind").rename(columns={"parameters": "weights"})
        cells = table.map(lambda cell: f"{cell:.2g}" if isinstance(cell, float) else cell)
        _print_rows(
            f"{stage}: {FIGURE_NAMES[MAIN_FIGURE[stage]]}", list(table.columns), cells.to_numpy().tolist()
        )
    console.print("Heads and vocoder are measured here and never quantized unless a recipe asks for it.")
    for path in written:
        console.print(f"wrote [bold]{path}[/]", soft_wrap=True)


@bench_app.command("self")
def bench_self_command(
    rounds: Annotated[int, typer.Option(min=2, help="Interleaved rounds.")] = 10,
    as_json: JsonFlag = False,
) -> None:
    """Full-size decode steps of each recipe beside upstream, interleaved on one core; takes some minutes.

    Example: `labkit bench self --rounds 10`
    """
    from labkit.bench import bench_self, render

    figures = bench_self(rounds=rounds, progress=_progress(as_json))
    if as_json:
        _print_json(figures)
    else:
        console.print(render(figures))


def _progress(quiet: bool) -> Callable[[str], None]:
    """One line per step: it reads the same in a terminal and in a log."""
    return (
        (lambda line: None)
        if quiet
        else (lambda line: notes.print(escape(line), highlight=False, soft_wrap=True))
    )


def _print_summary(
    documents: list[RunDocument], *, baseline: str | None = None, with_ids: bool = False
) -> None:
    from labkit.report import summary_table

    console.print(summary_table(documents, baseline=baseline, with_ids=with_ids))


def _print_rows(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    console.print(table)


def _print_json(value: Any) -> None:
    json.dump(value, sys.stdout, ensure_ascii=False, indent=2, allow_nan=False, default=str)
    sys.stdout.write("\n")


def _stage_words(recipe: Recipe) -> str:
    choices = recipe.choices()
    return f"pipeline {recipe.pipeline}" if not choices else " | ".join(
        f"{choice.engine} {choice.precision}" for choice in choices.values()
    )  # fmt: skip


def _availability_words(answer: Any) -> tuple[str, str]:
    if hasattr(answer, "remedy"):
        return "[red]no[/]", f"{answer.reason} {answer.remedy}"
    return "[green]yes[/]", answer.note


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _show_warning(message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any) -> None:
    notes.print(f"[yellow]warning[/]: {escape(str(message))}", highlight=False, soft_wrap=True)
