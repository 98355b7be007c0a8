"""The file of margins: the lab's own reads, and every mistake in one is named with its line and place."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from labkit.compare.margins import load_margins, parse_margins
from labkit.errors import UserError
from labkit.quality.base import all_metrics

GOOD = "wer: {kind: paired, direction: lower, warn: 0.05, fail: 0.1, minimum: {tier2: 24, tier3: 30}}\n"


def test_the_labs_own_margins_read() -> None:
    margins = load_margins()
    assert {"kl", "log_mel_db", "dnsmos_p808", "cpu_s", "rss_peak_bytes", "valid"} <= set(margins)
    assert all(each.name == name for name, each in margins.items())
    assert set(load_margins(family="speed")) == {"cpu_yardsticks", "cpu_s", "latency_s"}
    assert load_margins(family="speed")["latency_s"].quiet_only


def test_a_family_brings_its_own_minimum(tmp_path: Path) -> None:
    file = tmp_path / "margins.yaml"
    file.write_text(GOOD, encoding="utf-8")
    assert load_margins(file)["wer"].minimum == 24
    assert load_margins(file, family="tier3")["wer"].minimum == 30


def test_a_line_may_judge_another_metric_and_never_fail() -> None:
    text = "lost: {metric: cer, defect_above: 0.5, kind: count, direction: lower, warn: 0, fail: .inf, minimum: 1}"
    margin = parse_margins(text, place="here")["lost"]
    assert (margin.metric, margin.fail) == ("cer", math.inf)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must map names"),
        ("wer: 0.1", "must be a mapping"),
        ("wer: [", "not valid YAML"),
        (GOOD.replace("fail: 0.1, ", ""), "'wer' has no fail"),
        (GOOD.replace("fail", "fial"), "unknown key 'fial'"),
        (GOOD.replace("kind: paired", "kind: pared"), "kind 'pared' is unknown; use paired or"),
        (GOOD.replace("lower", "neither"), "direction 'neither' is unknown"),
        (GOOD.replace("0.05", "0"), "must be above 0"),
        (GOOD.replace("0.05", "0.5"), "at most fail"),
        (GOOD.replace("0.05", "-1"), "must be above 0"),
        (GOOD.replace("0.05", "yes"), "warn True must be a number"),
        (GOOD.replace("0.1", ".nan"), "fail nan must be a number"),
        (GOOD.replace("24", "0"), "tier2: 0 must be a whole number"),
        (GOOD.replace("24", "1"), "minimum of 2 or more"),
        (GOOD.replace("{tier2: 24, tier3: 30}", "many"), "minimum 'many' must be"),
        (GOOD.replace("{tier2: 24, tier3: 30}", "{}"), "must be a whole number"),
        (GOOD.replace("}}", "}, optional: 1}"), "optional 1 must be true or false"),
        (GOOD.replace("}}", "}, ideal: best}"), "ideal 'best' must be a number"),
    ],
)
def test_mistakes_are_named(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        parse_margins(text, place="mine.yaml")
    assert "mine.yaml" in str(caught.value)


def test_a_mistake_in_another_family_is_named_too() -> None:
    with pytest.raises(UserError, match="direction"):
        parse_margins(GOOD + GOOD.replace("wer", "cer").replace("lower", "up"), place="x", family="tier2")


def test_an_unknown_family_and_an_unreadable_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no metric is in family 'tier9'; families: tier2, tier3"):
        parse_margins(GOOD, place="x", family="tier9")
    with pytest.raises(UserError, match=r"none\.yaml cannot be read"):
        load_margins(tmp_path / "none.yaml")


def test_margins_and_the_panel_agree_on_which_way_is_better() -> None:
    panel = all_metrics()
    judged = {margin.metric: margin.direction for margin in load_margins().values() if margin.metric in panel}
    assert {"log_mel_db", "dnsmos_p808", "wer"} <= set(judged)
    of_both = {name: panel[name].direction for name in judged}
    # where neither way is better by itself, one may still be the way in which things break
    assert {n: d for n, d in judged.items() if of_both[n] != "neither"} == {
        n: d for n, d in of_both.items() if d != "neither"
    }
