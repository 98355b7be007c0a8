"""Driving recipes through the stage protocol, teacher-forced."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.calibration import CalibrationSet, calibration_set, recordings
from labkit.engines.torch_stages import TorchGpt, TorchNetwork
from labkit.model.checkpoint import load_decoder, load_gpt
from labkit.model.rounding import round_blocks
from labkit.search import search, trials
from labkit.sensitivity.comparing import mean_figures
from labkit.sensitivity.measuring import comparison_of
from labkit.voices import Voice

pytestmark = pytest.mark.filterwarnings("ignore:voice .* has random weights")


@pytest.fixture
def recorded(blocky_voice: Voice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CalibrationSet:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    monkeypatch.setattr(recordings, "RANDOM_STEPS", 5)
    return calibration_set(blocky_voice, "english-calibration", 10, minimum=10)


def stages(voice: Voice, bits: int | None) -> trials._Stages:
    gpt = load_gpt(voice.folder)
    if bits:
        round_blocks(gpt, "all", bits)
    speaker_token = voice.tokenizer().token_id("[spk_emb]")
    return trials._Stages(TorchGpt(gpt, speaker_token), TorchNetwork(load_decoder(voice.folder)), 0, 0)


def test_a_stage_that_is_driven_step_by_step_is_compared_at_the_same_steps(
    blocky_voice: Voice, recorded: CalibrationSet
) -> None:
    comparison = comparison_of("gpt", recorded)
    both = {"exact": stages(blocky_voice, None), "rounded": stages(blocky_voice, 4)}
    rows, seconds = trials._drive_all(both, recorded, comparison)
    exact = mean_figures(rows["exact"])
    assert abs(exact["kl"]) < 1e-6 and exact["top1"] == 1.0
    assert exact["hidden_error"] < 1e-4 and exact["mel_db"] < 1e-2
    round_blocks(comparison.network, "all", 4)
    wanted = mean_figures(comparison.sentences())
    assert mean_figures(rows["rounded"]) == pytest.approx(wanted, rel=0.01, abs=1e-5)
    assert all(len(each) == 10 and min(each) > 0 for each in seconds.values())


@pytest.mark.slow
def test_a_search_from_nothing(blocky_voice: Voice, recorded: CalibrationSet) -> None:
    found = search(
        blocky_voice, budget=["kl<1", "mel<50"], minimize="size", corpus="english-calibration", texts=10
    )
    assert found.chosen is not None
    measured, predicted = found.chosen.measured.figures(), found.chosen.predicted
    assert measured["size"] == pytest.approx(predicted["size"], rel=0.05)
    assert measured["kl"] == pytest.approx(predicted["kl"], rel=0.5)
    assert found.corners["int4-weight"].gpt_bytes < found.corners["int8-weight"].gpt_bytes
