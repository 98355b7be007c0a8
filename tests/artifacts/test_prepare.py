from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from labkit.artifacts import prepare
from labkit.engines.base import Artifact
from labkit.errors import ArtifactError, CheckpointError, SpecError, UnavailableError
from labkit.spec import Recipe, StageChoice, StageName
from labkit.voices import Voice

RECIPE = Recipe(name="mixed", gpt=StageChoice(engine="ort-cpu"), vocoder=StageChoice(engine="ort-cpu"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def made(tiny_voice: Voice, cache: Path) -> tuple[dict[StageName, Artifact], list[str]]:
    """The recipe prepared for the first time, and what was told meanwhile."""
    lines: list[str] = []
    return prepare(RECIPE, tiny_voice, cache=cache, progress=lines.append), lines


def test_what_is_missing_is_made_and_the_rest_is_the_voice_itself(made, tiny_voice: Voice) -> None:
    first, lines = made
    assert any("vocoder ort-cpu fp32: exporting" in line for line in lines)
    assert not any(artifact.cached for artifact in first.values())
    decoder = first["decoder"]
    assert (decoder.folder, decoder.files, decoder.build_s) == (
        tiny_voice.folder,
        ("Decoder.safetensors",),
        0.0,
    )
    assert decoder.size_bytes == (tiny_voice.folder / "Decoder.safetensors").stat().st_size


def test_what_was_made_is_found_again_with_the_time_that_it_took(
    made, tiny_voice: Voice, cache: Path
) -> None:
    first, lines = made[0], []
    second = prepare(RECIPE, tiny_voice, cache=cache, progress=lines.append)
    assert lines == []
    assert second["gpt"].cached and second["vocoder"].cached
    for stage in ("gpt", "vocoder"):
        assert second[stage].build_s == first[stage].build_s > 0
        assert second[stage].size_bytes == sum((second[stage].folder / name).stat().st_size
                                               for name in second[stage].files)  # fmt: skip
    assert second["gpt"].details["speaker_token"] == tiny_voice.tokenizer().token_id("[spk_emb]")


def test_a_pipeline_recipe_needs_nothing(tiny_voice: Voice, tmp_path: Path) -> None:
    assert prepare(Recipe(name="theirs", pipeline="upstream"), tiny_voice, cache=tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_choice_is_refused_before_anything_is_made(tiny_voice: Voice, tmp_path: Path) -> None:
    impossible = StageChoice(engine="ort-cpu", precision="bf16")
    recipe = Recipe(name="no", gpt=StageChoice(engine="ort-cpu"), decoder=impossible)
    with pytest.raises(SpecError, match="stage 'decoder'"):
        prepare(recipe, tiny_voice, cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_making_process_keeps_its_kind(tiny_voice: Voice, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with pytest.raises(CheckpointError, match="no voice here"):
        # the hash is remembered, the folder is not there any more
        voice = replace(tiny_voice, folder=gone)
        voice.__dict__["weights_hash"] = "0" * 64
        voice.__dict__["_tokenizer"] = tiny_voice.tokenizer()
        prepare(RECIPE, voice, cache=tmp_path / "cache")


def test_a_killed_making_process_is_reported_and_leaves_nothing(
    tiny_voice: Voice, tmp_path: Path, monkeypatch
) -> None:
    dying = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    monkeypatch.setattr("labkit.artifacts.making_command", lambda: dying)
    with pytest.raises(ArtifactError, match=r"gpt ort-cpu fp32, vocoder ort-cpu fp32.*signal 9"):
        prepare(RECIPE, tiny_voice, cache=tmp_path)
    assert list(tmp_path.rglob("*.onnx")) == []


def test_what_the_making_process_cannot_run_is_unavailable_here_too(
    tiny_voice: Voice, tmp_path: Path, monkeypatch
) -> None:
    """The making process without the package of the engine that the files are for."""
    program = (
        "import importlib.util, sys; "
        "find = importlib.util.find_spec; "
        "importlib.util.find_spec = lambda name, *rest: None if name == 'onnxruntime' else find(name, *rest); "
        "from labkit.artifacts.__main__ import main; sys.exit(main())"
    )
    monkeypatch.setattr("labkit.artifacts.making_command", lambda: [sys.executable, "-c", program])
    with pytest.raises(UnavailableError, match="onnxruntime is not installed") as raised:
        prepare(RECIPE, tiny_voice, cache=tmp_path)
    assert "pip install" in raised.value.remedy


def test_an_unwritable_cache_is_named(tiny_voice: Voice, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="LABKIT_CACHE"):
        prepare(RECIPE, tiny_voice, cache=tmp_path / "file")


def test_preparing_what_is_cached_loads_no_backend(made, tiny_voice: Voice, cache: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from labkit.artifacts import prepare
from labkit.spec import Recipe, StageChoice
from labkit.voices import open_voice
recipe = Recipe(name="mixed", gpt=StageChoice(engine="ort-cpu"), vocoder=StageChoice(engine="ort-cpu"))
prepared = prepare(recipe, open_voice(Path({str(tiny_voice.folder)!r})), cache=Path({str(cache)!r}))
print(prepared["gpt"].cached, sorted({{"torch", "onnx", "onnxruntime"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True []", done.stderr
