"""ChatTTS Lab: export, quantize, run, measure and judge every way of running ChatTTS.

The functions behind the command line are here by name and are imported on first use, so that
`import labkit` loads no backend.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from labkit.results.store import load_long, load_wide
    from labkit.run import run
    from labkit.speak import say
    from labkit.spec import Recipe, RunSpec, SweepSpec, default_recipes, load_sweep
    from labkit.sweep import sweep

# public name -> module that holds it
_LAZY = {
    "say": "labkit.speak",
    "run": "labkit.run",
    "sweep": "labkit.sweep",
    "load_wide": "labkit.results.store",
    "load_long": "labkit.results.store",
    "Recipe": "labkit.spec",
    "default_recipes": "labkit.spec",
    "load_sweep": "labkit.spec",
    "RunSpec": "labkit.spec",
    "SweepSpec": "labkit.spec",
}

__all__ = [
    "Recipe",
    "RunSpec",
    "SweepSpec",
    "__version__",
    "default_recipes",
    "load_long",
    "load_sweep",
    "load_wide",
    "run",
    "say",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'labkit' has no attribute {name!r}; it has {', '.join(sorted(_LAZY))}")
    return getattr(importlib.import_module(_LAZY[name]), name)


class _Package(ModuleType):
    """Keeps `labkit.run` and `labkit.sweep` the functions although modules of those names exist.

    Importing a submodule binds it to its name in the package; here the public function has that name.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _LAZY and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
