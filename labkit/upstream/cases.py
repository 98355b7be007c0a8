"""The questions of the parity check, and upstream's answers to them.

Every input is made from a fixed seed with counter-based noise, so that the same questions can be asked of
upstream today, of the lab tomorrow, and of committed answers where upstream is not installed. The part of
an answer's name after the last slash says what it is, and with that how close two answers must be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labkit.model.config import ConvStackConfig, DvaeConfig, GptConfig, VocoderConfig, VoiceConfig
from labkit.model.sampling import RowNoise, stack_noise
from labkit.upstream.client import UpstreamProcess
from labkit.upstream.sizes import upstream_sizes

if TYPE_CHECKING:
    from labkit.voices import Voice

Answers = dict[str, NDArray[np.generic]]

SMALL = VoiceConfig(
    gpt=GptConfig(hidden=60, intermediate=92, heads=5, layers=3, positions=192, num_text_tokens=203),
    decoder=ConvStackConfig(30, 30, 44, 3, 18),
    dvae=DvaeConfig(
        dim=38,
        encoder=ConvStackConfig(38, 76, 34, 3, 14),
        decoder=ConvStackConfig(38, 38, 28, 2, 22),
        vq_dim=76,
    ),
    vocoder=VocoderConfig(dim=36, intermediate=52, layers=3),
)
"""An odd small network: widths that differ from part to part, none a power of two."""

SMALL_SEED = 7
TEXTS = ("one", "two three four five", "six 7 eight [uv_break] nine")  # unlike lengths: left padding
PROMPT_TEXTS = (*TEXTS, " [Stts]hello [spk_emb]there[empty_spk] ", "[S[Stts]tts] 你好,世界! [laugh]")
STYLE = "[speed_5]"
REFINE_STYLE = "[oral_2]"
STEPS = 33  # the prefill and 32 decode steps
NEVER_END = {"max_new_token": STEPS, "min_new_token": STEPS}
SEED = 20


@dataclass(frozen=True)
class Inputs:
    """What both sides are given beside the texts.

    speaker: [D] float16; hidden: [2, 9, D]; codes: [2, 9, 4]; mel: [1, 100, 11]; wave: [9001] float32.
    """

    speaker: NDArray[np.float16]
    hidden: NDArray[np.float32]
    codes: NDArray[np.int64]
    mel: NDArray[np.float32]
    wave: NDArray[np.float32]


def make_inputs(config: VoiceConfig) -> Inputs:
    """The inputs for a network of these sizes; the same on every machine."""
    random = np.random.Generator(np.random.Philox(SEED))
    gpt = config.gpt
    time = np.arange(9001) / config.audio.sample_rate
    tone = 0.3 * np.sin(2 * np.pi * (220 + 900 * time) * time) + 0.01 * random.standard_normal(time.size)
    return Inputs(
        speaker=random.standard_normal(gpt.hidden).astype(np.float16),
        hidden=random.standard_normal((2, 9, gpt.hidden)).astype(np.float32),
        codes=random.integers(0, gpt.end_code, (2, 9, gpt.num_codebooks), dtype=np.int64),
        mel=(2 * random.standard_normal((1, config.audio.n_mels, 11)) - 4).astype(np.float32),
        wave=tone.astype(np.float32),
    )


def code_noise(config: VoiceConfig, rows: int) -> NDArray[np.float32]:
    """Noise for `rows` rows and all steps: [S, B, 4, V]."""
    noise = [RowNoise(SEED, row) for row in range(rows)]
    return np.stack(
        [
            stack_noise(noise, step, config.gpt.num_codebooks, config.gpt.num_code_tokens)
            for step in range(STEPS)
        ]
    )


def text_noise(config: VoiceConfig) -> NDArray[np.float32]:
    """Noise of the refine stage, for every text and all steps: [S, B, 1, V]."""
    noise = [RowNoise(SEED, row, stream=1) for row in range(len(TEXTS))]
    return np.stack([stack_noise(noise, step, 1, config.gpt.num_text_tokens) for step in range(STEPS)])


def upstream_answers(peer: UpstreamProcess, voice: Voice) -> Answers:
    """Load the voice in `peer` and ask it everything."""
    config = voice.config
    peer.call("load", asset=str(voice.folder), sizes=upstream_sizes(config), threads=1, cores=None)
    inputs = make_inputs(config)
    speaker: str = peer.call("speaker_to_string", {"vector": inputs.speaker}).fields["text"]
    sample: str = peer.call("sample_to_string", {"codes": inputs.codes[0].T}).fields["text"]
    answers: Answers = {
        "speaker/string": np.array(speaker),
        "speaker/vector": peer.call("speaker_from_string", text=speaker).arrays["vector"],
        "voice sample/string": np.array(sample),
        "voice sample/codes": peer.call("sample_from_string", text=sample).arrays["codes"],
        "decoder/mel": peer.call("decode", {"hidden": inputs.hidden}).arrays["mel"],
        "dvae decode/mel": peer.call("decode_codes", {"codes": inputs.codes}).arrays["mel"],
        "vocos/audio": peer.call("vocode", {"mel": inputs.mel}).arrays["audio"],
    }
    encoded = peer.call("encode", {"audio": inputs.wave}).arrays
    answers |= {"dvae encode/mel": encoded["mel"], "dvae encode/codes": encoded["codes"]}
    answers |= _upstream_prompts(peer, speaker)
    answers |= _upstream_speech(peer, config, speaker, "single", TEXTS[1:2])
    answers |= _upstream_speech(peer, config, speaker, "batch of 3", TEXTS)
    noise = text_noise(config)[:, :, 0]
    refined = peer.call(
        "refine", {"noise": noise}, texts=list(TEXTS), prompt=REFINE_STYLE, sampling=NEVER_END
    ).arrays
    answers["refine/logits"] = refined["logits"]
    answers["refine/ids"] = np.stack([refined[f"ids_{row}"] for row in range(len(TEXTS))])
    return answers


def _upstream_prompts(peer: UpstreamProcess, speaker: str) -> Answers:
    answers: Answers = {}
    for name, voice in (("prompt", speaker), ("prompt without speaker", None)):
        reply = peer.call("tokenize", texts=list(PROMPT_TEXTS), prompt=STYLE, speaker=voice)
        answers[f"{name}/strings"] = np.array(reply.fields["prompts"])
        answers |= {f"{name}/{part}": array for part, array in reply.arrays.items()}
    reply = peer.call("tokenize_refine", texts=list(PROMPT_TEXTS), prompt=REFINE_STYLE)
    answers["refine prompt/strings"] = np.array(reply.fields["prompts"])
    return answers | {f"refine prompt/{part}": array for part, array in reply.arrays.items()}


def _upstream_speech(
    peer: UpstreamProcess, config: VoiceConfig, speaker: str, name: str, texts: tuple[str, ...]
) -> Answers:
    noise = code_noise(config, len(texts)).reshape(STEPS, -1, config.gpt.num_code_tokens)
    common: dict[str, Any] = {"texts": list(texts), "prompt": STYLE, "speaker": speaker}
    free = peer.call("speak", {"noise": noise}, **common, sampling=NEVER_END, record_logits=True).arrays
    codes = np.stack([free[f"codes_{row}"] for row in range(len(texts))])
    answers: Answers = {
        f"{name}/logits": free["logits"],
        f"{name}/hidden": np.stack([free[f"hidden_{row}"] for row in range(len(texts))]),
        f"{name}/codes": codes,
        f"{name}/audio": np.stack([free[f"audio_{row}"] for row in range(len(texts))]),
    }
    forced = codes.transpose(1, 0, 2).reshape(STEPS, -1)
    by_codes = peer.call("speak", {"codes": forced}, **common, sampling=NEVER_END, audio_path="codes").arrays
    answers[f"{name}, codes path/audio"] = np.stack([by_codes[f"audio_{row}"] for row in range(len(texts))])
    return answers
