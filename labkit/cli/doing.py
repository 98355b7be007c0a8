"""Commands that speak and measure: say, run, sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labkit.cli.words import (
    JsonFlag,
    RecipesOption,
    StoreOption,
    console,
    print_json,
    print_summary,
    progress_lines,
)
from labkit.spec import AudioPath


def say(
    text: Annotated[
        str, typer.Argument(help="What to say. The nano voice knows English numbers and short commands.")
    ],
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
        audio_path=audio_path, threads=threads, device=device, progress=progress_lines(as_json),
    )  # fmt: skip
    if as_json:
        print_json(spoken.summary())
    else:
        console.print(spoken)


def run(
    recipe: Annotated[str, typer.Argument(help="Recipe to measure; see `labkit recipes`.")],
    voice: Annotated[str, typer.Option(help="nano, random, chattts, or a checkpoint folder.")] = "nano",
    scenario: Annotated[
        str, typer.Option(help="replay (same codes for all) or single (free-running).")
    ] = "single",
    corpus: Annotated[str, typer.Option(help="Text list under calib/.")] = "nano-eval",
    texts: Annotated[int | None, typer.Option(min=1, help="Only the first N texts.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Speak each text so often.")] = 3,
    warmups: Annotated[int, typer.Option(min=0, help="Rounds before those that count; kept apart.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same codes.")] = 0,
    speaker: Annotated[
        str | None, typer.Option(help="A name from the voice, random:SEED, or a speaker string.")
    ] = None,
    audio_path: Annotated[AudioPath, typer.Option(help="hidden or codes.")] = "hidden",
    quality: Annotated[bool, typer.Option("--quality/--no-quality", help="Judge the audio as well.")] = True,
    keep_audio: Annotated[
        bool, typer.Option("--keep-audio", help="Keep the clips beside the document.")
    ] = False,
    seconds: Annotated[
        float,
        typer.Option(help="Stop each process of the run after this long; building artifacts does not count."),
    ] = 600.0,
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
    document = run_spec(spec, store=results, progress=progress_lines(as_json))
    if as_json:
        print_json(document.model_dump(mode="json"))
    else:
        print_summary([document])
    if document.status != "ok":
        raise typer.Exit(1)


def sweep(
    file: Annotated[Path, typer.Argument(help="Sweep YAML, e.g. sweeps/demo.yaml.")],
    voice: Annotated[str | None, typer.Option(help="Replace the sweep's voice.")] = None,
    scenario: Annotated[str | None, typer.Option(help="Replace the sweep's scenario.")] = None,
    texts: Annotated[int | None, typer.Option(min=1, help="Replace the sweep's number of texts.")] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Replace the sweep's repeats.")] = None,
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

    asked = {"voice": voice, "scenario": scenario, "texts": texts, "repeats": repeats}
    spec = load_sweep(file, **{key: value for key, value in asked.items() if value})
    outcome = run_sweep(
        spec,
        store=results,
        recipes=load_recipes(*(recipes or [])),
        resume=not fresh,
        progress=progress_lines(as_json),
    )
    if as_json:
        print_json(outcome.summary())
    else:
        print_summary(outcome.documents, baseline=spec.baseline)
        if outcome.report:
            console.print(f"\nreport: [bold]{outcome.report}[/]", soft_wrap=True)
    if outcome.failed:
        raise typer.Exit(1)
