"""WER with the packaged recognizer: it hears the clip, refuses damaged weights, survives strange clips."""

from __future__ import annotations

import json

import numpy as np
import pytest

from labkit.quality import Clip, judge, whisper
from labkit.quality.base import Missing
from labkit.quality.files import ScorerFileError

TEXT = "nine two six five zero eight"
needs_whisper = pytest.mark.skipif(
    isinstance(whisper.availability(), Missing), reason="the quality extra is not installed"
)


@needs_whisper
def test_real_speech_tone_and_text_without_words(speech: np.ndarray) -> None:
    tone = 0.1 * np.sin(2 * np.pi * 300 * np.arange(12_000) / 24_000)
    clips = [
        Clip("speech", 0, speech, TEXT),
        Clip("tone", 0, tone, TEXT),
        Clip("mute", 0, speech, "[uv_break]"),
    ]
    rows = judge(clips, ["wer"])
    spoken, tone_row, mute = (row for row in rows if row["metric"] == "wer")
    assert [row["value"] for row in rows if row["metric"] == "spoken_tags"] == [0.0, 0.0, None]
    assert spoken["value"] == 0.0
    assert spoken["reason"].startswith('heard "')
    assert "d01c3014" in spoken["scorer_version"]
    assert tone_row["value"] is not None and 0.8 <= tone_row["value"] <= 2  # capped: no endless loop
    assert mute["value"] is None and "no words" in mute["reason"]


def test_other_languages_are_not_judged(speech: np.ndarray) -> None:
    scorer_rows = judge([Clip("a", 0, speech, "sieben zwei", language="de")], ["wer", "forced_nll"])
    assert all(row["value"] is None and row["reason"] for row in scorer_rows)


@needs_whisper
def test_mandarin_is_listened_to_in_mandarin(speech: np.ndarray) -> None:
    row = judge([Clip("a", 0, speech, "今天天气很好", language="zh")], ["wer"])[0]
    assert row["value"] is not None and row["value"] > 0.8  # the clip says something else


@needs_whisper
def test_damaged_weights_are_refused_and_repaired(tmp_path) -> None:
    target = whisper.assemble(tmp_path / "model")
    assert whisper.assemble(target) == target
    with (target / "model.bin").open("r+b") as weights:
        weights.seek(1000)
        weights.write(b"damage")
    before = (target / "model.bin").read_bytes()[:2000]
    whisper.assemble(target)
    assert (target / "model.bin").read_bytes()[:2000] != before


def test_missing_parts_name_the_remedy(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(whisper, "PARTS", ("no_such_part_one", "no_such_part_two"))
    answer = whisper.availability()
    assert isinstance(answer, Missing) and "labkit[quality]" in answer.remedy
    with pytest.raises(ScorerFileError, match="no_such_part_one"):
        whisper.assemble(tmp_path / "model")


def test_the_lost_merge_is_put_back_once() -> None:
    broken = json.dumps({"model": {"merges": ["Ġ a", "Ġt h"]}})
    mended = whisper.mend_tokenizer(broken)
    assert json.loads(mended)["model"]["merges"] == ["Ġ t", "Ġ a", "Ġt h"]
    assert whisper.mend_tokenizer(mended) == mended
