"""Figures are computed from raw findings, with intervals; the card's tables come from nothing else."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import UserError
from labkit.training.card import (
    BEGIN,
    CURVES,
    END,
    draw_curves,
    figure_table,
    speaker_table,
    trait_table,
    write_figures,
)  # fmt: skip
from labkit.training.corpus import edit_distance
from labkit.training.evaluate import SOURCE, Evaluation, Journal, lines_of, read, write
from labkit.training.figures import Figure, by_speaker, figures, mean_figure, ratio_figure, summary
from labkit.training.listen import Finding, Heard
from labkit.training.traits import Trait

WORDS = st.lists(st.sampled_from(["one", "two", "three"]), max_size=6)


def finding(arm: str, speaker: str, errors: int, words: int = 4, ended: bool | None = True) -> Finding:
    heard = Heard("one two", words, "", errors, "", errors, 3.0, 2.5, 3.5, "a", 1.0)
    return Finding(arm, speaker, heard, ended, 1.0 if ended is not None else None)


@given(WORDS, WORDS)
def test_edit_distance_is_a_distance(a: list[str], b: list[str]) -> None:
    assert edit_distance(a, b) == edit_distance(b, a)
    assert (edit_distance(a, b) == 0) == (a == b)
    assert abs(len(a) - len(b)) <= edit_distance(a, b) <= max(len(a), len(b))


def test_edit_distance_counts_each_kind_of_error_once() -> None:
    said = ["one", "two", "three"]
    assert [edit_distance(said, h.split()) for h in ("one three", "one two two three", "one six three")] == [
        1,
        1,
        1,
    ]


def test_word_error_rate_pools_words_and_its_interval_holds_it() -> None:
    figure = ratio_figure([0, 1, 0, 3], [2, 2, 6, 6])
    assert figure.value == pytest.approx(4 / 16)
    assert figure.low < figure.value < figure.high
    assert ratio_figure([0, 0], [3, 3]) == Figure(0.0, 0.0, 0.0)


def test_what_is_not_known_is_left_out_and_never_zero() -> None:
    assert mean_figure([None, 2.0, None]).value == 2.0
    assert mean_figure([None]).value is None
    assert mean_figure([None]).percent() == "-"
    row = figures([finding(SOURCE, "a", 0, ended=None)])[0]
    assert row.ended.value is None and row.whisper_wer.value == 0


def test_texts_are_dealt_out_as_the_corpus_deals_them() -> None:
    source = np.ones(9, np.float32)
    lines = lines_of(["one", "two", "three"], ["a", "b"], {("two", "b"): source})
    assert [(line.text, line.speaker, line.source is None) for line in lines] == [
        ("one", "a", True), ("two", "b", False), ("three", "b", True),
    ]  # fmt: skip


def test_the_share_of_right_speakers_counts_those_that_were_judged() -> None:
    row = figures([finding("x", "a", 0), finding("x", "b", 0)])[0]
    assert row.right_speaker.value == 0.5 and row.distill_mos.value == 3.5


def test_what_was_found_is_read_back(tmp_path) -> None:
    judged = Evaluation([finding("x", "a", 1)], [Trait("pause", "0.4 s", 0.4, 0.3, 0.5, "0.4 s")])
    write(tmp_path / "evaluation.json", judged)
    assert read(tmp_path / "evaluation.json") == judged


def test_a_journal_gives_back_whole_arms_of_the_same_voice_only(tmp_path) -> None:
    path = tmp_path / "evaluation.partial.jsonl"
    first = Journal(path, "voice a", resume=False)
    kept = first.keep("x", [finding("x", "a", 1), finding("x", "b", 0)])
    first.keep("nobody", [])
    with path.open("a") as stream:
        stream.write('{"arm": "torn", "findi')
    assert Journal(path, "voice a", resume=True).arms == {"x": kept, "nobody": []}
    assert Journal(path, "voice a", resume=True).arms == {"x": kept, "nobody": []}
    assert Journal(path, "voice b", resume=True).arms == {}
    assert Journal(path, "voice a", resume=True).arms == {}
    path.write_text("")  # cut off before its first line
    assert Journal(path, "voice a", resume=True).arms == {}
    Journal(path, "voice a", resume=False).close()
    assert not path.exists()


def test_speakers_are_told_apart() -> None:
    table = by_speaker([finding("x", "a", 0), finding("x", "b", 2), finding("x", "b", 0)])
    assert table["x"]["a"].value == 0 and table["x"]["b"].value == pytest.approx(0.25)


def test_the_card_is_rewritten_between_its_marks_only(tmp_path) -> None:
    card = tmp_path / "CARD.md"
    card.write_text(f"# Card\n\n{BEGIN}\nold\n{END}\n\nlast words\n")
    found = [finding(SOURCE, "a", 0, ended=None), finding("digits, hidden path, chattts", "a", 1)]
    judged = Evaluation(found, [Trait("fp32", "WER 1 %", 0.01, 0.0, 0.02, "the voice itself")])
    write_figures(card, judged)
    once = card.read_text()
    assert once.startswith("# Card\n") and once.endswith("last words\n") and "old" not in once
    assert figure_table(found) in once and speaker_table(found) in once and trait_table(judged.traits) in once
    assert "25.0 % [25.0, 25.0]" in once
    write_figures(card, judged)
    assert card.read_text() == once


def test_a_card_without_marks_is_refused(tmp_path) -> None:
    (tmp_path / "CARD.md").write_text("# Card\n")
    with pytest.raises(UserError, match="marks"):
        write_figures(tmp_path / "CARD.md", Evaluation([finding("x", "a", 0)], []))


def test_curves_need_logs_and_then_are_drawn(tmp_path) -> None:
    assert not draw_curves(tmp_path, tmp_path / "c.png")
    for stage, key in CURVES:
        (tmp_path / stage).mkdir()
        lines = [{"step": n, key: 1.0 / n, f"valid_{key}": 2.0 / n} for n in (1, 2, 3)]
        (tmp_path / stage / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert draw_curves(tmp_path, tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_a_summary_is_one_line() -> None:
    assert summary([finding("x", "a", 1)]).startswith("1 clips, WER Whisper 25.0 %")
    assert summary([]) == "nothing to judge"
