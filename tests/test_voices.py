from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest

from labkit import voices
from labkit.errors import CheckpointError, SpeakerError, UserError
from labkit.model import layout
from labkit.model.layout import VoiceCard
from labkit.model.speaker import SpeakerEmbedding, VoiceSample
from labkit.text.tokenizer import write_word_tokenizer
from labkit.voices import Voice, make_random_voice, open_voice, resolve_voice, write_random_voice
from tests.conftest import TINY


@pytest.fixture
def copied(tiny_voice: Voice, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_voice.folder, tmp_path / "copy" / "asset"))


@pytest.fixture
def small_random(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """`random` at a size that tests can afford, in a cache of its own."""
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(voices, "FULL", TINY)
    return tmp_path / "cache"


def test_a_folder_is_a_voice_from_itself_and_from_above(tiny_voice: Voice) -> None:
    for folder in (tiny_voice.folder, tiny_voice.folder.parent):
        voice = resolve_voice(str(folder))
        assert (voice.folder, voice.config, voice.name) == (tiny_voice.folder, TINY, "random:3")


def test_a_random_voice_is_never_for_quality(tiny_voice: Voice) -> None:
    assert not tiny_voice.for_quality and tiny_voice.domain_words is None
    assert len(tiny_voice.tokenizer()) == TINY.gpt.num_text_tokens


def test_random_is_made_once_and_kept(small_random: Path) -> None:
    lines: list[str] = []
    first = resolve_voice("random:7", lines.append)
    assert first.name == "random:7" and first.folder.is_relative_to(small_random / "voices")
    assert len(lines) > 1
    made = (first.folder / layout.GPT_WEIGHTS).stat().st_mtime_ns
    assert resolve_voice("random:7").weights_hash == first.weights_hash
    assert (first.folder / layout.GPT_WEIGHTS).stat().st_mtime_ns == made
    assert resolve_voice("random").weights_hash != first.weights_hash
    assert resolve_voice("random:0").folder == resolve_voice("Random").folder


def test_an_interrupted_making_leaves_no_half_voice(
    small_random: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(line: str) -> None:
        if line == layout.VOCODER_WEIGHTS:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        resolve_voice("random:1", interrupt)
    assert not (small_random / "voices" / "random-1-v1").exists()
    assert resolve_voice("random:1").name == "random:1"


def test_a_cache_that_cannot_be_written_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match="set LABKIT_CACHE"):
        resolve_voice("random")


@pytest.mark.parametrize("name", ["bogus", "", "nano2", "random:-1", "random:x"])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=r"Known:|not a seed"):
        resolve_voice(name)


def test_a_folder_that_is_no_voice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no voice here"):
        resolve_voice(str(tmp_path))


@pytest.mark.parametrize("file", [layout.DECODER_WEIGHTS, layout.TOKENIZER_FILES[0]])
def test_a_voice_without_one_of_its_files_is_refused_at_once(copied: Path, file: str) -> None:
    (copied / file).unlink()
    (copied / "Decoder.pt").write_bytes(b"")
    with pytest.raises(CheckpointError, match=f"{file} missing.*Decoder.pt"):
        open_voice(copied)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "truncated"),
        (b"", "not a whole safetensors file"),
        (b"\x80\x04K\x01.", "a pickle"),
        (b"PK\x03\x04zip", "a pickle"),
    ],
)
def test_a_damaged_file_is_refused_at_once(copied: Path, content: bytes | None, words: str) -> None:
    file = copied / "Decoder.safetensors"
    file.write_bytes(file.read_bytes()[:-10] if content is None else content)
    with pytest.raises(CheckpointError, match=f"Decoder.*{words}"):
        resolve_voice(str(copied))


def test_a_folder_without_a_card_is_an_unknown_voice_for_quality(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (copied / layout.VOICE_CARD).unlink()
    monkeypatch.setattr(layout, "VoiceConfig", lambda **_: TINY)
    voice = open_voice(copied.parent)
    assert (voice.name, voice.licence, voice.for_quality) == ("copy", "unknown", True)
    assert voice.speaker() is None


def test_the_hash_follows_what_decides_the_sound_and_nothing_else(
    copied: Path, tiny_voice: Voice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    before = open_voice(copied).weights_hash
    assert before == tiny_voice.weights_hash and len(before) == 64
    layout.write_descriptions(copied, TINY, replace(tiny_voice.card, note="another note"))
    assert open_voice(copied).weights_hash == before
    other = replace(TINY, dvae=replace(TINY.dvae, residual_scale="levels"))
    layout.write_descriptions(copied, other, tiny_voice.card)
    assert open_voice(copied).weights_hash != before
    layout.write_descriptions(copied, TINY, tiny_voice.card)
    data = bytearray((copied / layout.VOCODER_WEIGHTS).read_bytes())
    data[-1] ^= 1
    (copied / layout.VOCODER_WEIGHTS).write_bytes(data)
    assert open_voice(copied).weights_hash != before


def test_speakers_by_name_by_string_and_by_chance(tiny_voice: Voice) -> None:
    named = tiny_voice.speakers()
    assert list(named) == ["random-0", "random-1"]
    assert tiny_voice.speaker() == named["random-0"]
    assert tiny_voice.speaker("random-1") == named["random-1"]
    assert tiny_voice.speaker(named["random-1"].to_string()) == named["random-1"]
    assert tiny_voice.speaker("random:5") == tiny_voice.speaker("random:5") != tiny_voice.speaker("random:6")


def test_speakers_that_are_none_are_refused(tiny_voice: Voice) -> None:
    with pytest.raises(SpeakerError, match=r"'bogus' is unknown.*random-0, random-1"):
        tiny_voice.speaker("bogus")
    with pytest.raises(SpeakerError, match="It is a voice sample"):
        tiny_voice.speaker(VoiceSample(np.ones((4, 9))).to_string())
    with pytest.raises(SpeakerError, match="768 numbers but the voice needs 48"):
        tiny_voice.speaker(SpeakerEmbedding(np.ones(768)).to_string())
    bare = replace(tiny_voice, card=VoiceCard(name="bare", licence="none"))
    with pytest.raises(SpeakerError, match="no speaker statistics"):
        bare.speaker("random:1")


def test_words_outside_the_domain_are_named(copied: Path) -> None:
    write_word_tokenizer(copied, ["one", "two", "later"])
    card = VoiceCard(name="digits", licence="none", domain_words=("one", "two"))
    layout.write_descriptions(copied, TINY, card)
    voice = open_voice(copied)
    assert voice.unknown_words("[Stts]One two[Ptts]") == ()
    assert voice.unknown_words("one later Elephant two elephant") == ("later", "Elephant", "elephant")


def test_open_text_voices_name_only_what_they_cannot_read(tiny_voice: Voice) -> None:
    assert tiny_voice.unknown_words("hello 123") == ()
    assert tiny_voice.unknown_words("hello Ω") == ("Ω",)


def test_a_tokenizer_larger_than_the_network_is_refused(copied: Path) -> None:
    write_word_tokenizer(copied, [f"w{i}" for i in range(200)])
    with pytest.raises(CheckpointError, match="255 tokens but the network embeds only 150"):
        open_voice(copied).tokenizer()


def test_the_hub_voice_is_verified(copied: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(copied.parent))
    with pytest.raises(CheckpointError, match="published is"):
        resolve_voice("chattts")
    monkeypatch.setattr(voices, "verify", lambda *_: None)
    voice = resolve_voice("2Noise/ChatTTS")
    assert (voice.name, voice.licence) == ("chattts", "CC BY-NC 4.0")


def test_an_unreachable_hub_names_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object, **__: object) -> str:
        raise ConnectionError("no route\nlong trace")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(UserError, match=r"ConnectionError: no route\)\. Give the folder"):
        resolve_voice("chattts")


def test_naming_voices_imports_no_backend() -> None:
    code = "import sys, labkit.voices; sys.exit('torch' in sys.modules or 'tokenizers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_known_voices_are_listed_with_what_they_are() -> None:
    assert {"nano", "random", "chattts"} <= set(voices.known_voices())


def test_a_named_folder_is_never_written_over_and_needs_room(tmp_path: Path) -> None:
    write_random_voice(tmp_path, config=TINY)
    with pytest.raises(UserError, match=r"asset is there already; name another folder"):
        write_random_voice(tmp_path, config=TINY)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot be written into .*file: Not a directory.*1\.1 GB"):
        write_random_voice(tmp_path / "file", config=TINY)


def test_make_random_voice_takes_any_size(tmp_path: Path) -> None:
    config = replace(TINY, gpt=replace(TINY.gpt, layers=1, num_text_tokens=137))
    voice = open_voice(make_random_voice(tmp_path, config, seed=9))
    assert voice.config == config and len(voice.tokenizer()) == 137
