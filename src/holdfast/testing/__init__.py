"""Support for tests, benchmarks and chaos runs; nothing in the product imports it.

`Meter` is public: a server that stands in for a paid provider and counts what it charged.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.testing.meter import Meter

__all__ = ["Meter"]

if not TYPE_CHECKING:  # otherwise a type checker would accept every name

    def __getattr__(name: str) -> object:
        # Late, so that `python -m holdfast.testing.meter` loads the module once.
        if name == "Meter":
            from holdfast.testing.meter import Meter  # noqa: PLC0415

            return Meter
        raise AttributeError(f"module 'holdfast.testing' has no attribute {name!r}")
