"""How OpenVINO's GPT has its weights rounded: the options, and the function that rounds one product's matrix.

It knows matrices and no graph. Whether activations are rounded too is the runtime's business: `activation_block`
tells it how many neighbouring activations of a row share a scale; a row's numbers do not depend on its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import SpecError
from labkit.quantize.blocks import Algorithm, Blocks, quantize_blocks
from labkit.spec import Option

ACTIVATION_BLOCK = "activation_block"
_COMMON: Mapping[str, tuple[Option, ...]] = {
    ACTIVATION_BLOCK: (32, 64, 128, 0),  # activations that share a scale; 0 leaves them in float32
}
INT8_OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "block_size": ("channel", 32, 16, 64, 128),
    "symmetric": (True, False),
    **_COMMON,
}
"""Build options at 8 bits with the values they may take, the default first."""
INT4_OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "block_size": (32, 16, 64, 128),
    "symmetric": (False, True),
    "algorithm": ("rtn", "hqq"),
    **_COMMON,
}
"""Build options at 4 bits."""
_ALGORITHMS: Mapping[str, Algorithm] = {"rtn": "rtn", "hqq": "hqq"}


def rounding(
    bits: int, options: Mapping[str, Option], tell: Callable[[str], None]
) -> Callable[[str, NDArray[np.float32]], Blocks]:
    """The function from a product's name and its weights [in, out] to their blocks; `options` are complete.

    SpecError for options that contradict each other and, from the function, for a block size that does not divide.
    """
    symmetric, algorithm = bool(options["symmetric"]), str(options.get("algorithm", "rtn"))
    if algorithm == "hqq" and symmetric:
        raise SpecError("options algorithm: hqq and symmetric: true contradict each other; drop symmetric.")

    def rounded(name: str, weight: NDArray[np.float32]) -> Blocks:
        tell(f"rounding {name}")
        size: Any = options["block_size"]
        block = len(weight) if size == "channel" else int(size)
        if len(weight) % block:
            raise SpecError(
                f"block_size {block} does not divide the {len(weight)} inputs of {name}; choose another one"
                f"{' or channel' if bits == 8 else ''} for this voice."
            )
        return quantize_blocks(
            weight, bits=bits, block=block, symmetric=symmetric, algorithm=_ALGORITHMS[algorithm]
        )

    return rounded
