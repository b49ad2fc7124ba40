"""Support for tests, benchmarks and chaos runs; nothing in the product imports it.

Public are `Meter`, a server that stands in for a paid provider and counts what it charged, `GuardTester`,
which runs guarded tasks in a test, and `FrozenExecution`, which its `freeze` returns. The fixtures of the
pytest plugin are in docs/how-to/test-guarded-tasks.md.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.testing.guarded import FrozenExecution, GuardTester
    from holdfast.testing.meter import Meter

__all__ = ["FrozenExecution", "GuardTester", "Meter"]

if not TYPE_CHECKING:  # otherwise a type checker would accept every name
    # Late, so that the plugin costs nothing, and `python -m holdfast.testing.meter` loads the module once.
    _MODULES = {"Meter": "meter", "GuardTester": "guarded", "FrozenExecution": "guarded"}

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return getattr(importlib.import_module(f"holdfast.testing.{_MODULES[name]}"), name)
        raise AttributeError(f"module 'holdfast.testing' has no attribute {name!r}")
