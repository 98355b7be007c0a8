"""New files are driven in the engine that will run them, and refused when another network is in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.artifacts import making
from labkit.artifacts.comparing import compare_made, input_kind
from labkit.artifacts.files import ArtifactFolder
from labkit.artifacts.plans import Plan, plan_stage
from labkit.errors import ParityError
from labkit.spec import StageChoice, StageName
from labkit.voices import Voice


def made(voice: Voice, cache: Path, stage: StageName) -> tuple[Plan, Path, dict]:
    store = ArtifactFolder(cache)
    plan = plan_stage(stage, StageChoice(engine="ort-cpu"), voice, "hidden")
    manifest = making.make(plan, voice, "hidden", store, lambda _: None)
    return plan, store.path(plan.content_hash), manifest["details"]


def test_figures_say_how_near_each_case_is(tiny_voice: Voice, tmp_path: Path) -> None:
    plan, folder, details = made(tiny_voice, tmp_path, "decoder")
    figures = compare_made(plan, tiny_voice, "hidden", folder, details)
    assert {figure.output for figure in figures} == {"mel"}
    assert max(figure.max_abs for figure in figures) < 1e-4


def test_files_of_another_voice_are_refused(tiny_voice: Voice, blocky_voice: Voice, tmp_path: Path) -> None:
    plan, folder, details = made(tiny_voice, tmp_path, "vocoder")
    with pytest.raises(ParityError, match="vocoder: audio"):
        compare_made(plan, blocky_voice, "hidden", folder, details)


@pytest.mark.parametrize(
    ("stage", "path", "kind"),
    [("vocoder", "codes", "mel"), ("decoder", "codes", "codes"), ("decoder", "hidden", "hidden")],
)
def test_the_audio_path_is_the_decoder_s_matter(stage: StageName, path: str, kind: str) -> None:
    assert input_kind(stage, path) == kind
