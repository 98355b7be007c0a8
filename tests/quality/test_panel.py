"""The panel: one row for each clip and metric, nulls with reasons, no exception becomes a number."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from labkit.errors import UserError
from labkit.quality import Clip, all_metrics, base, catalogue, dnsmos, judge, networks, panel, whisper
from labkit.quality.base import Metric, Missing, Ready, Score

RATE = 24_000


class FakeScorer:
    """A scorer that can be told to be absent, to break, or to give nonsense."""

    name = "fake"
    metrics = (Metric("fake", "points", "higher", "nothing"),)
    needs: frozenset = frozenset()
    languages = None
    rate = RATE
    packages = ()
    weights: ClassVar[dict] = {}
    max_s = 30.0
    accepts_damaged = False
    cost_cpu_s = 0.0
    loads = 0
    answer: Ready | Missing = Ready("fake 1")
    value: float = 3.0

    def availability(self) -> Ready | Missing:
        return self.answer

    def load(self) -> None:
        type(self).loads += 1

    def score(self, clip: Clip) -> dict[str, Score]:
        if clip.item == "crash":
            raise RuntimeError("boom")
        return {"fake": Score(self.value)}


@pytest.fixture
def fake(monkeypatch) -> type[FakeScorer]:
    scorer = type("OneFake", (FakeScorer,), {})
    monkeypatch.setattr(panel, "selected_metrics", lambda wanted: {"fake": scorer.metrics})
    monkeypatch.setattr(panel, "scorer_class", lambda name: scorer)
    return scorer


def clip(item: str = "a", **fields) -> Clip:
    audio = 0.1 * np.sin(np.arange(RATE) / 10)
    return Clip(item, 0, **{"audio": audio, "text": "one"} | fields)


def test_a_row_has_what_the_store_needs(fake) -> None:
    assert judge([clip()]) == [
        {
            "item": "a", "repetition": 0, "metric": "fake", "value": 3.0, "unit": "points", "reason": "",
            "scorer": "fake", "scorer_version": "fake 1",
        }
    ]  # fmt: skip


def test_a_crash_costs_one_null_and_the_scorer_loads_once(fake) -> None:
    rows = judge([clip(), clip("crash"), clip("b")])
    assert [row["value"] for row in rows] == [3.0, None, 3.0]
    assert "RuntimeError: boom" in rows[1]["reason"]
    assert fake.loads == 1


def test_a_missing_scorer_gives_reason_and_remedy(fake) -> None:
    fake.answer = Missing("It is not there.", "Install it.")
    (row,) = judge([clip()])
    assert row["value"] is None
    assert row["reason"] == "It is not there. Install it."
    assert fake.loads == 0


def test_a_scorer_that_cannot_load_is_named(fake, monkeypatch) -> None:
    monkeypatch.setattr(fake, "load", lambda self: 1 / 0)
    (row,) = judge([clip()])
    assert row["value"] is None
    assert "could not be loaded: ZeroDivisionError" in row["reason"]


def test_a_metric_that_the_scorer_leaves_out_is_null(fake) -> None:
    fake.metrics = (*FakeScorer.metrics, Metric("other", "points", "higher", "nothing"))
    given, absent = judge([clip()])
    assert (given["metric"], given["value"]) == ("fake", 3.0)
    assert (absent["metric"], absent["value"]) == ("other", None)
    assert absent["reason"] == "fake gave no score of that name"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_non_finite_score_is_null(fake, value: float) -> None:
    fake.value = value
    (row,) = judge([clip()])
    assert row["value"] is None and row["reason"]


UNFIT = {
    "silent": {"audio": np.zeros(RATE)},
    "too short": {"audio": np.ones(1)},
    "non-finite": {"audio": np.full(RATE, np.nan)},
    "not mono": {"audio": np.ones((RATE, 2)) * 0.1},
    "empty": {"audio": np.zeros(0)},
    "too long": {"audio": np.ones(600 * RATE, np.float32) * 0.1},
    "sample rate is 8000 Hz": {"audio": np.ones(8000) * 0.1, "sample_rate": 8000},
}
JUDGING = [name for name in base.scorer_names() if not base.scorer_class(name).accepts_damaged]


@pytest.mark.parametrize("family", JUDGING)
def test_unfit_clips_are_named_outcomes_and_never_reach_a_scorer(monkeypatch, family: str) -> None:
    scorer = base.scorer_class(family)
    monkeypatch.setattr(scorer, "availability", lambda self: Ready("1"))
    monkeypatch.setattr(scorer, "load", lambda self: pytest.fail("loaded for clips that it cannot judge"))
    clips = [clip(reference_audio=np.ones(RATE), **fields) for fields in UNFIT.values()]
    rows = judge(clips, [family])
    each = len(scorer.metrics)
    for outcome, index in zip(UNFIT, range(0, len(rows), each), strict=True):
        for row in rows[index : index + each]:
            assert row["value"] is None
            assert outcome in row["reason"]


@pytest.mark.parametrize("family", [name for name in JUDGING if base.scorer_class(name).weights])
def test_damaged_weights_cost_that_scorer_only(monkeypatch, tmp_path, family: str) -> None:
    scorer = base.scorer_class(family)
    for name in scorer.weights:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"not the network")
    if isinstance(scorer().availability(), Missing):
        pytest.skip(f"the packages of {family} are not installed")
    version = scorer().availability()
    monkeypatch.setattr(scorer, "availability", lambda self: version)
    for module in (networks, dnsmos, whisper):
        monkeypatch.setattr(module, "package_folder", lambda name: tmp_path)
    monkeypatch.setattr(whisper, "scorer_cache", lambda: tmp_path / "cache")
    sound, *damaged = judge([clip(reference_audio=clip().audio)], [family, "peak"])
    for row in damaged:
        assert row["value"] is None
        assert "could not be loaded: ScorerFileError" in row["reason"] and "reinstall" in row["reason"]
    assert sound["value"] == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize("field", ["text", "reference", "tokens"])
def test_a_missing_need_is_named(fake, field: str) -> None:
    fake.needs = frozenset({field})
    (row,) = judge([clip(text="")])
    assert row["value"] is None
    assert field in row["reason"]


def test_validity_through_the_panel_lists_flags() -> None:
    rows = judge([clip(ended=False), clip(audio=np.zeros(RATE))], ["valid"])
    assert [(row["value"], row["reason"]) for row in rows] == [(0.0, "tail_cut, hit_max"), (0.0, "silent")]


def test_names_select_metrics_and_families() -> None:
    assert {row["metric"] for row in judge([clip()], ["peak", "log_mel"])} == {"peak", "log_mel_db"}
    with pytest.raises(UserError, match=r"'mos' is unknown.*dnsmos_p808"):
        judge([], ["mos"])


def test_panels_are_asked_for_by_name() -> None:
    """The default panel is what every run is judged by; naming a panel twice judges once."""
    assert set(base.selected_metrics(None)) == set(base.scorer_names("default")) < set(base.scorer_names())
    assert base.selected_metrics(["full", "default", "peak"]) == base.selected_metrics(["full"])
    assert set(base.all_metrics("default")) < set(all_metrics())
    with pytest.raises(UserError, match=r"'big' is unknown.*default, full"):
        base.scorer_names("big")


def test_every_metric_says_what_it_is() -> None:
    listing = catalogue()
    assert [entry["metric"] for entry in listing] == list(all_metrics())
    assert {"valid", "log_mel_db", "dnsmos_p808", "dnsmos_ovrl", "wer", "cer"} <= set(all_metrics())
    for entry in listing:
        assert entry["description"] and entry["unit"]
        assert entry["direction"] in ("higher", "lower", "neither")
        assert entry["available"] or (entry["reason"] and entry["remedy"])


def test_metric_names_are_unique() -> None:
    names = [metric.name for name in base.scorer_names() for metric in base.scorer_class(name).metrics]
    assert len(names) == len(set(names))
