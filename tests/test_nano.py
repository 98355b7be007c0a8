"""The packed voice: its weights load as they were measured, and it says the same thing every time.

Numbers of the voice's own live in `tests/golden/nano.json`; after a new voice is packed, write them with
`LABKIT_WRITE_GOLDEN=1 pytest tests/test_nano.py`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from labkit.model.sampling import SamplingParams
from labkit.pipeline import Pipeline, open_pipeline
from labkit.spec import Recipe
from labkit.synthesis import Request, Utterance, speak
from labkit.voices import Voice, resolve_voice

GOLDEN = Path(__file__).parent / "golden" / "nano.json"
TEXT = "seven two nine"
COMMAND = "turn left [uv_break] and open the blue door"
MAX_BYTES = 12_000_000


@pytest.fixture(scope="module")
def voice() -> Voice:
    return resolve_voice("nano")


@pytest.fixture(scope="module")
def pipeline(voice: Voice):
    with open_pipeline(Recipe(name="torch-fp32"), voice) as opened:
        yield opened


def requests(voice: Voice, text: str = TEXT, seed: int = 0) -> list[Request]:
    speakers = voice.speakers().values()
    params = SamplingParams(max_steps=300)
    return [Request(text, s, seed=seed, row=row, sampling=params) for row, s in enumerate(speakers)]


@pytest.fixture(scope="module")
def spoken(voice: Voice, pipeline: Pipeline) -> list[Utterance]:
    return speak(pipeline, requests(voice))


def measured(voice: Voice, spoken: list[Utterance]) -> dict:
    first = spoken[0]
    return {
        "weights_hash": voice.weights_hash,
        "hidden": [round(float(x), 5) for x in first.hidden[0, :12]],
        "first_codes": first.codes[0].tolist(),
        "rms": [round(float(np.sqrt(np.mean(np.square(u.audio)))), 5) for u in spoken],
        "steps": [len(u.codes) for u in spoken],
    }


def test_it_loads_as_it_was_measured(voice: Voice, spoken: list[Utterance]) -> None:
    found = measured(voice, spoken)
    if os.environ.get("LABKIT_WRITE_GOLDEN"):
        GOLDEN.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert found["weights_hash"] == golden["weights_hash"]
    np.testing.assert_allclose(found["hidden"], golden["hidden"], atol=2e-3)
    assert found["first_codes"] == golden["first_codes"]
    np.testing.assert_allclose(found["steps"], golden["steps"], rtol=0.25)  # other CPUs may flip a late draw
    np.testing.assert_allclose(found["rms"], golden["rms"], rtol=0.25)


def test_the_same_seed_gives_the_same_codes_alone_and_among_others(
    voice: Voice, pipeline: Pipeline, spoken: list[Utterance]
) -> None:
    again = speak(pipeline, requests(voice))
    alone = [speak(pipeline, [request])[0] for request in requests(voice)]
    for first, second, single in zip(spoken, again, alone, strict=True):
        assert np.array_equal(first.codes, second.codes) and np.array_equal(first.codes, single.codes)
    other = speak(pipeline, requests(voice, seed=1))
    assert any(not np.array_equal(a.codes, b.codes) for a, b in zip(spoken, other, strict=True))


def test_every_speaker_ends_by_itself_and_sounds(spoken: list[Utterance]) -> None:
    for utterance in spoken:
        assert utterance.ended and 0.6 < len(utterance.audio) / 24_000 < 4
        assert 0.02 < np.abs(utterance.audio).max() <= 1.0


def test_a_break_and_a_slower_pace_take_longer(voice: Voice, pipeline: Pipeline) -> None:
    speaker = next(iter(voice.speakers().values()))

    def seconds(text: str, style: str) -> float:
        asked = [Request(text, speaker, seed=0, row=row, style=style) for row in range(4)]
        return sum(len(u.audio) for u in speak(pipeline, asked)) / 4 / 24_000

    own = seconds(COMMAND, "[speed_5]")
    assert seconds(COMMAND, "[speed_3]") > 1.08 * own > 1.16 * seconds(COMMAND, "[speed_7]")
    assert own - seconds(COMMAND.replace("[uv_break] ", ""), "[speed_5]") > 0.15


def test_numbers_are_read_as_the_voice_knows_them(voice: Voice) -> None:
    from labkit.text.normalize import normalize

    assert normalize("turn 42 degrees", vocabulary=voice.domain_words)[0] == "turn forty two degrees"


def test_it_is_small_enough_to_be_carried(voice: Voice) -> None:
    folder = voice.folder.parent
    assert sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) <= MAX_BYTES


@pytest.mark.slow
def test_every_speaker_is_heard_right(spoken: list[Utterance]) -> None:
    quality = pytest.importorskip("labkit.quality.whisper")
    pytest.importorskip("faster_whisper")
    from labkit.quality.audio import to_16k
    from labkit.quality.words import heard_digits, plain_words

    whisper = quality.Whisper(quality.assemble())
    heard = [" ".join(heard_digits(plain_words(whisper.transcribe(to_16k(u.audio))))) for u in spoken]
    assert heard == [TEXT] * len(spoken)
