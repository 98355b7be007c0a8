"""The tables of what was found, in markdown; into a page of their own, or into a document between two marks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.compare.verdicts import CONFIDENCE
from labkit.errors import UserError
from labkit.faults.conditions import CONDITIONS, NULLS, Condition
from labkit.faults.drawing import Tally
from labkit.faults.findings import RULES, Movement, expected, first_failure
from labkit.faults.speeds import SpeedFindings, SpeedRates
from labkit.faults.timing import LARGER, SLOWER
from labkit.faults.words import how_gates, how_speed
from labkit.results.store import write_atomic

if TYPE_CHECKING:
    from labkit.compare.verdicts import Verdict
    from labkit.faults.running import Findings

BEGIN, END = "<!-- faults: begin, written by `labkit faults` -->", "<!-- faults: end -->"
TOKENS = ("kl", "total_variation", "top1", "nll_delta", "hidden_error")
PROXIES = (
    ("log_mel_db", "log-mel dB"), ("high_band_loss_db", "high band dB"), ("visqol", "ViSQOL"),
    ("dnsmos_ovrl", "OVRL"), ("dnsmos_p808", "P808"), ("plcmos", "PLCMOS"), ("distillmos", "Distill-MOS"),
    ("campp_similarity", "CAM++"), ("f0_correlation", "F0 corr."), ("forced_nll", "forced NLL"), ("cer", "CER"),
)  # fmt: skip
EMPTY = "—"


def page(found: Findings) -> str:
    """All tables, each with what it says and how many of what it rests on."""
    facts = "; ".join(f"{name}: {words}" for name, words in found.facts.items())
    effort = found.effort
    parts = [
        f"Measured with `labkit faults`. {facts}.",
        "**Faults.** The lowest tier that fails and its worst metric, what it would have needed, and all that fail. "
        "The last three columns are the scores by which other rules call it worse.",
        _faults(found),
        "**Nulls.** Nothing here may fail.",
        _nulls(found),
        "**Gates in which nothing changed.** " + how_gates(effort),
        _gates(found),
        "**Speed.** " + how_speed(found),
        _speed(found),
        _memory(found),
        "**What each proxy moves**, mean paired change from torch FP32; in brackets the sentences that show at 99 % "
        "with 90 % power that it moved at all. Nulls and faults of the acoustic path on "
        f"{effort.panel} sentences, the others on {effort.graded}. {EMPTY} is no number: the clip has another "
        f"length, or was not scored.{_unscored(found)}",
        _proxies(found),
        f"**What the tokens say**, means of {effort.sentences} sentences.",
        _tokens(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _unscored(found: Findings) -> str:
    lost = [f"{words} ({found.unscored[metric]})" for metric, words in PROXIES if metric in found.unscored]
    return f" Without any score: {'; '.join(lost)}." if lost else ""


def insert(document: Path, text: str) -> None:
    """Replace what stands between the marks of a document; `UserError` when it has none."""
    try:
        whole = document.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{document} cannot be read ({error.strerror}).") from error
    if whole.count(BEGIN) != 1 or whole.count(END) != 1 or whole.index(BEGIN) > whole.index(END):
        raise UserError(f"{document} must hold the lines {BEGIN!r} and {END!r} once, in this order.")
    before, rest = whole.split(BEGIN)
    write_atomic(document, f"{before}{BEGIN}\n{text}{END}{rest.split(END)[1]}".encode())


def _faults(found: Findings) -> str:
    rows = []
    for condition in _of("fault"):
        first = first_failure(found.verdicts[condition.name])
        undecided = any(each.outcome == "inconclusive" for each in _all(found, condition))
        words = ["undecided" if undecided else "**not found**", EMPTY, EMPTY]
        if first:
            tier, verdict = first
            words = [
                f"tier {tier[-1]}, `{verdict.metric}`",
                f"{_signed(verdict.change)} ({_number(verdict.margin.fail)})",
                f"{verdict.n} ({_whole(verdict.n_needed)})",
            ]
        failed = [each.metric for each in _all(found, condition) if each.outcome == "fail"]
        rows.append([condition.words, *words, ", ".join(failed) or EMPTY, *_alarmed(found, condition)])
    columns = ["fault", "found first by", "change (limit)", "N (needed)", "all that fail", *RULES]
    return _table(columns, rows)


def _nulls(found: Findings) -> str:
    rows = []
    for condition in NULLS:
        verdicts = _all(found, condition)
        outcomes = {
            word: [v.metric for v in verdicts if v.outcome == word]
            for word in ("fail", "inconclusive", "pass")
        }
        warned = [v.metric for v in verdicts if v.warned and v.outcome == "pass"]
        rows.append(
            [condition.words, ", ".join(outcomes["fail"]) or "none", ", ".join(outcomes["inconclusive"]) or "none",
             ", ".join(warned) or "none", str(len(outcomes["pass"])), *_alarmed(found, condition)]
        )  # fmt: skip
    return _table(["null", "fail", "inconclusive", "warned", "pass", *RULES], rows)


def _gates(found: Findings) -> str:
    rows = []
    tallies = {"tiers 0 to 2": found.fed_gates, "tier 3, other seeds": found.free_gates}
    for words, tally in tallies.items():
        if tally is not None:
            rows.append([words, *_tally(tally)])
    return _table(
        ["gates", "drawn", "FAIL", "inconclusive", "pass", "what failed", *(f"alarms of {r}" for r in RULES)],
        rows,
    )


def _tally(tally: Tally) -> list[str]:
    failed = ", ".join(f"{metric} {count}" for metric, count in tally.failed.most_common()) or EMPTY
    outcomes = [str(tally.outcomes[word]) for word in ("fail", "inconclusive", "pass")]
    if tally.outcomes["fail"]:
        outcomes[0] += f" ({tally.held_back})"
    return [str(tally.draws), *outcomes, failed, *(str(tally.alarmed[rule]) for rule in RULES)]


def _speed(found: Findings) -> str:
    rows = [row for recipe, each in found.speed.items() for row in _speed_rows(recipe, each)]
    if not rows:
        return "Too few processes were timed for a table."
    return _table(["recipe", "slow-down", "ours: FAIL", "ours: PASS", *RULES], rows)


def _speed_rows(recipe: str, speed: SpeedFindings) -> list[list[str]]:
    named = [
        ("none" if not each.slow_down else f"{each.slow_down * 100:.0f} %, by scaling", each)
        for each in speed.scaled
    ]
    if speed.really_slowed is not None and speed.slowed_by is not None:
        loop = f"a real busy loop of {SLOWER * 100:.0f} %, measured {speed.slowed_by * 100:+.1f} %"
        named.append((loop, speed.really_slowed))
    return [[f"`{recipe}`", *_rates(words, rates)] for words, rates in named]


def _rates(words: str, rates: SpeedRates) -> list[str]:
    others = [f"{rates.one_process[r] * 100:.0f} / {rates.same_processes[r] * 100:.0f}" for r in RULES]
    return [words, f"{rates.ours['fail'] * 100:.0f}", f"{rates.ours['pass'] * 100:.0f}", *others]


def _memory(found: Findings) -> str:
    verdict = found.memory
    if verdict is None or verdict.change is None:
        return ""
    return (
        f"**Memory.** Processes that really hold {LARGER * 100:.0f} % more peak at {verdict.change * 100:+.1f} % of "
        f"{(verdict.base or 0) / 1e6:.0f} MB: {verdict.outcome} (limit {verdict.margin.fail * 100:.0f} %)."
    )


def _proxies(found: Findings) -> str:
    rows = []
    for name, condition in CONDITIONS.items():
        if name != "base":
            moved = found.moved[name]
            rows.append([condition.words, *(_movement(moved.get(metric)) for metric, _ in PROXIES)])
    return _table(["change", *(words for _, words in PROXIES)], rows)


def _tokens(found: Findings) -> str:
    rows = []
    for name, values in found.forced.items():
        if name == "base":
            continue
        outcomes = {v.outcome for v in found.verdicts[name].get("tier1", {}).values()}
        said = next((w for w in ("fail", "inconclusive", "pass") if w in outcomes), EMPTY)
        rows.append([CONDITIONS[name].words, *(f"{values[metric]:.4f}" for metric in TOKENS), said])
    return _table(["change", *(f"`{metric}`" for metric in TOKENS), "tier 1 says"], rows)


def surprises(found: Findings) -> list[str]:
    """Faults that nobody found and nulls that failed: one line each, none when all is as it should be."""
    lines = []
    for name, verdicts in found.verdicts.items():
        condition, first = CONDITIONS[name], first_failure(verdicts)
        if expected(condition) == "fail" and first is None:
            lines.append(f"not found: {condition.words}")
        elif expected(condition) == "pass" and first is not None:
            lines.append(f"cried wolf: {condition.words}, tier {first[0][-1]}, {first[1].metric}")
    # chance has no part in fed tokens; speaking freely it has the share that a verdict's confidence leaves it
    for words, tally, share in (
        ("tiers 0 to 2", found.fed_gates, 0.0),
        ("tier 3", found.free_gates, 1 - CONFIDENCE),
    ):
        if tally and tally.outcomes["fail"] - tally.held_back > share * tally.draws:
            lines.append(
                f"cried wolf: {tally.outcomes['fail']} of {tally.draws} gates of {words} without a change"
            )
    return lines


def _all(found: Findings, condition: Condition) -> list[Verdict]:
    return [each for metrics in found.verdicts[condition.name].values() for each in metrics.values()]


def _of(role: str) -> list[Condition]:
    return [each for each in CONDITIONS.values() if each.role == role]


def _alarmed(found: Findings, condition: Condition) -> list[str]:
    return [", ".join(found.alarms[condition.name][rule]) or EMPTY for rule in RULES]


def _movement(moved: Movement | None) -> str:
    if moved is None:
        return EMPTY
    return _signed(moved.change) + (
        f" [{moved.n_needed}]" if moved.n_needed and moved.n_needed < 1000 else ""
    )


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return EMPTY
    digits = 3 if abs(value) < 0.1 else 2 if abs(value) < 10 else 0
    return f"{value:.{digits}f}"


def _signed(value: float | None) -> str:
    text = _number(value)
    return (
        f"+{text}"
        if value is not None and value > 0 and text.strip("0.")
        else text.replace("-0.000", "0.000")
    )


def _whole(value: int | None) -> str:
    return EMPTY if value is None else str(value)


def _table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
