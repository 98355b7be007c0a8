"""What the GPT is asked for: targets one position ahead, the end on all heads, aids that point at the right words."""

from __future__ import annotations

import random

import torch

from labkit.model.config import GptConfig
from labkit.model.gpt import Gpt
from labkit.training.codes import Utterance
from labkit.training.gpt import (
    IGNORE,
    Shelf,
    attention_losses,
    code_losses,
    collate,
    corrupt,
    embed,
    speaker_vectors,
)
from labkit.training.vocabulary import TOKENS, prompt_ids, word_positions

END = 625
CONFIG = GptConfig(hidden=32, intermediate=48, heads=4, layers=3, positions=128, num_text_tokens=len(TOKENS))
SPEAKERS = {k: torch.from_numpy(v) for k, v in speaker_vectors(["a", "b"], 32, 0).items()}


def utterance(text: str, starts: list[int] | None, steps: int, voice: str = "a") -> Utterance:
    codes = torch.arange(steps * 4).view(steps, 4) % END
    return Utterance(text, voice, "train", prompt_ids(text), word_positions(text), codes, starts)


def test_targets_stand_where_they_are_predicted_and_end_on_all_heads() -> None:
    short, long = utterance("one", [0], 5), utterance("two, three", [0, 6], 12)
    batch = collate([short, long], SPEAKERS, END)
    n = len(short.ids)
    assert torch.equal(batch.targets[0, n - 1 : n + 4], short.codes)
    assert batch.targets[0, n + 4].tolist() == [END] * 4
    assert (batch.targets[0, n + 5 :] == IGNORE).all()
    assert torch.equal(batch.codes[0, n : n + 5], short.codes)
    assert batch.mask.sum(1).tolist() == [n + 5, len(long.ids) + 12]


def test_the_aids_follow_the_alignment_over_punctuation() -> None:
    u = utterance("two, three", [0, 6], 12)
    batch = collate([u], SPEAKERS, END)
    n = len(u.ids)
    two, three = u.words_at
    assert batch.current[0, n - 1 : n + 5].tolist() == [two] * 6
    assert batch.current[0, n + 5 : n + 12].tolist() == [three] * 7
    assert batch.following[0, n - 1].item() == three and batch.following[0, n + 11].item() == n - 1
    assert batch.own_index[0, [two, three]].tolist() == [0, 1]


def test_an_unaligned_utterance_has_no_aids_and_still_has_targets() -> None:
    batch = collate([utterance("one two", None, 8)], SPEAKERS, END)
    assert (batch.current == IGNORE).all() and (batch.targets[..., 0] >= 0).sum() == 9


def test_attention_on_the_right_words_costs_nothing() -> None:
    batch = collate([utterance("one two", [0, 4], 8)], SPEAKERS, END)
    length = batch.ids.shape[1]
    perfect = torch.zeros(1, 2, length, length)
    for head, places in enumerate((batch.current, batch.following)):
        for query in torch.nonzero(places[0] >= 0).flatten():
            perfect[0, head, query, places[0, query]] = 1.0
    loss, right = attention_losses(perfect, batch)
    assert loss < 1e-4 and right == 1.0
    loss, right = attention_losses(perfect.roll(1, -1), batch)
    assert loss > 5 and right == 0.0


def test_the_speaker_overwrites_its_token_only() -> None:
    torch.manual_seed(0)
    gpt = Gpt(CONFIG)
    one = embed(gpt, collate([utterance("one", [0], 4, "a")], SPEAKERS, END))
    other = embed(gpt, collate([utterance("one", [0], 4, "b")], SPEAKERS, END))
    assert (one != other).any(-1).nonzero()[:, 1].tolist() == [1]
    assert torch.equal(one[0, 1], SPEAKERS["a"])


def test_padding_changes_no_loss() -> None:
    torch.manual_seed(0)
    gpt = Gpt(CONFIG).eval()
    short, long = utterance("one", [0], 5), utterance("two three", [0, 9], 20)

    def losses(batch, row: int):
        return code_losses(
            gpt, gpt(embed(gpt, batch), batch.mask)[row : row + 1], batch.targets[row : row + 1]
        )[0]

    alone, beside = collate([short], SPEAKERS, END), collate([short, long], SPEAKERS, END)
    torch.testing.assert_close(losses(alone, 0), losses(beside, 0), atol=1e-5, rtol=1e-5)


def test_corruption_is_bounded_and_spares_the_original() -> None:
    codes = torch.arange(400).view(100, 4) % END
    torch.manual_seed(1)
    noisy = [corrupt(codes, 0.15, END, random.Random(i)) for i in range(20)]
    changed = [(n != codes).float().mean().item() for n in noisy]
    assert 0 < max(changed) < 0.5 and all(n.max() < END for n in noisy)
    assert torch.equal(corrupt(codes, 0.0, END, random.Random(0)), codes)


def test_a_batch_is_made_of_like_lengths() -> None:
    shelf = Shelf([utterance("one", [0], steps) for steps in range(5, 65)])
    lengths = [len(u.codes) for u in shelf.near(30, 6, random.Random(0))]
    assert len(set(lengths)) == 6 and max(lengths) - min(lengths) < 20 and min(lengths) > 15
    assert shelf.near(1000, 100, random.Random(0)).__len__() == 60


def test_speaker_vectors_are_fixed_unit_and_different() -> None:
    first, again = speaker_vectors(["a", "b"], 32, 0), speaker_vectors(["a", "b"], 32, 0)
    assert all((first[k] == again[k]).all() for k in first)
    assert abs((first["a"] ** 2).sum() - 1) < 1e-5 and abs(first["a"] @ first["b"]) < 0.9
