from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labkit.gpu_check.parity import Answers, compare, too_far


@pytest.fixture
def answers() -> Answers:
    rng = np.random.default_rng(0)
    shapes = {
        "logits": (3, 2, 4, 9),
        "hidden": (3, 2, 8),
        "features": (3, 8),
        "mel": (1, 100, 6),
        "audio": (1, 99),
    }
    return Answers(**{name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()})


def test_distances_are_relative_and_survive_a_file(answers: Answers, tmp_path: Path) -> None:
    answers.save(tmp_path / "a.npz")
    known = Answers.load(tmp_path / "a.npz")
    assert set(compare(answers, known).values()) == {0.0, 1.0}  # top-1 is the one
    louder = replace(answers, audio=answers.audio * 1.5)
    assert compare(louder, known)["parity_audio_relative"] == pytest.approx(0.5)
    logits = answers.logits.copy()
    logits[0, 0, 0] = -logits[0, 0, 0] * 10
    assert compare(replace(answers, logits=logits), known)["parity_top1_share"] == pytest.approx(23 / 24)


@pytest.mark.parametrize(("precision", "distance", "bad"), [
    ("fp32", 5e-4, False), ("fp32", 2e-3, True), ("bf16", 5e-2, False), ("bf16", 0.2, True), ("fp16", 3e-2, True),
    ("bf16", float("nan"), True),
])  # fmt: skip
def test_each_precision_has_its_limit(precision: str, distance: float, bad: bool) -> None:
    found = too_far({"parity_mel_relative": distance, "parity_hidden_relative": None}, precision)
    assert bool(found) == bad
    assert not bad or "parity_mel_relative" in found[0]
