"""`labkit train nano --evaluate`: what the voice says of texts it has never heard, beside the speech it learned from.

Works on any voice folder through the lab's own pipeline (recipe `torch-fp32`), so it judges what users hear. Every arm
speaks the same held-out texts: both audio paths, ChatTTS's sampling and greedy. Raw per-clip findings are kept, arm by
arm, so that a judging that was cut off goes on; figures and intervals are computed on reading.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from labkit.spec import AudioPath, Recipe
from labkit.training.corpus import DIGITS, deal
from labkit.training.figures import summary
from labkit.training.listen import Finding, Heard, Listeners, voiceprints
from labkit.training.traits import Trait, traits

Listen = Callable[[Sequence[tuple[np.ndarray, str]]], list[Heard]]
Sources = Mapping[tuple[str, str], np.ndarray]
"""The teacher's speech [N] by (text, speaker)."""

BATCH = 20
MAX_STEPS = 500
ARMS: tuple[tuple[AudioPath, str], ...] = (
    ("hidden", "chattts"), ("hidden", "greedy"), ("codes", "chattts"), ("codes", "greedy"),
)  # fmt: skip
SOURCE = "source speech"
SINGLES = "single digits"
PRINTED_CLIPS = 12  # of each speaker, for the voiceprint


@dataclass(frozen=True)
class Line:
    """One text to be spoken by one speaker, with the source speech of it where there is some."""

    text: str
    speaker: str
    source: np.ndarray | None


@dataclass(frozen=True)
class Evaluation:
    """Everything that was found: clip by clip, and the traits that are measured another way."""

    findings: list[Finding]
    traits: list[Trait]


def arm_name(kind: str, path: str, sampling: str) -> str:
    return f"{kind}, {path} path, {sampling}"


def source_name(kind: str) -> str:
    return f"{kind}, {SOURCE}"


def lines_of(texts: Sequence[str], speakers: Sequence[str], sources: Sources) -> list[Line]:
    """Texts dealt out to the speakers as the corpus plan deals them."""
    return [Line(t, s, sources.get((t, s))) for t, s in deal(texts, speakers)]


def lines_for_all(text: str, speakers: Sequence[str], sources: Sources) -> list[Line]:
    """One text for every speaker."""
    return [Line(text, s, sources.get((text, s))) for s in speakers]


def judge_source(kind: str, lines: Iterable[Line], listen: Listen) -> list[Finding]:
    spoken = [(line, line.source) for line in lines if line.source is not None]
    heard = listen([(source, line.text) for line, source in spoken])
    return [
        Finding(source_name(kind), line.speaker, h, None, None)
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
    sets: Mapping[str, Sequence[str]],
    sources: Sources,
    out: Path,
    *,
    seed: int = 0,
    arms: Sequence[tuple[AudioPath, str]] = ARMS,
    resume: bool = False,
    say: Callable[[str], None] = print,
) -> Evaluation:
    """Judge every arm on each of the `sets` of held-out texts and the first arm on single digits; write `out` (JSON).

    With `resume`, arms that an unfinished judging of the same weights left behind are kept as they are.

    A set that holds words the voice was not taught is left out, and said to be. Single digits cannot be held out: there
    are ten. They are judged apart, beside the source speech of each.
    """
    from labkit.voices import resolve_voice

    voice = resolve_voice(str(voice_folder))
    speakers = list(voice.speakers())
    known = {kind: texts for kind, texts in sets.items() if not voice.unknown_words(" ".join(texts))}
    for kind in sets.keys() - known.keys():
        say(f"evaluate: {kind} left out: voice {voice.name!r} was not taught its words")
    kinds = [(kind, lines_of(texts, speakers, sources), arms) for kind, texts in known.items()]
    singles = [line for word in DIGITS for line in lines_for_all(word, speakers, sources)]
    kinds.append((SINGLES, singles, arms[:1]))
    journal = Journal(out.with_suffix(".partial.jsonl"), f"{voice.weights_hash} seed {seed}", resume)
    findings: list[Finding] = []

    def take(arm: str, judge: Callable[[], list[Finding]]) -> None:
        found = journal.arms[arm] if arm in journal.arms else journal.keep(arm, judge())
        findings.extend(found)
        if found:
            say(f"evaluate: {arm}: {summary(found)}")

    with Listeners(voiceprints(_some_of_each(sources))) as listen:
        for kind, lines, wanted in kinds:
            take(source_name(kind), partial(judge_source, kind, lines, listen))
            for path, sampling in wanted:
                judge = partial(judge_arm, voice_folder, lines, path, sampling, listen, kind=kind, seed=seed)
                take(arm_name(kind, path, sampling), judge)
    longest = max(known.values(), key=len)
    with Listeners(judge_quality=False) as listen:
        found = traits(voice, deal(longest, speakers), listen, seed=seed, say=say)
    result = Evaluation(findings, found)
    write(out, result)
    journal.close()
    return result


def _heading(subject: str) -> str:
    return json.dumps({"subject": subject})


class Journal:
    """The arms judged so far, one JSON line each, under a line that says of what; a torn last line is left out."""

    def __init__(self, path: Path, subject: str, resume: bool) -> None:
        self._path = path
        self.arms: dict[str, list[Finding]] = {}
        if resume and path.exists():
            self.arms = self._read(subject)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_heading(subject) + "\n", encoding="utf-8")
        for arm, findings in self.arms.items():
            self._append(arm, findings)

    def _read(self, subject: str) -> dict[str, list[Finding]]:
        head, *lines = self._path.read_text(encoding="utf-8").split("\n")
        if head != _heading(subject):
            return {}
        whole = [json.loads(line) for line in lines[:-1]]
        return {entry["arm"]: [finding_of(f) for f in entry["findings"]] for entry in whole}

    def keep(self, arm: str, findings: list[Finding]) -> list[Finding]:
        self._append(arm, findings)
        return findings

    def _append(self, arm: str, findings: Sequence[Finding]) -> None:
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"arm": arm, "findings": [asdict(f) for f in findings]}) + "\n")

    def close(self) -> None:
        """All is in the evaluation now."""
        self._path.unlink()


def _some_of_each(sources: Sources) -> dict[str, list[np.ndarray]]:
    """PRINTED_CLIPS clips of more than one word for each speaker."""
    clips: dict[str, list[np.ndarray]] = defaultdict(list)
    for (text, speaker), audio in sources.items():
        if " " in text and len(clips[speaker]) < PRINTED_CLIPS:
            clips[speaker].append(audio)
    return clips


def write(path: Path, evaluation: Evaluation) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(evaluation), indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> Evaluation:
    data = json.loads(path.read_text(encoding="utf-8"))
    return Evaluation(
        [finding_of(entry) for entry in data["findings"]], [Trait(**entry) for entry in data["traits"]]
    )


def finding_of(entry: Mapping[str, Any]) -> Finding:
    """What `asdict` made of it, as it was."""
    return Finding(**{**entry, "heard": Heard(**entry["heard"])})
