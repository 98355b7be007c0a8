"""The summary as matplotlib figures, in the look of `labkit.report.style`, units from the lab's table.

Functions take the frames of `labkit.results` and return figures without touching global state, so that a
notebook, a page and a test draw the same picture. A figure that has nothing to show is None.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from labkit.report.audio import FLOOR_DB, HOP, N_FFT, SAMPLE_RATE, spectrogram_db
from labkit.report.style import INK, MUTED, STYLE, recipe_colours
from labkit.results.units import describe, format_value

STAGES = {
    "prefill_s": "#a9b6c9",
    "decode_s": "#5f83b8",
    "sample_s": "#8fc1c4",
    "decoder_s": "#e0a458",
    "vocoder_s": "#b4674c",
}
MIN_BARS = 3  # rows that a bar chart has room for, so that one bar does not fill it
MIN_QUALITY_SPAN = 0.3  # points of a 1-5 scale: a narrower axis would make noise look like a finding


def quality_speed(
    wide: pd.DataFrame,
    long: pd.DataFrame,
    *,
    metric: str = "dnsmos_p808",
    colours: Mapping[str, str] | None = None,
) -> Figure | None:
    """A quality proxy against RTF, each recipe a point with a 95 % interval over texts, and the Pareto front.

    Takes one group of comparable runs (one row per recipe). The interval is the normal one of the mean.
    """
    column = f"{metric}_mean"
    if column not in wide or "rtf_p50" not in wide:
        return None
    points = wide.dropna(subset=["rtf_p50", column])
    if points.empty:
        return None
    colours = colours or recipe_colours(wide["recipe"])
    spread = _intervals(long, metric)
    with rc_context(STYLE):
        figure, axes = _canvas(6.4, 5.3)
        front = pareto_front(points["rtf_p50"].to_numpy(), points[column].to_numpy())
        line = points.iloc[front]
        axes.plot(line["rtf_p50"], line[column], color=MUTED, linewidth=1.4, linestyle=(0, (4, 3)), zorder=1)
        for _, row in points.iterrows():
            axes.errorbar(
                row["rtf_p50"], row[column], yerr=spread.get(row["run_id"]), fmt="o", markersize=10,
                color=colours[row["recipe"]], elinewidth=1.6, capsize=0, markeredgecolor="white", zorder=3,
            )  # fmt: skip
        _label_points(axes, points, column, spread)
        axes.set_xscale("log")
        axes.margins(x=0.25)
        _log_ticks(axes)
        _at_least(axes, MIN_QUALITY_SPAN if describe(metric).unit == "score" else 0.0)
        axes.set_xlabel("RTF, median (log) — left is faster")
        axes.set_ylabel(f"{describe(metric).label}, mean — up is better" if describe(metric).better == "higher"
                        else f"{describe(metric).label}, mean — down is better")  # fmt: skip
        axes.set_title(f"Quality against speed ({describe(metric).label} is a proxy, not a listener)")
    return figure


def pareto_front(cost: NDArray[np.float64], gain: NDArray[np.float64]) -> list[int]:
    """Indices of the points that no other beats in both (lower cost, higher gain), by rising cost."""
    order = sorted(range(len(cost)), key=lambda i: (cost[i], -gain[i]))
    front: list[int] = []
    for i in order:
        if not front or gain[i] > gain[front[-1]]:
            front.append(i)
    return front


def stage_bars(long: pd.DataFrame) -> Figure | None:
    """Where the time goes: seconds of each stage per second of audio, stacked; the whole bar is the RTF."""
    shares = stage_shares(long)
    if shares.empty:
        return None
    shares = shares.iloc[::-1]
    with rc_context(STYLE):
        figure, axes = _canvas(6.4, 1.5 + 0.42 * max(len(shares), MIN_BARS))
        left = np.zeros(len(shares))
        for stage in shares.columns:
            axes.barh(
                shares.index,
                shares[stage],
                left=left,
                height=0.62,
                color=STAGES[stage],
                label=describe(stage).label,
            )
            left += shares[stage].to_numpy()
        for y, total in enumerate(left):
            axes.text(total, y, f"  {total:.3f}", va="center", color=INK)
        axes.margins(x=0.12)
        axes.set_ylim(min(len(shares) - MIN_BARS, 0) - 0.5, len(shares) - 0.5)
        axes.grid(axis="y", visible=False)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", colors=INK)
        axes.set_xlabel("seconds of work per second of audio")
        axes.set_title("Where the time goes", pad=28)
        axes.legend(
            ncols=len(STAGES),
            loc="lower left",
            bbox_to_anchor=(-0.01, 0.985),
            handlelength=1,
            columnspacing=1.2,
        )
    return figure


def stage_shares(long: pd.DataFrame) -> pd.DataFrame:
    """Per recipe: sum of each stage's seconds over sum of audio seconds, measured samples only."""
    samples = long[(long["level"] == "sample") & (long["phase"] == "measured")]
    sums = samples.pivot_table(index="recipe", columns="metric", values="value", aggfunc="sum", sort=False)
    stages = [stage for stage in STAGES if stage in sums]
    if "audio_s" not in sums or not stages:
        return pd.DataFrame()
    return sums[stages].div(sums["audio_s"], axis=0).dropna(how="all").fillna(0.0)


def size_bars(wide: pd.DataFrame, *, colours: Mapping[str, str] | None = None) -> Figure | None:
    """Size on disk and peak memory, one bar per recipe."""
    metrics = [
        m
        for m in ("size_on_disk_bytes", "rss_peak_bytes", "vram_peak_bytes")
        if m in wide and wide[m].notna().any()
    ]
    if not metrics:
        return None
    colours = colours or recipe_colours(wide["recipe"])
    rows = wide.drop_duplicates("recipe").iloc[::-1]
    rows = rows[rows[metrics].notna().any(axis=1)]
    with rc_context(STYLE):
        figure = Figure(
            figsize=(6.4, 1.1 + 0.42 * max(len(rows), MIN_BARS)), layout="constrained", facecolor="white"
        )
        for place, metric in enumerate(metrics, start=1):
            axes = figure.add_subplot(1, len(metrics), place)
            axes.barh(
                rows["recipe"],
                rows[metric].fillna(0),
                height=0.62,
                color=[colours[r] for r in rows["recipe"]],
            )
            for y, value in enumerate(rows[metric]):
                axes.text(0 if pd.isna(value) else value, y, f"  {format_value(metric, value)}", va="center")
            axes.set_title(
                {"size_on_disk_bytes": "Size on disk"}.get(metric, describe(metric).label.capitalize())
            )
            axes.margins(x=0.32)
            axes.set_ylim(min(len(rows) - MIN_BARS, 0) - 0.5, len(rows) - 0.5)
            axes.grid(visible=False)
            axes.set_xticks([])
            axes.spines[["left", "bottom"]].set_visible(False)
            axes.tick_params(axis="y", colors=INK, labelleft=place == 1)
    return figure


def spectrograms(clips: Mapping[str, NDArray[np.float32]], *, title: str = "") -> Figure | None:
    """The same text said by each recipe, one above the other on one time axis; clips: name -> samples [N]."""
    if not clips:
        return None
    longest = max(len(samples) for samples in clips.values()) / SAMPLE_RATE
    with rc_context({**STYLE, "axes.grid": False}):
        figure = Figure(figsize=(7.6, 0.7 + 1.25 * len(clips)), layout="constrained", facecolor="white")
        for place, (name, samples) in enumerate(clips.items(), start=1):
            axes = figure.add_subplot(len(clips), 1, place)
            level = spectrogram_db(samples)
            axes.imshow(
                level, origin="lower", aspect="auto", cmap="magma", vmin=FLOOR_DB, vmax=0,
                extent=(0, level.shape[1] * HOP / SAMPLE_RATE, 0, (N_FFT // 2) * SAMPLE_RATE / N_FFT / 1000),
            )  # fmt: skip
            axes.set(xlim=(0, longest), ylim=(0, 8), facecolor="black", ylabel="kHz", yticks=(0, 4, 8))
            axes.set_title(name, fontsize=10, pad=4)
            axes.tick_params(labelbottom=place == len(clips))
        axes.set_xlabel("seconds")
        if title:
            figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def _canvas(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    return figure, figure.add_subplot()


def _intervals(long: pd.DataFrame, metric: str) -> dict[str, float]:
    """Half width of the 95 % interval of each run's mean over texts; absent below two texts."""
    scores = long[(long["level"] == "quality") & (long["metric"] == metric)].dropna(subset=["value"])
    per_text = scores.groupby(["run_id", "item"], sort=False)["value"].mean().groupby("run_id")
    half: pd.Series[float] = 1.96 * per_text.std(ddof=1) / np.sqrt(per_text.count())
    return {str(run): float(width) for run, width in half.dropna().items()}


def _log_ticks(axes: Axes) -> None:
    """Round numbers that fall into view: the default labels a short logarithmic axis with nearly nothing."""
    low, high = axes.get_xlim()
    steps = (1, 1.5, 2, 3, 5, 7) if high / low < 10 else (1, 3) if high / low < 1000 else (1,)
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    axes.xaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))
    axes.set_xlim(low, high)


def _at_least(axes: Axes, span: float) -> None:
    low, high = axes.get_ylim()
    if high - low < span:
        middle = (low + high) / 2
        axes.set_ylim(middle - span / 2, middle + span / 2)


def _label_points(axes: Axes, points: pd.DataFrame, column: str, spread: Mapping[str, float]) -> None:
    """Names beyond the ends of the error bars, alternately above and below, so that neighbours do not collide."""
    for place, (_, row) in enumerate(points.sort_values("rtf_p50").iterrows()):
        above = place % 2 == 0
        reach = spread.get(row["run_id"], 0.0) * (1 if above else -1)
        axes.annotate(
            row["recipe"], (row["rtf_p50"], row[column] + reach), xytext=(0, 8 if above else -8),
            textcoords="offset points", ha="center", va="bottom" if above else "top", fontsize=9.5,
        )  # fmt: skip
