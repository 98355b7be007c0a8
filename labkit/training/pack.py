"""Stage `pack`: the trained weights as a voice folder in the upstream layout, float16, with tokenizer and card.

The result is loaded back through the lab's own checkpoint reader before it is called done.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from labkit.errors import ArtifactError
from labkit.model.checkpoint import load_decoder, load_dvae, load_gpt, load_vocoder, save_voice
from labkit.model.config import VoiceConfig
from labkit.model.dvae import Decoder, Dvae
from labkit.model.gpt import Gpt
from labkit.model.layout import VoiceCard
from labkit.model.speaker import SpeakerEmbedding
from labkit.model.vocoder import Vocoder
from labkit.text.tokenizer import write_word_tokenizer
from labkit.training.lexicon import LEXICON
from labkit.training.vocabulary import DOMAIN, TOKENS

MAX_BYTES = 12_000_000
LICENCE = "Apache-2.0"
NOTE = (
    "Trained by this project on speech of Kokoro-82M (Apache-2.0). Speaks English numbers to ninety-nine and short "
    "commands; commas and [uv_break] pause. See CARD.md."
)


def pack(
    asset: Path,
    config: VoiceConfig,
    speakers: Mapping[str, np.ndarray],
    *,
    gpt: Gpt,
    decoder: Decoder,
    dvae: Dvae,
    vocoder: Vocoder,
) -> int:
    """Write the voice and return its size in bytes. `speakers` maps the voice's names to unit vectors [hidden]."""
    asset.mkdir(parents=True, exist_ok=True)
    card = VoiceCard(
        name="nano",
        licence=LICENCE,
        speakers={name: SpeakerEmbedding(vector).to_string() for name, vector in speakers.items()},
        domain_words=LEXICON,
        note=NOTE,
    )
    save_voice(asset, config, card, gpt=gpt, decoder=decoder, dvae=dvae, vocoder=vocoder)
    tokenizer = write_word_tokenizer(asset, DOMAIN)
    ids = [tokenizer.token_id(token) for token in TOKENS]
    if ids != list(range(len(TOKENS))):
        raise ArtifactError(
            f"{asset}/tokenizer: its ids are not those of training; the two vocabularies differ."
        )
    for load in (load_gpt, load_decoder, load_dvae, load_vocoder):
        load(asset)
    size = sum(path.stat().st_size for path in asset.rglob("*") if path.is_file())
    if size > MAX_BYTES:
        raise ArtifactError(
            f"{asset}: {size} bytes, over the {MAX_BYTES} a committed voice may take; use smaller sizes."
        )
    return size
