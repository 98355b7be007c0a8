"""The lab's own answers to the questions of `cases`, from `labkit.model` in plain torch.

It drives the modules directly: no engine, no artifact, no generate loop of the lab stands between the network and
the comparison.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labkit.model.sampling import REFINE_SAMPLING, SamplingParams, draw
from labkit.model.speaker import SpeakerEmbedding, VoiceSample
from labkit.text.prompts import code_prompt, refine_prompt
from labkit.upstream.cases import (
    PROMPT_TEXTS,
    REFINE_STYLE,
    STEPS,
    STYLE,
    TEXTS,
    Answers,
    code_noise,
    make_inputs,
    text_noise,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from labkit.model.gpt import Gpt
    from labkit.text.tokenizer import Tokenizer
    from labkit.voices import Voice

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]


class Generated(NamedTuple):
    """logits: [S, B, C, V] raw; hidden: [B, S, D]; codes: [B, S, C]."""

    logits: FloatArray
    hidden: FloatArray
    codes: IntArray


def lab_answers(voice: Voice) -> Answers:
    """Answer every question with the voice's weights, on the CPU in float32."""
    import torch

    from labkit.model import checkpoint
    from labkit.model.features import log_mel

    inputs = make_inputs(voice.config)
    speaker = SpeakerEmbedding(inputs.speaker).to_string()
    sample = VoiceSample(inputs.codes[0].T.astype(np.uint16)).to_string()
    decoder, vocoder = checkpoint.load_decoder(voice.folder), checkpoint.load_vocoder(voice.folder)
    dvae = checkpoint.load_dvae(voice.folder)
    wave = torch.from_numpy(inputs.wave)[None]
    answers: Answers = {
        "speaker/string": np.array(speaker),
        "speaker/vector": SpeakerEmbedding.from_string(speaker).vector,
        "voice sample/string": np.array(sample),
        "voice sample/codes": VoiceSample.from_string(sample).codes,
        "decoder/mel": apply(decoder, inputs.hidden),
        "dvae decode/mel": apply(dvae, inputs.codes),
        "vocos/audio": apply(vocoder, inputs.mel),
        "dvae encode/mel": log_mel(wave, voice.config.audio)[0].numpy(),
        "dvae encode/codes": dvae.encode_wave(wave)[0].T.numpy(),
    }
    gpt, tokenizer = checkpoint.load_gpt(voice.folder), voice.tokenizer()
    answers |= _prompts(tokenizer)
    for name, texts in (("single", TEXTS[1:2]), ("batch of 3", TEXTS)):
        prompts = [code_prompt(text, speaker=True, style=STYLE) for text in texts]
        embeddings, mask = _embed(gpt, tokenizer, prompts, SpeakerEmbedding.from_string(speaker))
        never_end = SamplingParams(min_steps=STEPS, max_steps=STEPS)
        noise = code_noise(voice.config, len(texts))
        speech = generate(gpt, embeddings, mask, noise, never_end, end=gpt.config.end_code)
        answers |= {
            f"{name}/logits": speech.logits,
            f"{name}/hidden": speech.hidden,
            f"{name}/codes": speech.codes,
            f"{name}/audio": apply(vocoder, apply(decoder, speech.hidden)),
            f"{name}, codes path/audio": apply(vocoder, apply(dvae, speech.codes)),
        }
    embeddings, mask = _embed(gpt, tokenizer, [refine_prompt(text, REFINE_STYLE) for text in TEXTS], None)
    never_end = dataclasses.replace(REFINE_SAMPLING, min_steps=STEPS, max_steps=STEPS)
    end = tokenizer.token_id("[Ebreak]")
    refined = generate(gpt, embeddings, mask, text_noise(voice.config), never_end, end=end, text=True)
    return answers | {"refine/logits": refined.logits[:, :, 0], "refine/ids": refined.codes[:, :, 0]}


def apply(module: nn.Module, array: NDArray[np.generic]) -> FloatArray:
    """Run one stage on a NumPy array."""
    import torch

    with torch.inference_mode():
        result: FloatArray = module(torch.from_numpy(np.ascontiguousarray(array))).numpy()
    return result


def generate(
    gpt: Gpt,
    embeddings: Tensor,
    mask: Tensor,
    noise: FloatArray,
    sampling: SamplingParams,
    *,
    end: int,
    text: bool = False,
) -> Generated:
    """Prefill, then one step for each further entry of noise [S, B, C, V] (C = 1 for text); no row may end."""
    import torch

    batch, length = mask.shape
    drawn = np.zeros((batch, 0, noise.shape[2]), np.int64)
    logits, states = [], []
    with torch.inference_mode():
        cache = gpt.new_cache(batch, length + len(noise))
        hidden = gpt.prefill(embeddings, mask, cache)
        for step, step_noise in enumerate(noise):
            if step and text:
                hidden = gpt.step_text(torch.from_numpy(drawn[:, -1, 0]), cache)
            elif step:
                hidden = gpt.step(torch.from_numpy(drawn[:, -1]), cache)
            states.append(hidden.numpy().copy())
            logits.append((gpt.text_logits(hidden)[:, None] if text else gpt.code_logits(hidden)).numpy())
            codes = draw(logits[-1], drawn, sampling, step_noise, step=step, end=end)
            drawn = np.concatenate([drawn, codes[:, None]], axis=1)
    return Generated(np.stack(logits), np.stack(states, axis=1), drawn)


def _prompts(tokenizer: Tokenizer) -> Answers:
    prompts = {
        "prompt": [code_prompt(text, speaker=True, style=STYLE) for text in PROMPT_TEXTS],
        "prompt without speaker": [code_prompt(text, speaker=False, style=STYLE) for text in PROMPT_TEXTS],
        "refine prompt": [refine_prompt(text, REFINE_STYLE) for text in PROMPT_TEXTS],
    }
    answers: Answers = {}
    for name, strings in prompts.items():
        ids, mask = pad_left([tokenizer.encode(string) for string in strings])
        answers |= {f"{name}/strings": np.array(strings), f"{name}/ids": ids, f"{name}/mask": mask}
    return answers


def pad_left(rows: Sequence[Sequence[int]]) -> tuple[IntArray, NDArray[np.bool_]]:
    """Token ids of each row -> (ids [B, S], mask [B, S]), zeros and False at the left."""
    length = max(map(len, rows))
    ids = np.array([[0] * (length - len(row)) + list(row) for row in rows], np.int64)
    mask = np.array([[False] * (length - len(row)) + [True] * len(row) for row in rows])
    return ids, mask


def _embed(
    gpt: Gpt, tokenizer: Tokenizer, prompts: list[str], speaker: SpeakerEmbedding | None
) -> tuple[Tensor, Tensor]:
    import torch

    ids, mask = pad_left([tokenizer.encode(prompt) for prompt in prompts])
    with torch.inference_mode():
        embeddings = gpt.embed_text(torch.from_numpy(ids))
        if speaker is not None:
            place = torch.from_numpy(ids == tokenizer.token_id("[spk_emb]"))
            embeddings[place] = torch.from_numpy(speaker.normalized())
    return embeddings, torch.from_numpy(mask)
