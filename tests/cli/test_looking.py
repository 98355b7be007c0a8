from __future__ import annotations

import json

from typer.testing import CliRunner

from labkit.cli import app
from labkit.spec import default_recipes
from labkit.voices import resolve_voice


def printed(*words: str) -> str:
    """What the command prints, as it reads when its lines are joined."""
    answer = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert answer.exit_code == 0
    return " ".join(answer.stdout.split())


def test_recipes_of_equal_engines_are_told_apart_by_their_descriptions() -> None:
    shown = printed("recipes")
    for name in ("torch-bf16", "torch-bf16-fft"):
        assert default_recipes()[name].description in shown
    assert "torch bf16, all three" in shown
    assert "ort-cpu int8-dynamic | ort-cpu fp32 | ort-cpu fp32" in shown


def test_a_voice_is_shown_in_words_and_its_figures_apart() -> None:
    shown = printed("voices", "show", "nano")
    voice = resolve_voice("nano")
    assert voice.domain_words
    assert f"{len(voice.domain_words)}: {voice.domain_words[0]}" in shown
    assert f"layers {voice.config.gpt.layers}" in shown and "GptConfig" not in shown
    assert all(arm in shown.partition("measured on held-out sentences")[2] for arm in voice.essentials())


def test_the_terms_of_a_voice_s_figures_are_explained_below_them() -> None:
    below = printed("voices", "show", "nano").partition("measured on held-out sentences")[2]
    for term in ("WER is", "closed recognizer", "Ended:", "chattts draws", "greedy takes"):
        assert term in below


def test_a_voice_s_sizes_are_values_for_machines() -> None:
    facts = json.loads(printed("voices", "show", "nano", "--json"))
    assert facts["dvae"]["decoder"]["layers"] == resolve_voice("nano").config.dvae.decoder.layers
