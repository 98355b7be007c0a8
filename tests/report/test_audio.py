"""Clips on a page: small, playable, and drawn on the time axis they are given."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import soundfile
from PIL import Image

from labkit.report.audio import FLOOR_DB, opus_uri, spectrogram_db, spectrogram_uri
from tests.results.factory import clip


def _content(uri: str, kind: str) -> io.BytesIO:
    head, body = uri.split(",", 1)
    assert head == f"data:{kind};base64"
    return io.BytesIO(base64.b64decode(body))


def test_opus_is_small_and_keeps_the_length() -> None:
    samples = clip(seconds=3.0)
    content = _content(opus_uri(samples), "audio/ogg")
    assert len(content.getvalue()) < len(samples) * 2 / 5
    read, rate = soundfile.read(content)
    assert len(read) / rate == pytest.approx(3.0, abs=0.05)


def test_the_loudest_row_of_a_spectrogram_is_the_tone() -> None:
    tone = np.sin(2 * np.pi * 1500 * np.arange(24_000) / 24_000).astype(np.float32)
    level = spectrogram_db(tone)
    assert level.shape[0] == 513
    assert level[:, 40].argmax() == pytest.approx(1500 / (24_000 / 1024), abs=1)
    assert level.max() == 0


@pytest.mark.parametrize(
    "samples", [np.zeros(2400, np.float32), np.zeros(1, np.float32), np.zeros(0, np.float32)]
)
def test_silence_and_scraps_are_drawn_as_background(samples: np.ndarray) -> None:
    assert (spectrogram_db(samples) == FLOOR_DB).all()
    assert Image.open(_content(spectrogram_uri(samples, seconds=1.0), "image/webp")).size == (480, 96)


def test_a_short_clip_leaves_the_rest_of_the_axis_dark() -> None:
    picture = Image.open(_content(spectrogram_uri(clip(seconds=0.5), seconds=2.0), "image/webp"))
    pixels = np.asarray(picture.convert("L"), float)
    assert pixels[:, :110].mean() > 4 * pixels[:, 140:].mean()
