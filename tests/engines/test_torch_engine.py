from __future__ import annotations

import numpy as np
import pytest
import torch

from labkit.artifacts import check_recipe
from labkit.engines.base import Artifact, Available, Unavailable
from labkit.engines.torch_engine import TorchEngine, _lay_precision
from labkit.engines.torch_stages import TorchGpt
from labkit.errors import SpecError, UnavailableError
from labkit.model.checkpoint import load_gpt
from labkit.spec import Recipe, StageChoice, StageName
from labkit.voices import Voice
from tests.engines.driving import codes, drive, largest_difference, prompts

SPEAKER_TOKEN = 7


def load(
    voice: Voice,
    stage: StageName,
    precision: str = "fp32",
    audio_path: str = "hidden",
    device: str = "cpu",
    **options,
):
    artifact = Artifact(
        stage=stage, choice=StageChoice(precision=precision, options=options), folder=voice.folder, files=(),
        size_bytes=0, build_s=0.0, cached=False, content_hash="", voice_folder=voice.folder,
        details={"speaker_token": SPEAKER_TOKEN},
    )  # fmt: skip
    return TorchEngine().load(stage, artifact, device=device, threads=1, audio_path=audio_path)


def inputs(voice: Voice, lengths: tuple[int, ...]):
    ids, mask = prompts(lengths, voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    speaker = (
        np.random.default_rng(3).standard_normal((len(lengths), voice.config.gpt.hidden)).astype(np.float32)
    )
    return ids, mask, speaker


def test_stage_equals_the_whole_sequence_without_a_cache(tiny_voice: Voice) -> None:
    ids, mask, speaker = inputs(tiny_voice, (6,))
    fed = codes(5, 1)
    outputs = drive(load(tiny_voice, "gpt"), ids, mask, speaker, fed)
    gpt = load_gpt(tiny_voice.folder)
    with torch.inference_mode():
        text = gpt.embed_text(torch.from_numpy(ids))
        text[0, 0] = torch.from_numpy(speaker[0])
        whole = torch.cat([text, gpt.embed_codes(torch.from_numpy(fed.transpose(1, 0, 2)))], 1)
        hidden = gpt(whole)[0, 5:].numpy()
    np.testing.assert_allclose(np.stack([each.hidden[0] for each in outputs]), hidden, atol=2e-5)


def test_speaker_overwrites_only_its_own_token(tiny_voice: Voice) -> None:
    ids, mask, speaker = inputs(tiny_voice, (4,))
    stage = load(tiny_voice, "gpt")
    none = codes(0, 1)
    plain, spoken = (drive(stage, ids, mask, each, none) for each in (None, speaker))
    assert largest_difference(plain, spoken) > 1e-3
    ids[ids == SPEAKER_TOKEN] = SPEAKER_TOKEN + 1
    plain, spoken = (drive(stage, ids, mask, each, none) for each in (None, speaker))
    assert largest_difference(plain, spoken) == 0


def test_outputs_are_float32_host_copies_in_every_precision(tiny_voice: Voice) -> None:
    ids, mask, speaker = inputs(tiny_voice, (4, 3))
    for precision in ("fp32", "bf16"):
        stage = load(tiny_voice, "gpt", precision)
        stage.reset(2, 10)
        first = stage.prefill(ids, mask, speaker)
        before = first.logits.copy()
        stage.step(codes(1, 2)[0])
        assert first.logits.dtype == first.hidden.dtype == np.float32
        assert first.logits.shape == (2, 4, 626)
        np.testing.assert_array_equal(first.logits, before)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_low_precisions_stay_near_and_finite_with_padding(tiny_voice: Voice, precision: str) -> None:
    ids, mask, speaker = inputs(tiny_voice, (9, 1))
    fed = codes(3, 2)
    network = load_gpt(tiny_voice.folder)
    _lay_precision(network, precision, ("code_head",))
    low = drive(TorchGpt(network, SPEAKER_TOKEN), ids, mask, speaker, fed)
    exact = drive(load(tiny_voice, "gpt"), ids, mask, speaker, fed)
    assert 0 < largest_difference(low, exact) < 0.3


@pytest.mark.parametrize(("stage", "audio_path", "shape"), [
    ("decoder", "hidden", (2, 5, 48)), ("decoder", "codes", (2, 5, 4)), ("vocoder", "hidden", (2, 100, 10)),
])  # fmt: skip
def test_networks_keep_their_shapes_and_bf16_stays_near(tiny_voice: Voice, stage, audio_path, shape) -> None:
    rng = np.random.default_rng(0)
    codes_in = audio_path == "codes"
    given = rng.integers(0, 625, shape) if codes_in else rng.standard_normal(shape).astype(np.float32)
    exact, low = (load(tiny_voice, stage, precision, audio_path)(given) for precision in ("fp32", "bf16"))
    assert exact.shape == ((2, 100, 10) if stage == "decoder" else (2, 256 * 9))
    assert exact.dtype == low.dtype == np.float32
    error = np.abs(exact - low).max() / np.abs(exact).max()
    assert 0 < error < 0.05


def test_memory_counts_bytes_of_the_precision(tiny_voice: Voice) -> None:
    gpt = tiny_voice.config.gpt
    linears = gpt.layers * gpt.hidden * (4 * gpt.hidden + 3 * gpt.intermediate)
    for precision, width in (("fp32", 4), ("bf16", 2)):
        stage = load(tiny_voice, "gpt", precision)
        assert "kv_bytes" not in stage.memory()
        stage.reset(3, 20)
        sizes = stage.memory()
        assert (
            sizes["kv_bytes"]
            == 3 * 20 * sizes["kv_row_position_bytes"]
            == 3 * 20 * 2 * gpt.layers * 48 * width
        )
        heads = 4 * 626 * gpt.hidden * 4  # always float32
        assert sizes["step_weights_bytes"] == pytest.approx(linears * width + heads, rel=0.02)
        assert stage.placement() == {"cpu": 4 * gpt.layers + 2 * gpt.layers + 4}


def test_a_gpu_that_is_not_there_is_unavailable_and_not_a_cpu(tiny_voice: Voice, monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    answer = TorchEngine().availability("cuda")
    assert isinstance(answer, Unavailable)
    assert "cpu" in answer.remedy
    with pytest.raises(UnavailableError, match="sees no CUDA device"):
        load(tiny_voice, "gpt", device="cuda")


def test_a_gpu_that_is_there_is_said_to_be_unverified(monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    answer = TorchEngine().availability("cuda:1")
    assert isinstance(answer, Available)
    assert "not yet verified" in answer.note
    assert isinstance(TorchEngine().availability("cuda:2"), Unavailable)
    assert isinstance(TorchEngine().availability("tpu"), Unavailable)


def test_fp16_is_for_cuda_alone(tiny_voice: Voice) -> None:
    assert "fp16" in TorchEngine().precisions("gpt")
    assert "fp16" not in TorchEngine().precisions("gpt", "cpu")
    with pytest.raises(SpecError, match="fp16 on cpu"):
        load(tiny_voice, "gpt", "fp16")


def test_a_step_needs_a_reset(tiny_voice: Voice) -> None:
    with pytest.raises(RuntimeError, match="call reset"):
        load(tiny_voice, "gpt").step(codes(1, 1)[0])


def test_onednn_is_set_aside_only_while_a_few_bf16_rows_step(tiny_voice: Voice, monkeypatch) -> None:
    seen: list[bool] = []
    for precision, rows in (("bf16", 1), ("bf16", 8), ("fp32", 1)):
        stage = load(tiny_voice, "gpt", precision)
        network = stage.network
        monkeypatch.setattr(
            network, "step",
            lambda *args, run=network.step: (seen.append(torch.backends.mkldnn.enabled), run(*args))[1],
        )  # fmt: skip
        ids, mask, speaker = inputs(tiny_voice, (2,) * rows)
        drive(stage, ids, mask, speaker, codes(1, rows))
    assert seen == [False, True, True]
    assert torch.backends.mkldnn.enabled


def test_a_stage_can_be_damaged_on_purpose(tiny_voice: Voice) -> None:
    said = []
    for options in ({"round_blocks": "1", "round_bits": 2}, {}):
        choice = StageChoice(options=options)
        artifact = Artifact(
            stage="gpt", choice=choice, folder=tiny_voice.folder, files=(), size_bytes=0, build_s=0.0, cached=False,
            content_hash="", voice_folder=tiny_voice.folder, details={"speaker_token": SPEAKER_TOKEN},
        )  # fmt: skip
        check_recipe(Recipe(name="hurt", gpt=choice))
        stage = TorchEngine().load("gpt", artifact, device="cpu", threads=1, audio_path="hidden")
        stage.reset(1, 4)
        said.append(stage.prefill(*prompts((3,), 150, SPEAKER_TOKEN), None).logits)
    assert np.abs(said[0] - said[1]).max() > 1e-3


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_numpy_inverts_the_spectrum_as_the_product_does(tiny_voice: Voice, precision: str) -> None:
    mel = np.random.default_rng(0).standard_normal((2, tiny_voice.config.audio.n_mels, 23)).astype(np.float32)
    product, numpy = (load(tiny_voice, "vocoder", precision, istft=how) for how in ("product", "numpy"))
    expected, found = product(mel), numpy(mel)
    assert found.dtype == np.float32 and found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())


def test_only_a_vocoder_has_a_spectrum_to_invert(tiny_voice: Voice) -> None:
    with pytest.raises(SpecError, match="'istft' is for stage 'vocoder'"):
        load(tiny_voice, "gpt", istft="numpy")
