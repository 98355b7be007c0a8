"""`say`: one text to one audio file, for people. Checks everything that can be wrong before it loads anything.

Knows voices, recipes and audio files. Its times are those of one cold utterance after loading; the scenarios measure.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.errors import InvalidAudioError, LabError, SpecError, UserError
from labkit.spec import MAX_SEED, MAX_THREADS, AudioPath, Recipe, check_device, find_recipe, load_recipes
from labkit.text.prompts import DEFAULT_STYLE

if TYPE_CHECKING:
    from rich.console import RenderableType

    from labkit.engines.base import FloatArray
    from labkit.model.sampling import SamplingParams
    from labkit.synthesis import Stages, Utterance
    from labkit.synthesis.request import Prepared
    from labkit.text.normalize import NormalizeOptions

# extension -> (format, subtype) of libsndfile
_FORMATS = {".wav": ("WAV", "PCM_16"), ".flac": ("FLAC", "PCM_16"), ".ogg": ("OGG", "VORBIS")}


@dataclass(frozen=True)
class Spoken:
    """What was said and how long it took.

    audio: [N] float32. `latency_s`: from the text to all its audio, stages already loaded; `ttft_s`: to the first
    audio, which is the same unless streamed; `rtf` = latency_s / audio_s, lower is better; `load_s`: loading the
    stages; `build_s`: making their artifacts, now or when they were made.
    """

    text: str
    spoken_text: str
    audio: FloatArray = field(repr=False)
    sample_rate: int
    voice: str
    recipe: str
    speaker: str | None
    seed: int
    streamed: bool
    steps: int
    audio_s: float
    latency_s: float
    ttft_s: float
    rtf: float
    load_s: float
    build_s: float
    flags: tuple[str, ...]
    unknown_words: tuple[str, ...]
    out: Path | None

    def summary(self) -> dict[str, Any]:
        """Everything but the audio, as plain values."""
        return {
            name: str(value)
            if isinstance(value, Path)
            else list(value)
            if isinstance(value, tuple)
            else value
            for name, value in vars(self).items()
            if name != "audio"
        }

    def __rich__(self) -> RenderableType:
        from rich.markup import escape
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        table.add_row("said", escape(self.spoken_text))
        table.add_row(
            "voice",
            escape(f"{self.voice}, speaker {self.speaker or 'none'}, seed {self.seed}, {self.recipe}"),
        )
        table.add_row("audio", f"{self.audio_s:.2f} s" + (f" in {escape(str(self.out))}" if self.out else ""))
        table.add_row("time", f"{self.latency_s:.3f} s after loading for {self.load_s:.2f} s")
        table.add_row("RTF", f"{self.rtf:.3f} (time / audio, lower is better)")
        first = f"after {self.ttft_s:.3f} s" + ("" if self.streamed else " (whole; --stream is earlier)")
        table.add_row("first audio", first)
        if self.flags:
            table.add_row("[yellow]flags[/]", ", ".join(self.flags))
        return table


def say(
    text: str,
    *,
    voice: str = "nano",
    recipe: str | Recipe = "torch-fp32",
    speaker: str | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    stream: bool = False,
    audio_path: AudioPath = "hidden",
    threads: int = 1,
    device: str = "cpu",
    style: str = DEFAULT_STYLE,
    refine: bool = False,
    max_steps: int | None = None,
    sampling: SamplingParams | None = None,
    normalize: NormalizeOptions | None = None,
    progress: Callable[[str], None] | None = None,
) -> Spoken:
    """Speak `text` and, when `out` is given, write it as .wav, .flac or .ogg.

    `speaker`: a name from the voice, `random:SEED` or a speaker string; None takes the voice's first speaker.
    Raises `UserError`s for what can be asked differently, before loading; `InvalidAudioError` when nothing was said.
    """
    target = _writable(Path(out)) if out is not None else None
    chosen = recipe if isinstance(recipe, Recipe) else find_recipe(recipe, load_recipes())
    if chosen.pipeline:
        raise SpecError(
            f"recipe {chosen.name!r} is a whole pipeline; hear it with `labkit run {chosen.name} --keep-audio`."
        )
    if audio_path not in ("hidden", "codes"):
        raise SpecError(f"audio path {audio_path!r} is unknown; choose hidden or codes.")
    if not 1 <= threads <= MAX_THREADS:
        raise SpecError(f"threads {threads}: give a number from 1 to {MAX_THREADS}.")
    if not 0 <= seed <= MAX_SEED:
        raise SpecError(f"seed {seed}: give a number from 0 to {MAX_SEED}.")
    check_device(device)

    from labkit.model.sampling import CODE_SAMPLING
    from labkit.pipeline import open_pipeline
    from labkit.synthesis import Request, prepare
    from labkit.text.check import check_raw
    from labkit.text.normalize import ALL_RULES
    from labkit.voices import resolve_voice

    check_raw(text)
    found = resolve_voice(voice)
    embedding = found.speaker(speaker)
    request = Request(
        text, embedding, seed, sampling=sampling or CODE_SAMPLING, style=style, refine=refine,
        normalize=normalize or ALL_RULES,
    )  # fmt: skip
    prepared = prepare(found, request)
    with open_pipeline(
        chosen, found, device=device, threads=threads, audio_path=audio_path, progress=progress
    ) as pipeline:
        utterance, first_s = _utter(pipeline, prepared, stream, max_steps)
        load_s, build_s = pipeline.load_s, pipeline.build_s
    rate = found.config.audio.sample_rate
    if len(utterance.audio) == 0 or "non_finite_audio" in utterance.flags:
        raise InvalidAudioError(
            f"voice {found.name!r} said nothing usable for {text!r} ({', '.join(utterance.flags)}); "
            "try another seed or speaker."
        )
    if target is not None:
        _write(target, utterance.audio, rate)
    audio_s = len(utterance.audio) / rate
    latency_s = utterance.timings.total_s
    return Spoken(
        text=text,
        spoken_text=utterance.text,
        audio=utterance.audio,
        sample_rate=rate,
        voice=found.name,
        recipe=chosen.name,
        speaker=speaker if speaker is not None else next(iter(found.card.speakers), None),
        seed=seed,
        streamed=stream,
        steps=len(utterance.codes),
        audio_s=audio_s,
        latency_s=latency_s,
        ttft_s=first_s if first_s is not None else latency_s,
        rtf=latency_s / audio_s,
        load_s=load_s,
        build_s=build_s,
        flags=utterance.flags,
        unknown_words=utterance.report.unknown_words,
        out=target,
    )


def _utter(
    stages: Stages, prepared: Prepared, streamed: bool, max_steps: int | None
) -> tuple[Utterance, float | None]:
    """The utterance, and when streamed the seconds to its first chunk."""
    from labkit.synthesis import speak, stream

    if not streamed:
        return speak(stages, [prepared], max_steps=max_steps)[0], None
    chunks = stream(stages, prepared, max_steps=max_steps)
    first_s = next(chunks).elapsed_s
    for _ in chunks:
        pass
    assert chunks.utterance is not None
    return chunks.utterance, first_s


def _writable(path: Path) -> Path:
    """Refuse a path that cannot be written, before any work."""
    if path.suffix.lower() not in _FORMATS:
        raise UserError(f"output {str(path)!r}: its extension must be one of {', '.join(_FORMATS)}.")
    if path.is_dir():
        raise UserError(f"output {str(path)!r} is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise UserError(
            f"output {str(path)!r}: the folder {str(path.parent)!r} does not exist; make it first."
        )
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise UserError(
            f"output {str(path)!r}: the folder cannot be written ({error.strerror or error}); choose another."
        ) from error
    return path


def _write(path: Path, audio: FloatArray, rate: int) -> None:
    """Write under a temporary name and rename, so that the file is whole or absent."""
    import soundfile

    kind, subtype = _FORMATS[path.suffix.lower()]
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        soundfile.write(partial, audio, rate, format=kind, subtype=subtype)
        os.replace(partial, path)
    except (OSError, soundfile.LibsndfileError) as error:
        raise LabError(
            f"output {str(path)!r} could not be written: {error}; free some space or choose another."
        ) from error
    finally:
        partial.unlink(missing_ok=True)
