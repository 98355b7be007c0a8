"""Other gates' rules: when they speak up and when they do not."""

from __future__ import annotations

import numpy as np

from labkit.compare.rules import asv_rule, ratio_rule

RANDOM = np.random.default_rng


def test_a_ratio_rule_is_a_threshold_and_nothing_else() -> None:
    assert ratio_rule([1.0, 1.0], [1.11, 1.11]) and not ratio_rule([1.0, 1.0], [1.09, 1.09])
    assert ratio_rule([1.0, 1.0, 1.0], [1.0, 1.0, 9.0])  # one outlier
    assert not ratio_rule([1.0, 1.0, 1.0], [1.0, 1.0, 9.0], limit=0.05, of="median")
    assert ratio_rule([1.0], [1.06], limit=0.05, of="median")
    assert ratio_rule([3.0], [2.5], "higher") and not ratio_rule([3.0], [3.5], "higher")


def test_asv_needs_its_factor_and_significance() -> None:
    base, noise = RANDOM(0).normal(1, 0.01, 12), RANDOM(1).normal(0, 0.01, 12)
    assert asv_rule(base, 1.2 + noise)
    assert not asv_rule(base, 1.05 + noise)  # sure, but below the factor
    assert not asv_rule(base, 0.8 + noise)  # better
    assert asv_rule(base, 0.8 + noise, "higher")
    wide = RANDOM(2).normal(0, 0.6, 12)
    assert not asv_rule(1 + np.abs(wide), 1.15 + np.abs(wide[::-1]))  # above the factor, but unsure


def test_asv_falls_back_to_intervals_with_few_samples() -> None:
    assert asv_rule([1.0, 1.01, 1.02], [2.0, 2.01, 2.02])
    assert not asv_rule([1.0, 1.5, 2.0], [1.6, 2.1, 2.6])
    assert not asv_rule([1.0], [2.0])  # one sample has no interval
