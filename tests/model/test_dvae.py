from __future__ import annotations

import torch

from labkit.model.dvae import Decoder, Dvae
from tests.conftest import TINY


def test_one_step_makes_two_frames() -> None:
    decoder = Decoder(TINY.decoder, TINY.audio)
    assert decoder(torch.randn(2, 9, 48)).shape == (2, 100, 18)


def test_the_two_halves_of_a_step_stand_side_by_side_in_time() -> None:
    """With a stack that passes its input through, frame 2t is the first half of step t and 2t+1 the second."""
    decoder = Decoder(TINY.decoder, TINY.audio)
    decoder.decoder = torch.nn.Identity()
    decoder.out_conv = torch.nn.Identity()
    decoder.coef = torch.ones(1, 24, 1)
    hidden = torch.randn(1, 5, 48)
    mel = decoder(hidden)
    assert torch.equal(mel[0, :, 0::2].T, hidden[0, :, :24])
    assert torch.equal(mel[0, :, 1::2].T, hidden[0, :, 24:])


def test_coef_scales_the_result() -> None:
    decoder = Decoder(TINY.decoder, TINY.audio)
    hidden = torch.randn(1, 4, 48)
    plain = decoder(hidden)
    decoder.coef[0, 7] = 3.0
    assert torch.allclose(decoder(hidden)[:, 7], 3 * plain[:, 7])
    assert torch.equal(decoder(hidden)[:, 8], plain[:, 8])


def test_encoding_a_wave_gives_a_code_row_every_two_frames() -> None:
    dvae = Dvae(TINY.dvae, TINY.audio)
    codes = dvae.encode_wave(torch.randn(2, 512 * 10))
    assert codes.shape == (2, 10, 4) and codes.dtype == torch.int64
    assert dvae.decode(codes).shape == (2, 100, 20)
    assert torch.equal(dvae(codes), dvae.decode(codes))


def test_the_encoder_sees_the_mel_divided_by_coef() -> None:
    dvae = Dvae(TINY.dvae, TINY.audio)
    mel = torch.randn(1, 100, 12)
    features = dvae.encode_features(mel)
    dvae.coef *= 4
    assert torch.allclose(dvae.encode_features(4 * mel), features, atol=1e-5)
