"""Drivers: how one text becomes one `Take`, for three stages and for pipelines that bring their own.

It knows synthesis and what its timings are called in a sample. It measures nothing itself but the first chunk.
"""

from __future__ import annotations

import time
from typing import Any

from labkit.scenarios.base import Driver, FirstAudio, IntArray, Take
from labkit.spec import RunSpec


def open_recipe(spec: RunSpec) -> Any:
    """Load what the recipe names: three stages, or a whole pipeline; artifacts must be in the cache or are built."""
    from labkit.voices import resolve_voice

    voice = resolve_voice(spec.voice)
    if spec.recipe.pipeline == "upstream":
        from labkit.scenarios.upstream import UpstreamRun

        return UpstreamRun(voice, spec)
    from labkit.pipeline import open_pipeline

    return open_pipeline(
        spec.recipe, voice, device=spec.device, threads=spec.threads, audio_path=spec.audio_path
    )


def driver_for(pipeline: Any, spec: RunSpec) -> Driver:
    """The driver of a pipeline: its own when it brings one, else the stages' driver."""
    own = getattr(pipeline, "driver", None)
    return own(spec) if own is not None else StagesDriver(pipeline, spec)


class StagesDriver:
    """Speaks through `labkit.synthesis` with the three stages of a pipeline."""

    def __init__(self, stages: Any, spec: RunSpec) -> None:
        from labkit.model.sampling import SamplingParams

        self._stages = stages
        self._spec = spec
        self._speaker = stages.voice.speaker(spec.speaker)
        self._sampling = SamplingParams(max_steps=spec.max_steps)

    def speak(self, text: str, codes: IntArray | None) -> Take:
        from labkit.synthesis import speak

        [utterance] = speak(
            self._stages,
            [self._request(text)],
            max_steps=self._spec.max_steps,
            replay=None if codes is None else [codes],
        )
        return take_of(utterance)

    def first_audio(self, text: str, codes: IntArray | None) -> FirstAudio:
        """Start the streaming generator, wait for its first chunk and let it go."""
        from labkit.synthesis import stream

        started = time.perf_counter()
        chunks = stream(self._stages, self._request(text), max_steps=self._spec.max_steps, replay=codes)
        chunk = next(chunks, None)
        self._stages.vocoder.synchronize()
        seconds = time.perf_counter() - started
        if chunk is None or len(chunk.audio) == 0:
            return FirstAudio(None, "the stream ended without audio")
        return FirstAudio(seconds)

    def _request(self, text: str) -> Any:
        from labkit.synthesis import Request

        return Request(text=text, speaker=self._speaker, seed=self._spec.seed, sampling=self._sampling)


def take_of(utterance: Any) -> Take:
    """A `labkit.synthesis.Utterance` as a take; the values are raw, in seconds and counts."""
    timings = utterance.timings
    step_s = list(timings.step_s)
    decode_s = timings.decode_s
    values: dict[str, float | int | None] = {
        "prepare_s": timings.prepare_s,
        "prefill_s": timings.prefill_s,
        "first_step_s": timings.first_step_s,
        "decode_s": decode_s,
        "sample_s": timings.sample_s,
        "decoder_s": timings.decoder_s,
        "vocoder_s": timings.vocoder_s,
        "steps": len(utterance.codes),
        "steps_per_s": len(step_s) / decode_s if decode_s > 0 else None,
    }
    reasons = {} if decode_s > 0 else {"steps_per_s": "no step was made after the prefill"}
    return Take(
        audio=utterance.audio,
        codes=utterance.codes,
        ended=utterance.ended,
        flags=tuple(utterance.flags),
        values=values,
        reasons=reasons,
        series={"step_s": step_s},
    )
