"""Gates and timings drawn from invented measurements with known truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labkit.faults.drawing import draw_fed_gates, draw_free_gates
from labkit.faults.findings import TierScores
from labkit.faults.work import Scores

ITEMS = [f"s{n}" for n in range(30)]


def arm(seed: int, kl: float = 0.0) -> TierScores:
    rng = np.random.default_rng(seed)

    def near(mean: float, spread: float) -> dict[str, float | None]:
        return {item: mean + spread * float(rng.standard_normal()) for item in ITEMS}

    return {
        "tier0": {"valid": dict.fromkeys(ITEMS, 1.0)},
        "tier1": {"kl": near(kl, 1e-6), "top1": near(1.0, 1e-6), "nll": near(2.0, 1e-3)},
        "tier2": {"log_mel_db": near(0.01, 0.001), "dnsmos_p808": near(3.0, 0.01)},
    }


def rendition(seed: int) -> Scores:
    rng = np.random.default_rng(seed)
    return {
        "valid": dict.fromkeys(ITEMS, 1.0),
        "dnsmos_p808": {item: 3.0 + 0.1 * float(rng.standard_normal()) for item in ITEMS},
        "forced_nll": {item: 0.5 + 0.1 * float(rng.standard_normal()) for item in ITEMS},
    }


def test_gates_without_a_change_pass_and_a_bad_arm_makes_them_fail() -> None:
    well = draw_fed_gates([arm(n) for n in range(3)], 20, None)
    assert (
        well.draws == 20
        and well.outcomes == {"pass": 20}
        and not well.failed
        and not any(well.alarmed.values())
    )
    broken = draw_fed_gates([arm(1), arm(2, kl=2.0)], 20, None)
    assert (
        broken.failed["kl"] == 0 and broken.outcomes["pass"] < 20
    )  # half of either side: no loss, but no certainty


def test_a_defect_in_one_arm_is_a_new_defect_in_some_gates() -> None:
    worse = arm(2)
    worse["tier0"]["valid"]["s3"] = 0.0
    tally = draw_fed_gates([arm(1), worse], 40, None)
    assert 0 < tally.failed["valid"] < 40 and tally.outcomes["fail"] == tally.failed["valid"]


def test_free_gates_draw_different_renditions_for_the_two_sides() -> None:
    tally = draw_free_gates([rendition(n) for n in range(6)], 20, None)
    assert tally.draws == 20 and tally.outcomes["fail"] == 0 and tally.held_back == 0
    poor = {m: {item: 1.0 for item in ITEMS} if m == "dnsmos_p808" else s for m, s in rendition(9).items()}
    mixed = draw_free_gates([poor, *(rendition(n) for n in range(5))], 20, None)
    assert mixed.outcomes["pass"] < 20
    with pytest.raises(ValueError, match="5 renditions for three sides of 2"):
        draw_free_gates([rendition(n) for n in range(5)], 20, None)


def test_a_defect_of_some_seeds_fails_free_gates_and_the_a_a_arm_holds_some_back(tmp_path: Path) -> None:
    strict = tmp_path / "margins.yaml"
    strict.write_text("valid: {kind: count, direction: higher, warn: 0, fail: 0, minimum: {tier3: 1}}")
    broken = [rendition(n) for n in range(6)]
    for n in (0, 1):
        broken[n]["valid"]["s3"] = 0.0
    tally = draw_free_gates(broken, 60, strict)
    assert 0 < tally.held_back < tally.outcomes["fail"] < 60
    assert tally.record()["held_back"] == tally.held_back
    assert draw_free_gates(broken, 60, None).outcomes["fail"] == 0  # one sentence may break by chance
