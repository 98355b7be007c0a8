"""A gate's result as it would come out of the gate, made from invented scores."""

from __future__ import annotations

import numpy as np

from labkit.compare import load_margins, memory_verdict, overall, speed_verdict
from labkit.compare.verdicts import judge_family
from labkit.report.gate_result import Beside, GateResult, Line

ITEMS = [f"s{i}" for i in range(30)]


def scores(value: float, spread: float = 0.001, seed: int = 0) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    return {item: value + spread * float(rng.standard_normal()) for item in ITEMS}


def gate_lines(*, damage: float = 0.0) -> list[Line]:
    """A recipe that is well and one whose hidden states and tokens moved by `damage`, with costs."""
    lines = []
    for recipe, lost in (("ort-fp32", 0.0), ("hurt", damage)):
        base = {"kl": scores(0.001, 1e-4), "hidden_error": scores(0.02), "top1": scores(0.97)}
        head = {
            "kl": scores(0.001 + lost, 1e-4, 1), "hidden_error": scores(0.02 + 3 * lost, seed=2),
            "top1": scores(0.97 - 4 * lost, seed=3),
        }  # fmt: skip
        margins = {name: rule for name, rule in load_margins(family="tier1").items() if name in base}
        lines += [Line(recipe, recipe, "tier1", each) for each in judge_family(base, head, margins).values()]
        few = {"dnsmos_p808": dict(list(scores(3.0).items())[:5])}
        tier2 = {"dnsmos_p808": load_margins(family="tier2")["dnsmos_p808"]}
        lines += [Line(recipe, recipe, "tier2", each) for each in judge_family(few, few, tier2).values()]
    speed, memory = load_margins(family="speed"), load_margins(family="memory")
    times = [1.0 + 0.001 * i for i in range(10)]
    lines.append(Line("ort-fp32", "ort-fp32", "speed", speed_verdict(times, times[:5], speed["cpu_s"])))
    lines.append(
        Line("ort-fp32", "ort-fp32", "speed", memory_verdict([1e9], [1e9], memory["rss_peak_bytes"]))
    )
    return lines


def gate_result(*, damage: float = 0.0, clips: bool = True) -> GateResult:
    lines = gate_lines(damage=damage)
    tone = 0.3 * np.sin(2 * np.pi * 220 * np.arange(24000) / 24000)
    beside = Beside(
        "hurt", "s3", 'say "<one>" | two', "tier1", "hidden-state error changed by 12.0 %", "torch-fp32, today",
        tone.astype(np.float32), (0.5 * tone[:20000]).astype(np.float32),
        (("KL from the reference", "0.001 nats", "0.05 nats"),), tone[:9000].astype(np.float32),
        (0.0, 0.1, 0.6), (0.05, 0.06, 0.01, 0.08),
    )  # fmt: skip
    return GateResult(
        name="smoke", baseline="nano-cpu", overall=overall([line.verdict for line in lines]),
        lines=tuple(lines), arm=(),
        clips=(beside,) if clips else (), notes=("speed was not asked for",),
        facts=(("voice", "nano (0123)"), ("machine", "a | b")), seconds=61.2,
    )  # fmt: skip
