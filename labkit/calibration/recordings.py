"""Sentences spoken once by the reference recipe, kept on disk, read back as the inputs of each stage.

One file per sentence under `<cache>/calibration/<hash>/`, each written whole, so an interrupted recording goes on where
it stopped. A voice of random weights never ends by itself: for it the codes are seeded random numbers.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labkit.calibration.files import ARRAYS, read_recording, unwritable, write_recording
from labkit.calibration.texts import (
    MIN_SENTENCES,
    calibration_texts,
    default_corpus,
    judging_corpus,
    judging_texts,
)
from labkit.engines.base import FloatArray, IntArray
from labkit.errors import InvalidAudioError, LabError
from labkit.model.checkpoint import load_embeddings
from labkit.spec import AudioPath, StageName
from labkit.synthesis import Prepared, Request, Timings, prepare
from labkit.synthesis.loop import Generation
from labkit.synthesis.whole import features_of
from labkit.text.corpus import CorpusText
from labkit.voices import Voice, cache_folder

if TYPE_CHECKING:
    from labkit.engines.torch_stages import TorchGpt, TorchNetwork
    from labkit.model.checkpoint import Embeddings
    from labkit.model.speaker import SpeakerEmbedding

Progress = Callable[[str], None]

RANDOM_STEPS = 64
"""Length of the random codes of a voice of random weights: 1.4 s of audio."""
MAX_STEPS = 768
"""16 s: a sentence that runs on for longer has derailed, and its states are none to calibrate on."""
_BATCH = 8  # sentences spoken at once: at full size a step reads the weights once for all of them
_FORMAT = 1  # raise when the same hash starts to mean other recordings


@dataclass(frozen=True)
class Recording:
    """One sentence. ids: [S] of the prompt; codes: [T, 4]; hidden: [T, D]; mel: [100, 2T]; T is never 0."""

    text: str
    ids: IntArray
    codes: IntArray
    hidden: FloatArray
    mel: FloatArray


@dataclass(frozen=True)
class CalibrationSet:
    """A list of sentences in one voice; see `calibration_set`. Making one does no work."""

    voice: Voice
    texts: tuple[CorpusText, ...]
    seed: int
    speaker: SpeakerEmbedding | None
    audio_path: AudioPath
    threads: int = 1

    @cached_property
    def content_hash(self) -> str:
        """Everything that decides what is recorded."""
        parts = {
            "format": _FORMAT,
            "weights": self.voice.weights_hash,
            "texts": [text.text for text in self.texts],
            "seed": self.seed,
            "speaker": None if self.speaker is None else self.speaker.to_string(),
            "audio_path": self.audio_path,
            "max_steps": MAX_STEPS,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def folder(self) -> Path:
        return cache_folder() / "calibration" / self.content_hash

    def record(self, progress: Progress | None = None) -> None:
        """Speak what is not yet on disk; LabError when it cannot be written."""
        missing = [i for i in range(len(self.texts)) if read_recording(self._file(i)) is None]
        if missing:
            self._speak(missing, progress or (lambda _: None))

    def recordings(self, progress: Progress | None = None) -> Iterator[Recording]:
        """The recordings, one at a time from disk; sentences of which the voice said nothing are left out.

        InvalidAudioError, after the last one, when those are most of them.
        """
        self.record(progress)
        said = 0
        for i, text in enumerate(self.texts):
            arrays = read_recording(self._file(i))
            if arrays is None:
                raise LabError(
                    f"calibration: {self._file(i)} cannot be read back; delete {self.folder} and check the disk."
                )
            if len(arrays["codes"]):
                said += 1
                yield Recording(text.text, *(arrays[name] for name in ARRAYS))
        if said <= len(self.texts) // 2:
            raise InvalidAudioError(
                f"calibration: voice {self.voice.name!r} says something for only {said} of {len(self.texts)} "
                "sentences; try another list, seed or speaker."
            )

    def feeds(self, stage: StageName, progress: Progress | None = None) -> Iterator[dict[str, NDArray[Any]]]:
        """What a stage is fed, a sentence at a time, under the input names of the exported graphs.

        gpt: `embeddings` [1, S + T, D], the prompt's and then those of each decode step: fed at once to an empty cache,
        every product sees what it sees in prefill and decoding. decoder: `hidden` [1, T, D], or `codes` [1, T, 4] on
        that audio path. vocoder: `mel` [1, 100, 2T].
        """
        embeddings = load_embeddings(self.voice.folder) if stage == "gpt" else None
        for each in self.recordings(progress):
            if embeddings is not None:
                yield {"embeddings": self._embed(each, embeddings)[None]}
            elif stage == "vocoder":
                yield {"mel": each.mel[None]}
            else:
                features = each.codes if self.audio_path == "codes" else each.hidden
                yield {self.audio_path: features[None]}

    def _embed(self, recording: Recording, embeddings: Embeddings) -> FloatArray:
        prompt = embeddings.text_rows(recording.ids)
        if self.speaker is not None:
            prompt[recording.ids == self._speaker_token] = self.speaker.normalized()
        books = np.arange(recording.codes.shape[1])
        steps = embeddings.code[books, recording.codes].sum(axis=1, dtype=np.float32)
        return np.concatenate([prompt, steps])

    def _file(self, i: int) -> Path:
        return self.folder / f"{i:03d}.npz"

    def _speak(self, missing: Sequence[int], progress: Progress) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(self.folder, error) from error
        gpt, decoder = self._stages()
        try:
            for start in range(0, len(missing), _BATCH):
                batch = missing[start : start + _BATCH]
                progress(f"calibration: sentence {start + 1} of {len(missing)}: {self.texts[batch[0]].text}")
                rows = [
                    prepare(self.voice, Request(self.texts[i].text, self.speaker, self.seed)) for i in batch
                ]
                generation = self._generate(gpt, rows, batch)
                for row, i in enumerate(batch):
                    features = features_of(generation, row, self.audio_path)
                    length = len(features)
                    mel = decoder(features[None])[0] if length else np.zeros((0, 0), np.float32)
                    write_recording(
                        self._file(i),
                        ids=rows[row].ids,
                        codes=generation.codes[row, :length],
                        hidden=generation.hidden[row, :length],
                        mel=mel,
                    )
        finally:
            gpt.close()
            decoder.close()

    def _generate(self, gpt: TorchGpt, rows: list[Prepared], numbers: Sequence[int]) -> Generation:
        config = self.voice.config.gpt
        replay = None
        if not self.voice.for_quality:
            generators = [np.random.Generator(np.random.Philox(key=[self.seed, i])) for i in numbers]
            shape = (RANDOM_STEPS, config.num_codebooks)
            replay = [generator.integers(0, config.end_code, shape) for generator in generators]
        generation = Generation(
            gpt, config, rows,
            max_steps=MAX_STEPS, replay=replay, timings=Timings(), started=time.perf_counter(),
        )  # fmt: skip
        for _ in generation.steps():
            pass
        return generation

    def _stages(self) -> tuple[TorchGpt, TorchNetwork]:
        """GPT and decoder in torch fp32: what the reference recipe runs."""
        import torch

        from labkit.engines.torch_stages import TorchGpt, TorchNetwork
        from labkit.model.checkpoint import load_decoder, load_dvae, load_gpt

        torch.set_num_threads(self.threads)
        folder = self.voice.folder
        decoder = load_dvae(folder) if self.audio_path == "codes" else load_decoder(folder)
        return TorchGpt(load_gpt(folder), self._speaker_token), TorchNetwork(decoder)

    @property
    def _speaker_token(self) -> int:
        return self.voice.tokenizer().token_id("[spk_emb]")


def calibration_set(
    voice: Voice,
    corpus: str | None = None,
    sentences: int = 100,
    *,
    seed: int = 0,
    speaker: str | None = None,
    audio_path: AudioPath = "hidden",
    threads: int = 1,
    minimum: int = MIN_SENTENCES,
) -> CalibrationSet:
    """Describe a set without any work; CalibrationError for a list that will not do.

    `corpus`: a calibration list of the manifest, several joined by `+`, or a .txt file; None chooses by the voice.
    `minimum`: the fewest sentences that the caller can use.
    """
    texts = calibration_texts(corpus or default_corpus(voice), sentences, minimum=minimum)
    return CalibrationSet(voice, texts, seed, voice.speaker(speaker), audio_path, threads)


def judging_set(
    voice: Voice,
    corpus: str | None = None,
    sentences: int = 40,
    *,
    seed: int = 0,
    speaker: str | None = None,
    threads: int = 1,
) -> CalibrationSet:
    """The like of `calibration_set` for judging what was calibrated: sentences of evaluation lists.

    `corpus`: one of them or several joined by `+`; None chooses by the voice; a shorter one is taken whole.
    """
    texts = judging_texts(corpus or judging_corpus(voice), sentences)
    return CalibrationSet(voice, texts, seed, voice.speaker(speaker), "hidden", threads)
