"""The lab against what upstream answered, with no upstream installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labkit.upstream import cases, golden
from labkit.upstream.cases import Answers
from labkit.upstream.lab_side import lab_answers
from labkit.upstream.parity import LIMITS, compare
from labkit.voices import Voice, make_random_voice, open_voice

FILE = Path(__file__).parents[1] / "golden" / "upstream_small.npz"


@pytest.fixture(scope="module")
def upstream() -> golden.Golden:
    return golden.read_golden(FILE)


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Voice:
    folder = tmp_path_factory.mktemp("voice")
    return open_voice(make_random_voice(folder, cases.SMALL, cases.SMALL_SEED))


@pytest.fixture(scope="module")
def lab(voice: Voice) -> Answers:
    return lab_answers(voice)


def test_the_weights_are_those_that_upstream_was_asked_about(voice: Voice, upstream: golden.Golden) -> None:
    assert golden.weights_digest(voice.folder) == upstream.about["weights"], (
        "the seeded small voice changed; make new golden arrays (tests/golden/README.md)"
    )


def test_the_lab_answers_as_upstream_did(lab: Answers, upstream: golden.Golden) -> None:
    checks = compare(golden.thin(lab), upstream.answers)
    assert [check for check in checks if not check.passed] == []
    kinds = {check.name.rpartition("/")[2] for check in checks}
    assert kinds >= {*LIMITS, "codes", "ids", "mask", "string", "strings", "vector"}


def test_the_draws_are_worth_comparing(upstream: golden.Golden) -> None:
    """Codes that never changed, or rows that were alike, would agree whatever the sampler did."""
    codes = upstream.answers["batch of 3/codes"]
    assert codes.shape == (3, cases.STEPS, 4)
    assert min(len(np.unique(row[:, book])) for row in codes for book in range(4)) > 10
    assert not np.array_equal(codes[0], codes[1])
    assert np.count_nonzero(~upstream.answers["prompt/mask"][:3]) > 0


def test_a_row_says_the_same_alone_and_in_a_batch(lab: Answers) -> None:
    """Row 1 of the batch is the single text, but draws the noise of row 1: only the prefill can be compared."""
    assert np.abs(lab["single/logits"][0, 0] - lab["batch of 3/logits"][0, 1]).max() < 1e-4


def test_thinning_keeps_short_arrays_and_every_sixteenth_element_of_long_ones() -> None:
    short, long = np.arange(20_000), np.arange(2 * 10_016).reshape(2, -1)
    thinned = golden.thin({"short": short, "long": long})
    assert thinned["short"] is short
    assert thinned["long"].shape == (2, 626) and thinned["long"][1, 2] == long[1, 32]


def test_golden_files_come_back_as_they_were_written(tmp_path: Path) -> None:
    answers: Answers = {"a b/mel": np.ones((2, 3), np.float32), "c/strings": np.array(["x", "世界"])}
    golden.write_golden(tmp_path / "g.npz", answers, {"weights": "abc"})
    back = golden.read_golden(tmp_path / "g.npz")
    assert back.about == {"weights": "abc"} and back.answers.keys() == answers.keys()
    assert all(np.array_equal(back.answers[name], answers[name]) for name in answers)


def test_the_digest_sees_every_weight(voice: Voice, tmp_path: Path) -> None:
    other = make_random_voice(tmp_path, cases.SMALL, cases.SMALL_SEED + 1)
    assert golden.weights_digest(other) != golden.weights_digest(voice.folder)
