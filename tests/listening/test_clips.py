from __future__ import annotations

import numpy as np
import pytest

from labkit.errors import StoreError
from labkit.listening.clips import LEVEL_DB, heard, level, muffle
from labkit.listening.trials import make_test
from labkit.results.store import Store
from tests.listening.conftest import BASE, OTHER


def rms_db(samples: np.ndarray) -> float:
    return float(20 * np.log10(np.sqrt(np.mean(samples.astype(np.float64) ** 2))))


@pytest.mark.parametrize("gain", [0.001, 0.1, 1.0])
def test_everything_is_heard_at_one_level(gain: float) -> None:
    noise = np.random.default_rng(0).normal(0, 0.2, 24_000).astype(np.float32)
    assert rms_db(level(noise * np.float32(gain))) == pytest.approx(LEVEL_DB, abs=0.1)


def test_peaks_do_not_clip_and_silence_stays() -> None:
    click = np.zeros(24_000, np.float32)
    click[100] = 0.5
    assert np.abs(level(click)).max() <= 0.99
    assert not level(np.zeros(10, np.float32)).any()
    assert level(np.zeros(0, np.float32)).size == 0


def test_the_anchor_lacks_what_lies_above_its_edge() -> None:
    t = np.arange(24_000) / 24_000
    low, high = np.sin(2 * np.pi * 500 * t), np.sin(2 * np.pi * 6_000 * t)
    out = muffle((low + high).astype(np.float32))
    assert np.abs(out[2000:-2000] - low[2000:-2000]).max() < 0.01


def test_a_lost_clip_is_named(store: Store) -> None:
    test = make_test(store, [BASE, OTHER])
    clip = next(iter(test.clips.values()))
    store.audio_file(clip.run_id, clip.audio).write_bytes(b"no audio")
    with pytest.raises(StoreError, match=clip.audio):
        heard(store, clip)
