"""A voice on disk: which files it has, and its two JSON descriptions.

The layout is ChatTTS's asset folder: `gpt/config.json` and `gpt/model.safetensors`, `Embed.safetensors`,
`Decoder.safetensors`, `DVAE.safetensors`, `Vocos.safetensors`, `tokenizer/`. The lab adds `voice.json` (`VoiceCard`),
which ChatTTS ignores; without it the published sizes hold for all parts but the GPT. Knows no tensors.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.errors import CheckpointError
from labkit.model.config import (
    AudioConfig,
    ConvStackConfig,
    DvaeConfig,
    GptConfig,
    VocoderConfig,
    VoiceConfig,
)

GPT_CONFIG = "gpt/config.json"
ESSENTIALS = "essentials.json"  # beside the asset folder: what was measured of the voice, in words
GPT_WEIGHTS = "gpt/model.safetensors"
EMBED_WEIGHTS = "Embed.safetensors"
DECODER_WEIGHTS = "Decoder.safetensors"
DVAE_WEIGHTS = "DVAE.safetensors"
VOCODER_WEIGHTS = "Vocos.safetensors"
TOKENIZER_FILES = (
    "tokenizer/tokenizer.json",
    "tokenizer/tokenizer_config.json",
    "tokenizer/special_tokens_map.json",
)
VOICE_CARD = "voice.json"

WEIGHT_FILES = (GPT_WEIGHTS, EMBED_WEIGHTS, DECODER_WEIGHTS, DVAE_WEIGHTS, VOCODER_WEIGHTS)

# our name -> the name in gpt/config.json
_GPT_NAMES = {
    "hidden": "hidden_size",
    "intermediate": "intermediate_size",
    "heads": "num_attention_heads",
    "layers": "num_hidden_layers",
    "positions": "max_position_embeddings",
    "num_text_tokens": "num_text_tokens",
    "num_code_tokens": "num_audio_tokens",
    "num_codebooks": "num_vq",
    "norm_eps": "rms_norm_eps",
    "rope_theta": "rope_theta",
}
_GPT_REQUIRED = ("hidden", "intermediate", "heads", "layers")
_CARD_FORMAT = 1


@dataclass(frozen=True)
class VoiceCard:
    """What `voice.json` adds to the weights.

    speakers: name -> speaker string; domain_words: the words a small voice was taught, or None for open text;
    for_quality: False when the weights mean nothing (seeded random), so only speed may be read off them.
    """

    name: str
    licence: str
    for_quality: bool = True
    speakers: dict[str, str] = field(default_factory=dict)
    speaker_statistics: str | None = None
    domain_words: tuple[str, ...] | None = None
    note: str = ""


def asset_folder(path: Path) -> Path:
    """The asset folder at `path`, or inside it as `asset`; CheckpointError when neither is one."""
    for folder in (path, path / "asset"):
        if (folder / GPT_CONFIG).is_file():
            return folder
    hint = pickled_hint(path) or pickled_hint(path / "asset")
    raise CheckpointError(
        f"{path}: no voice here, for it has neither {GPT_CONFIG} nor asset/{GPT_CONFIG}.{hint} "
        "Give a folder in ChatTTS's asset layout."
    )


def pickled_hint(folder: Path) -> str:
    """A sentence about pickled weights beside the expected ones, or nothing."""
    pickled = sorted(p.name for p in folder.glob("*.p*") if p.suffix in (".pt", ".pth", ".pkl"))
    if not pickled:
        return ""
    return f" It has pickled weights ({', '.join(pickled)}), which are never opened: they can run code. Convert them."


def read_card(asset: Path) -> VoiceCard | None:
    """The voice's card, or None when the folder has none."""
    data = _read_card_data(asset)
    if data is None:
        return None
    names = {f.name for f in dataclasses.fields(VoiceCard)}
    fields = {k: v for k, v in data.items() if k in names}
    if fields.get("domain_words") is not None:
        fields["domain_words"] = tuple(fields["domain_words"])
    try:
        return VoiceCard(**fields)
    except TypeError as error:
        raise CheckpointError(f"{asset / VOICE_CARD}: {error}.") from error


def read_config(asset: Path) -> VoiceConfig:
    """The sizes of a voice, from `gpt/config.json` and, where present, `voice.json`."""
    sizes = (_read_card_data(asset) or {}).get("sizes", {})
    try:
        parts: dict[str, Any] = {"gpt": _read_gpt(asset / GPT_CONFIG)}
        if "decoder" in sizes:
            parts["decoder"] = ConvStackConfig(**sizes["decoder"])
        if "dvae" in sizes:
            parts["dvae"] = _dvae(sizes["dvae"])
        if "vocoder" in sizes:
            parts["vocoder"] = VocoderConfig(**sizes["vocoder"])
        if "audio" in sizes:
            parts["audio"] = AudioConfig(**sizes["audio"])
        return VoiceConfig(**parts)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{asset}: the voice's sizes do not fit together: {error}.") from error


def write_descriptions(asset: Path, config: VoiceConfig, card: VoiceCard) -> None:
    """Write `gpt/config.json`, in the words of Hugging Face's Llama, and `voice.json`."""
    gpt = config.gpt
    llama: dict[str, Any] = {
        "architectures": ["LlamaModel"],
        "model_type": "llama",
        **{theirs: getattr(gpt, ours) for ours, theirs in _GPT_NAMES.items()},
        "num_key_value_heads": gpt.heads,
        "head_dim": gpt.head_dim,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        # the network reads embeddings from Embed.safetensors; one token keeps Llama's own unused table small
        "vocab_size": 1,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "torch_dtype": "float32",
        "use_cache": True,
    }
    sizes = {
        part: dataclasses.asdict(getattr(config, part)) for part in ("audio", "decoder", "dvae", "vocoder")
    }
    _write_json(asset / GPT_CONFIG, llama)
    _write_json(asset / VOICE_CARD, {"format": _CARD_FORMAT, **dataclasses.asdict(card), "sizes": sizes})


def _read_gpt(path: Path) -> GptConfig:
    data = _read_json(path)
    missing = [_GPT_NAMES[name] for name in _GPT_REQUIRED if _GPT_NAMES[name] not in data]
    if missing:
        raise CheckpointError(f"{path}: {', '.join(missing)} missing; is this ChatTTS's gpt/config.json?")
    fixed = {
        "num_key_value_heads": data["num_attention_heads"],
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "rope_scaling": None,
    }
    for name, expected in fixed.items():
        if data.get(name, expected) != expected:
            raise CheckpointError(f"{path}: {name}={data[name]!r}; this network only knows {expected!r}.")
    rope = data.get("rope_parameters") or {}
    if "rope_theta" in rope:
        data.setdefault("rope_theta", rope["rope_theta"])
    return GptConfig(**{ours: data[theirs] for ours, theirs in _GPT_NAMES.items() if theirs in data})


def _dvae(data: dict[str, Any]) -> DvaeConfig:
    stacks = {part: ConvStackConfig(**data[part]) for part in ("encoder", "decoder")}
    return DvaeConfig(**{**data, **stacks, "levels": tuple(data["levels"])})


def _read_card_data(asset: Path) -> dict[str, Any] | None:
    path = asset / VOICE_CARD
    if not path.is_file():
        return None
    data = _read_json(path)
    if data.get("format") != _CARD_FORMAT:
        raise CheckpointError(
            f"{path}: format {data.get('format')!r}; this version reads format {_CARD_FORMAT}."
        )
    return data


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise CheckpointError(f"{path}: not valid JSON: {error}.") from error
    if not isinstance(data, dict):
        raise CheckpointError(f"{path}: expected a JSON object, found {type(data).__name__}.")
    return data


def _write_json(path: Path, data: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
