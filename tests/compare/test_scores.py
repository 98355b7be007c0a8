"""Scores by item out of the store's long frame."""

from __future__ import annotations

import math

import pandas as pd

from labkit.compare import Margin, item_scores, verdict


def test_scores_come_by_metric_item_and_seed_without_warmups() -> None:
    rows = [
        ("measured", 1, 1, "x", "wer", 0.2),
        ("measured", 0, 1, "x", "wer", None),
        ("measured", 0, 0, "x", "wer", 0.1),
        ("warmup", 0, 0, "x", "wer", 9.0),
        ("measured", 0, 0, "y", "wer", 0.5),
        ("measured", 0, 0, "x", "plcmos", 4.0),
        ("measured", 0, 0, None, "load_s", 1.0),
    ]
    frame = pd.DataFrame(rows, columns=["phase", "seed", "repetition", "item", "metric", "value"])
    found = item_scores(frame)
    assert set(found) == {"wer", "plcmos"}
    assert found["wer"]["y"] == [0.5] and found["plcmos"] == {"x": [4.0]}
    first, second, third = found["wer"]["x"]
    assert (first, third) == (0.1, 0.2) and math.isnan(second)


def test_seeds_match_one_by_one_between_frames() -> None:
    def frame(values: list[float | None]) -> pd.DataFrame:
        return pd.DataFrame({"item": "x", "metric": "m", "repetition": range(len(values)), "value": values})

    rule = Margin("m", "count", "higher", 0, 0, 1)
    base, head = (item_scores(frame(values))["m"] for values in ([1.0, 7.0, 3.0], [1.0, None, 3.0]))
    assert verdict(base, head, rule).changes == {"x": 0.0}
