"""The share of the machine's reading speed that a decode step reaches.

A batch-1 step reads every weight of the GPT once and the KV cache once, and does two operations a weight: it is
bound by reading. Counted are the weights that a step reads, as its stage tells them at their stored width, and the
cached keys and values; left out are activations and the rotary table, below 0.1 % of the full network.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RooflineShare:
    """`share` of the roof (1 is the roof itself), or None and why; `impossible` when it is above the roof."""

    share: float | None
    reason: str = ""
    impossible: bool = False


def step_bytes(step_weights_bytes: int, kv_position_bytes: int, context: float) -> int:
    """Bytes that one batch-1 step reads with `context` positions in its cache."""
    return round(step_weights_bytes + kv_position_bytes * context)


def float32_step_weights(*, layers: int, hidden: int, intermediate: int, head_rows: int) -> int:
    """Bytes of the weights that a float32 step reads, for a network that does not tell.

    Four attention projections and three of the gated MLP for each layer, and the code heads' `head_rows` rows.
    """
    return 4 * (layers * (4 * hidden**2 + 3 * hidden * intermediate) + head_rows * hidden)


def roofline_share(bytes_read: int | None, step_s: float | None, bytes_per_s: float | None) -> RooflineShare:
    """bytes / seconds / bandwidth, or the reason why there is no such number."""
    if not bytes_read:
        return RooflineShare(None, "the stage does not tell how many bytes a step reads")
    if not step_s or step_s <= 0:
        return RooflineShare(None, "no step was timed")
    if not bytes_per_s or bytes_per_s <= 0:
        return RooflineShare(None, "the memory bandwidth was not measured")
    share = bytes_read / step_s / bytes_per_s
    return RooflineShare(share, impossible=share > 1.0)
