"""The table of sensitivity, narrowed: to one figure at every number of bits, or to all figures at one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from labkit.sensitivity.ladder import Rung

MAIN_FIGURE = {"gpt": "kl", "decoder": "mel_db", "vocoder": "mel_db"}
"""What a stage is judged by first: the GPT by the codes that it would say, the others by what is heard."""
FIGURE_NAMES = {
    "kl": "KL from float32, nats a code",
    "top1": "share of equal most likely codes",
    "nll_delta": "rise of the negative log-likelihood, nats a code",
    "hidden_error": "relative error of the hidden state",
    "mel_db": "log-mel distance from float32, dB",
}
"""The figures in words, for titles and axes."""


def by_part(frame: pd.DataFrame, stage: str, metric: str | None = None) -> pd.DataFrame:
    """One figure of one stage, in signal order; columns are kind, unit, parameters and one for each number of bits."""
    rows = frame[frame["stage"] == stage]
    parts = ["kind", "unit", "parameters"]
    wide = rows.pivot(index=parts, columns="bits", values=metric or MAIN_FIGURE[stage])
    wide = wide[sorted(wide.columns, reverse=True)].rename(columns="{} bits".format)
    return rows[parts].drop_duplicates().merge(wide.reset_index(), on=parts)


def at_bits(frame: pd.DataFrame, stage: str, bits: int) -> pd.DataFrame:
    """All figures that a stage has at one number of bits, in signal order."""
    rows = frame[(frame["stage"] == stage) & (frame["bits"] == bits)]
    figures = [name for name in FIGURE_NAMES if rows[name].notna().any()]
    return rows[["kind", "unit", "parameters", "sqnr_db", *figures]].reset_index(drop=True)


def ladder_table(rungs: Sequence[Rung]) -> pd.DataFrame:
    """A row for each rung; of KL and top-1 the mean and half the width of their 95 % interval."""
    import pandas as pd

    return pd.DataFrame(
        {
            "weights": rung.name,
            "sqnr_db": rung.sqnr_db,
            "kl": rung.kl.value,
            "kl ±": (rung.kl.high - rung.kl.low) / 2,
            "top1": rung.top1.value,
            "top1 ±": (rung.top1.high - rung.top1.low) / 2,
            "mel_db": rung.mel_db,
            "than above": rung.order or "",
        }
        for rung in rungs
    )
