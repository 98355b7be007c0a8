"""What the voice is asked beside its words: does it keep the tempo, pause, repeat itself, and degrade in order?

* tempo: how long it speaks at `[speed_n]` beside `[speed_5]`, and what is then understood;
* pause: how much longer a text gets by one `[uv_break]`;
* determinism: the same seed gives the same codes, alone and among others;
* ladder: words lost as the GPT's weights are rounded to ever fewer bits or pruned, beside teacher-forced divergence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from labkit.spec import Recipe
from labkit.training.domain_plan import PAUSE
from labkit.training.domain_speech import PAUSE_S
from labkit.training.figures import Figure, mean_figure, ratio_figure
from labkit.training.listen import Heard
from labkit.training.pace import OWN, tempo_of

if TYPE_CHECKING:
    from labkit.pipeline import Pipeline
    from labkit.synthesis import Request, Utterance
    from labkit.voices import Voice

Listen = Callable[[Sequence[tuple[np.ndarray, str]]], list[Heard]]
Lines = Sequence[tuple[str, str]]
"""(text, speaker)"""

TEMPO_TEXTS, PAUSE_TEXTS, REPEATED_TEXTS, LADDER_TEXTS = 24, 24, 8, 60
PACES = (3, 4, 5, 6, 7)
BATCH = 20


@dataclass(frozen=True)
class Trait:
    """One figure with its 95 % interval, what it should be, and in words what it is."""

    name: str
    words: str
    value: float | None
    low: float
    high: float
    wanted: str


def traits(
    voice: Voice, lines: Lines, listen: Listen, *, seed: int = 0, say: Callable[[str], None] = print
) -> list[Trait]:
    """All of them; `lines` are held-out texts with their speakers."""
    from labkit.pipeline import open_pipeline

    many = [line for line in lines if len(line[0].split()) >= 3]
    found: list[Trait] = []
    with open_pipeline(Recipe(name="torch-fp32"), voice) as pipeline:
        ask = partial(_requests, voice, seed=seed)
        for part in (
            tempo(pipeline, many[:TEMPO_TEXTS], ask, listen),
            pause(pipeline, many[:PAUSE_TEXTS], ask),
            determinism(pipeline, many[:REPEATED_TEXTS], ask),
            ladder_words(voice, pipeline, many[:LADDER_TEXTS], ask, listen),
        ):
            for trait in part:
                say(f"evaluate: {trait.name}: {trait.words} (wanted: {trait.wanted})")
            found += part
    return found


def _requests(voice: Voice, lines: Lines, style: str = "[speed_5]", *, seed: int) -> list[Request]:
    from labkit.synthesis import Request

    speakers = voice.speakers()
    return [
        Request(text, speakers[speaker], seed=seed, row=row, style=style)
        for row, (text, speaker) in enumerate(lines)
    ]


Ask = Callable[..., list["Request"]]


def _speak(pipeline: Pipeline, requests: Sequence[Request]) -> list[Utterance]:
    from labkit.synthesis import speak

    return [u for i in range(0, len(requests), BATCH) for u in speak(pipeline, requests[i : i + BATCH])]


def tempo(pipeline: Pipeline, lines: Lines, ask: Ask, listen: Listen) -> list[Trait]:
    """Length at each `[speed_n]` over that at `[speed_5]`, and the words then lost."""
    spoken = {n: _speak(pipeline, ask(lines, f"[speed_{n}]")) for n in PACES}
    own = [len(u.codes) for u in spoken[OWN]]
    found = []
    for n in PACES:
        ratio = ratio_figure([len(u.codes) for u in spoken[n]], own)
        wer = _word_error_rate(listen([(u.audio, t) for u, (t, _) in zip(spoken[n], lines, strict=True)]))
        words = f"length {ratio.plain()} of that at [speed_5], WER {wer.percent()}"
        found.append(_trait(f"tempo [speed_{n}]", words, ratio, f"{1 / tempo_of(n):.2f}"))
    return found


def pause(pipeline: Pipeline, lines: Lines, ask: Ask) -> list[Trait]:
    """Seconds that one `[uv_break]` in the middle adds."""
    paused = []
    for text, speaker in lines:
        words = text.split()
        paused.append((" ".join([*words[: len(words) // 2], PAUSE, *words[len(words) // 2 :]]), speaker))
    plain = _speak(pipeline, ask(lines))
    longer = [
        (len(a.audio) - len(b.audio)) / 24_000
        for a, b in zip(_speak(pipeline, ask(paused)), plain, strict=True)
    ]
    figure = mean_figure(longer)
    return [
        _trait("pause [uv_break]", f"{figure.plain()} s longer", figure, f"{PAUSE_S:.1f} s or a little less")
    ]


def determinism(pipeline: Pipeline, lines: Lines, ask: Ask) -> list[Trait]:
    """Share of texts whose codes are equal when spoken again, and when spoken alone."""
    requests = ask(lines)
    first, again = _speak(pipeline, requests), _speak(pipeline, requests)
    alone = [_speak(pipeline, [request])[0] for request in requests]
    found = []
    for name, others in (("again", again), ("alone", alone)):
        same = mean_figure(
            float(np.array_equal(a.codes, b.codes)) for a, b in zip(first, others, strict=True)
        )
        found.append(_trait(f"same codes {name}", f"{same.percent()} of {len(lines)} texts", same, "100 %"))
    return found


def ladder_words(voice: Voice, pipeline: Pipeline, lines: Lines, ask: Ask, listen: Listen) -> list[Trait]:
    """Divergence and agreement of each rung of `labkit.sensitivity.ladder`, and the words it loses."""
    from labkit.sensitivity import ladder
    from labkit.sensitivity.ladder import damaged

    def words_lost() -> Figure:
        spoken = _speak(pipeline, ask(lines))
        return _word_error_rate(listen([(u.audio, t) for u, (t, _) in zip(spoken, lines, strict=True)]))

    whole = words_lost()
    found = [_trait("fp32", f"WER {whole.percent()}", whole, "the voice itself")]
    for rung in ladder(voice):
        with damaged(pipeline.gpt.network, rung.kind, rung.amount):  # type: ignore[attr-defined]
            lost = words_lost()
        words = (
            f"KL {rung.kl.value:.4f} [{rung.kl.low:.4f}, {rung.kl.high:.4f}], top-1 {rung.top1.value:.3f}, "
            f"WER {lost.percent()}; beside the rung above: {rung.order or 'first'}"
        )
        found.append(_trait(rung.name, words, lost, "not better than the rung above"))
    return found


def _word_error_rate(heard: Sequence[Heard]) -> Figure:
    return ratio_figure([h.whisper_errors for h in heard], [h.words for h in heard])


def _trait(name: str, words: str, figure: Figure, wanted: str) -> Trait:
    return Trait(name, words, figure.value, figure.low, figure.high, wanted)
