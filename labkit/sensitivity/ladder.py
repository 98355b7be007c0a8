"""The whole GPT on ever fewer bits, and with ever more weights set to zero: does the voice get worse step by step?

A voice whose figures rise with the damage is one on which recipes can be told apart. Every block and the code heads
change together; embeddings and norms stay. Teacher-forced in torch fp32; changes no file. No WER: it needs the voice
to speak freely, and it moves by points when the divergence moves by a tenth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from labkit.calibration import calibration_set
from labkit.sensitivity.measuring import MIN_TEXTS, comparison_of, warn_of_random_weights

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from labkit.sensitivity.comparing import Row
    from labkit.voices import Voice

BITS = (8, 6, 4, 3, 2)
PRUNED = (0.3, 0.5)
CONFIDENCE = 0.95
Kind = Literal["round", "prune"]
Order = Literal["worse", "same", "better"]


@dataclass(frozen=True)
class Figure:
    """Mean over sentences, weighted by their length, with its 95 % interval over sentences."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Rung:
    """One row of the ladder.

    name: `int8`, …, `prune 30 %`, …; kind: `round` or `prune`; amount: bits, or the share of zeros; kl (nats a code)
    and top1 as in `comparing.FIGURES`, like nll_delta, hidden_error and mel_db; sqnr_db of the
    changed weights; order: beside the rung above of the same kind, by paired 95 % intervals of the KL: `worse` is as it
    should be, `same` is within noise, `better` breaks the order; None for the first of its kind.
    """

    name: str
    kind: Kind
    amount: float
    sqnr_db: float
    kl: Figure
    top1: Figure
    nll_delta: float
    hidden_error: float
    mel_db: float
    order: Order | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def ladder(
    voice: Voice,
    *,
    corpus: str | None = None,
    texts: int = 24,
    seed: int = 0,
    speaker: str | None = None,
    threads: int = 1,
    progress: Callable[[str], None] | None = None,
) -> list[Rung]:
    """8, 6, 4, 3 and 2 bits with one scale for each channel, then 30 and 50 % of each matrix pruned by magnitude.

    The sentences come from a calibration list and are spoken by the voice itself. Same inputs, same rows.
    CalibrationError before any work.
    """
    recorded = calibration_set(
        voice, corpus, texts, seed=seed, speaker=speaker, threads=threads, minimum=MIN_TEXTS
    )
    warn_of_random_weights(voice)
    tell = progress or (lambda _: None)
    recorded.record(tell)
    comparison = comparison_of("gpt", recorded)
    rungs: list[Rung] = []
    amounts_of: dict[Kind, tuple[float, ...]] = {"round": BITS, "prune": PRUNED}
    for kind, amounts in amounts_of.items():
        above: list[Row] | None = None
        for amount in amounts:
            name = f"int{amount}" if kind == "round" else f"prune {amount * 100:.0f} %"
            tell(f"ladder: {name}")
            with damaged(comparison.network, kind, amount) as sqnr:
                rows = comparison.sentences()
            rungs.append(_rung(name, kind, amount, sqnr, rows, above))
            above = rows
    return rungs


def damaged(network: nn.Module, kind: Kind, amount: float) -> AbstractContextManager[float]:
    """Within it, the blocks and edges of a network stand on that rung; yields their signal-to-noise ratio in dB."""
    from labkit.model.rounding import units_of
    from labkit.sensitivity.rounding import changed

    modules = [name for unit in units_of(network) if unit.kind in ("block", "edge") for name in unit.modules]
    return changed(network, modules, partial(_change, kind, amount))


def _change(kind: Kind, amount: float, module: nn.Module, weight: Tensor, name: str) -> Tensor:
    from labkit.model.rounding import round_weight
    from labkit.sensitivity.rounding import prune_weight

    return round_weight(weight, int(amount), None, name) if kind == "round" else prune_weight(weight, amount)


def _rung(
    name: str, kind: Kind, amount: float, sqnr: float, rows: Sequence[Row], above: Sequence[Row] | None
) -> Rung:
    from labkit.sensitivity.comparing import mean_figures

    mean = mean_figures(rows)
    return Rung(
        name, kind, amount, sqnr,
        kl=_figure(rows, "kl"), top1=_figure(rows, "top1"), nll_delta=mean["nll_delta"],
        hidden_error=mean["hidden_error"], mel_db=mean["mel_db"],
        order=None if above is None else _order(rows, above),
    )  # fmt: skip


def _figure(rows: Sequence[Row], name: str) -> Figure:
    lengths, values = _columns(rows, name)
    return Figure(*_weighted(lengths, values))


def _order(rows: Sequence[Row], above: Sequence[Row]) -> Order:
    lengths, values = _columns(rows, "kl")
    _, low, high = _weighted(lengths, values - _columns(above, "kl")[1])
    return "worse" if low > 0 else "better" if high < 0 else "same"


def _columns(rows: Sequence[Row], name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    import numpy as np

    return np.array([length for length, _ in rows], float), np.array([figures[name] for _, figures in rows])


def _weighted(lengths: NDArray[np.float64], values: NDArray[np.float64]) -> tuple[float, float, float]:
    """(mean, low, high): Student's interval of the weighted mean, by its deviations to the first order."""
    from labkit.compare.statistics import t_interval

    mean = float((lengths * values).sum() / lengths.sum())
    interval = t_interval(mean + lengths * (values - mean) / lengths.mean(), CONFIDENCE)
    return mean, interval.low, interval.high
