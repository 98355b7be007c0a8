"""The whole journey with real children, on a voice that takes milliseconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.results.schema import RunDocument
from labkit.results.store import Store
from labkit.run import run
from labkit.run.document import EVERY_CLIP
from labkit.spec import Recipe, RunSpec
from labkit.voices import Voice


@pytest.fixture(scope="module")
def document(tiny_voice: Voice, tmp_path_factory: pytest.TempPathFactory) -> RunDocument:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABKIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        spec = RunSpec(
            recipe=Recipe(name="torch-fp32"), voice=str(tiny_voice.folder), corpus="nano-smoke", texts=2,
            scenario="replay", repeats=2, keep_audio=True,
        )  # fmt: skip
        store = tmp_path_factory.mktemp("store")
        made = run(spec, store=store)
        assert Store(store).read(made.run_id) == made
        assert len(list((store / "runs" / made.run_id).glob("*.flac"))) == 2
    return made


def test_it_is_ok_and_says_what_it_measured(document: RunDocument, tiny_voice: Voice) -> None:
    assert (document.status, document.failure) == ("ok", None)
    assert document.weights_hash == tiny_voice.weights_hash and document.environment
    assert {record.stage for record in document.artifacts} == {"gpt", "decoder", "vocoder"}
    assert set(document.placement) == {"gpt", "decoder", "vocoder"}


def test_every_repetition_of_every_text_is_there(document: RunDocument) -> None:
    assert [sample.phase for sample in document.samples] == ["warmup"] + ["measured"] * 4
    for sample in document.samples:
        values = sample.values
        assert 0 < len(sample.series["step_s"]) <= values["steps"]
        parts = [values[name] for name in ("prefill_s", "decode_s", "decoder_s", "vocoder_s")]
        assert sum(parts) <= values["latency_s"]
        assert values["ttft_s"] > 0 and 0 < values["first_step_s"] < values["latency_s"]
        assert values["rtf"] == pytest.approx(values["latency_s"] / values["audio_s"])


def test_the_numbers_of_the_whole_run_have_their_size(document: RunDocument) -> None:
    values = document.measures.values
    assert 30e6 < values["rss_peak_bytes"] < 3e9
    assert values["cold_start_s"] > values["load_s"] > 0
    assert values["bandwidth_bytes_per_s"] > 1e8 and values["roofline_share"] > 0
    assert values["vram_peak_bytes"] is None and document.measures.reasons["vram_peak_bytes"]


def test_random_weights_get_no_quality(document: RunDocument) -> None:
    assert {score.item for score in document.quality} == {EVERY_CLIP}
    assert all("random" in score.reason for score in document.quality)


def test_a_run_that_takes_too_long_is_a_row(
    tiny_voice: Voice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No time at all is too little even to start."""
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    spec = RunSpec(
        recipe=Recipe(name="torch-fp32"), voice=str(tiny_voice.folder), corpus="nano-smoke",
        limits={"seconds": 0.05, "memory_gb": 4.0},
    )  # fmt: skip
    document = run(spec, store=tmp_path)
    assert document.status == "timeout" and document.failure is not None
    assert document.failure.message.startswith("prepare") and document.failure.remedy
