"""Commands that look around: recipes, voices, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.text import Text

from labkit.cli.words import (
    JsonFlag,
    RecipesOption,
    console,
    print_json,
    print_rows,
    progress_lines,
)

if TYPE_CHECKING:
    from labkit.spec import Recipe


def recipes(
    recipes: RecipesOption = None,
    device: Annotated[str, typer.Option(help="Device to ask the engines about.")] = "cpu",
    as_json: JsonFlag = False,
) -> None:
    """List recipes and whether each can run on this machine. Example: `labkit recipes --device cuda`"""
    from labkit.pipeline import recipe_availability
    from labkit.spec import check_device, load_recipes

    check_device(device)
    known = load_recipes(*(recipes or []))
    answers = {name: recipe_availability(recipe, device) for name, recipe in known.items()}
    if as_json:
        print_json(
            {
                name: {**known[name].model_dump(mode="json"), "availability": vars(a)}
                for name, a in answers.items()
            }
        )
        return
    rows = [[name, _stage_words(known[name]), *_availability_words(answers[name])] for name in known]
    print_rows("recipes", ["recipe", "gpt | decoder | vocoder", "here", "note"], rows)


def voices_list(as_json: JsonFlag = False) -> None:
    """List the voices known by name. Example: `labkit voices list`"""
    from labkit.voices import known_voices

    rows = [[name, words] for name, words in known_voices().items()]
    if as_json:
        print_json(dict(rows))
    else:
        print_rows("voices", ["voice", "what it is"], rows)


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
        "note": voice.card.note,
        "measured": [f"{arm}: {words}" for arm, words in voice.essentials().items()],
        "weights_hash": voice.weights_hash,
        "gpt": voice.config.gpt,
        "decoder": voice.config.decoder,
        "dvae": voice.config.dvae,
        "vocoder": voice.config.vocoder,
    }
    if as_json:
        print_json(facts)
    else:
        print_rows(
            f"voice {name}", ["", ""], [[key, _words(value)] for key, value in facts.items() if value != []]
        )


def voices_random(
    folder: Annotated[Path, typer.Argument(help="Folder to write the asset layout into.")],
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Write full-size seeded random weights (about 1.1 GB): for speed only, never for quality.

    Example: `labkit voices random /data/random-voice --seed 0`
    """
    from labkit.voices import write_random_voice

    write_random_voice(folder, seed, progress=progress_lines(False))
    console.print(escape(f"wrote {folder}; use it with --voice {folder}"), soft_wrap=True)


def doctor(as_json: JsonFlag = False) -> None:
    """Check this machine, each finding with its remedy. Example: `labkit doctor`"""
    from labkit.doctor import doctor as examine

    checks = examine()
    if as_json:
        print_json([vars(check) for check in checks])
    else:
        styles = {"ok": "green", "warn": "yellow", "fail": "bold red"}
        rows = [[Text(c.status, styles[c.status]), c.name, c.found, c.remedy] for c in checks]
        print_rows("doctor", ["", "check", "found", "remedy"], rows)
    if any(check.status == "fail" for check in checks):
        raise typer.Exit(1)


def _stage_words(recipe: Recipe) -> str:
    choices = recipe.choices()
    return f"pipeline {recipe.pipeline}" if not choices else " | ".join(
        f"{choice.engine} {choice.precision}" for choice in choices.values()
    )  # fmt: skip


def _availability_words(answer: Any) -> tuple[Text, str]:
    if hasattr(answer, "remedy"):
        return Text("no", "red"), f"{answer.reason} {answer.remedy}"
    return Text("yes", "green"), answer.note


def _words(value: Any) -> str:
    separator = "\n" if isinstance(value, list) and any(" " in str(item) for item in value) else ", "
    return separator.join(map(str, value)) if isinstance(value, list | tuple) else str(value)
