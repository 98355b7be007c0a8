"""`labkit train nano --evaluate`: what the voice says of texts it has never heard, beside the speech it learned from.

Works on any voice folder through the lab's own pipeline (recipe `torch-fp32`), so it judges what users hear. Every arm
speaks the same held-out texts: both audio paths, ChatTTS's sampling and greedy. Raw per-clip findings are kept;
figures and intervals are computed on reading.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from labkit.spec import AudioPath, Recipe
from labkit.training.corpus import DIGITS, Clip, deal
from labkit.training.listen import Heard, Listeners

Listen = Callable[[Sequence[tuple[np.ndarray, str]]], list[Heard]]

BATCH = 20
MAX_STEPS = 300
ARMS: tuple[tuple[AudioPath, str], ...] = (
    ("hidden", "chattts"), ("hidden", "greedy"), ("codes", "chattts"), ("codes", "greedy"),
)  # fmt: skip
SOURCE = "source speech"
HELD_OUT, SINGLES = "held-out", "single digits"
BOOTSTRAP_DRAWS = 2000


@dataclass(frozen=True)
class Finding:
    """One clip of one arm. `ended` and `duration_ratio` are None where they mean nothing."""

    arm: str
    speaker: str
    heard: Heard
    ended: bool | None
    duration_ratio: float | None


@dataclass(frozen=True)
class Line:
    """One text to be spoken by one speaker, with the source speech of it where there is some."""

    text: str
    speaker: str
    source: np.ndarray | None


def arm_name(kind: str, path: str, sampling: str) -> str:
    return f"{kind}, {path} path, {sampling}"


def lines_of(
    texts: Sequence[str], speakers: Sequence[str], sources: Mapping[tuple[str, str], Clip]
) -> list[Line]:
    """Texts dealt out to the speakers as the corpus plan deals them; `sources` by (text, speaker)."""
    return [Line(t, s, sources[t, s].audio if (t, s) in sources else None) for t, s in deal(texts, speakers)]


def lines_for_all(text: str, speakers: Sequence[str], sources: Mapping[tuple[str, str], Clip]) -> list[Line]:
    """One text for every speaker."""
    return [Line(text, s, sources[text, s].audio if (text, s) in sources else None) for s in speakers]


def judge_source(kind: str, lines: Iterable[Line], listen: Listen) -> list[Finding]:
    spoken = [(line, line.source) for line in lines if line.source is not None]
    heard = listen([(source, line.text) for line, source in spoken])
    return [
        Finding(f"{kind}, {SOURCE}", line.speaker, h, None, None)
        for (line, _), h in zip(spoken, heard, strict=True)
    ]


def judge_arm(
    voice_folder: Path,
    lines: Sequence[Line],
    path: AudioPath,
    sampling: str,
    listen: Listen,
    *,
    kind: str,
    seed: int,
) -> list[Finding]:
    """Speak the lines through the real pipeline and listen to each."""
    from labkit.model.sampling import SamplingParams
    from labkit.pipeline import open_pipeline
    from labkit.synthesis import Request, Utterance, speak
    from labkit.voices import resolve_voice

    voice = resolve_voice(str(voice_folder))
    speakers = voice.speakers()
    params = SamplingParams(greedy=sampling == "greedy", max_steps=MAX_STEPS)
    spoken: list[Utterance] = []
    with open_pipeline(Recipe(name="torch-fp32"), voice, audio_path=path) as pipeline:
        for start in range(0, len(lines), BATCH):
            requests = [
                Request(line.text, speakers[line.speaker], seed=seed, row=start + i, sampling=params)
                for i, line in enumerate(lines[start : start + BATCH])
            ]
            spoken += speak(pipeline, requests)
    heard = listen([(u.audio, line.text) for line, u in zip(lines, spoken, strict=True)])
    arm = arm_name(kind, path, sampling)
    return [
        Finding(
            arm, line.speaker, h, u.ended, None if line.source is None else len(u.audio) / len(line.source)
        )
        for line, u, h in zip(lines, spoken, heard, strict=True)
    ]


def evaluate(
    voice_folder: Path,
    texts: Sequence[str],
    sources: Mapping[tuple[str, str], Clip],
    out: Path,
    *,
    seed: int = 0,
    arms: Sequence[tuple[AudioPath, str]] = ARMS,
    say: Callable[[str], None] = print,
) -> list[Finding]:
    """Judge every arm on the held-out texts and the default arm on single digits; write `out` (JSON).

    Single digits cannot be held out: there are ten. They are judged apart, beside the source speech of each.
    """
    from labkit.voices import resolve_voice

    speakers = list(resolve_voice(str(voice_folder)).speakers())
    sets = (
        (HELD_OUT, lines_of(texts, speakers, sources), arms),
        (SINGLES, [line for word in DIGITS for line in lines_for_all(word, speakers, sources)], arms[:1]),
    )
    findings: list[Finding] = []

    def take(found: list[Finding]) -> None:
        findings.extend(found)
        if found:
            say(f"evaluate: {found[0].arm}: {summary(found)}")

    with Listeners() as listen:
        for kind, lines, wanted in sets:
            take(judge_source(kind, lines, listen))
            for path, sampling in wanted:
                take(judge_arm(voice_folder, lines, path, sampling, listen, kind=kind, seed=seed))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps([asdict(f) for f in findings], indent=1) + "\n", encoding="utf-8")
    return findings


def read_findings(path: Path) -> list[Finding]:
    data = json.loads(path.read_text(encoding="utf-8"))
    return [Finding(**{**entry, "heard": Heard(**entry["heard"])}) for entry in data]


# ---------------------------------------------------------------------- reading


@dataclass(frozen=True)
class Figure:
    """A value with its 95 % interval over texts; None where no clip had one."""

    value: float | None
    low: float = 0.0
    high: float = 0.0

    def percent(self) -> str:
        if self.value is None:
            return "-"
        return f"{100 * self.value:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"

    def plain(self, digits: int = 2) -> str:
        if self.value is None:
            return "-"
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


def ratio_figure(numerators: Sequence[float], denominators: Sequence[float]) -> Figure:
    """Sum over sum (word errors over words) with a percentile bootstrap over texts."""
    top, bottom = np.asarray(numerators, float), np.asarray(denominators, float)
    if len(top) == 0:
        return Figure(None)
    picks = np.random.default_rng(0).integers(len(top), size=(BOOTSTRAP_DRAWS, len(top)))
    low, high = np.quantile(top[picks].sum(1) / bottom[picks].sum(1), (0.025, 0.975))
    return Figure(float(top.sum() / bottom.sum()), float(low), float(high))


def mean_figure(values: Iterable[float | None]) -> Figure:
    known = [v for v in values if v is not None]
    return ratio_figure(known, [1.0] * len(known))


@dataclass(frozen=True)
class ArmFigures:
    arm: str
    clips: int
    whisper_wer: Figure
    grammar_wer: Figure
    ended: Figure
    duration_ratio: Figure
    dnsmos_ovrl: Figure
    dnsmos_p808: Figure


def figures(findings: Sequence[Finding]) -> list[ArmFigures]:
    """One line per arm, in order of appearance."""
    return [
        _arm_figures(arm, [f for f in findings if f.arm == arm])
        for arm in dict.fromkeys(f.arm for f in findings)
    ]


def by_speaker(findings: Sequence[Finding]) -> dict[str, dict[str, Figure]]:
    """arm -> speaker -> Whisper's word error rate."""
    table: dict[str, dict[str, Figure]] = {}
    for arm in dict.fromkeys(f.arm for f in findings):
        for speaker in dict.fromkeys(f.speaker for f in findings):
            mine = [f.heard for f in findings if (f.arm, f.speaker) == (arm, speaker)]
            table.setdefault(arm, {})[speaker] = ratio_figure(
                [h.whisper_errors for h in mine], [h.words for h in mine]
            )
    return table


def _arm_figures(arm: str, findings: Sequence[Finding]) -> ArmFigures:
    heard = [f.heard for f in findings]
    words = [h.words for h in heard]
    return ArmFigures(
        arm=arm,
        clips=len(findings),
        whisper_wer=ratio_figure([h.whisper_errors for h in heard], words),
        grammar_wer=ratio_figure([h.grammar_errors for h in heard], words),
        ended=mean_figure(None if f.ended is None else float(f.ended) for f in findings),
        duration_ratio=mean_figure(f.duration_ratio for f in findings),
        dnsmos_ovrl=mean_figure(h.dnsmos_ovrl for h in heard),
        dnsmos_p808=mean_figure(h.dnsmos_p808 for h in heard),
    )


def summary(findings: Sequence[Finding]) -> str:
    """One arm in one line."""
    if not findings:
        return "nothing to judge"
    f = _arm_figures(findings[0].arm, findings)
    return (
        f"{f.clips} clips, WER Whisper {f.whisper_wer.percent()}, grammar {f.grammar_wer.percent()}, "
        f"ended {f.ended.percent()}, duration {f.duration_ratio.plain()}, "
        f"DNSMOS overall {f.dnsmos_ovrl.plain()}, P.808 {f.dnsmos_p808.plain()}"
    )
