"""What a gate's children are told beyond the job of a run, and the files that they leave in its folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.gate.document import Part
from labkit.gate.figures import Forced
from labkit.results.arrays import load_arrays, save_arrays

ANCHORS = "anchors.npz"


@dataclass(frozen=True)
class Order:
    """One part of a gate for one recipe.

    seeds: of free-running speech. panel: what judges the clips; empty for none. reference: folder with the reference
    recipe's answers, None when this recipe is the reference.
    """

    part: Part
    seeds: tuple[int, ...]
    panel: tuple[str, ...]
    reference: str | None

    def write(self, folder: Path) -> None:
        (folder / "order.json").write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(folder: Path) -> Order:
        values = json.loads((folder / "order.json").read_text(encoding="utf-8"))
        return Order(values["part"], tuple(values["seeds"]), tuple(values["panel"]), values["reference"])


@dataclass(frozen=True)
class ForcedClip:
    """What one recipe did with one sentence's tokens [T, C].

    heard [N]: from its own hidden states; acoustic [N]: from the reference's; free: what it says by itself, with the
    noise that drew the tokens, for the ear alone.
    """

    answer: Forced
    codes: NDArray[np.int64]
    heard: NDArray[np.float32]
    acoustic: NDArray[np.float32]
    free: NDArray[np.float32]


@dataclass(frozen=True)
class FreeClip:
    """What one recipe said by itself: codes [T, C], audio [N]."""

    codes: NDArray[np.int64]
    audio: NDArray[np.float32]
    ended: bool
    flags: tuple[str, ...]


def save_forced(folder: Path, number: int, clip: ForcedClip) -> None:
    save_arrays(
        folder / f"forced-{number:04d}.npz",
        {"logits": clip.answer.logits, "hidden": clip.answer.hidden, "codes": clip.codes, "heard": clip.heard,
         "acoustic": clip.acoustic, "free": clip.free},
    )  # fmt: skip


def load_forced(folder: Path, number: int) -> ForcedClip:
    """FileNotFoundError when the sentence was never spoken; KeyError when its answers were not kept."""
    arrays = _present(folder / f"forced-{number:04d}.npz")
    answer = Forced(arrays["logits"], arrays["hidden"])
    return ForcedClip(answer, arrays["codes"], arrays["heard"], arrays["acoustic"], arrays["free"])


def load_heard(folder: Path, number: int) -> dict[str, NDArray[np.float32]]:
    """The clips of a sentence, `heard`, `acoustic` and `free`, which are always kept."""
    arrays = _present(folder / f"forced-{number:04d}.npz")
    return {name: arrays[name] for name in ("heard", "acoustic", "free")}


def save_free(folder: Path, number: int, seed: int, clip: FreeClip) -> None:
    save_arrays(
        folder / f"free-{number:04d}-{seed}.npz",
        {"codes": clip.codes, "audio": clip.audio, "ended": np.asarray(clip.ended),
         "flags": np.asarray(clip.flags, str)},
    )  # fmt: skip


def load_free(folder: Path, number: int, seed: int) -> FreeClip:
    """FileNotFoundError when the sentence was never spoken with this seed."""
    arrays = _present(folder / f"free-{number:04d}-{seed}.npz")
    return FreeClip(
        arrays["codes"], arrays["audio"], bool(arrays["ended"]), tuple(str(flag) for flag in arrays["flags"])
    )


def _present(file: Path) -> dict[str, NDArray[Any]]:
    arrays = load_arrays(file)
    if not arrays:
        raise FileNotFoundError(file)
    return arrays
