"""Upstream as a recipe that brings its own three stages: one worker process for one run.

It speaks with upstream's own code and the lab's noise, so that the same seed asks for the same draws as any
other recipe, or replays given codes. Times are taken inside the worker around upstream's stages; exchanging
arrays with the worker is outside of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from labkit.model.config import VoiceConfig
from labkit.model.sampling import RowNoise, SamplingParams
from labkit.model.speaker import SpeakerEmbedding
from labkit.upstream.client import Reply, UpstreamProcess
from labkit.upstream.sizes import upstream_sizes

if TYPE_CHECKING:
    from labkit.voices import Voice

FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class UpstreamSpoken:
    """What upstream said for a batch, and what it took.

    Per row: audio [N], codes [T, 4], hidden [T, D]; all empty when a row ended at once, which ends
    upstream's batch. prefill_s: prompt, prefill and first draw; step_s: each further step with its draw,
    for the whole batch.
    """

    audio: tuple[FloatArray, ...]
    codes: tuple[NDArray[np.int64], ...]
    hidden: tuple[FloatArray, ...]
    ended: tuple[bool, ...]
    prefill_s: float
    step_s: tuple[float, ...]
    decoder_s: float | None
    vocoder_s: float | None
    cpu_s: float
    total_s: float
    rss_bytes: int | None
    peak_rss_bytes: int | None


class UpstreamPipeline:
    """A loaded upstream `Chat` in its own process."""

    def __init__(self, process: UpstreamProcess, config: VoiceConfig, loading: dict[str, Any]) -> None:
        self._process = process
        self._config = config
        self.load_s: float = loading["load_s"]
        self.import_s: float = loading["import_s"]
        self.versions: dict[str, str] = process.call("hello").fields["versions"]

    @classmethod
    def load(cls, voice: Voice, *, threads: int = 1, core: int | None = None) -> UpstreamPipeline:
        """Start a worker and load the voice.

        core: pin the worker to this CPU. `UnavailableError` without upstream's environment.
        """
        sizes = upstream_sizes(voice.config)
        process = UpstreamProcess(threads=threads)
        try:
            loading = process.call(
                "load",
                asset=str(voice.folder),
                sizes=sizes,
                threads=threads,
                cores=None if core is None else [core],
            ).fields
            return cls(process, voice.config, loading)
        except BaseException:
            process.close()
            raise

    @property
    def pid(self) -> int:
        """Process id of the worker, for a memory monitor."""
        return self._process.pid

    def speak(
        self,
        texts: Sequence[str],
        *,
        speaker: SpeakerEmbedding | None = None,
        seed: int = 0,
        sampling: SamplingParams | None = None,
        style: str = "[speed_5]",
        audio_path: str = "hidden",
    ) -> UpstreamSpoken:
        """Speak a batch of normalized texts freely; row i draws the noise of `RowNoise(seed, i)`.

        Upstream has no greedy mode and a fixed repetition window; sampling that asks for others is a
        ValueError.
        """
        sampling = sampling or SamplingParams()
        if sampling.greedy or sampling.repetition_window != SamplingParams().repetition_window:
            raise ValueError(
                f"upstream cannot sample as {sampling} asks: it draws, with a fixed repetition window"
            )
        gpt = self._config.gpt
        rows = [RowNoise(seed, row) for row in range(len(texts))]
        shape = (gpt.num_codebooks, gpt.num_code_tokens)
        noise = np.empty(
            (sampling.max_steps, len(texts) * gpt.num_codebooks, gpt.num_code_tokens), np.float32
        )
        for step in range(sampling.max_steps):
            noise[step] = np.concatenate([row.exponential(step, shape) for row in rows])
        settings = {
            "temperature": sampling.temperature,
            "top_P": sampling.top_p,
            "top_K": sampling.top_k,
            "repetition_penalty": sampling.repetition_penalty,
            "max_new_token": sampling.max_steps,
            "min_new_token": sampling.min_steps,
        }
        return self._speak(texts, speaker, style, audio_path, settings, {"noise": noise})

    def replay(
        self,
        texts: Sequence[str],
        codes: Sequence[NDArray[np.int64]],
        *,
        speaker: SpeakerEmbedding | None = None,
        style: str = "[speed_5]",
        audio_path: str = "hidden",
    ) -> UpstreamSpoken:
        """Do the work of the given codes, [T, 4] for each row, whatever the network would have drawn.

        The end mark is forced after them, in a step of its own as in free running. Upstream's own draw is made and
        dropped at each step, so a step costs what it costs in free running.
        """
        gpt = self._config.gpt
        steps = max(len(row) for row in codes) + 1
        forced = np.full((steps, len(codes), gpt.num_codebooks), gpt.end_code, np.int64)
        for index, row in enumerate(codes):
            forced[: len(row), index] = row
        settings = {"max_new_token": steps, "min_new_token": 0}
        return self._speak(texts, speaker, style, audio_path, settings, {"codes": forced.reshape(steps, -1)})

    def memory(self) -> dict[str, int | None]:
        """Resident bytes of the worker now and at most; null where the system does not say."""
        fields = self._process.call("memory").fields
        return {name: fields[name] for name in ("rss_bytes", "peak_rss_bytes")}

    def close(self) -> None:
        """End the worker."""
        self._process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.__exit__(kind, error, trace)

    def _speak(
        self,
        texts: Sequence[str],
        speaker: SpeakerEmbedding | None,
        style: str,
        audio_path: str,
        settings: dict[str, Any],
        arrays: dict[str, NDArray[Any]],
    ) -> UpstreamSpoken:
        reply = self._process.call(
            "speak",
            arrays,
            texts=list(texts),
            prompt=style,
            speaker=None if speaker is None else speaker.to_string(),
            sampling=settings,
            audio_path=audio_path,
        )
        return self._spoken(reply, rows=len(texts), max_steps=settings["max_new_token"])

    def _spoken(self, reply: Reply, *, rows: int, max_steps: int) -> UpstreamSpoken:
        fields, arrays = reply
        gpt, hop = self._config.gpt, self._config.audio.hop
        # a batch is decoded to the length of its longest row; what follows a shorter one is not speech
        samples = [max(0, hop * (2 * steps - 1)) for steps in fields["lengths"]] or [0] * rows
        no_audio = np.zeros(0, np.float32)
        no_codes = np.zeros((0, gpt.num_codebooks), np.int64)
        no_hidden = np.zeros((0, gpt.hidden), np.float32)
        stages = fields["stage_s"]
        decoder, vocoder = stages.get("decoder"), stages.get("vocoder")
        wall = fields["gpt_wall_s"]
        return UpstreamSpoken(
            audio=tuple(arrays.get(f"audio_{row}", no_audio)[: samples[row]] for row in range(rows)),
            codes=tuple(arrays.get(f"codes_{row}", no_codes) for row in range(rows)),
            hidden=tuple(arrays.get(f"hidden_{row}", no_hidden) for row in range(rows)),
            ended=tuple(length < max_steps for length in fields["lengths"]) or (True,) * rows,
            prefill_s=wall[0],
            step_s=tuple(wall[1:]),
            decoder_s=decoder and decoder["wall_s"],
            vocoder_s=vocoder and vocoder["wall_s"],
            cpu_s=sum(fields["gpt_cpu_s"]) + sum(stage["cpu_s"] for stage in stages.values()),
            total_s=sum(wall) + sum(stage["wall_s"] for stage in stages.values()),
            rss_bytes=fields["rss_bytes"],
            peak_rss_bytes=fields["peak_rss_bytes"],
        )
