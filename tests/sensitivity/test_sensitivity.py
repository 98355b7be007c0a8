"""The table of sensitivity on the tiny voice, its chart, and requests that are refused before any work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from labkit.calibration import CalibrationSet, calibration_set, recordings
from labkit.errors import CalibrationError, SpecError, UserError
from labkit.model.checkpoint import load_decoder, load_gpt
from labkit.sensitivity import at_bits, by_part, files, sensitivity, sensitivity_bars
from labkit.sensitivity.comparing import FIGURES, GptComparison, mean_figures
from labkit.voices import Voice

pytestmark = pytest.mark.filterwarnings("ignore:voice .* has random weights")


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABKIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(recordings, "RANDOM_STEPS", 4)
        yield


def table_of(voice: Voice, **options) -> pd.DataFrame:
    return sensitivity(voice, **{"corpus": "english-calibration", "texts": 10, **options})


@pytest.fixture(scope="module")
def table(tiny_voice: Voice, cache) -> pd.DataFrame:
    with pytest.warns(UserWarning, match="random weights"):
        return table_of(tiny_voice, stages=("vocoder", "gpt", "decoder"), bits=(8, 4))


def test_every_part_of_every_stage_has_a_row_for_every_number_of_bits(table: pd.DataFrame) -> None:
    assert list(dict.fromkeys(table["stage"])) == ["gpt", "decoder", "vocoder"]
    gpt = table[table["stage"] == "gpt"]
    assert list(gpt["unit"].drop_duplicates()) == [
        "layers.0", "layers.1", "qkv", "out", "gate_up", "down", "code_head", "every block",
    ]  # fmt: skip
    assert not table.duplicated(["stage", "unit", "bits"]).any()
    assert (table.groupby(["stage", "unit"]).size() == 2).all()
    assert set(table["scheme"]) == {"channel"}


def test_fewer_bits_are_further_from_float32(table: pd.DataFrame) -> None:
    for metric in ("mel_db", "kl", "hidden_error"):
        wide = table.dropna(subset=[metric]).pivot_table(
            index=["stage", "unit"], columns="bits", values=metric
        )
        changed = wide[wide[8] > 0]
        assert len(changed) >= 7 and (changed[4] > 3 * changed[8]).all(), metric
    top1 = table.dropna(subset=["top1"]).pivot_table(index="unit", columns="bits", values="top1")
    assert (top1[8] >= top1[4]).all() and top1.max().max() <= 1


def test_a_whole_stage_is_hurt_more_than_each_block(table: pd.DataFrame) -> None:
    for (_, _), rows in table[table["bits"] == 4].groupby(["stage", "bits"]):
        blocks = rows.loc[rows["kind"] == "block", "mel_db"]
        assert rows.loc[rows["kind"] == "all", "mel_db"].item() > blocks.max()


def test_heads_change_codes_and_not_hidden_states(table: pd.DataFrame) -> None:
    heads = table[table["unit"] == "code_head"]
    assert (heads["kl"] > 0).all() and (heads["hidden_error"] == 0).all() and (heads["mel_db"] == 0).all()


def test_what_a_stage_cannot_tell_is_missing_and_not_zero(table: pd.DataFrame) -> None:
    acoustic = table[table["stage"] != "gpt"]
    assert acoustic[["kl", "top1", "nll_delta", "hidden_error"]].isna().all(axis=None)
    assert acoustic["mel_db"].notna().all()


def test_an_unchanged_network_is_at_no_distance(tiny_voice: Voice) -> None:
    recorded = calibration_set(tiny_voice, "english-calibration", 10, minimum=10)
    comparison = GptComparison(recorded, load_gpt(tiny_voice.folder), load_decoder(tiny_voice.folder))
    figures = mean_figures(comparison.sentences())
    assert set(figures) == set(FIGURES) and figures["top1"] == 1.0
    assert all(figures[name] == 0.0 for name in ("kl", "nll_delta", "hidden_error", "mel_db"))


def test_the_divergence_is_the_textbook_one(tiny_voice: Voice) -> None:
    recorded = calibration_set(tiny_voice, "english-calibration", 10, minimum=10)
    gpt = load_gpt(tiny_voice.folder, decoding_layout=False)
    comparison = GptComparison(recorded, gpt, None)
    gpt.code_head.weight.mul_(2.0)  # logits twice as large
    logits = [wanted[1].double().numpy() for wanted in comparison.wanted]
    p, q = ([np.exp(s * x) / np.exp(s * x).sum(-1, keepdims=True) for x in logits] for s in (1, 2))
    expected = np.mean([(a * np.log(a / b)).sum(-1).mean() for a, b in zip(p, q, strict=True)])
    figures = mean_figures(comparison.sentences())
    assert figures["kl"] == pytest.approx(expected, rel=1e-3)
    assert figures["top1"] == 1.0 and np.isnan(figures["mel_db"])


def test_the_codes_path_hears_no_hidden_states(tiny_voice: Voice) -> None:
    table = table_of(tiny_voice, bits=(4,), kinds=("all",), audio_path="codes", block=8)
    gpt, decoder = table.iloc[0], table.iloc[1]
    assert np.isnan(gpt["mel_db"]) and gpt["kl"] > 0 and decoder["mel_db"] > 0
    assert set(table["scheme"]) == {"block-8"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stages": ("gtp",)}, "stage 'gtp' is unknown; known: gpt, decoder, vocoder"),
        ({"stages": ()}, "no stage was asked for"),
        ({"bits": (8, 16)}, "number of bits 16 is unknown; known: 2, 3"),
        ({"kinds": ("blocks",)}, "kind 'blocks' is unknown"),
        ({"block": 32, "stages": ("gpt",)}, r"block size 32 does not divide the 48 inputs of layers\.0\.qkv"),
    ],
)
def test_wrong_requests_are_named_before_a_sentence_is_spoken(
    tiny_voice: Voice, options, words, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CalibrationSet, "record", lambda *_: pytest.fail("work was begun"))
    with pytest.raises(SpecError, match=words):
        table_of(tiny_voice, **options)


@pytest.mark.parametrize("options", [{"texts": 9}, {"corpus": "nano-eval"}])
def test_too_few_texts_and_evaluation_lists_are_refused(tiny_voice: Voice, options) -> None:
    with pytest.raises(CalibrationError):
        table_of(tiny_voice, **options)


def test_the_chart_has_a_bar_for_each_part_and_width(table: pd.DataFrame, tmp_path: Path) -> None:
    figure = sensitivity_bars(table, stage="decoder", metric="mel_db", bits=(8, 4))
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "blocks.0", "blocks.1", "decoder.conv_in", "decoder.conv_out", "out_conv",
    ]  # fmt: skip
    assert len(axes.patches) == 10
    figure.savefig(tmp_path / "bars.png")
    assert sensitivity_bars(table, stage="decoder", metric="kl") is None


def test_one_figure_is_read_by_part_and_bits(table: pd.DataFrame) -> None:
    wide = by_part(table, "gpt", "top1")
    assert list(wide.columns) == ["kind", "unit", "parameters", "8 bits", "4 bits"]
    assert list(wide["unit"]) == list(table.loc[table["stage"] == "gpt", "unit"].drop_duplicates())
    row = table[(table["unit"] == "qkv") & (table["bits"] == 4)]
    assert wide.loc[wide["unit"] == "qkv", "4 bits"].item() == row["top1"].item()


def test_every_figure_is_read_by_part_at_one_number_of_bits(table: pd.DataFrame) -> None:
    gpt = at_bits(table, "gpt", 4)
    assert list(gpt.columns) == ["kind", "unit", "parameters", "sqnr_db", *FIGURES]
    assert "kl" not in at_bits(table, "decoder", 4) and "mel_db" in at_bits(table, "decoder", 4)


def test_files_are_written_where_asked_and_refused_before(table: pd.DataFrame, tmp_path: Path) -> None:
    files.check_writable(tmp_path / "table.csv", tmp_path)
    (path,) = files.write_table(table, tmp_path / "table.csv")
    pd.testing.assert_frame_equal(pd.read_csv(path), table, check_dtype=False)
    names = {chart.name for chart in files.write_charts(table, tmp_path)}
    assert names == {"sensitivity-gpt.png", "sensitivity-decoder.png", "sensitivity-vocoder.png"}
    with pytest.raises(UserError, match=r"nowhere is no folder"):
        files.check_writable(None, tmp_path / "nowhere")
