from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file

from labkit.model import layout
from labkit.model.checkpoint import load_decoder, load_gpt, load_vocoder
from labkit.model.random_weights import write_random_weights
from labkit.voices import Voice
from tests.conftest import TINY


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(tiny_voice: Voice, tmp_path: Path) -> None:
    seen: list[str] = []
    write_random_weights(tmp_path / "same", TINY, 3, seen.append)
    write_random_weights(tmp_path / "other", TINY, 4)
    assert sorted(seen) == sorted(layout.WEIGHT_FILES)
    for file in layout.WEIGHT_FILES:
        original = (tiny_voice.folder / file).read_bytes()
        assert (tmp_path / "same" / file).read_bytes() == original
        assert (tmp_path / "other" / file).read_bytes() != original


def test_no_two_tensors_are_alike(tiny_voice: Voice) -> None:
    tensors = load_file(tiny_voice.folder / layout.GPT_WEIGHTS)
    q, k = (tensors[f"layers.0.self_attn.{n}_proj.weight"] for n in "qk")
    assert not torch.equal(q, k)


def test_signals_stay_in_the_range_of_a_trained_voice(tiny_voice: Voice) -> None:
    torch.manual_seed(0)
    gpt = load_gpt(tiny_voice.folder)
    hidden = gpt(gpt.embed_codes(torch.randint(0, 625, (2, 30, 4))))
    assert 0.3 < hidden.std() < 3
    assert 0.3 < gpt.code_logits(hidden).std() < 5
    mel = load_decoder(tiny_voice.folder)(hidden)
    audio = load_vocoder(tiny_voice.folder)(mel)
    assert torch.isfinite(audio).all() and 1e-3 < audio.abs().max() < 10
