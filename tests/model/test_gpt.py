from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from labkit.model.gpt import Gpt, causal_bias, positions_of
from labkit.model.kv_cache import MASKED, FunctionalCache, KvCache
from tests.conftest import TINY

CONFIG = TINY.gpt


@pytest.fixture(scope="module")
def gpt() -> Gpt:
    torch.manual_seed(0)
    network = Gpt(CONFIG).eval().requires_grad_(False)
    network.init_weights()
    for weight in network.parameters():
        weight.mul_(6 if weight.dim() == 2 else 1)  # strong enough for positions and context to matter
    return network


@pytest.fixture(scope="module")
def prompt() -> tuple[Tensor, Tensor, Tensor]:
    """ids [3, 9] left-padded by 0, 3 and 6; their mask; codes [3, 5, 4] that follow."""
    torch.manual_seed(1)
    mask = torch.ones(3, 9, dtype=torch.bool)
    mask[1, :3] = False
    mask[2, :6] = False
    return torch.randint(0, 150, (3, 9)), mask, torch.randint(0, 625, (3, 5, 4))


def say(gpt: Gpt, ids: Tensor, mask: Tensor, codes: Tensor) -> Tensor:
    """Hidden states of the prefill and each step, [B, 1 + T, hidden]."""
    cache = gpt.new_cache(len(ids), ids.shape[1] + codes.shape[1])
    hidden = [gpt.prefill(gpt.embed_text(ids), mask, cache)]
    hidden += [gpt.step(codes[:, t], cache) for t in range(codes.shape[1])]
    return torch.stack(hidden, 1)


def test_steps_equal_one_pass_over_the_whole_sequence(gpt: Gpt, prompt: tuple[Tensor, ...]) -> None:
    ids, mask, codes = prompt
    embeddings = torch.cat([gpt.embed_text(ids), gpt.embed_codes(codes)], 1)
    whole = gpt(embeddings, torch.cat([mask, torch.ones(3, 5, dtype=torch.bool)], 1))
    assert torch.allclose(say(gpt, ids, mask, codes), whole[:, 8:], atol=2e-5)


def test_a_row_is_the_same_alone_and_padded_in_a_batch(gpt: Gpt, prompt: tuple[Tensor, ...]) -> None:
    ids, mask, codes = prompt
    batch = say(gpt, ids, mask, codes)
    for row, padding in enumerate((0, 3, 6)):
        alone = say(gpt, ids[row : row + 1, padding:], mask[row : row + 1, padding:], codes[row : row + 1])
        assert torch.allclose(alone[0], batch[row], atol=2e-5)


def test_what_stands_in_the_padding_does_not_matter(gpt: Gpt, prompt: tuple[Tensor, ...]) -> None:
    ids, mask, codes = prompt
    other = torch.where(mask, ids, (ids + 7) % 150)
    assert torch.allclose(say(gpt, ids, mask, codes), say(gpt, other, mask, codes), atol=1e-6)


def test_order_matters(gpt: Gpt, prompt: tuple[Tensor, ...]) -> None:
    ids, mask, codes = prompt
    assert not torch.allclose(
        say(gpt, ids[:1], mask[:1], codes[:1]), say(gpt, ids[:1].flip(1), mask[:1], codes[:1])
    )


def test_matches_the_textbook_layer_by_layer(gpt: Gpt, prompt: tuple[Tensor, ...]) -> None:
    """The same network written out plainly: separate projections, complex rotation, explicit causal attention."""
    ids, _, codes = prompt
    x = torch.cat([gpt.embed_text(ids[:1]), gpt.embed_codes(codes[:1])], 1)[0]
    expected = gpt(x[None])[0]
    length, heads, width = x.shape[0], CONFIG.heads, CONFIG.head_dim
    angle = torch.arange(length)[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)
    turn = torch.polar(torch.ones_like(angle), angle)[:, None]

    def norm(v: Tensor, weight: Tensor) -> Tensor:
        return v / (v.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight

    def rotated(v: Tensor) -> Tensor:  # the pair of element i is i + width/2
        pairs = torch.complex(v[..., : width // 2], v[..., width // 2 :]) * turn
        return torch.cat([pairs.real, pairs.imag], -1)

    for layer in gpt.layers:
        wq, wk, wv = layer.qkv.weight.chunk(3)
        gate, up = layer.gate_up.weight.chunk(2)
        h = norm(x, layer.attention_norm.weight)
        q, k, v = ((h @ w.T).view(length, heads, width) for w in (wq, wk, wv))
        scores = torch.einsum("qhd,khd->hqk", rotated(q), rotated(k)) / width**0.5
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
        x = x + torch.einsum("hqk,khd->qhd", scores.softmax(-1), v).flatten(1) @ layer.out.weight.T
        h = norm(x, layer.mlp_norm.weight)
        x = x + (torch.nn.functional.silu(h @ gate.T) * (h @ up.T)) @ layer.down.weight.T
    assert torch.allclose(norm(x, gpt.norm.weight), expected, atol=2e-5)


def test_four_codes_are_summed_from_four_tables(gpt: Gpt) -> None:
    tables = gpt.code_embedding.weight.view(4, 626, CONFIG.hidden)
    expected = tables[0, 5] + tables[1, 0] + tables[2, 625] + tables[3, 17]
    assert torch.allclose(gpt.embed_codes(torch.tensor([[5, 0, 625, 17]]))[0], expected)


def test_heads_read_the_hidden_state(gpt: Gpt) -> None:
    hidden = torch.randn(2, CONFIG.hidden)
    logits = gpt.code_logits(hidden)
    assert logits.shape == (2, 4, 626)
    assert torch.allclose(logits[:, 2], hidden @ gpt.code_head.weight[2 * 626 : 3 * 626].T, atol=1e-5)
    assert gpt.text_logits(hidden).shape == (2, 150)


def test_the_cache_is_written_in_place_and_can_be_used_again(gpt: Gpt, prompt: tuple[Tensor, ...]) -> None:
    ids, mask, codes = prompt
    cache = gpt.new_cache(3, 20)
    where = cache.keys.data_ptr()
    first = gpt.prefill(gpt.embed_text(ids), mask, cache)
    gpt.step(codes[:, 0], cache)
    assert cache.keys.data_ptr() == where and cache.length == 10
    assert torch.equal(gpt.prefill(gpt.embed_text(ids), mask, cache), first)
    assert cache.nbytes() == 2 * CONFIG.layers * 3 * CONFIG.hidden * 20 * 4


def test_a_full_cache_says_so(gpt: Gpt, prompt: tuple[Tensor, ...]) -> None:
    ids, mask, codes = prompt
    cache = gpt.new_cache(3, 9)
    gpt.prefill(gpt.embed_text(ids), mask, cache)
    with pytest.raises(ValueError, match="position 10 exceeds the capacity 9"):
        gpt.step(codes[:, 0], cache)
    with pytest.raises(ValueError, match="256 positions"):
        gpt.new_cache(1, 257)


def test_the_functional_cache_says_the_same_and_keeps_its_past(gpt: Gpt, prompt: tuple[Tensor, ...]) -> None:
    ids, mask, codes = prompt[0][:1], prompt[1][:1], prompt[2][:1]
    expected = say(gpt, ids, mask, codes[:, :1])
    empty = torch.zeros(1, CONFIG.heads, 0, CONFIG.head_dim)
    prefill = FunctionalCache([(empty, empty)] * CONFIG.layers)
    tables = gpt.rope_at(positions_of(mask))
    hidden = gpt.run(gpt.embed_text(ids), *tables, causal_bias(mask), prefill)
    assert torch.allclose(hidden[:, -1], expected[:, 0], atol=2e-5)
    step = FunctionalCache(prefill.present)
    hidden = gpt.run(gpt.embed_codes(codes[:, :1]), *gpt.rope_at(torch.tensor([[9]])), None, step)
    assert torch.allclose(hidden[:, 0], expected[:, 1], atol=2e-5)
    assert prefill.present[0][0].shape[2] == 9 and step.present[0][0].shape[2] == 10


def test_text_steps_feed_text(gpt: Gpt, prompt: tuple[Tensor, ...]) -> None:
    ids, mask, _ = prompt
    cache = gpt.new_cache(3, 9)
    gpt.prefill(gpt.embed_text(ids[:, :8]), mask[:, :8], cache)
    stepped = gpt.step_text(ids[:, 8], cache)
    assert torch.allclose(stepped, gpt(gpt.embed_text(ids), mask)[:, -1], atol=2e-5)


def test_the_decoding_layout_changes_memory_only(gpt: Gpt, prompt: tuple[Tensor, ...]) -> None:
    laid = copy.deepcopy(gpt).lay_out_for_decoding()
    for mine, theirs in zip(laid.parameters(), gpt.parameters(), strict=True):
        mine.copy_(theirs)
    assert laid.layers[0].qkv.weight.stride() == (1, 3 * CONFIG.hidden)
    assert torch.allclose(say(laid, *prompt), say(gpt, *prompt), atol=2e-5)


def test_trace_shows_every_layer_and_its_attention(gpt: Gpt, prompt: tuple[Tensor, ...]) -> None:
    ids, mask, _ = prompt
    trace: list[tuple[Tensor, Tensor]] = []
    hidden = gpt(gpt.embed_text(ids), mask, trace)
    outputs, attention = zip(*trace, strict=True)
    assert len(trace) == CONFIG.layers and attention[0].shape == (3, 4, 9, 9)
    assert torch.allclose(gpt.norm(outputs[-1]), hidden)
    assert torch.all(attention[1][2, :, 8, :6] == 0), "padding is never attended to"
    assert torch.allclose(attention[0].sum(-1), torch.ones(3, 4, 9))


def test_dropout_acts_in_training_alone() -> None:
    torch.manual_seed(0)
    network = Gpt(CONFIG)
    network.init_weights()
    x = torch.randn(1, 6, CONFIG.hidden)
    network.eval()
    assert torch.equal(network(x, dropout=0.5), network(x))
    network.train()
    assert not torch.equal(network(x, dropout=0.5), network(x))


def test_initial_weights_shrink_residual_projections() -> None:
    torch.manual_seed(0)
    network = Gpt(replace(CONFIG, hidden=192, heads=4))
    network.init_weights()
    layer = network.layers[0]
    assert layer.qkv.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert layer.out.weight.std().item() == pytest.approx(0.02 / 2, rel=0.05)  # sqrt(2 * 2 layers) = 2
    assert torch.all(network.norm.weight == 1)


def test_padded_rows_stay_finite() -> None:
    bias = causal_bias(torch.tensor([[False, False, True]]))
    assert bias.shape == (1, 1, 3, 3) and torch.isfinite(bias.softmax(-1)).all()
    assert bias[0, 0, 2].tolist() == pytest.approx([MASKED, MASKED, 0.0])


def test_a_cache_without_padding_has_no_bias(gpt: Gpt) -> None:
    cache = KvCache(CONFIG, 2, 8, torch.float32, torch.device("cpu"))
    cache.set_padding(torch.tensor([[True, True], [True, True]]))
    assert cache.bias is None
    cache.set_padding(torch.tensor([[False, True], [True, True]]))
    assert cache.bias is not None and cache.padding.tolist() == [1, 0]
