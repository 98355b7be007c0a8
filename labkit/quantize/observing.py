"""Look at the tensors inside a graph while it computes: calibration's one pass over what the voice says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from labkit.errors import CalibrationError
from labkit.quantize.feedback import GramCollector
from labkit.quantize.sessions import Feed, open_session, typed

Tell = Callable[[str], None]


class Observer(Protocol):
    """What looks at a tensor: a calibrator, a `GramCollector`."""

    def collect(self, x: NDArray[Any]) -> None:
        """Look at one batch; ValueError when it is no good."""


def observe(
    model: Path, observers: Mapping[str, tuple[Observer, ...]], feeds: Iterable[Feed], tell: Tell
) -> None:
    """Show each observer its tensor of the graph, by name, for all feeds, one feed in memory at a time.

    `feeds`: complete inputs of the graph; what it does not take is ignored. CalibrationError when there is no feed,
    or an observer refuses a tensor.
    """
    names = sorted(observers)
    session = open_session(model, names)
    count = 0
    for count, feed in enumerate(feeds, start=1):
        tell(f"calibrating on sentence {count}")
        seen = session.run(names, typed(session, feed))
        for name, values in zip(names, seen, strict=True):
            try:
                for observer in observers[name]:
                    observer.collect(values)
            except ValueError as error:
                raise CalibrationError(f"calibration: {name} of sentence {count}: {error}") from error
    if not count:
        raise CalibrationError("calibration: there is no sentence to calibrate on.")


def grams(
    model: Path, tensors: Iterable[str], feeds: Iterable[Feed], tell: Tell
) -> dict[str, NDArray[np.float32]]:
    """The Gram matrix of each of the graph's `tensors` over all feeds."""
    collectors = {name: GramCollector() for name in tensors}
    observe(model, {name: (collector,) for name, collector in collectors.items()}, feeds, tell)
    return {name: collector.gram() for name, collector in collectors.items()}
