"""The recipe `upstream` as something a scenario can drive: one worker process of upstream's own.

It gives upstream the same normalized text, speaker, noise or codes that every other recipe gets. Times are the
worker's own, taken around upstream's stages, so handing arrays over does not count against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.model.sampling import SamplingParams
from labkit.scenarios.base import FirstAudio, IntArray, Take
from labkit.spec import RunSpec
from labkit.text.normalize import normalize
from labkit.upstream.pipeline import UpstreamPipeline, UpstreamSpoken
from labkit.upstream.sizes import upstream_step_bytes

if TYPE_CHECKING:
    from labkit.voices import Voice

NO_STREAM = "upstream is driven as a whole: it hands over no audio before the end"


class UpstreamRun:
    """A loaded upstream, with what a measured pipeline must tell about itself."""

    def __init__(self, voice: Voice, spec: RunSpec) -> None:
        self.voice = voice
        self._upstream = UpstreamPipeline.load(voice, threads=spec.threads)
        self.load_s = self._upstream.load_s

    @property
    def size_on_disk_bytes(self) -> int:
        """All weights of the voice: upstream loads every one, whichever audio path is taken."""
        return sum(file.stat().st_size for file in self.voice.folder.rglob("*.safetensors"))

    def driver(self, spec: RunSpec) -> UpstreamDriver:
        return UpstreamDriver(self._upstream, self.voice, spec)

    def placement(self) -> dict[str, dict[str, int]]:
        """Upstream does not tell where its modules run; it is loaded on the CPU."""
        return {}

    def memory(self) -> dict[str, dict[str, int]]:
        """What a float32 step of its network reads, by its sizes."""
        return {"gpt": upstream_step_bytes(self.voice.config.gpt)}

    def close(self) -> None:
        self._upstream.close()


class UpstreamDriver:
    """Speaks one text at a time through upstream's process."""

    def __init__(self, upstream: UpstreamPipeline, voice: Voice, spec: RunSpec) -> None:
        self._upstream = upstream
        self._words = voice.domain_words
        self._spec = spec
        self._speaker = voice.speaker(spec.speaker)
        self._sampling = SamplingParams(max_steps=min(spec.max_steps, voice.config.gpt.positions // 2))

    def speak(self, text: str, codes: IntArray | None) -> Take:
        normalized, _ = normalize(text, vocabulary=self._words)
        common: dict[str, Any] = {"speaker": self._speaker, "audio_path": self._spec.audio_path}
        if codes is None:
            spoken = self._upstream.speak(
                [normalized], seed=self._spec.seed, sampling=self._sampling, **common
            )
        else:
            spoken = self._upstream.replay([normalized], [codes], **common)
        return take_of(spoken, replayed=codes is not None)

    def first_audio(self, text: str, codes: IntArray | None) -> FirstAudio:
        return FirstAudio(None, NO_STREAM)


def take_of(spoken: UpstreamSpoken, *, replayed: bool) -> Take:
    """What upstream said, under the names every sample uses."""
    decode_s = sum(spoken.step_s)
    values: dict[str, float | int | None] = {
        "latency_s": spoken.total_s,
        "cpu_s": spoken.cpu_s,
        "prefill_s": spoken.prefill_s,
        "first_step_s": spoken.prefill_s,
        "decode_s": decode_s,
        "decoder_s": spoken.decoder_s,
        "vocoder_s": spoken.vocoder_s,
        "steps": len(spoken.codes[0]),
        "steps_per_s": len(spoken.step_s) / decode_s if decode_s > 0 else None,
    }
    nothing = "upstream ended at once and decoded nothing"
    reasons = {name: nothing for name, value in values.items() if value is None}
    ended = True if replayed else spoken.ended[0]
    flags = () if ended else ("hit_max",)
    return Take(
        audio=spoken.audio[0],
        codes=spoken.codes[0],
        ended=ended,
        flags=flags if len(spoken.codes[0]) else ("immediate_end",),
        values=values,
        reasons=reasons,
        series={"step_s": list(spoken.step_s)},
    )
