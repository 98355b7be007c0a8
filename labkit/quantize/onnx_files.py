"""Exported graphs on disk: write a changed one. Tensors lie in one file beside the graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_DATA = "weights.bin"
_INLINE_BYTES = 1024


def save(model: onnx.ModelProto, target: Path) -> None:
    """Write the graph to `target` and its tensors, if any is large, to one file beside it."""
    import onnx

    onnx.save_model(
        model, str(target), save_as_external_data=True, all_tensors_to_one_file=True, location=_DATA,
        size_threshold=_INLINE_BYTES,
    )  # fmt: skip
