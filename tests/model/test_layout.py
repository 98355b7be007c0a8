from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from labkit.errors import CheckpointError
from labkit.model import layout
from labkit.model.config import FULL, VoiceConfig
from labkit.model.layout import VoiceCard
from tests.conftest import TINY

CARD = VoiceCard(
    name="tiny",
    licence="Apache-2.0",
    speakers={"anna": "世界", "bert": "世"},
    domain_words=("one", "two"),
    note="for tests",
)


@pytest.fixture
def asset(tmp_path: Path) -> Path:
    layout.write_descriptions(tmp_path / "asset", TINY, CARD)
    return tmp_path / "asset"


def change(path: Path, **fields: Any) -> None:
    data = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in {**data, **fields}.items() if v != "gone"}))


def test_descriptions_come_back(asset: Path) -> None:
    assert VoiceConfig.from_folder(asset) == TINY
    assert layout.read_card(asset) == CARD
    assert list(layout.read_card(asset).speakers) == ["anna", "bert"]


def test_without_a_card_the_published_sizes_hold(tmp_path: Path) -> None:
    layout.write_descriptions(tmp_path, FULL, CARD)
    (tmp_path / layout.VOICE_CARD).unlink()
    change(tmp_path / layout.GPT_CONFIG, rms_norm_eps="gone", num_vq="gone", rope_theta="gone")
    assert layout.read_card(tmp_path) is None
    assert layout.read_config(tmp_path) == FULL


def test_rope_theta_is_found_where_newer_files_keep_it(asset: Path) -> None:
    change(
        asset / layout.GPT_CONFIG,
        rope_theta="gone",
        rope_parameters={"rope_theta": 5000.0, "rope_type": "default"},
    )
    assert layout.read_config(asset).gpt.rope_theta == 5000.0


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("hidden_size", "gone", "hidden_size missing"),
        ("num_key_value_heads", 2, "num_key_value_heads=2"),
        ("hidden_act", "gelu", "hidden_act='gelu'"),
        ("rope_scaling", {"factor": 2}, "rope_scaling"),
        ("hidden_size", 50, "do not fit together"),
        ("hidden_size", "many", "do not fit together"),
    ],
)
def test_a_gpt_that_is_another_network_is_refused(asset: Path, field: str, value: Any, message: str) -> None:
    change(asset / layout.GPT_CONFIG, **{field: value})
    with pytest.raises(CheckpointError, match=message):
        layout.read_config(asset)


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00"])
def test_damaged_descriptions_are_named(asset: Path, text: str) -> None:
    (asset / layout.GPT_CONFIG).write_text(text)
    with pytest.raises(CheckpointError, match=r"gpt/config\.json"):
        layout.read_config(asset)


def test_a_card_of_a_later_format_is_refused(asset: Path) -> None:
    change(asset / layout.VOICE_CARD, format=99)
    with pytest.raises(CheckpointError, match="format 99"):
        layout.read_card(asset)


def test_a_card_without_a_licence_is_refused(asset: Path) -> None:
    change(asset / layout.VOICE_CARD, licence="gone")
    with pytest.raises(CheckpointError, match="licence"):
        layout.read_card(asset)


def test_the_asset_folder_is_found_from_itself_and_from_above(asset: Path) -> None:
    assert layout.asset_folder(asset) == asset
    assert layout.asset_folder(asset.parent) == asset


def test_a_folder_of_pickles_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "asset").mkdir()
    (tmp_path / "asset" / "GPT.pt").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"GPT\.pt.*never opened"):
        layout.asset_folder(tmp_path)
