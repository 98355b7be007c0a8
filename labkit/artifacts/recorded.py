"""What a voice really says, as complete inputs of an exported graph: for whatever looks at a graph while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from labkit.calibration import CalibrationSet
    from labkit.spec import AudioPath, StageName
    from labkit.voices import Voice

Feed = dict[str, NDArray[Any]]


def half_set(voice: Voice, audio_path: str) -> CalibrationSet:
    """The sentences on which half precision is tried."""
    from labkit.calibration import calibration_set
    from labkit.quantize.half import SENTENCES

    path: AudioPath = "codes" if audio_path == "codes" else "hidden"
    return calibration_set(voice, sentences=SENTENCES, minimum=SENTENCES, audio_path=path)


def stage_inputs(
    recorded: CalibrationSet, stage: StageName, details: Mapping[str, Any], tell: Callable[[str], None]
) -> Iterator[Feed]:
    """Each sentence as a graph of the stage takes it, the GPT's at once into an empty cache.

    `details` describe the exported graph.
    """
    for feed in recorded.feeds(stage, tell):
        if stage != "gpt":
            yield feed
            continue
        complete = _portable if details.get("graph") == "portable" else _fused
        yield {**feed, **complete(feed["embeddings"].shape[1], details)}


def _fused(length: int, details: Mapping[str, Any]) -> Feed:
    return {
        "last_position": np.array([length - 1], np.int32),
        "longest": np.array([length], np.int32),
        "read_at": np.array([[length - 1]], np.int64),
        **_cache(length, details),
    }


def _portable(_: int, details: Mapping[str, Any]) -> Feed:
    return {"padding": np.zeros(1, np.int64), **_cache(0, details)}


def _cache(positions: int, details: Mapping[str, Any]) -> Feed:
    cache = np.zeros((1, details["heads"], positions, details["head_dim"]), np.float32)
    return {f"past_{kind}_{i}": cache for kind in ("key", "value") for i in range(details["layers"])}
