"""Figures show what the frames say, and are None when there is nothing to show."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.report import plots, style
from labkit.results.frames import long_frame, wide_frame, wide_row
from tests.results.factory import SPEED, clip, document, failed

DOCUMENTS = [document(name) for name in SPEED]
LONG, WIDE = long_frame(DOCUMENTS), wide_frame(map(wide_row, DOCUMENTS))
NOTHING = wide_frame([wide_row(failed("torch-fp32"))]), long_frame([failed("torch-fp32")])
values = st.floats(0.01, 100)


@given(st.lists(st.tuples(values, values), min_size=1, max_size=12))
def test_the_front_is_what_nothing_else_beats(points: list[tuple[float, float]]) -> None:
    cost, gain = np.array(points).T
    front = plots.pareto_front(cost, gain)
    for i in range(len(points)):
        beaten = any(
            (cost[j] <= cost[i] and gain[j] > gain[i]) or (cost[j] < cost[i] and gain[j] >= gain[i])
            for j in range(len(points))
        )
        twin = any(cost[j] == cost[i] and gain[j] == gain[i] for j in front)
        assert (i in front or twin) == (not beaten)
    assert sorted(front, key=lambda i: cost[i]) == front


def test_every_recipe_is_a_labelled_point() -> None:
    axes = plots.quality_speed(WIDE, LONG).axes[0]
    assert {text.get_text() for text in axes.texts} == set(SPEED)
    assert axes.get_xscale() == "log"
    low, high = axes.get_ylim()
    assert high - low >= plots.MIN_QUALITY_SPAN - 1e-9
    assert all(low < value < high for value in WIDE["dnsmos_p808_mean"])


def test_an_unscored_recipe_is_left_out_of_the_quality_plot() -> None:
    figure = plots.quality_speed(wide_frame(map(wide_row, [*DOCUMENTS, document("bare", quality=())])), LONG)
    assert {text.get_text() for text in figure.axes[0].texts} == set(SPEED)


def test_stage_bars_add_up_to_the_work_done() -> None:
    shares = plots.stage_shares(LONG)
    assert list(shares.index) == list(SPEED)
    measured = [s for s in DOCUMENTS[0].samples if s.phase == "measured"]
    rtf = sum(s.values["latency_s"] for s in measured) / sum(s.values["audio_s"] for s in measured)
    assert shares.loc["torch-fp32"].sum() == pytest.approx(rtf)
    widths = [patch.get_width() for patch in plots.stage_bars(LONG).axes[0].patches]
    assert sum(widths) == pytest.approx(shares.to_numpy().sum())


def test_size_bars_print_their_values() -> None:
    figure = plots.size_bars(WIDE)
    printed = {text.get_text().strip() for axes in figure.axes for text in axes.texts}
    assert {"24 MB", "9 MB", "400 MB"} <= printed
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Size on disk", "Peak memory"]


def test_spectrograms_share_one_time_axis() -> None:
    figure = plots.spectrograms({"a": clip(seconds=1.0), "b": clip(seconds=2.0)})
    assert [axes.get_xlim() for axes in figure.axes] == [(0.0, 2.0)] * 2


def test_there_is_no_figure_of_nothing() -> None:
    wide, long = NOTHING
    assert plots.quality_speed(wide, long) is None
    assert plots.stage_bars(long) is None
    assert plots.size_bars(wide) is None
    assert plots.spectrograms({}) is None


def test_colours_follow_the_recipe_through_all_figures() -> None:
    colours = style.recipe_colours([*SPEED, "torch-fp32"])
    assert list(colours) == list(SPEED)
    assert len(set(colours.values())) == len(SPEED)


def test_svg_is_well_formed_follows_the_theme_and_is_the_same_every_time() -> None:
    first, second = (style.svg(plots.size_bars(WIDE)) for _ in range(2))
    assert first == second
    assert ElementTree.fromstring(first).get("viewBox")
    assert "var(--ink)" in first
    assert style.INK not in first


def test_figures_leave_global_settings_alone() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    style.png(plots.stage_bars(LONG))
    assert dict(matplotlib.rcParams) == before


def test_stage_shares_of_no_samples_are_empty() -> None:
    assert isinstance(plots.stage_shares(NOTHING[1]), pd.DataFrame)
    assert plots.stage_shares(NOTHING[1]).empty
