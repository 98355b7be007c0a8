"""Commands that look around: recipes, voices, doctor."""

from __future__ import annotations

from dataclasses import asdict
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

_MEASURED_WORDS = (
    "WER is the share of words heard wrong: by Whisper, which expects any English, and by a closed recognizer, which "
    "expects this voice's words alone. Ended: clips that the voice ended by itself (source speech, the recordings it "
    "was taught with, has none). Sampling: chattts draws as ChatTTS does by default, greedy takes the likeliest code. "
    "DNSMOS is an automatic proxy from 1 to 5; no listener was asked."
)


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
    rows = [[name, *_recipe_words(known[name], answers[name])] for name in known]
    print_rows("recipes", ["recipe", "here", "gpt | decoder | vocoder, and what it is"], rows)


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
    facts: dict[str, Any] = {
        "folder": voice.folder,
        "size_bytes": size,
        "speakers": list(voice.speakers()),
        "words": list(voice.domain_words) if voice.domain_words else "open text",
        "for_quality": voice.for_quality,
        "licence": voice.licence,
        "note": voice.card.note,
        "measured": voice.essentials(),
        "weights_hash": voice.weights_hash,
        "gpt": asdict(voice.config.gpt),
        "decoder": asdict(voice.config.decoder),
        "dvae": asdict(voice.config.dvae),
        "vocoder": asdict(voice.config.vocoder),
    }
    if as_json:
        print_json(facts)
        return
    print_rows(f"voice {name}", ["", ""], [[key, words] for key, words in _voice_words(facts) if words])
    if facts["measured"]:
        columns = ["texts, audio path, sampling", "with 95 % intervals"]
        print_rows(
            "measured on held-out sentences", columns, [list(arm) for arm in facts["measured"].items()]
        )
        console.print(_MEASURED_WORDS, style="dim", highlight=False)


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


def _recipe_words(recipe: Recipe, answer: Any) -> tuple[Text, str]:
    """Whether it runs here, and what it is: its engines, then what was said of it, then why it cannot run."""
    here = Text("no", "red") if hasattr(answer, "remedy") else Text("yes", "green")
    why = f"{answer.reason} {answer.remedy}" if hasattr(answer, "remedy") else answer.note
    return here, "\n".join(line for line in (_stage_words(recipe), recipe.description, why) if line)


def _stage_words(recipe: Recipe) -> str:
    choices = [f"{choice.engine} {choice.precision}" for choice in recipe.choices().values()]
    if not choices:
        return f"pipeline {recipe.pipeline}"
    return f"{choices[0]}, all three" if len(set(choices)) == 1 else " | ".join(choices)


def _voice_words(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The facts of a voice in the words of a table; what was measured has a table of its own."""
    from labkit.results.units import format_value

    words = facts["words"]
    return [
        ("folder", str(facts["folder"])),
        ("size", format_value("size_bytes", facts["size_bytes"])),
        ("speakers", ", ".join(facts["speakers"])),
        ("words", words if isinstance(words, str) else f"{len(words)}: {', '.join(words)}"),
        ("quality", "" if facts["for_quality"] else "means nothing: the weights are random"),
        ("licence", facts["licence"]),
        ("note", facts["note"]),
        ("weights", f"sha256 {facts['weights_hash']}"),
        *((part, _settings(facts[part])) for part in ("gpt", "decoder", "dvae", "vocoder")),
    ]


def _settings(values: dict[str, Any]) -> str:
    """`hidden 192, layers 5`; settings within settings in brackets."""
    shown = {key: f"({_settings(each)})" if isinstance(each, dict) else each for key, each in values.items()}
    return ", ".join(f"{key} {each}" for key, each in shown.items())
