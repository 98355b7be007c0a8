"""Stage `gpt`: teach the GPT to write the four code streams of a text.

What is learned is exactly the network that speaks. Three aids exist only here and are thrown away, because plain
cross-entropy gave clear words in the wrong order for thousands of steps:

* two heads of a middle layer are told where to look among the text tokens (the word being spoken, and what follows it);
* linear probes on early layers are asked which word this is, how many have passed, and what comes next;
* each text token's own place is asked for after the first layer.

Input codes are corrupted now and then, so that the voice survives its own mistakes. The end mark is a target on all
four heads (speech ends when any of them says so). Second-residual codes weigh less: they are half noise.
"""

from __future__ import annotations

import bisect
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labkit.model.config import VoiceConfig
from labkit.model.gpt import Gpt, Trace
from labkit.training.codes import Utterance
from labkit.training.loop import Metrics, Running, Schedule, train
from labkit.training.vocabulary import SPEAKER_POSITION, TOKENS

IGNORE = -100
MAX_WORDS = 12


@dataclass(frozen=True)
class GptStage:
    schedule: Schedule = field(
        default_factory=lambda: Schedule(
            steps=15_500, peak=2e-3, warmup=100, floor=0.03, betas=(0.9, 0.95), weight_decay=0.05, muon=True
        )
    )
    seed: int = 3
    batch: int = 28
    spliced_share: tuple[float, float] = (0.5, 0.15)  # of a batch, at the first step and at the last
    corrupted: float = 0.15  # the most input codes of an utterance that may be replaced
    codebook_weights: tuple[float, ...] = (1.0, 0.3, 1.0, 0.3)
    attention_layer: int = 2
    attention_weight: float = 0.5
    probe_weight: float = 0.5
    aids_floor: float = 0.2  # the aids' weights fall linearly to this share at the last step
    dropout: float = 0.1  # on what attention and MLP add to the residual stream
    bf16: bool = True


@dataclass(frozen=True)
class Batch:
    """Right-padded sequences: prompt, then codes. Targets stand at the position that predicts them."""

    ids: Tensor  # [B, L] prompt ids, 0 elsewhere
    codes: Tensor  # [B, L, 4] input codes, 0 elsewhere
    is_code: Tensor  # [B, L]
    mask: Tensor  # [B, L] True at real tokens
    speakers: Tensor  # [B, hidden]
    targets: Tensor  # [B, L, 4]
    current: Tensor  # [B, L] position in the prompt of the word being spoken
    following: Tensor  # [B, L] position of what comes after it (a word or [Ptts])
    count: Tensor  # [B, L] index of the word being spoken
    own_index: Tensor  # [B, L] for word tokens: which word of the text this is


class Aids(nn.Module):
    """The probes. Thrown away after training."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.own_index = nn.Linear(hidden, MAX_WORDS)
        self.count = nn.Linear(hidden, MAX_WORDS)
        self.current = nn.Linear(hidden, len(TOKENS))
        self.following = nn.Linear(hidden, len(TOKENS))


def speaker_vectors(voices: Sequence[str], hidden: int, seed: int) -> dict[str, np.ndarray]:
    """A fixed random unit vector [hidden] per voice."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((len(voices), hidden)).astype(np.float32)
    return dict(zip(voices, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), strict=True))


def corrupt(codes: Tensor, most: float, size: int, rng: random.Random) -> Tensor:
    """Replace up to a share `most` of the codes [T, 4] at random; in a third of the cases also repeat frames."""
    rate = rng.random() * most
    steps = codes.shape[0]
    noisy = torch.where(torch.rand(codes.shape) < rate, torch.randint(0, size, codes.shape), codes)
    if rng.random() < 0.3:
        behind = (torch.rand(steps) < rate).long()
        noisy = noisy[(torch.arange(steps) - behind).clamp(min=0)]
    return noisy


def collate(
    utterances: Sequence[Utterance],
    speakers: dict[str, Tensor],
    end_code: int,
    rng: random.Random | None = None,
    corrupted: float = 0.0,
) -> Batch:
    """One batch; with `rng`, input codes are corrupted."""
    rows, length = len(utterances), max(len(u.ids) + len(u.codes) for u in utterances)
    ids = torch.zeros(rows, length, dtype=torch.long)
    codes = torch.zeros(rows, length, 4, dtype=torch.long)
    is_code = torch.zeros(rows, length, dtype=torch.bool)
    mask = torch.zeros(rows, length, dtype=torch.bool)
    targets = torch.full((rows, length, 4), IGNORE)
    current, following, count, own_index = (torch.full((rows, length), IGNORE) for _ in range(4))
    for b, u in enumerate(utterances):
        n, steps = len(u.ids), len(u.codes)
        ids[b, :n] = torch.tensor(u.ids)
        codes[b, n : n + steps] = u.codes if rng is None else corrupt(u.codes, corrupted, end_code, rng)
        is_code[b, n : n + steps] = True
        mask[b, : n + steps] = True
        targets[b, n - 1 : n - 1 + steps] = u.codes
        targets[b, n - 1 + steps] = end_code
        places = torch.tensor([*u.words_at, n - 1])
        own_index[b, places[:-1]] = torch.arange(len(places) - 1)
        if u.starts is not None:
            passed = (torch.arange(steps + 1)[:, None] >= torch.tensor(u.starts)[None]).sum(1)
            word = (passed - 1).clamp(min=0)
            span = slice(n - 1, n + steps)
            current[b, span], following[b, span], count[b, span] = places[word], places[word + 1], word
    voices = torch.stack([speakers[u.voice] for u in utterances])
    return Batch(ids, codes, is_code, mask, voices, targets, current, following, count, own_index)


def embed(gpt: Gpt, batch: Batch) -> Tensor:
    """[B, L, hidden]: text and code embeddings, the speaker written over its token."""
    x = torch.where(batch.is_code[..., None], gpt.embed_codes(batch.codes), gpt.embed_text(batch.ids))
    at_speaker = torch.zeros(batch.ids.shape, dtype=torch.bool)
    at_speaker[:, SPEAKER_POSITION] = True
    return torch.where(at_speaker[..., None], batch.speakers[:, None], x)


def code_losses(gpt: Gpt, hidden: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """(cross-entropy, top-1 accuracy) of each codebook, [4] each, over the positions that have targets."""
    known = targets[..., 0] >= 0
    logits, wanted = gpt.code_logits(hidden[known]).float(), targets[known]
    losses = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none").view(wanted.shape)
    return losses.mean(0), (logits.argmax(-1) == wanted).float().mean(0)


def attention_losses(attention: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """(loss of the two guided heads, how often both look at the right token). attention: [B, heads, L, L]."""
    losses, right = [], []
    for head, places in enumerate((batch.current, batch.following)):
        known = places >= 0
        rows = attention[:, head][known].float()  # [N, L]
        wanted = places[known]
        losses.append(-torch.log(rows.gather(1, wanted[:, None]) + 1e-6).mean())
        right.append((rows.argmax(1) == wanted).float().mean())
    return torch.stack(losses).mean(), torch.stack(right).mean()


def probe_loss(aids: Aids, trace: Trace, batch: Batch, layer: int) -> Tensor:
    """Mean cross-entropy of the four probes; the index probes look one layer below the guided heads."""
    known = batch.current >= 0
    words = batch.own_index >= 0

    def tokens_at(places: Tensor) -> Tensor:
        return batch.ids.gather(1, places.clamp(min=0))[known]

    below, guided = trace[layer - 1][0], trace[layer][0]
    return torch.stack(
        [
            F.cross_entropy(aids.own_index(trace[0][0][words]), batch.own_index[words]),
            F.cross_entropy(aids.count(below[known]), batch.count[known]),
            F.cross_entropy(aids.current(guided[known]), tokens_at(batch.current)),
            F.cross_entropy(aids.following(guided[known]), tokens_at(batch.following)),
        ]
    ).mean()


class Shelf:
    """Utterances sorted by length, from which neighbours are drawn: batches of like lengths, any step at random."""

    def __init__(self, utterances: Sequence[Utterance]) -> None:
        self._sorted = sorted(utterances, key=lambda u: len(u.codes))
        self._lengths = [len(u.codes) for u in self._sorted]

    def __len__(self) -> int:
        return len(self._sorted)

    def random_length(self, rng: random.Random) -> int:
        return rng.choice(self._lengths)

    def near(self, length: int, count: int, rng: random.Random) -> list[Utterance]:
        """`count` different utterances out of the 3 x count nearest to `length`."""
        spread = min(len(self), 3 * count)
        start = bisect.bisect_left(self._lengths, length) - spread // 2
        start = max(0, min(start, len(self) - spread))
        return rng.sample(self._sorted[start : start + spread], min(count, spread))


def train_gpt(
    stage: GptStage,
    config: VoiceConfig,
    natural: Sequence[Utterance],
    spliced: Sequence[Utterance],
    valid: Sequence[Utterance],
    speakers: dict[str, np.ndarray],
    folder: Path,
    **running: Unpack[Running],
) -> Gpt:
    torch.manual_seed(stage.seed)
    gpt = Gpt(config.gpt)
    gpt.init_weights()
    aids = Aids(config.gpt.hidden)
    vectors = {name: torch.from_numpy(vector) for name, vector in speakers.items()}
    shelves = Shelf(natural), Shelf(spliced)
    weights = torch.tensor(stage.codebook_weights)
    weights = weights / weights.sum()

    def forward(batch: Batch) -> tuple[Tensor, Trace]:
        trace: Trace = []
        with torch.autocast("cpu", torch.bfloat16, enabled=stage.bf16):
            return gpt(embed(gpt, batch), batch.mask, trace, stage.dropout), trace

    def step(number: int, rng: random.Random) -> tuple[Tensor, Metrics]:
        progress = number / stage.schedule.steps
        first, last = stage.spliced_share
        extra = round(stage.batch * (first + (last - first) * progress)) if len(shelves[1]) else 0
        length = shelves[0].random_length(rng)
        chosen = shelves[0].near(length, stage.batch - extra, rng) + shelves[1].near(length, extra, rng)
        batch = collate(chosen, vectors, config.gpt.end_code, rng, stage.corrupted)
        hidden, trace = forward(batch)
        losses, _ = code_losses(gpt, hidden, batch.targets)
        guided, right = attention_losses(trace[stage.attention_layer][1], batch)
        probes = probe_loss(aids, trace, batch, stage.attention_layer)
        aid = 1.0 + (stage.aids_floor - 1.0) * progress
        loss = (losses * weights).sum() + aid * (
            stage.attention_weight * guided + stage.probe_weight * probes
        )
        figures = {f"ce{q}": value for q, value in enumerate(losses.tolist())}
        return loss, figures | {
            "attention": guided.item(),
            "looks_right": right.item(),
            "probes": probes.item(),
        }

    def validate() -> Metrics:
        sums: Metrics = {}
        chunks = [valid[i : i + 20] for i in range(0, len(valid), 20)]
        for chunk in chunks:
            batch = collate(chunk, vectors, config.gpt.end_code)
            hidden, trace = forward(batch)
            losses, accuracy = code_losses(gpt, hidden, batch.targets)
            figures = {"ce0": losses[0].item(), "ce": losses.mean().item(), "top1": accuracy[0].item()}
            figures["looks_right"] = attention_losses(trace[stage.attention_layer][1], batch)[1].item()
            for key, value in figures.items():
                sums[key] = sums.get(key, 0.0) + value / len(chunks)
        return sums

    modules = nn.ModuleDict({"gpt": gpt, "aids": aids})
    train("gpt", folder, modules, stage.schedule, step, validate, seed=stage.seed, **running)
    return gpt
