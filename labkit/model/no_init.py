"""Build a module without filling its parameters, when they are about to be read from a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch.overrides import TorchFunctionMode

_RANDOM_FILLS = {"uniform_", "normal_", "erfinv_"}


class _SkipInit(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        initializer = getattr(func, "__module__", None) == "torch.nn.init"
        if initializer or getattr(func, "__name__", None) in _RANDOM_FILLS:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


@contextmanager
def without_initialization() -> Iterator[None]:
    """Inside, `torch.nn.init` functions and random in-place fills leave their tensor as it is."""
    with _SkipInit():
        yield
