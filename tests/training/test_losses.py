"""What the acoustic stages minimize is zero where it should be, and grows where speech gets worse."""

from __future__ import annotations

import pytest
import torch

from labkit.model.config import NANO
from labkit.model.dvae import Dvae
from labkit.training.adversary import Adversary, AdversaryPrice
from labkit.training.corpus import Clip, Item
from labkit.training.decoder import hidden_states
from labkit.training.dvae import mel_losses, mel_of, perplexities, reconstruct, rms_per_bin
from labkit.training.tones import Tones
from labkit.training.vocoder import spectral_losses


@pytest.fixture(scope="module")
def clip() -> Clip:
    return Clip(Item(0, "a", "train", "one two", 1.0), Tones().speak("one two", "a"))


def test_a_clip_has_two_mel_frames_for_every_step(clip: Clip) -> None:
    mel = mel_of(clip)
    codes = Dvae(NANO.dvae, NANO.audio).eval().encode(mel[None])
    assert mel.shape[1] == 2 * codes.shape[1]


def test_equal_signals_cost_nothing_and_noise_costs_more(clip: Clip) -> None:
    wave = torch.from_numpy(clip.audio)[None]
    torch.manual_seed(0)
    noise = torch.randn_like(wave)
    costs = [sum(spectral_losses(wave + level * noise, wave)).item() for level in (0.0, 0.01, 0.1)]
    assert costs[0] == pytest.approx(0, abs=1e-6) and costs[0] < costs[1] < costs[2]


def test_mel_losses_see_level_and_movement_apart() -> None:
    mel = torch.randn(2, 100, 20)
    l1, delta = mel_losses(mel + 0.5, mel)
    assert l1.item() == pytest.approx(0.5) and delta.item() == pytest.approx(0, abs=1e-6)


def test_scales_are_the_rms_of_each_bin() -> None:
    assert torch.allclose(
        rms_per_bin([torch.full((100, 4), -3.0), torch.full((100, 4), 3.0)]), torch.tensor(3.0)
    )


def test_perplexity_counts_used_codes() -> None:
    codes = torch.stack([torch.zeros(64), torch.arange(64) % 8], 1).long()
    assert perplexities(codes, 625) == pytest.approx([1.0, 8.0], rel=1e-3)


def test_every_part_of_the_dvae_is_trained(clip: Clip) -> None:
    torch.manual_seed(0)
    dvae = Dvae(NANO.dvae, NANO.audio)
    mel = mel_of(clip)[None]
    mel_losses(reconstruct(dvae, mel), mel)[0].backward()
    assert [name for name, p in dvae.named_parameters() if p.grad is None or not p.grad.any()] == []


def test_the_discriminators_learn_and_the_vocoder_pays_through_them() -> None:
    adversary = Adversary(AdversaryPrice(), seed=3)
    before = [p.clone() for p in adversary.judges.parameters()]
    torch.manual_seed(0)
    predicted = torch.randn(2, 8192, requires_grad=True)
    loss, figures = adversary.loss(predicted, torch.randn(2, 8192))
    loss.backward()
    assert predicted.grad is not None and predicted.grad.any()
    assert any(not torch.equal(a, b) for a, b in zip(before, adversary.judges.parameters(), strict=True))
    assert figures["judges"] > 0 and figures["matched"] > 0
    assert set(adversary.companions()) == {"judges", "judges_optimizer"}


def test_hidden_states_stand_one_for_each_code() -> None:
    from labkit.model.gpt import Gpt
    from labkit.training.codes import Utterance
    from labkit.training.recipe import NANO_RECIPE
    from labkit.training.vocabulary import prompt_ids, word_positions

    torch.manual_seed(0)
    gpt = Gpt(NANO_RECIPE.config.gpt).eval()
    codes = torch.randint(0, 625, (7, 4))
    u = Utterance("one two", "a", "train", prompt_ids("one two"), word_positions("one two"), codes, None)
    speaker = torch.nn.functional.normalize(torch.randn(192), dim=0)
    found = hidden_states(gpt, u, speaker)
    cache = gpt.new_cache(1, 32)
    prompt = gpt.embed_text(torch.tensor([u.ids]))
    prompt[0, 1] = speaker
    with torch.no_grad():
        steps = [gpt.prefill(prompt, torch.ones(1, len(u.ids), dtype=torch.bool), cache)]
        steps += [gpt.step(codes[t : t + 1], cache) for t in range(6)]
    torch.testing.assert_close(found, torch.cat(steps), atol=1e-4, rtol=1e-4)
