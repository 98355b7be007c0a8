"""Word boundaries by forced alignment (pocketsphinx). Training aids only: nothing of this reaches the voice.

The decoder gets the text and 16 kHz audio with 0.2 s of faint noise around it, and answers start and end of each word.
An utterance that will not align is given back as None and simply does without the aids.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labkit.training.corpus import SAMPLE_RATE, read_shard, shards

PAD_S = 0.2
FRAMES_PER_SECOND = 100

Boundaries = list[tuple[float, float]]  # start and end of each word, seconds from the start of the clip


def to_recognizer(audio: np.ndarray, pad_s: float = PAD_S) -> bytes:
    """24 kHz float audio -> 16 kHz 16-bit PCM with faint noise at both ends, which pocketsphinx needs to settle."""
    from scipy.signal import resample_poly

    audio = resample_poly(audio, 2, 3)
    pad = int(pad_s * 16_000)
    noise = np.random.default_rng(0).standard_normal(len(audio) + 2 * pad) * 1e-4
    return (np.clip(np.pad(audio, pad) + noise, -1, 1) * 32767).astype(np.int16).tobytes()


class Aligner:
    def __init__(self) -> None:
        from pocketsphinx import Decoder

        self._decoder = Decoder(samprate=16_000, loglevel="FATAL", bestpath=False, cmn="batch")

    def __call__(self, audio: np.ndarray, words: Sequence[str]) -> Boundaries | None:
        """Start and end of each word in seconds, or None when the words do not fit the audio."""
        try:
            self._decoder.set_align_text(" ".join(words))
            self._decoder.start_utt()
            self._decoder.process_raw(to_recognizer(audio), full_utt=True)
            self._decoder.end_utt()
        except RuntimeError:  # pocketsphinx says so when no alignment reaches the end
            return None
        segments = [
            (
                s.word.split("(")[0],
                s.start_frame / FRAMES_PER_SECOND - PAD_S,
                (s.end_frame + 1) / FRAMES_PER_SECOND - PAD_S,
            )
            for s in self._decoder.seg()
            if not s.word.startswith(("<", "["))
        ]
        if [word for word, _, _ in segments] != list(words):
            return None
        return [(round(max(0.0, start), 3), round(end, 3)) for _, start, end in segments]


def align_shard(path: Path, aligner: Aligner) -> dict[int, Boundaries]:
    """Boundaries by item index for one shard, kept beside it as JSON."""
    kept = path.with_suffix(".align.json")
    if kept.exists():
        return {
            int(index): [tuple(b) for b in words] for index, words in json.loads(kept.read_text()).items()
        }
    found = {}
    for clip in read_shard(path)[0]:
        boundaries = aligner(clip.audio, clip.item.words)
        if boundaries is not None:
            found[clip.item.index] = boundaries
    scratch = kept.with_suffix(".tmp")
    scratch.write_text(json.dumps(found))
    scratch.replace(kept)
    return found


def align_corpus(folder: Path) -> dict[int, Boundaries]:
    """Boundaries of every clip on disk that could be aligned."""
    aligner = Aligner()
    return {index: words for path in shards(folder) for index, words in align_shard(path, aligner).items()}


def spread_evenly(audio: np.ndarray, words: int) -> Boundaries:
    """Equal shares of the clip for each word: good enough for speech that is made isochronous."""
    share = len(audio) / SAMPLE_RATE / words
    return [(round(k * share, 3), round((k + 1) * share, 3)) for k in range(words)]
