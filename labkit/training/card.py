"""The measured part of the voice's card: tables in markdown, written between two marks of CARD.md.

The rest of the card is prose by hand. Knows findings and logs; measures nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from labkit.errors import UserError
from labkit.model.layout import ESSENTIALS
from labkit.training.evaluate import Evaluation
from labkit.training.figures import ArmFigures, by_speaker, figures
from labkit.training.listen import Finding
from labkit.training.traits import Trait

BEGIN = "<!-- figures: written by `labkit train nano --evaluate --card CARD.md` -->"
END = "<!-- end of figures -->"
CURVES = (("dvae", "l1"), ("vocoder", "mel"), ("gpt", "ce0"), ("decoder", "l1"))
LOSS_NAMES = {"l1": "log-mel L1", "mel": "log-mel L1", "ce0": "cross-entropy, first codes"}


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def figure_table(findings: Sequence[Finding]) -> str:
    """One line per arm; intervals are 95 %, over texts."""
    head = ("arm", "clips", "WER, Whisper-base", "WER, closed", "ended by itself", "duration ratio",
            "DNSMOS overall", "DNSMOS P.808", "Distill-MOS", "right speaker")  # fmt: skip
    rows = [
        (
            f.arm, str(f.clips), f.whisper_wer.percent(), f.closed_wer.percent(), f.ended.percent(),
            f.duration_ratio.plain(), f.dnsmos_ovrl.plain(), f.dnsmos_p808.plain(), f.distill_mos.plain(),
            f.right_speaker.percent(),
        )
        for f in figures(findings)
    ]  # fmt: skip
    return "\n".join(map(_row, (head, ["---"] * len(head), *rows)))


def speaker_table(findings: Sequence[Finding]) -> str:
    """Whisper's word error rate for each arm and speaker."""
    table = by_speaker(findings)
    speakers = list(next(iter(table.values())))
    rows = [(arm, *(row[speaker].percent() for speaker in speakers)) for arm, row in table.items()]
    return "\n".join(map(_row, (("WER, Whisper-base", *speakers), ["---"] * (len(speakers) + 1), *rows)))


def trait_table(traits: Sequence[Trait]) -> str:
    rows = [(t.name, t.words, t.wanted) for t in traits]
    return "\n".join(map(_row, (("", "found", "wanted"), ["---"] * 3, *rows)))


def write_figures(card: Path, evaluation: Evaluation) -> None:
    """Replace what stands between the marks of the card. UserError when the marks are not there."""
    text = card.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise UserError(
            f"{card}: the marks for the figures are missing; it must contain {BEGIN!r} and {END!r}."
        )
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    findings = evaluation.findings
    tables = figure_table(findings), speaker_table(findings), trait_table(evaluation.traits)
    body = "\n\n" + "\n\n".join(tables) + "\n\n"
    card.write_text(f"{before}{BEGIN}{body}{END}{after}", encoding="utf-8")
    essentials = {f.arm: essential_words(f) for f in figures(findings)}
    card.with_name(ESSENTIALS).write_text(json.dumps(essentials, indent=1) + "\n", encoding="utf-8")


def essential_words(f: ArmFigures) -> str:
    """What `labkit voices show` prints of an arm."""
    return (
        f"WER Whisper {f.whisper_wer.percent()}, closed {f.closed_wer.percent()}, ended {f.ended.percent()}, "
        f"DNSMOS overall {f.dnsmos_ovrl.plain()}, {f.clips} clips"
    )


def read_log(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def draw_curves(work: Path, target: Path) -> bool:
    """Training and held-out loss of every network as one PNG. False when the work folder has no logs: nothing drawn."""
    logs = [(stage, key, work / stage / "log.jsonl") for stage, key in CURVES]
    if not all(path.exists() for _, _, path in logs):
        return False
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(CURVES), figsize=(12, 2.6), layout="constrained")
    for axis, (stage, key, path) in zip(axes, logs, strict=True):
        log = read_log(path)
        axis.plot([r["step"] for r in log], [r[key] for r in log], lw=1, label="training")
        valid = [(r["step"], r[f"valid_{key}"]) for r in log if f"valid_{key}" in r]
        axis.plot(*zip(*valid, strict=True), lw=1.5, label="held out")
        axis.set(title=f"{stage}: {LOSS_NAMES[key]}", xlabel="step", yscale="log")
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    figure.savefig(target, dpi=80)
    pyplot.close(figure)
    return True
