from __future__ import annotations

from pathlib import Path

import pytest

from labkit.errors import SpeakerError, SpecError, TextError, UserError
from labkit.run.request import plan_run
from labkit.spec import Recipe, RunSpec, StageChoice
from labkit.voices import Voice


@pytest.fixture
def voice(tiny_voice: Voice) -> str:
    return str(tiny_voice.folder)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))


def spec(voice: str, **changes) -> RunSpec:
    return RunSpec(**{"recipe": Recipe(name="r"), "voice": voice, "corpus": "nano-smoke", **changes})


def test_a_sound_request_becomes_a_plan(voice: str) -> None:
    plan = plan_run(spec(voice, texts=2, scenario="replay"))
    assert len(plan.texts) == 2 and plan.language == "en" and len(plan.corpus_hash) == 64
    assert plan.unavailable is None and not plan.judged  # random weights


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"scenario": "soak"}, SpecError, "'soak'.*replay"),
        ({"device": "gpu"}, SpecError, "'gpu'.*cuda"),
        ({"corpus": "nano-evil"}, SpecError, "'nano-evil'.*nano-eval"),
        ({"speaker": "nobody"}, SpeakerError, "'nobody'.*random-0"),
        ({"recipe": Recipe(name="r", gpt=StageChoice(engine="warp"))}, SpecError, "'warp'.*torch"),
        ({"recipe": Recipe(name="r", gpt=StageChoice(precision="int4-weight"))}, SpecError, "int4-weight"),
        (
            {"recipe": Recipe(name="r", gpt=StageChoice(options={"round_blocks": "9", "round_bits": 3}))},
            SpecError,
            "stage 'gpt'.*'9'.*blocks 0 to 1",
        ),
    ],
)
def test_a_mistake_is_named_with_what_would_do(voice: str, changes: dict, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        plan_run(spec(voice, **changes))


def test_a_bare_name_is_told_what_a_run_takes() -> None:
    with pytest.raises(SpecError, match="takes a RunSpec, not str"):
        plan_run("torch-fp32")  # type: ignore[arg-type]


def test_an_unknown_voice_is_named(voice: str) -> None:
    with pytest.raises(UserError, match=r"'nanoo'.*nano"):
        plan_run(spec("nanoo"))


def test_a_gpu_that_is_not_here_is_no_mistake(voice: str) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has one")
    plan = plan_run(spec(voice, device="cuda"))
    assert plan.unavailable is not None and plan.unavailable.remedy


def test_upstream_without_its_environment_is_no_mistake(voice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_UPSTREAM_PYTHON", "/nowhere/python")
    plan = plan_run(spec(voice, recipe=Recipe(name="upstream", pipeline="upstream")))
    assert plan.unavailable is not None and "make_upstream_env" in plan.unavailable.remedy


def test_a_text_that_cannot_be_spoken_is_found_before_any_work(
    voice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hashlib

    (tmp_path / "bad.txt").write_text("...\n", encoding="utf-8")
    digest = hashlib.sha256(b"...\n").hexdigest()
    (tmp_path / "manifest.yaml").write_text(
        f"bad: {{language: en, domain: open, split: evaluation, sha256: {digest}}}\n", encoding="utf-8"
    )
    monkeypatch.setenv("LABKIT_CALIB", str(tmp_path))
    with pytest.raises(TextError, match="punctuation"):
        plan_run(spec(voice, corpus="bad"))
